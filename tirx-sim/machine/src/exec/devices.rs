//! The devices of a launch: ranks of a world, each with its own grid, arguments and memory.
//!
//! One machine runs them all. The blocks of rank `r` have the numbers from `r` times the blocks of a grid on, so one order
//! covers every device, and an order of turns and a search through all orders do, too.

use std::sync::Arc;

use super::ledger::Behind;
use super::{Context, Sheet};
use crate::window::Window;

/// What one device of a launch has of its own.
pub(crate) struct DeviceArguments {
    /// One per parameter: addresses, and scalars as little-endian bits.
    pub(crate) args: Vec<u64>,
    /// The allocations behind pointer arguments.
    pub(crate) params: Vec<Behind>,
    /// The views that a pointer argument may access, where that is not the whole allocation: an access must be within
    /// one of them.
    pub(crate) windows: Vec<Vec<Window>>,
    /// The histories of each parameter's allocation.
    pub(crate) sheets: Vec<Option<Arc<Sheet>>>,
}

impl Context<'_> {
    /// Devices of the launch.
    pub(crate) fn ranks(&self) -> u32 {
        self.devices.len() as u32
    }

    /// Blocks of one device.
    pub(crate) fn blocks_of_device(&self) -> u64 {
        self.grid.iter().map(|d| u64::from(*d)).product()
    }

    /// Blocks of the launch.
    pub(crate) fn blocks(&self) -> u64 {
        self.blocks_of_device() * u64::from(self.ranks())
    }

    /// Barriers of all ranks that a rank has come to, and most that any has.
    pub(super) fn barriers_of(&self, rank: u32) -> Option<(u64, u64)> {
        let arrivals = self.arrivals.as_ref()?;
        let count = |rank| {
            let mut bytes = [0; 8];
            arrivals.part(rank).read(0, &mut bytes);
            u64::from_le_bytes(bytes)
        };
        let most = (0..self.ranks()).map(count).max()?;
        Some((count(rank), most))
    }

    /// The rank of a block's device, by the block's number.
    pub(crate) fn rank_of(&self, block: u32) -> u32 {
        (u64::from(block) / self.blocks_of_device().max(1)) as u32
    }

    /// The rank that memory belongs to alone, if that is another one than a device's.
    pub(crate) fn other_owner(&self, owner: Option<&u32>, device: u32) -> Option<u32> {
        owner.copied().filter(|owner| *owner != device + self.first_rank)
    }

    /// The rank in a message; none for a launch on one device.
    pub(crate) fn rank_name(&self, block: u32) -> String {
        match self.ranks() {
            1 => String::new(),
            _ => format!(" of rank {}", self.rank_of(block)),
        }
    }
}
