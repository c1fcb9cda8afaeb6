//! Messages about accesses that are not allowed.

use super::address::Target;
use super::order::Conflict;
use super::order::coarse::Finding;
use super::place::pointed;
use super::run::Machine;
use super::{Trap, thread_of};
use crate::bytecode::{Access, Region, SharedArray, UNNAMED_POINTER};
use crate::fault::FaultKind;

impl Machine<'_, '_> {
    /// The index of an element for messages.
    pub(super) fn element(&self, access: &Access, index: i64, c: u16) -> i64 {
        let first = match access.region {
            Region::Pointer => match pointed(access, index) {
                (Target::Shared(_, byte) | Target::Cluster(_, _, byte) | Target::Local(_, byte), half) => {
                    (byte * 8 + half) / access.kind.bits() as i64
                }
                (Target::Global(_), _) => index,
            },
            _ => index,
        };
        first + c as i64
    }

    /// The error of a failed check of a place.
    pub(super) fn found(
        &self,
        access: &Access,
        lane: u32,
        element: i64,
        finding: Finding,
        verb: &str,
    ) -> Box<Trap> {
        if let Region::Shared(array) = access.region
            && let Some(array) = self.ctx.code.shared.get(array as usize)
        {
            let before = element * i64::from(access.kind.bits()) / 8;
            let byte = i64::from(array.offset) + before;
            return self.found_shared(access, lane, (element, byte as u32), finding, verb);
        }
        match finding {
            Finding::Conflict(conflict) => self.unordered(access, lane, element, conflict, verb),
            Finding::Uninitialized => {
                let place = if matches!(access.region, Region::Local(_)) {
                    "this thread"
                } else {
                    "any thread"
                };
                let message = format!(
                    "{verb} `{}[{element}]` before {place} has written it",
                    access.name
                );
                Trap::new(FaultKind::Uninitialized, lane, message)
            }
        }
    }

    /// The same of an element in the block's own shared memory, and of its byte there.
    pub(super) fn found_shared(
        &self,
        access: &Access,
        lane: u32,
        (element, byte): (i64, u32),
        finding: Finding,
        verb: &str,
    ) -> Box<Trap> {
        let holds = |a: &&SharedArray| byte >= a.offset && byte < a.offset + a.bytes;
        let name = match self.ctx.code.shared.iter().find(holds) {
            // The pointer has no name of its own: the message names the array that it points to.
            Some(array) if access.name == UNNAMED_POINTER => {
                format!("byte {} of shared `{}`", byte - array.offset, array.name)
            }
            _ => format!("`{}[{element}]`", access.name),
        };
        match finding {
            Finding::Conflict(conflict) => self.conflicting(&name, lane, conflict, verb),
            Finding::Uninitialized => match self.writer(byte) {
                Some(pc) => self.under_way(&name, lane, verb, pc),
                None => {
                    let message = format!("{verb} {name} before any thread has written it");
                    Trap::new(FaultKind::Uninitialized, lane, message)
                }
            },
        }
    }

    /// The instruction of an operation in flight that writes a byte of the block's shared memory.
    pub(super) fn writer(&self, byte: u32) -> Option<usize> {
        let (own, arrays) = (self.peers.rank() as u32, &self.ctx.code.shared);
        let here = self.shared.engine.writer(own, arrays, own, byte);
        here.or_else(|| {
            let mut others = self.peers.others();
            others.find_map(|(rank, block)| block.shared.engine.writer(rank, arrays, own, byte))
        })
    }

    /// The error of a place that an operation in flight, issued by the instruction `pc`, is still to write.
    pub(super) fn under_way(&self, name: &str, lane: u32, verb: &str, pc: usize) -> Box<Trap> {
        let me = self.thread(self.id as u32 * 32 + lane);
        let message = format!(
            "thread {me} {verb} {name}, which an asynchronous operation writes whose completion this thread has not waited \
             for"
        );
        let mut trap = Trap::new(FaultKind::Race, lane, message);
        trap.notes.push(("the operation is issued here".to_string(), pc));
        trap
    }

