//! Asynchronous operations: issued by a thread, performed later.
//!
//! An [`Operation`] is put into its block's queue with what its issuer knew, and performed ([`Work::run`]) at a time
//! chosen by a seeded schedule: at the earliest when the issuing strand has stopped, at the latest when nothing else
//! can run. So a missing wait leaves old values in place, and is reported too: an operation is an actor of its own in
//! the order of memory (`order`), and a thread that has not waited for its completion is not ordered behind it.
//!
//! It signals its completion to mbarriers ([`mbarrier`]) and to the groups of the threads that issued it ([`Groups`]).
//!
//! | file | what |
//! |---|---|
//! | `reach` | memory as an operation may access it |
//! | `mbarrier` | mbarriers: phases, arrivals, transaction bytes |
//! | `copy` | copies of bytes: `cp.async`, bulk copies |
//! | `tile` | copies of boxes of tensor maps |
//! | `instruction` | the instructions that issue operations and wait for groups of them |
//! | `barrier` | the instructions of mbarriers |
//! | `perform` | when operations are performed, and who goes on then |
//! | `remote` | NVSHMEM with one processing element |
//! | `cancel` | cluster launch control |

pub(super) mod barrier;
mod cancel;
pub(super) mod copy;
mod instruction;
pub(super) mod mbarrier;
mod perform;
mod reach;
mod remote;
pub(super) mod tile;

use std::collections::{BTreeMap, VecDeque};

pub(crate) use crate::bytecode::Class;
pub(super) use barrier::overwritten;
pub(crate) use reach::Reach;

use super::access::Check;
use super::address::{self, Target};
use super::order::{Forked, Kind, Known, Mark};
use super::schedule::mixed;
use crate::bytecode::SharedArray;

/// What an operation does when its time has come.
pub(crate) trait Work: Send {
    /// Performs all of it.
    ///
    /// # Errors
    /// Where it may not: races, places outside of arrays.
    fn run(&mut self, reach: &mut Reach<'_, '_>) -> Check;

    /// Addresses of shared memory that it writes, and how many bytes there.
    fn destinations(&self) -> Vec<(u64, u64)> {
        Vec::new()
    }

    /// Whether it writes tensor memory.
    fn writes_tensor_memory(&self) -> bool {
        false
    }
}

/// What an operation signals when it is complete, besides the groups it belongs to.
#[derive(Clone, Debug)]
pub(crate) enum Completion {
    /// Bytes of the current phase of an mbarrier: rank in the cluster (`None` for this block), and the byte in shared
    /// memory.
    Bytes(Option<u32>, u32, u32),
    /// Arrivals there.
    Arrive(Option<u32>, u32, u32),
}

/// An operation that has been issued.
pub(crate) struct Operation {
    /// Its number among those of its block.
    number: u64,
    /// Warp and lane that issued it, and the instruction.
    pub(crate) warp: usize,
    pub(crate) lane: u32,
    pub(crate) pc: usize,
    pub(crate) forked: Forked,
    /// Its name in messages: "the bulk copy".
    pub(crate) name: &'static str,
    work: Option<Box<dyn Work>>,
    completions: Vec<Completion>,
    /// Operations that must be complete before it is performed.
    after: Vec<u64>,
    /// The round in which it is performed.
    due: u64,
    /// On the timeline: when it was issued.
    time: u64,
}

/// An operation as a search through all orders sees it.
pub(super) struct InFlight {
    pub(super) number: u64,
    /// Warp and lane.
    pub(super) issuer: (usize, u32),
    /// No other operation must be complete first.
    pub(super) free: bool,
    /// It signals mbarriers.
    pub(super) signals: bool,
}

/// An operation as a thread issues it.
pub(crate) struct Issue {
    pub(crate) class: Class,
    pub(crate) name: &'static str,
    pub(crate) proxy: Kind,
    /// `None` for an operation that only signals completions.
    pub(crate) work: Option<Box<dyn Work>>,
    pub(crate) completions: Vec<Completion>,
    /// Whether it is ordered after all operations that the thread has issued in this class.
    pub(crate) in_order: bool,
}

/// An operation as groups remember it.
#[derive(Clone, Copy, Debug)]
struct Issued {
    number: u64,
    mark: Mark,
}

