//! Copies of consecutive bytes.

use super::{Reach, Work};
use crate::exec::access::Check;

/// `cp.async` and `cp.async.bulk`, except tensor copies.
pub(crate) struct Bytes {
    /// Addresses; a copy may have several destinations.
    pub(crate) to: Vec<u64>,
    pub(crate) from: u64,
    /// Bytes that are read, and bytes that are written: the rest are zeros.
    pub(crate) read: usize,
    pub(crate) written: usize,
    /// Of each 16 bytes those that are written, a bit each.
    pub(crate) mask: u16,
}

impl Work for Bytes {
    fn run(&mut self, reach: &mut Reach<'_, '_>) -> Check {
        let mut bytes = vec![0; self.written];
        let read = self.read.min(self.written);
        if read > 0 {
            reach.read(self.from, &mut bytes[..read])?;
        }
        for to in &self.to {
            if self.mask == u16::MAX {
                reach.write(*to, &bytes)?;
                continue;
            }
            for (i, byte) in bytes
                .iter()
                .enumerate()
                .filter(|(i, _)| self.mask >> (i % 16) & 1 != 0)
            {
                reach.write(to + i as u64, &[*byte])?;
            }
        }
        Ok(())
    }

    fn destinations(&self) -> Vec<(u64, u64)> {
        self.to.iter().map(|to| (*to, self.written as u64)).collect()
    }
}