    /// The error of a load of tensor memory that nothing has written.
    pub(super) fn never_written(&self, lane: u32, place: &str) -> Box<Trap> {
        let Some(pc) = self.shared.engine.tensor_writer() else {
            return Trap::new(
                FaultKind::Uninitialized,
                lane,
                format!("tcgen05.ld reads {place}"),
            );
        };
        let message = format!(
            "tcgen05.ld reads {place}; a tcgen05 operation is in flight whose completion this thread has not waited for"
        );
        let mut trap = Trap::new(FaultKind::Race, lane, message);
        trap.notes.push(("the operation is issued here".to_string(), pc));
        trap
    }

    /// The error of two accesses that are not ordered.
    pub(super) fn unordered(
        &self,
        access: &Access,
        lane: u32,
        element: i64,
        conflict: Conflict,
        verb: &str,
    ) -> Box<Trap> {
        let name = format!("`{}[{element}]`", access.name);
        self.conflicting(&name, lane, conflict, verb)
    }

    /// The same for a place with this name.
    pub(super) fn conflicting(&self, name: &str, lane: u32, conflict: Conflict, verb: &str) -> Box<Trap> {
        let other = conflict.mark();
        let past = past(conflict);
        let me = self.thread(self.id as u32 * 32 + lane);
        let mut trap = Trap::new(FaultKind::Race, lane, "");
        if other.is_operation() && !matches!(conflict, Conflict::Unmet(..)) {
            let doing = match conflict {
                Conflict::Read(_) => "reads",
                _ => "writes",
            };
            trap.message = format!(
                "thread {me} {verb} {name}, which an asynchronous operation {doing} whose completion this thread has not \
                 waited for"
            );
            trap.notes
                .push(("the operation is issued here".to_string(), other.pc()));
            return trap;
        }
        // Only the last reader is recorded, so the other thread of the message may be this one.
        let own = other.block == self.shared.order.block;
        let is_own = own && other.thread() == self.id as u32 * 32 + lane;
        let same_cluster = self.shared.order.in_cluster(other.block);
        let block = match own {
            true => String::new(),
            false => format!(" of block {}", self.block_name(other.block)),
        };
        let them = match is_own {
            true => "other threads".to_string(),
            false if other.is_operation() => "an asynchronous operation".to_string(),
            false => format!("thread {}{block}", self.thread(other.thread())),
        };
        let missing = match (own, is_own) {
            _ if matches!(conflict, Conflict::Unmet(..)) => UNMET,
            _ if matches!(conflict, Conflict::Unfenced(_)) => UNFENCED,
            (true, true) => "no barrier orders it behind them",
            (true, false) if other.warp() == self.id => "no warp or block barrier orders the two",
            (true, false) => "no barrier orders the two",
            (false, _) if same_cluster => "no cluster barrier orders the two",
            (false, _) => "nothing orders the two blocks",
        };
        trap.message = format!("thread {me} {verb} {name}, which {them} {past}, and {missing}");
        trap.notes.push((format!("{them} {past} it here"), other.pc()));
        trap
    }

    /// The index of a block, by its number in the launch.
    pub(super) fn block_name(&self, number: u32) -> String {
        let [x, y, z] = super::group::block_index(self.ctx, number.into());
        format!("({x}, {y}, {z})")
    }

    pub(super) fn thread(&self, linear: u32) -> String {
        let [x, y, z] = thread_of(self.ctx, linear);
        format!("({x}, {y}, {z})")
    }
}

/// The verb for the earlier access of an unordered pair.
pub(super) fn past(conflict: Conflict) -> &'static str {
    match conflict {
        Conflict::Read(_) | Conflict::Unmet(_, false) => "read",
        Conflict::Write(mark) if mark.is_strong() => "updated atomically",
        Conflict::Write(_) | Conflict::Unfenced(_) | Conflict::Unmet(_, true) => "wrote",
    }
}

/// What is missing where an operation comes behind a write that is not visible to it.
pub(super) const UNFENCED: &str =
    "the write is of the generic proxy, and no fence.proxy.async makes it visible to the async proxy";

/// The fence that is missing where accesses to tensor memory are ordered but not fenced.
pub(super) const UNMET: &str = "the barrier between needs tcgen05.fence.before_thread_sync before it (unless an operation's \
                                commit tells of it) and tcgen05.fence.after_thread_sync behind it";
