//! What can go wrong while a kernel runs, and how it is reported.

use std::fmt;

use crate::accuracy::{LineAccuracy, ShadowValue};
use crate::coverage::LineCoverage;
use crate::location::FaultLocation;
use crate::observe::{LineCounts, Snapshot};
use crate::timeline::TimelineEvent;
use crate::work::Work;
use tirx_source::diagnostic::{CALLED, Level, Message};

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FaultKind {
    /// The launch does not fit the kernel: extents, number of arguments, shared memory.
    Launch,
    /// An access outside the allocation or array.
    OutOfBounds,
    /// An access through a null pointer.
    NullPointer,
    /// An access at an address that is no multiple of its width.
    Misaligned,
    /// A read of shared memory or of a local array that nobody wrote.
    Uninitialized,
    /// Integer division or modulo by zero.
    DivisionByZero,
    /// A sum, difference or product of `int32` or `int64` that overflows; reported where
    /// `CompileOptions::check_overflow` of `tirx-sim` asks for it.
    Overflow,
    /// A shift by a negative amount, or by the width of the dtype or more; reported as overflow is.
    ShiftOutOfRange,
    /// Two unordered accesses, at least one of them a write.
    Race,
    /// Deadlock: no thread can continue.
    Deadlock,
    /// A block barrier that some threads of the block never reach.
    BarrierDivergence,
    /// A named barrier with a number or thread count that PTX does not have.
    InvalidBarrier,
    /// An mbarrier, an asynchronous operation or an instruction of tensor cores against the rules of the PTX ISA.
    Asynchronous,
    /// A shuffle or vote that names, or reads from, a lane that does not take part.
    InvalidLanes,
    /// An assertion in the kernel failed.
    Assertion,
    /// A raw CUDA function without a stand-in, or whose stand-in failed.
    StandIn,
    /// The limit of [`LaunchOptions::step_limit`](crate::LaunchOptions) was reached.
    StepLimit,
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FaultKind::Launch => "launch does not fit the kernel",
            FaultKind::OutOfBounds => "out-of-bounds access",
            FaultKind::NullPointer => "null pointer access",
            FaultKind::Misaligned => "misaligned access",
            FaultKind::Uninitialized => "uninitialized read",
            FaultKind::DivisionByZero => "division by zero",
            FaultKind::Overflow => "signed overflow",
            FaultKind::ShiftOutOfRange => "shift out of range",
            FaultKind::Race => "data race",
            FaultKind::Deadlock => "deadlock",
            FaultKind::BarrierDivergence => "barrier not reached by all threads",
            FaultKind::InvalidBarrier => "invalid barrier",
            FaultKind::Asynchronous => "asynchronous operation misused",
            FaultKind::InvalidLanes => "invalid lanes",
            FaultKind::Assertion => "assertion failed",
            FaultKind::StandIn => "raw CUDA function",
            FaultKind::StepLimit => "step limit reached",
        })
    }
}

/// Calls around a place that a report shows.
const MAX_CALLS: usize = 4;

/// Another place involved in a fault: the other access of a race, a waiting thread of a deadlock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultNote {
    /// What happened there.
    pub message: String,
    /// Where.
    pub location: Option<FaultLocation>,
}

/// What a launch did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Work done: operators of the lowered kernel (arithmetic, conversions, loads, stores, calls; loop control aside)
    /// times the lanes they were run for. What is the same for a whole warp counts for each lane, as on a GPU.
    pub lane_ops: u64,
    /// What the kernel printed, by block.
    pub output: String,
    /// The events of the block that [`LaunchOptions::timeline`](crate::LaunchOptions::timeline) names.
    pub timeline: Vec<TimelineEvent>,
    /// Counts by line, where [`Observe::counters`](crate::Observe::counters) asks for them.
    pub counts: Vec<LineCounts>,
    /// Values at the line that [`Observe::stop`](crate::Observe::stop) names.
    pub snapshots: Vec<Snapshot>,
    /// What was exercised, by line, where [`Observe::coverage`](crate::Observe::coverage) asks for it.
    pub coverage: Vec<LineCoverage>,
    /// What a cost model weighs, where [`Observe::work`](crate::Observe::work) asks for it.
    pub work: Option<Work>,
    /// Errors of float values by line, where [`LaunchOptions::accuracy`](crate::LaunchOptions::accuracy) asks for them.
    pub accuracy: Vec<LineAccuracy>,
    /// The same for elements of global memory: their shadows at the end.
    pub shadows: Vec<ShadowValue>,
    /// What the launch has gone on after, as [`LaunchOptions::continue_after`](crate::LaunchOptions::continue_after) says: one for each place in the kernel.
    pub findings: Vec<Fault>,
}

