//! The alignment that shared arrays have by their declarations.
//!
//! The address of an array in the simulator may have a larger alignment than its declaration guarantees, and nvcc may place it
//! elsewhere: what copies and tensor cores require is compared with the declaration. Dynamic shared memory is declared with
//! 1024 bytes in kernels that have such instructions; its parts have known offsets.

use super::access::Check;
use super::address::{Target, decode};
use super::run::Machine;
use super::{Context, Trap};
use crate::fault::FaultKind;

impl Context<'_> {
    /// What is wrong with the declared alignment of the array that holds a shared address, where it is less than required.
    pub(super) fn declared_alignment(&self, address: u64, what: &str, required: u32) -> Option<String> {
        let array = match decode(address) {
            Target::Shared(array, _) | Target::Cluster(_, array, _) => {
                self.code.shared.get(array as usize)?
            }
            _ => return None,
        };
        (array.align < required).then(|| {
            format!(
                "{what} is in shared `{}`, which is declared with an alignment of {} bytes, and {required} are required: \
                 declare it with align={required}",
                array.name, array.align
            )
        })
    }
}

impl Machine<'_, '_> {
    /// A place in memory that an operation requires to be at a multiple of `required` bytes.
    pub(super) fn aligned(&self, lane: u32, what: &str, address: u64, required: u64) -> Check {
        let misaligned = |message| Err(Trap::new(FaultKind::Misaligned, lane, message));
        let at = self.offset_of(address);
        if !at.is_multiple_of(required) {
            let message = format!("{what} is at {at:#x}, and must be at a multiple of {required} bytes");
            return misaligned(message);
        }
        match self.ctx.declared_alignment(address, what, required as u32) {
            Some(message) => misaligned(message),
            None => Ok(()),
        }
    }

    /// The shared memory of a swizzled tile, whose pattern begins at multiples of `repeat` bytes.
    pub(super) fn holds_pattern(&self, lane: u32, what: &str, address: u64, repeat: u32) -> Check {
        match self.ctx.declared_alignment(address, what, repeat) {
            Some(message) => Err(Trap::new(FaultKind::Misaligned, lane, message)),
            None => Ok(()),
        }
    }
}
