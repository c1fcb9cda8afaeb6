//! Addresses of shared and local arrays: a tag, the array's number, and a byte offset.
//!
//! Global addresses are below 2⁴⁸. Arithmetic on a tagged address stays in its array's 4 GiB, so an access that
//! leaves the array is found, whatever lies next to it. Twice an address still fits in 64 bits: so elements of half a
//! byte are addressed.

const SHARED: u64 = 1 << 56;
const LOCAL: u64 = 2 << 56;

/// What an address points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Global(u64),
    Shared(u16, i64),
    Local(u16, i64),
}

/// The address of a shared array's first byte.
pub(crate) fn shared(array: u16) -> u64 {
    tagged(SHARED, array)
}

/// The address of a local array's first byte.
pub(crate) fn local(array: u16) -> u64 {
    tagged(LOCAL, array)
}

fn tagged(tag: u64, array: u16) -> u64 {
    // The middle of the window: offsets below zero stay in it too.
    tag | (array as u64) << 32 | 1 << 31
}

/// What an address points to.
pub(crate) fn decode(address: u64) -> Target {
    let array = (address >> 32) as u16;
    let offset = (address & 0xffff_ffff) as i64 - (1 << 31);
    match address & (0xff << 56) {
        SHARED => Target::Shared(array, offset),
        LOCAL => Target::Local(array, offset),
        _ => Target::Global(address),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_arrays_survive_arithmetic() {
        assert_eq!(decode(shared(3) + 8), Target::Shared(3, 8));
        assert_eq!(decode(shared(3) - 4), Target::Shared(3, -4));
        assert_eq!(decode(local(700)), Target::Local(700, 0));
        assert_eq!(decode(0x7000_0000_0010), Target::Global(0x7000_0000_0010));
        assert_eq!(shared(1) % 256, 0);
    }
}