/// An error of a running kernel. `Display` shows everything, over several lines; the parts are those of
/// [`FaultReport`], which it dereferences to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault(Box<FaultReport>);

impl From<FaultReport> for Fault {
    fn from(report: FaultReport) -> Fault {
        Fault(Box::new(report))
    }
}

impl std::ops::Deref for Fault {
    type Target = FaultReport;
    fn deref(&self) -> &FaultReport {
        &self.0
    }
}

/// The parts of a [`Fault`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultReport {
    /// What went wrong.
    pub kind: FaultKind,
    /// What went wrong in detail, in one sentence.
    pub message: String,
    /// The device function's name.
    pub kernel: String,
    /// The kernel's line, where there is one.
    pub location: Option<FaultLocation>,
    /// The rank of the thread's device, in a launch on several.
    pub rank: Option<u32>,
    /// `blockIdx` of the thread.
    pub block: [u32; 3],
    /// `threadIdx` of the thread.
    pub thread: [u32; 3],
    /// Other places involved.
    pub notes: Vec<FaultNote>,
    /// What the kernel had printed before; of all blocks, if the fault ended a launch.
    pub output: String,
    /// What the launch that it ended did and was observed to do until then.
    pub stats: Stats,
}

impl Fault {
    /// The fault as the end of a launch that did all this.
    pub(crate) fn after(mut self, stats: Stats) -> Fault {
        self.0.output.clone_from(&stats.output);
        self.0.stats = stats;
        self
    }

    /// The fault in the form of the compiler's diagnostics: message, place, and notes with block and thread.
    pub fn to_diagnostic(&self) -> Message {
        let mut message = Message::new(Level::Error, self.head());
        message.place = self.location.as_ref().map(FaultLocation::place);
        if self.kind != FaultKind::Launch {
            message = message.child(Level::Note, self.thread_text());
        }
        for (text, at) in self.further() {
            let mut child = Message::new(Level::Note, text);
            child.place = at.map(FaultLocation::place);
            message.children.push(child);
        }
        message
    }

    /// The calls around the place of the fault, then the notes, each with the calls around it where these are others.
    fn further(&self) -> Vec<(&str, Option<&FaultLocation>)> {
        fn calls(location: Option<&FaultLocation>) -> impl Iterator<Item = (&str, Option<&FaultLocation>)> {
            let calls = location.into_iter().flat_map(FaultLocation::calls);
            calls.take(MAX_CALLS).map(|call| (CALLED, Some(call)))
        }
        let own = self.location.as_ref();
        let mut all: Vec<_> = calls(own).collect();
        for note in &self.notes {
            let at = note.location.as_ref();
            all.push((note.message.as_str(), at));
            if at.and_then(|at| at.call.as_ref()) != own.and_then(|at| at.call.as_ref()) {
                all.extend(calls(at));
            }
        }
        all
    }

    fn head(&self) -> String {
        format!("{} in kernel `{}`: {}", self.kind, self.kernel, self.message)
    }

    fn thread_text(&self) -> String {
        let ([bx, by, bz], [tx, ty, tz]) = (self.block, self.thread);
        let rank = self.rank.map_or(String::new(), |rank| format!("rank {rank}, "));
        format!("in {rank}block ({bx}, {by}, {bz}), thread ({tx}, {ty}, {tz})")
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.head())?;
        if let Some(at) = &self.location {
            place(f, at)?;
        }
        if self.kind != FaultKind::Launch {
            write!(f, "\n  {}", self.thread_text())?;
        }
        for (text, at) in self.further() {
            write!(f, "\nnote: {text}")?;
            if let Some(at) = at {
                place(f, at)?;
            }
        }
        Ok(())
    }
}

fn place(f: &mut fmt::Formatter<'_>, at: &FaultLocation) -> fmt::Result {
    let number = at.line.to_string();
    let pad = " ".repeat(number.len());
    write!(f, "\n{pad}--> {}:{}:{}", at.file, at.line, at.column)?;
    write!(f, "\n{pad} |\n{number} | {}", at.text)
}

impl std::error::Error for Fault {}
