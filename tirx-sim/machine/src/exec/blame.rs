//! Messages about accesses that are not allowed.

use super::access::Check;
use super::address::Target;
use super::order::coarse::Finding;
use super::order::{Conflict, Mark, Scope};
use super::place::pointed;
use super::run::Machine;
use super::tcgen05::is_dealloc;
use super::{Trap, thread_of};
use crate::bytecode::{Access, Inst, Region, UNNAMED_POINTER};
use crate::fault::FaultKind;
use crate::findings::Excusable;

impl Machine<'_, '_> {
    /// Goes on after a finding, if the launch does.
    ///
    /// # Errors
    /// The trap, if it does not.
    pub(super) fn excuse(&self, pc: usize, finding: Excusable, trap: Box<Trap>) -> Check {
        super::excuse(self.ctx, self.shared, (self.id, pc), finding, trap)
    }

    /// Goes on after a read of shared memory that nobody has written.
    ///
    /// # Errors
    /// The trap, where it is of another kind.
    pub(super) fn read_early(&mut self, pc: usize, trap: Box<Trap>) -> Check {
        super::early::read_early(self.ctx, self.shared, (self.id, pc), trap)
    }

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
        let code = self.ctx.code;
        let name = match access.region {
            Region::Shared(array) if code.whole(array) != array => {
                let array = &code.shared[array as usize];
                let bit = (i128::from(byte) - i128::from(array.offset)) * 8;
                let size = i64::from(access.kind.bits());
                array.elements_at(bit, size.into(), array.unit(size))
            }
            // The pointer has no name of its own: the message names the array that it points to.
            _ if access.name == UNNAMED_POINTER => code
                .name_of_byte(byte)
                .unwrap_or_else(|| format!("`{}[{element}]`", access.name)),
            _ => format!("`{}[{element}]`", access.name),
        };
        match finding {
            Finding::Conflict(conflict) => self.conflicting(&name, lane, conflict, verb),
            Finding::Uninitialized => match self.writer(byte) {
                Some(operation) => self.under_way(&name, lane, verb, operation),
                None => {
                    let message = format!("{verb} {name} before any thread has written it");
                    Trap::new(FaultKind::Uninitialized, lane, message)
                }
            },
        }
    }

    /// An operation in flight that writes a byte of the block's shared memory.
    pub(super) fn writer(&self, byte: u32) -> Option<Mark> {
        let (own, arrays) = (self.peers.rank() as u32, &self.ctx.code.shared);
        let here = self.shared.engine.writer(own, arrays, own, byte);
        here.or_else(|| {
            let mut others = self.peers.others();
            others.find_map(|(rank, block)| block.shared.engine.writer(rank, arrays, own, byte))
        })
    }

    /// The error of a place that an operation in flight is still to write.
    pub(super) fn under_way(&self, name: &str, lane: u32, verb: &str, operation: Mark) -> Box<Trap> {
        let me = self.thread(self.id as u32 * 32 + lane);
        let message = format!(
            "thread {me} {verb} {name}, which an asynchronous operation writes, and this thread has not waited for \
             its completion{}",
            self.why_not_waited(operation, lane)
        );
        let mut trap = Trap::new(FaultKind::Race, lane, message);
        trap.notes
            .push(("the operation is issued here".to_string(), operation.pc()));
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
            "tcgen05.ld reads {place}; a tcgen05 operation is in flight, and this thread has not waited for its completion"
        );
        let mut trap = Trap::new(FaultKind::Race, lane, message);
        trap.notes.push(("the operation is issued here".to_string(), pc));
        trap
    }

    /// What is wrong with the wait for an operation, where there is one.
    fn why_not_waited(&self, operation: Mark, lane: u32) -> String {
        if operation.block != self.shared.order.block {
            return String::new();
        }
        if let Some(commit) = self.shared.engine.missing_commit(operation) {
            return format!(
                ": the operation is in no group, since {commit} is missing between it and the wait"
            );
        }
        match self.shared.engine.missing_wait(operation) {
            Some(missing) => format!(": {missing}"),
            None => self.wrong_parity(operation, lane),
        }
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
        let mut trap = self.conflicting(&name, lane, conflict, verb);
        if access.poll && conflict.mark().block != self.shared.order.block && !trap.message.contains(POLLED) {
            trap.message = format!("{}: {POLLED}", trap.message);
        }
        trap
    }

    /// The same for a strong access: the other one is weak, or one of the two has too narrow a scope.
    pub(super) fn unordered_strong(
        &self,
        name: &str,
        (lane, scope): (u32, Scope),
        conflict: Conflict,
        verb: &str,
    ) -> Box<Trap> {
        let mut trap = self.conflicting(name, lane, conflict, verb);
        let other = conflict.mark();
        if let (Conflict::Write(_) | Conflict::Read(_), Some(theirs)) = (conflict, other.scope())
            && other.block != self.shared.order.block
        {
            let reach = format!(
                ": one is at scope {}, the other at {}, and each must reach the other's block",
                scope_name(theirs),
                scope_name(scope)
            );
            trap.message.push_str(&reach);
        }
        trap
    }

    /// The same for a place with this name.
    pub(super) fn conflicting(&self, name: &str, lane: u32, conflict: Conflict, verb: &str) -> Box<Trap> {
        let other = conflict.mark();
        let past = match is_dealloc(self.ctx.code, other.pc()) {
            true => "freed",
            false => past(conflict),
        };
        let me = self.thread(self.id as u32 * 32 + lane);
        let mut trap = Trap::new(FaultKind::Race, lane, "");
        if other.is_operation() && !matches!(conflict, Conflict::Unmet(..)) {
            let doing = match conflict {
                Conflict::Read(_) => "reads",
                _ => "writes",
            };
            let rank = match self.shared.order.on_device(other.block) {
                true => String::new(),
                false => self.ctx.rank_name(other.block),
            };
            trap.message = format!(
                "thread {me} {verb} {name}, which an asynchronous operation{rank} {doing}, and this thread has not waited \
                 for its completion{}",
                self.why_not_waited(other, lane)
            );
            trap.notes
                .push(("the operation is issued here".to_string(), other.pc()));
            return trap;
        }
        // Only the last reader is recorded, so the other thread of the message may be this one.
        let own = other.block == self.shared.order.block;
        if let Conflict::Constant(_, earlier) = conflict {
            let (how, past) = match earlier {
                true => (verb, "read"),
                false => ("reads", "wrote"),
            };
            let them = self.thread(other.thread());
            trap.message = format!("thread {me} {how} {name}, which thread {them} {past}, and {CONSTANT}");
            trap.notes
                .push((format!("thread {them} {past} it here"), other.pc()));
            return trap;
        }
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
            _ if matches!(conflict, Conflict::Sizes(_)) => SIZES,
            _ if !own && self.polls(other.pc()) => POLLED,
            _ if matches!(conflict, Conflict::Unmet(..)) => UNMET,
            _ if matches!(conflict, Conflict::Unfenced(_)) => UNFENCED,
            _ if matches!(conflict, Conflict::Alias(_)) => ALIASES,
            (false, _) if !self.shared.order.on_device(other.block) => "nothing orders the two ranks",
            (true, true) => "no barrier orders it after them",
            (true, false) if other.warp() == self.id => "no warp or block barrier orders the two",
            (true, false) => "no barrier orders the two",
            (false, _) if same_cluster => "no cluster barrier orders the two",
            (false, _) => "nothing orders the two blocks",
        };
        let narrow = match self.shared.order.narrow {
            Some((warp, by, scope)) if !own && (warp, by) == (self.id, lane) => format!(
                " (the value that it has read was released at scope {}, which does not reach from {} to {1})",
                scope_name(scope),
                if self.shared.order.on_device(other.block) {
                    "block"
                } else {
                    "rank"
                }
            ),
            _ => String::new(),
        };
        trap.message = format!("thread {me} {verb} {name}, which {them} {past}, and {missing}{narrow}");
        trap.notes.push((format!("{them} {past} it here"), other.pc()));
        trap
    }

    /// Whether an instruction is a plain load in the condition of a loop that waits.
    fn polls(&self, pc: usize) -> bool {
        let code = self.ctx.code;
        match code.insts.get(pc) {
            Some(
                Inst::Load { access, .. }
                | Inst::LoadWide { access, .. }
                | Inst::LoadS { access, .. }
                | Inst::LoadRow { access, .. },
            ) => code.accesses[*access as usize].poll,
            _ => false,
        }
    }

    /// The index of a block, by its number in the launch.
    pub(super) fn block_name(&self, number: u32) -> String {
        let [x, y, z] = super::group::block_index(self.ctx, number.into());
        format!("({x}, {y}, {z}){}", self.ctx.rank_name(number))
    }

    pub(super) fn thread(&self, linear: u32) -> String {
        let [x, y, z] = thread_of(self.ctx, linear);
        format!("({x}, {y}, {z})")
    }
}

