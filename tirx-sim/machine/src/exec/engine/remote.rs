//! NVSHMEM: copies and signals are asynchronous operations of the thread that issues them.
//!
//! `quiet` waits for them, `fence` puts later ones behind earlier ones. A signal is a strong write: a thread that waits
//! for it is ordered behind the copy that it belongs to, the operations before the last fence, and what its thread knew
//! there.

use super::copy::Bytes;
use super::instruction::{lanes, misuse};
use super::{Class, Engine, Issue, Reach, Work};
use crate::alu::LANES;
use crate::bytecode::{RemoteInst, RemoteScope};
use crate::exec::Trap;
use crate::exec::access::Check;
use crate::exec::address::{Target, decode};
use crate::exec::order::{Forked, Kind, Known};
use crate::exec::run::Machine;
use crate::fault::FaultKind;

/// An update of a signal.
struct Signal {
    address: u64,
    value: u64,
    adds: bool,
    /// What its thread knew at its last fence.
    fenced: Option<Known>,
}

/// A copy, a signal, or a copy and then a signal.
struct Remote {
    copy: Option<Bytes>,
    signal: Option<Signal>,
}

impl Work for Remote {
    fn run(&mut self, reach: &mut Reach<'_, '_>) -> Check {
        if let Some(copy) = &mut self.copy {
            copy.run(reach)?;
        }
        let Some(signal) = &self.signal else {
            return Ok(());
        };
        let forked = &reach.operation.forked;
        let mut known = Known::nothing(reach.ctx.blocks());
        signal.fenced.iter().for_each(|fenced| known.join(fenced));
        for mark in forked
            .after
            .iter()
            .copied()
            .chain([forked.mark, forked.mark.written()])
        {
            known.learn(mark);
        }
        let mut update = |bytes: &mut [u8]| {
            let old = bytes.iter().rev().fold(0, |v: u64, b| v << 8 | u64::from(*b));
            let new = match signal.adds {
                true => old.wrapping_add(signal.value),
                false => signal.value,
            };
            bytes.copy_from_slice(&new.to_le_bytes());
        };
        reach.signal(signal.address, 8, &mut update, &known)
    }
}

impl Engine {
    /// `nvshmem_fence` of a thread, with what the thread knows.
    pub(super) fn fence_remote(&mut self, thread: u32, known: Known) {
        self.commit(Class::Remote, thread);
        self.fenced.insert(thread, known);
    }
}

impl Machine<'_, '_> {
    pub(super) fn remote(&mut self, pc: usize, inst: &RemoteInst, mask: u32) -> Check {
        if inst.scope == RemoteScope::Thread {
            for lane in lanes(mask) {
                self.issue_remote(pc, inst, lane, 1 << lane)?;
            }
            return Ok(());
        }
        if mask != self.warp.exist {
            let message = "lanes of a warp are at a function of NVSHMEM that all lanes execute together, and other lanes are not";
            return Err(Trap::new(
                FaultKind::InvalidLanes,
                mask.trailing_zeros() % 32,
                message,
            ));
        }
        if inst.scope == RemoteScope::Block && self.id != 0 {
            return Ok(());
        }
        self.issue_remote(pc, inst, mask.trailing_zeros() % 32, mask)
    }

    /// The address on the device of a rank that stands for an address of this one.
    pub(in crate::exec) fn peer_address(&self, address: u64, rank: u32) -> Option<u64> {
        match rank == self.shared.rank {
            true => Some(address),
            false => self.ctx.memory.on_rank(address, rank),
        }
    }

    /// Issues one operation for the lanes of a mask, from the registers of one of them.
    fn issue_remote(&mut self, pc: usize, inst: &RemoteInst, lane: u32, mask: u32) -> Check {
        let pe = self.word(inst.pe, lane) as i32;
        let ranks = self.ctx.ranks();
        if !(0..ranks as i32).contains(&pe) {
            let have = match ranks {
                1 => "the launch is on one device, number 0".to_string(),
                _ => format!("the world has {ranks}, from 0 on"),
            };
            let message = format!("names processing element {pe}: {have}");
            return Err(misuse(lane, message));
        }
        let there = |address: u64, what: &str| {
            self.peer_address(address, pe as u32).ok_or_else(|| {
                let message = format!(
                    "{what} at {address:#x} is not in symmetric memory, so rank {pe} has no place for it"
                );
                Trap::new(FaultKind::OutOfBounds, lane, message)
            })
        };
        let global = |address: u64, what: &str| match decode(address) {
            Target::Global(_) => Ok(()),
            _ => Err(misuse(lane, format!("{what} is not in global memory"))),
        };
        let mut copy = None;
        if let Some((to, from, bytes)) = inst.copy {
            let (mut to, mut from) = (self.wide(to, lane), self.wide(from, lane));
            global(to, "the destination of a copy by NVSHMEM")?;
            global(from, "the source of a copy by NVSHMEM")?;
            match inst.gets {
                true => from = there(from, "the source of a copy by NVSHMEM")?,
                false => to = there(to, "the destination of a copy by NVSHMEM")?,
            }
            let bytes = self.wide(bytes, lane) as usize;
            copy = (bytes > 0).then_some(Bytes {
                to,
                from,
                read: bytes,
                written: bytes,
                mask: u16::MAX,
                reduces: None,
            });
        }
        let mut signal = None;
        if let Some(inst) = inst.signal {
            let address = self.wide(inst.address, lane);
            global(address, "a signal")?;
            if !address.is_multiple_of(8) {
                let message = format!("a signal at {address:#x}, which is no multiple of 8");
                return Err(Trap::new(FaultKind::Misaligned, lane, message));
            }
            signal = Some(Signal {
                address: there(address, "a signal")?,
                value: self.wide(inst.value, lane),
                adds: inst.adds,
                fenced: self
                    .shared
                    .engine
                    .fenced
                    .get(&(self.id as u32 * 32 + lane))
                    .cloned(),
            });
        }
        let name = match (&copy, &signal) {
            (_, None) => "the copy of NVSHMEM",
            (None, Some(_)) => "the signal of NVSHMEM",
            (Some(_), Some(_)) => "the copy of NVSHMEM with its signal",
        };
        let known = self.shared.order.release(self.id, mask);
        let forked = Forked {
            known,
            mark: self.shared.order.mark(self.id, pc, Kind::Copy),
            after: Vec::new(),
        };
        let issue = Issue {
            class: Class::Remote,
            name,
            proxy: Kind::Copy,
            work: Some(Box::new(Remote { copy, signal })),
            completions: Vec::new(),
            in_order: true,
        };
        let time = self.shared.time(self.warp);
        let Self { shared, id, .. } = self;
        shared.engine.issue(issue, (*id, lane), pc, forked, time);
        let own = *id as u32 * LANES as u32;
        for other in lanes(mask).filter(|other| *other != lane) {
            shared.engine.share(Class::Remote, own + lane, own + other);
        }
        Ok(())
    }
}