/// The operations of a thread in one class.
#[derive(Debug, Default)]
struct Groups {
    /// Not committed yet.
    open: Vec<Issued>,
    /// Whether the thread has waited for groups.
    waited: bool,
    closed: VecDeque<Vec<Issued>>,
    /// How many of the closed ones it has waited for with `.read`.
    read: usize,
}

/// The asynchronous state of a block.
#[derive(Default)]
pub(super) struct Engine {
    queue: Vec<Operation>,
    groups: BTreeMap<(Class, u32), Groups>,
    /// By byte in shared memory.
    pub(super) barriers: BTreeMap<u32, mbarrier::Mbarrier>,
    issued: u64,
    /// Number of operations that each instruction has issued.
    numbers: BTreeMap<usize, u32>,
    now: u64,
    seed: u64,
    /// What threads knew at their last `nvshmem_fence`.
    fenced: BTreeMap<u32, Known>,
    /// For messages: the mbarrier of the own block at which an operation completes (by its instruction and its number among
    /// those of the instruction) and the phase in which it was issued; and the parity that a thread last waited for there,
    /// with the phase that was complete.
    told_at: BTreeMap<(usize, u32), (u32, u64)>,
    waited_at: BTreeMap<(u32, u32), (u32, u64, bool)>,
    /// For messages: the ranks at whose mbarrier, at a byte, an instruction signals.
    signalled: BTreeMap<(usize, u32), u32>,
    /// Where mbarriers were invalidated, by byte.
    invalidated: BTreeMap<u32, usize>,
    /// The mbarrier (its byte) that each thread waits for, and where.
    sleepers: BTreeMap<u32, (u32, usize)>,
    /// Whether a thread has seen that a cancellation was not granted.
    pub(super) refused: bool,
    /// For the timeline: when an operation was last complete, or a warp last arrived at an mbarrier.
    pub(super) latest: u64,
}

/// An operation by its instruction and its number there, whether a mark is of its reads or of its writes.
fn operation_key(mark: Mark) -> (usize, u32) {
    (mark.pc(), mark.segment / 2)
}

/// Most rounds of a block's warps by which an operation is delayed.
const MAX_DELAY: u64 = 4;

impl Engine {
    /// A new block starts.
    pub(super) fn reset(&mut self, seed: u64) {
        *self = Engine {
            seed,
            ..Engine::default()
        };
    }

    /// Whether no operation is in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    /// An operation in flight that writes a byte of shared memory of the block of rank `rank`. The
    /// operations are those of the block of rank `own`.
    pub(super) fn writer(&self, own: u32, arrays: &[SharedArray], rank: u32, byte: u32) -> Option<Mark> {
        let holds = |(to, bytes): (u64, u64)| {
            let (at, array, offset) = match address::decode(to) {
                Target::Shared(array, offset) => (own, array, offset),
                Target::Cluster(at, array, offset) => (at, array, offset),
                _ => return false,
            };
            let Some(array) = arrays.get(array as usize) else {
                return false;
            };
            let before = i64::from(byte) - i64::from(array.offset) - offset;
            at == rank && u64::try_from(before).is_ok_and(|before| before < bytes)
        };
        let writes = |o: &&Operation| {
            let work = o.work.as_ref();
            work.is_some_and(|work| work.destinations().into_iter().any(holds))
        };
        self.queue.iter().find(writes).map(|o| o.forked.mark)
    }

    /// The instruction of an operation in flight that writes tensor memory.
    pub(super) fn tensor_writer(&self) -> Option<usize> {
        let writes = |o: &&Operation| o.work.as_ref().is_some_and(|work| work.writes_tensor_memory());
        self.queue.iter().find(writes).map(|o| o.pc)
    }

    /// A round of the block's warps has passed.
    pub(super) fn tick(&mut self) {
        self.now += 1;
    }

    /// Nothing else can run: the next operation that waits for no other becomes due.
    pub(super) fn hurry(&mut self) {
        let free = self.queue.iter().filter(|o| !self.waits(o));
        let due = free.map(|o| o.due).min();
        self.now = self.now.max(due.unwrap_or(0));
    }

    /// Whether an operation is ordered after one that is still in flight.
    fn waits(&self, operation: &Operation) -> bool {
        let under_way = |number: &u64| self.queue.iter().any(|o| o.number == *number);
        operation.after.iter().any(under_way)
    }

