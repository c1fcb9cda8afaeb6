//! Copies of consecutive bytes, and stores of registers.

use super::tile::combine;
use super::{Reach, Work};
use crate::bytecode::AtomicOp;
use crate::exec::access::Check;
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
            return reach.update(self.to, bytes.len(), &mut |old| combine(op, kind, old, &bytes));
        }
        if self.mask == u16::MAX {
            return reach.write(self.to, &bytes);
        }
        let written = |(i, _): &(usize, &u8)| self.mask >> (i % 16) & 1 != 0;
        for (i, byte) in bytes.iter().enumerate().filter(written) {
            reach.write(self.to + i as u64, &[*byte])?;
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
    /// How they are combined with what is there, instead of replacing it.
    pub(crate) reduces: Option<(AtomicOp, Kind)>,
}

impl Work for Registers {
    fn run(&mut self, reach: &mut Reach<'_, '_>) -> Check {
        let Some((op, kind)) = self.reduces else {
            return reach.write(self.to, &self.bytes);
        };
        reach.update(self.to, self.bytes.len(), &mut |old| {
            combine(op, kind, old, &self.bytes);
        })
    }

    fn destinations(&self) -> Vec<(u64, u64)> {
        vec![(self.to, self.bytes.len() as u64)]
    }
}