fn scope_name(scope: Scope) -> &'static str {
    match scope {
        Scope::Cta => "cta",
        Scope::Cluster => "cluster",
        Scope::Gpu => "gpu",
        Scope::Sys => "sys",
    }
}

/// The verb for the earlier access of an unordered pair.
pub(super) fn past(conflict: Conflict) -> &'static str {
    match conflict {
        Conflict::Read(_) | Conflict::Unmet(_, false) | Conflict::Constant(_, true) => "read",
        Conflict::Sizes(_) => "accessed",
        Conflict::Write(mark) if mark.is_strong() => "updated atomically",
        Conflict::Write(_)
        | Conflict::Alias(_)
        | Conflict::Unfenced(_)
        | Conflict::Map(_)
        | Conflict::Unmet(_, true)
        | Conflict::Constant(_, false) => "wrote",
    }
}

/// What is missing where an operation comes behind a write that is not visible to it.
pub(super) const UNFENCED: &str =
    "the write is of the generic proxy, and no fence.proxy.async makes it visible to the async proxy";

/// What is missing where a tensor copy reads a map that the kernel has changed.
pub(super) const UNFENCED_MAP: &str = "no proxy fence makes the change of the tensor map visible to tensor copies: a \
                                       fence.proxy.tensormap::generic.release of who writes the map (or tensormap.cp_fenceproxy), \
                                       and one with acquire of the thread that issues the copy";

/// What is missing between two addresses of a place.
pub(super) const ALIASES: &str = "one of the two goes through the multicast window and the other through the memory's own address: no \
                                  fence.proxy.alias comes between the two (T.ptx.fence.proxy.alias())";

/// Why memory that is read through the read-only path may not be written.
pub(super) const CONSTANT: &str = "one of the two is a load through the path for memory that does not change while the kernel \
                                   runs (ld.global.nc, __ldg), which may give an old value: load it with T.ptx.ld or as a \
                                   buffer's element";

/// Why accesses of different sizes do not synchronize.
const SIZES: &str =
    "the two are of different sizes: accesses to one word synchronize only if they are of one size";

/// Why a loop may not poll by plain loads.
const POLLED: &str = "one of the two is a plain load in the condition of a loop that waits: nvcc may move it out of the loop, and \
                      it orders nothing. Poll with T.ptx.ld_acquire(…, scope=\"gpu\"), or with T.ptx.ld_volatile and \
                      a fence after the loop, and write with T.ptx.st_release";

/// The fence that is missing where threads that access tensor memory synchronize by relaxed operations.
pub(super) const UNMET: &str = "the wait between is relaxed, and orders tensor memory only if a \
                                tcgen05.fence.after_thread_sync follows it";
