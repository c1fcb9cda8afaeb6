//! A variant: one implementation of a tile primitive, as a row and a function that plans a call.
//!
//! [`Variant::plan`] decides everything and can decline; the [`Emits`] that it returns explains the plan and writes the
//! code, which cannot fail. What the table, the messages and `explain` say of a variant is read from its row.

use std::fmt;

use super::call::PrimitiveCall;
use super::context::{Context, Warning};
use super::decline::Decline;
use super::emit::Emit;
use super::option::TileOption;
use crate::intrin::GpuSet;
use crate::ir::TileOp;

/// One implementation of an operation.
pub(super) struct Variant {
    /// The operations it lowers.
    pub(super) ops: &'static [TileOp],
    /// Its name, for `dispatch=`.
    pub(super) name: &'static str,
    /// Other names for it.
    pub(super) aliases: &'static [&'static str],
    /// Higher ones are tried first; of equals the earlier row.
    pub(super) priority: i32,
    /// Whether it is tried only when `dispatch=` names it.
    pub(super) only_forced: bool,
    /// The GPUs that have its instructions; every target that shares the code must be among them.
    pub(super) arch: GpuSet,
    /// The options it reads.
    pub(super) options: &'static [TileOption],
    /// What the caller does before the result is used; a plan may say more ([`Explanation::completion`]).
    pub(super) completion: Completion,
    /// Conditions that are checked before `plan`, in this order.
    pub(super) predicates: &'static [Predicate],
    /// Decides how the call is lowered, or declines.
    pub(super) plan: fn(&PrimitiveCall<'_>, &mut Context<'_>) -> Result<Plan, Decline>,
    /// Its description, for tables.
    pub(super) doc: &'static str,
}

impl Variant {
    /// Values for the fields that most variants leave as they are.
    pub(super) const DEFAULT: Variant = Variant {
        ops: &[],
        name: "",
        aliases: &[],
        priority: 10,
        only_forced: false,
        arch: GpuSet::ANY,
        options: &[],
        completion: Completion::Done,
        predicates: &[],
        plan: |_, _| Err(Decline::from("no plan")),
        doc: "",
    };

    pub(super) fn is_named(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }
}

/// A named condition.
pub(super) struct Predicate {
    /// Its description, for tables.
    pub(super) name: &'static str,
    /// Whether it holds.
    pub(super) holds: fn(&PrimitiveCall<'_>, &mut Context<'_>) -> Result<(), Decline>,
}

/// A decision how a call is lowered.
pub(super) type Plan = Box<dyn Emits>;

/// A plan: explains itself and writes its code.
pub(super) trait Emits {
    /// What was decided.
    fn explain(&self) -> Explanation;
    /// Writes the code.
    fn emit(self: Box<Self>, out: &mut Emit<'_, '_>);
}

/// What `explain` and warnings show of a plan.
#[derive(Default)]
pub(super) struct Explanation {
    /// The partition, where the plan is one: rounds, threads, elements per vector.
    pub(super) partition: Option<[i128; 3]>,
    /// Further lines.
    pub(super) lines: Vec<String>,
    /// The completion of this call, where it is not simply the row's.
    pub(super) completion: Option<Completion>,
    /// A warning about the plan.
    pub(super) warning: Option<Warning>,
}

impl Explanation {
    /// A plan that is a partition: rounds, threads, elements per vector.
    pub(super) fn partition(rounds: i128, threads: i128, vector: i128) -> Explanation {
        Explanation {
            partition: Some([rounds, threads, vector]),
            ..Explanation::default()
        }
    }

    /// With one more line.
    pub(super) fn line(mut self, line: impl Into<String>) -> Explanation {
        self.lines.push(line.into());
        self
    }
}

/// What the caller does between a call and the use of its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// Nothing: the threads of the scope see the result.
    Done,
    /// Each thread has done its part; a barrier of the scope makes it visible to the others.
    OwnPart,
    /// Each thread's `cp.async` are committed and waited for, then a barrier of the scope.
    CommitGroup,
    /// The issuing thread commits and waits for a group of bulk copies.
    BulkGroup,
    /// Bytes arrive at the mbarrier that the call names.
    Mbarrier {
        /// How many, where the call says.
        bytes: Option<i128>,
    },
    /// `tcgen05.commit` to an mbarrier, then a wait at it.
    TcgenCommit,
    /// `wgmma.commit_group`, then `wgmma.wait_group`.
    WgmmaGroup,
    /// `tcgen05.wait::ld`.
    TcgenWaitLd,
    /// `tcgen05.wait::st`.
    TcgenWaitSt,
}

impl Completion {
    /// The kind without the call's numbers.
    pub fn kind(self) -> &'static str {
        match self {
            Completion::Done => "done",
            Completion::OwnPart => "own part",
            Completion::CommitGroup => "commit group",
            Completion::BulkGroup => "bulk group",
            Completion::Mbarrier { .. } => "mbarrier",
            Completion::TcgenCommit => "tcgen05.commit",
            Completion::WgmmaGroup => "wgmma group",
            Completion::TcgenWaitLd => "tcgen05.wait::ld",
            Completion::TcgenWaitSt => "tcgen05.wait::st",
        }
    }
}

impl fmt::Display for Completion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Completion::Done => f.write_str("nothing: the threads of the scope see the result"),
            Completion::OwnPart => {
                f.write_str("a barrier of the scope, before other threads read the elements")
            }
            Completion::CommitGroup => f.write_str(
                "T.ptx.cp_async.commit_group(), T.ptx.cp_async.wait_group(n) in each thread, then a barrier of the scope",
            ),
            Completion::BulkGroup => f.write_str(
                "T.ptx.cp_async.bulk.commit_group(), T.ptx.cp_async.bulk.wait_group(n) in the thread that issued it",
            ),
            Completion::Mbarrier { bytes: Some(bytes) } => write!(
                f,
                "{bytes} bytes at the call's mbarrier: arrive.expect_tx({bytes}), then try_wait"
            ),
            Completion::Mbarrier { bytes: None } => {
                f.write_str("the bytes of the copy at the call's mbarrier: arrive.expect_tx, then try_wait")
            }
            Completion::TcgenCommit => {
                f.write_str("T.ptx.tcgen05.commit(bar) in the thread that issued it, then a wait at that mbarrier")
            }
            Completion::WgmmaGroup => {
                f.write_str("T.ptx.wgmma.commit_group(), T.ptx.wgmma.wait_group(n) in the warpgroup")
            }
            Completion::TcgenWaitLd => f.write_str("T.ptx.tcgen05.wait.ld() in the threads that issued it"),
            Completion::TcgenWaitSt => f.write_str("T.ptx.tcgen05.wait.st() in the threads that issued it"),
        }
    }
}
