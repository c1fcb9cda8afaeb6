//! Copies of consecutive bytes, and stores of registers.

use super::tile::combine;
use super::{Reach, Work};
use crate::bytecode::AtomicOp;
use crate::exec::access::Check;
use crate::exec::shadow::{HeldMemory, Reduction};
use crate::numeric::Kind;

/// `cp.async` and `cp.async.bulk`, except tensor copies.
pub(crate) struct Bytes {
    /// Addresses.
    pub(crate) to: u64,
    pub(crate) from: u64,
    /// Bytes that are read, and bytes that are written: the rest are zeros.
    pub(crate) read: usize,
    pub(crate) written: usize,
    /// Of each 16 bytes those that are written, a bit each.
    pub(crate) mask: u16,
    /// How elements are combined with what is there, instead of replacing it.
    pub(crate) reduces: Option<(AtomicOp, Kind)>,
}

impl Work for Bytes {
    fn run(&mut self, reach: &mut Reach<'_, '_>) -> Check {
        let mut bytes = vec![0; self.written];
        let read = self.read.min(self.written);
        if read > 0 {
            reach.read(self.from, &mut bytes[..read])?;
        }
        if let Some((op, kind)) = self.reduces {
            let operand = &bytes;
            let reduction = Reduction { op, kind, operand };
            return reach.update(self.to, &reduction, &mut |old| combine(op, kind, old, operand));
        }
        if self.mask == u16::MAX {
            return reach.write(self.to, &bytes);
        }
        for (i, byte) in bytes.iter().enumerate() {
            match self.mask >> (i % 16) & 1 {
                0 => reach.carried.skip(1),
                _ => reach.write(self.to + i as u64, &[*byte])?,
            }
        }
        Ok(())
    }

    fn destinations(&self) -> Vec<(u64, u64)> {
        vec![(self.to, self.written as u64)]
    }
}

/// `st.async` and `red.async`.
pub(crate) struct Registers {
    /// An address.
    pub(crate) to: u64,
    pub(crate) bytes: Vec<u8>,
    /// The shadows of the bytes.
    pub(in crate::exec) shadows: HeldMemory,
    /// How they are combined with what is there, instead of replacing it.
    pub(crate) reduces: Option<(AtomicOp, Kind)>,
}

impl Work for Registers {
    fn run(&mut self, reach: &mut Reach<'_, '_>) -> Check {
        reach.carried = std::mem::take(&mut self.shadows).into();
        let Some((op, kind)) = self.reduces else {
            return reach.write(self.to, &self.bytes);
        };
        let operand = &self.bytes;
        let reduction = Reduction { op, kind, operand };
        reach.update(self.to, &reduction, &mut |old| combine(op, kind, old, operand))
    }

    fn destinations(&self) -> Vec<(u64, u64)> {
        vec![(self.to, self.bytes.len() as u64)]
    }
}