    /// The next operation to be performed now.
    pub(super) fn next(&mut self) -> Option<Operation> {
        let ready = |o: &Operation| o.due <= self.now && !self.waits(o);
        let at = (0..self.queue.len())
            .filter(|i| ready(&self.queue[*i]))
            .min_by_key(|i| (self.queue[*i].due, self.queue[*i].number))?;
        Some(self.queue.remove(at))
    }

    /// The operations in flight.
    pub(super) fn in_flight(&self) -> Vec<InFlight> {
        let of = |o: &Operation| InFlight {
            number: o.number,
            issuer: (o.warp, o.lane),
            free: !self.waits(o),
            signals: !o.completions.is_empty(),
        };
        self.queue.iter().map(of).collect()
    }

    /// Takes an operation out of the queue, to be performed.
    pub(super) fn take(&mut self, number: u64) -> Option<Operation> {
        let at = self.queue.iter().position(|o| o.number == number)?;
        Some(self.queue.remove(at))
    }

    /// The mark of the next operation of an instruction; `issuer` has the block, the warp and the lane.
    fn number(&mut self, pc: usize, issuer: Mark, kind: Kind) -> Mark {
        let count = self.numbers.entry(pc).or_default();
        // Reads have even numbers, writes odd ones: a wait can be for the reads alone.
        let number = *count * 2;
        *count += 1;
        Mark::new(number, issuer.block, issuer.lanes, pc, issuer.warp(), kind)
    }

    /// Puts an operation into the queue.
    pub(super) fn issue(
        &mut self,
        issue: Issue,
        (warp, lane): (usize, u32),
        pc: usize,
        mut forked: Forked,
        time: u64,
    ) {
        let own = Mark::new(0, forked.mark.block, 1 << lane, pc, warp, issue.proxy);
        forked.mark = self.number(pc, own, issue.proxy);
        let groups = self
            .groups
            .entry((issue.class, warp as u32 * 32 + lane))
            .or_default();
        let mut after = Vec::new();
        if issue.in_order || issue.work.is_none() {
            // For NVSHMEM: the operations before the last fence.
            let open = &groups.open[..if issue.class == Class::Remote {
                0
            } else {
                groups.open.len()
            }];
            for issued in groups.closed.iter().flatten().chain(open) {
                forked.after.extend([issued.mark, issued.mark.written()]);
                after.push(issued.number);
            }
        }
        for completion in &issue.completions {
            if let Completion::Bytes(None, byte, bytes) = completion {
                let barrier = self.barriers.get_mut(byte);
                let phase = barrier.map_or(0, |barrier| barrier.issue(*bytes));
                self.told_at.insert(operation_key(forked.mark), (*byte, phase));
            }
        }
        let number = self.issued;
        self.issued += 1;
        if issue.work.is_some() && issue.class != Class::Told {
            groups.open.push(Issued {
                number,
                mark: forked.mark,
            });
        }
        let due = self.now + 1 + mixed(self.seed, number) % MAX_DELAY;
        self.queue.push(Operation {
            number,
            warp,
            lane,
            pc,
            forked,
            name: issue.name,
            work: issue.work,
            completions: issue.completions,
            after,
            due,
            time,
        });
    }

    /// A thread other than `own` that waits for the mbarrier at a byte, and where.
    fn sleeper(&self, byte: u32, own: u32) -> Option<(u32, usize)> {
        let mut sleepers = self.sleepers.iter();
        let found = sleepers.find(|(thread, (at, _))| *at == byte && **thread != own);
        found.map(|(thread, (_, pc))| (*thread, *pc))
    }

    /// An instruction signals the mbarriers at a byte of the blocks of these ranks.
    pub(super) fn signals(&mut self, pc: usize, byte: u32, ranks: u32) {
        self.signalled.insert((pc, byte), ranks);
    }

    /// The instructions that signal the mbarriers at a byte of some blocks of the cluster, and not that of a rank: each with the ranks.
    pub(super) fn leaves_out(&self, byte: u32, rank: u32) -> impl Iterator<Item = (usize, u32)> {
        let all = self.signalled.iter();
        let at = all.filter(move |((_, at), ranks)| *at == byte && **ranks >> rank & 1 == 0);
        at.map(|((pc, _), ranks)| (*pc, *ranks))
    }

