//! Addresses of shared and local arrays: a tag, the array's number, and a byte offset.
//!
//! Global addresses are below 2⁴⁸. Arithmetic on a tagged address stays in its array's 4 GiB, so an access that
//! leaves the array is found, whatever lies next to it. Twice an address still fits in 64 bits: so elements of half a
//! byte are addressed. An address in the shared memory of a block of the cluster holds its rank too; those of 32 bits
//! (`ld.shared::cluster` and its like) are bytes from the start of a block's shared memory, with the block's rank in the
//! upper byte. Those of a block's own shared memory have its own rank there, as on a GPU: clearing the lowest bit of the
//! rank (CUTLASS, `Sm100MmaPeerBitMask`) gives the address in the first block of a pair.

use crate::bytecode::SharedArray;

const SHARED: u64 = 1 << 56;
const LOCAL: u64 = 2 << 56;

/// What an address points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// An address of global memory.
    Global(u64),
    /// The number of a shared array, and a byte.
    Shared(u16, i64),
    /// Of the block of this rank in the cluster.
    Cluster(u32, u16, i64),
    /// The number of a local array, and a byte.
    Local(u16, i64),
}

/// The address of a shared array's first byte.
pub fn shared(array: u16) -> u64 {
    tagged(SHARED, array)
}

/// The address of a local array's first byte.
pub fn local(array: u16) -> u64 {
    tagged(LOCAL, array)
}

fn tagged(tag: u64, array: u16) -> u64 {
    // The middle of the window, so that small negative offsets stay in it too.
    tag | (array as u64) << 32 | 1 << 31
}

/// What an address points to.
pub fn decode(address: u64) -> Target {
    let array = (address >> 32) as u16;
    let offset = (address & 0xffff_ffff) as i64 - (1 << 31);
    let rank = (address >> 48) as u32 & 0xff;
    match address & (0xff << 56) {
        SHARED if rank > 0 => Target::Cluster(rank - 1, array, offset),
        SHARED => Target::Shared(array, offset),
        LOCAL => Target::Local(array, offset),
        _ => Target::Global(address),
    }
}

/// The same place in the shared memory of the block of a rank: `mapa`.
pub fn of_rank(address: u64, rank: u32) -> u64 {
    match decode(address) {
        Target::Shared(..) | Target::Cluster(..) => {
            address & !(0xff << 48) | u64::from(rank.min(0xfe) + 1) << 48
        }
        _ => address,
    }
}

/// An address in 32 bits, as `cvta` gives it to a block of rank `own`.
pub fn to_raw(address: u64, arrays: &[SharedArray], own: u32) -> u32 {
    let (rank, array, offset) = match decode(address) {
        Target::Shared(array, offset) => (own, array, offset),
        Target::Cluster(rank, array, offset) => (rank, array, offset),
        _ => return address as u32,
    };
    let start = arrays.get(array as usize).map_or(0, |a| a.offset);
    rank << 24 | start.wrapping_add(offset as u32) & 0x00ff_ffff
}

/// The address behind 32 bits, to a block of rank `own`.
pub fn of_raw(raw: u32, arrays: &[SharedArray], own: u32) -> u64 {
    let address = of_byte(raw & 0x00ff_ffff, arrays);
    match raw >> 24 {
        rank if rank == own => address,
        rank => of_rank(address, rank),
    }
}

/// The address of a byte of the block's shared memory: in the array that holds it, else beyond the last one.
pub fn of_byte(place: u32, arrays: &[SharedArray]) -> u64 {
    let holds = |a: &&SharedArray| place >= a.offset && place < a.offset + a.bytes.max(1);
    let whole = || arrays.iter().filter(|a| a.view.is_none());
    let array = whole().find(holds).or(whole().next_back());
    let index = array.and_then(|a| arrays.iter().position(|b| std::ptr::eq(a, b)));
    let offset = place.wrapping_sub(array.map_or(0, |a| a.offset));
    shared(index.unwrap_or(0) as u16).wrapping_add(i64::from(offset as i32) as u64)
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
        assert_eq!(decode(of_rank(shared(3) + 8, 0)), Target::Cluster(0, 3, 8));
        assert_eq!(
            decode(of_rank(of_rank(shared(3), 5) + 4, 2)),
            Target::Cluster(2, 3, 4)
        );
    }

    #[test]
    fn addresses_of_32_bits_come_back() {
        let array = |offset, bytes| SharedArray {
            offset,
            bytes,
            align: 64,
            element: 8,
            name: String::new(),
            dynamic: false,
            view: None,
        };
        let arrays = [array(0, 64), array(128, 32)];
        for address in [
            shared(0),
            shared(0) + 60,
            shared(1) + 31,
            of_rank(shared(1) + 4, 3),
        ] {
            assert_eq!(of_raw(to_raw(address, &arrays, 1), &arrays, 1), address);
        }
        assert_eq!(to_raw(of_rank(shared(1) + 4, 1), &arrays, 0), 1 << 24 | 132);
        assert_eq!(to_raw(shared(1) + 4, &arrays, 1), 1 << 24 | 132);
        assert_eq!(of_raw(132, &arrays, 1), of_rank(shared(1) + 4, 0));
        let beyond = of_raw(to_raw(shared(1) + 4, &arrays, 0) + 1000, &arrays, 0);
        assert_eq!(decode(beyond), Target::Shared(1, 1004));
    }
}
