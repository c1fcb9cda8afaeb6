//! Cluster launch control (PTX ISA, "clusterlaunchcontrol"): a cluster that has not started is removed from the grid.
//!
//! The request is an asynchronous operation. It takes the next cluster of the launch's queue, which then runs no more, and
//! writes a response of 16 bytes to the same place of each block of the cluster: x, y and z of the first block taken, and a
//! word that is 1 where there was one. The response's format is the simulator's own, as it is the GPU's.

use super::instruction::misuse;
use super::{Class, Completion, Issue, Reach, Work};
use crate::exec::access::Check;
use crate::exec::address;
use crate::exec::order::Kind;
use crate::exec::run::Machine;
use crate::exec::{Context, group};

/// Bytes of a response.
const BYTES: u32 = 16;

/// A request in flight; addresses of the responses.
struct Cancel {
    to: Vec<u64>,
}

impl Context<'_> {
    /// Takes the next cluster off the grid; gives the index of its first block.
    fn cancel(&self) -> Option<[u32; 3]> {
        let size = group::cluster_size(self) as u64;
        self.cancel_group()
            .map(|number| group::block_index(self, number * size))
    }
}

impl Work for Cancel {
    fn run(&mut self, reach: &mut Reach<'_, '_>) -> Check {
        let taken = reach.ctx.cancel();
        let [x, y, z] = taken.unwrap_or([0; 3]);
        let words = [x, y, z, u32::from(taken.is_some())];
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        for to in &self.to {
            reach.write(*to, &bytes)?;
        }
        Ok(())
    }
}

impl Machine<'_, '_> {
    pub(super) fn try_cancel(
        &mut self,
        pc: usize,
        [handle, barrier]: [u64; 2],
        multicast: bool,
        lane: u32,
    ) -> Check {
        if self.shared.engine.refused {
            let message = "asks to cancel another cluster after a request that was refused has been seen: the result is \
                           undefined";
            return Err(misuse(lane, message));
        }
        self.aligned(
            lane,
            "the response of clusterlaunchcontrol.try_cancel",
            handle,
            16,
        )?;
        let ranks = group::cluster_size(self.ctx) as u32;
        let mut to = Vec::new();
        let mut completions = Vec::new();
        let receivers = match multicast {
            true => (0..ranks).map(Some).collect(),
            false => vec![None],
        };
        for rank in receivers {
            to.push(rank.map_or(handle, |rank| address::of_rank(handle, rank)));
            let (rank, byte) = self.barrier_at(lane, barrier, rank)?;
            completions.push(Completion::Bytes(rank, byte, BYTES));
        }
        let issue = Issue {
            class: Class::Told,
            name: "the request of clusterlaunchcontrol.try_cancel",
            proxy: Kind::Engine,
            work: Some(Box::new(Cancel { to })),
            completions,
            in_order: false,
        };
        self.issue(pc, lane, issue);
        Ok(())
    }
}