    /// Marks the last operation that a thread has issued as one of another thread's too.
    fn share(&mut self, class: Class, thread: u32, other: u32) {
        let last = |engine: &Engine| engine.groups.get(&(class, thread))?.open.last().copied();
        if let Some(issued) = last(self) {
            self.groups.entry((class, other)).or_default().open.push(issued);
        }
    }

    /// `commit_group`: groups what the thread has issued since the last one.
    pub(super) fn commit(&mut self, class: Class, thread: u32) {
        let groups = self.groups.entry((class, thread)).or_default();
        let group = std::mem::take(&mut groups.open);
        groups.closed.push_back(group);
    }

    /// The instruction that puts an operation into a group, where the operation is in none though its thread has waited for
    /// groups.
    pub(super) fn missing_commit(&self, operation: Mark) -> Option<&'static str> {
        let is = |issued: &Issued| issued.mark == operation || issued.mark.written() == operation;
        let mut groups = self.groups.iter();
        let ((class, _), _) = groups.find(|(_, g)| g.waited && g.open.iter().any(is))?;
        match class {
            Class::Copy => Some("cp.async.commit_group"),
            Class::Bulk => Some("cp.async.bulk.commit_group"),
            Class::Matrix => Some("wgmma.commit_group"),
            Class::Tensor | Class::Remote | Class::Told => None,
        }
    }

    /// The wait that an operation lacks, where the thread that issued it waits for groups of its kind.
    pub(super) fn missing_wait(&self, operation: Mark) -> Option<String> {
        let is = |issued: &Issued| issued.mark == operation || issued.mark.written() == operation;
        let found = self.groups.iter().find_map(|((class, _), groups)| {
            let group = groups.closed.iter().position(|group| group.iter().any(is));
            let read = group.is_some_and(|group| group < groups.read);
            let committed = group.is_some();
            (committed || groups.open.iter().any(is)).then_some((class, groups.waited, committed, read))
        });
        let (class, waited, committed, read) = found?;
        let kind = match class {
            Class::Copy => "cp.async",
            Class::Bulk => "cp.async.bulk",
            Class::Matrix => "wgmma",
            Class::Tensor | Class::Remote | Class::Told => return None,
        };
        if read {
            return Some(format!(
                "{kind}.wait_group.read waits until the operation has read its source, not until it has written: wait without .read \
                 (in the language of TVM 0.26: read=False)"
            ));
        }
        Some(match (waited, committed) {
            (true, _) => format!("{kind}.wait_group lets its group go on"),
            (false, true) => format!("{kind}.wait_group is missing"),
            (false, false) => format!("{kind}.commit_group and {kind}.wait_group are missing"),
        })
    }

    /// Whether all but the latest `left` groups of a thread are complete.
    pub(super) fn complete(&self, class: Class, thread: u32, left: usize) -> bool {
        let Some(groups) = self.groups.get(&(class, thread)) else {
            return true;
        };
        let count = groups.closed.len().saturating_sub(left);
        let mut waited = groups.closed.iter().take(count).flatten();
        !waited.any(|issued| self.queue.iter().any(|o| o.number == issued.number))
    }

    /// The same for all that the thread has issued, committed or not: `cp.async.wait_all`.
    pub(super) fn all_complete(&self, class: Class, thread: u32) -> bool {
        let Some(groups) = self.groups.get(&(class, thread)) else {
            return true;
        };
        let mut waited = groups.closed.iter().flatten().chain(&groups.open);
        !waited.any(|issued| self.queue.iter().any(|o| o.number == issued.number))
    }

    /// Drops the groups that a thread has waited for and adds their operations to what it knows. `read` waits add the
    /// reads alone.
    pub(super) fn retire(&mut self, class: Class, thread: u32, left: usize, read: bool) -> Vec<Mark> {
        let Some(groups) = self.groups.get_mut(&(class, thread)) else {
            return Vec::new();
        };
        groups.waited = true;
        let count = groups.closed.len().saturating_sub(left);
        let mut marks = Vec::new();
        for issued in groups.closed.iter().take(count).flatten() {
            marks.push(issued.mark);
            if !read {
                marks.push(issued.mark.written());
            }
        }
        if read {
            groups.read = groups.read.max(count);
        } else {
            groups.closed.drain(..count);
            groups.read = groups.read.saturating_sub(count);
        }
        marks
    }
}
