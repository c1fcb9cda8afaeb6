//! What can go wrong while a kernel runs, and how it is reported.

use std::fmt;
use std::sync::Arc;

use crate::grid::Stats;
use tirx_source::diagnostic::{CALLED, Level, Message, Place};
use tirx_source::source::{SourceMap, Span};

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

/// A line of the kernel's source.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FaultLocation {
    /// The file as the user named it.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// Byte range of the faulty text in the file: the first byte and one past the last.
    pub bytes: (u32, u32),
    /// Line and column after the last character at fault.
    pub end: (u32, u32),
    /// The line's text.
    pub text: String,
    /// Of a line of an inline function: the line that calls it.
    pub call: Option<Arc<FaultLocation>>,
}

impl FaultLocation {
    /// Where a span begins; `None` where it is of no text.
    pub fn of(sources: &SourceMap, span: Span) -> Option<FaultLocation> {
        let around = sources.calls(span);
        // From the outermost call on.
        let call = around.into_iter().rev().fold(None, |call, around| {
            FaultLocation::at(sources, around, call).map(Arc::new)
        });
        FaultLocation::at(sources, span, call)
    }

    fn at(sources: &SourceMap, span: Span, call: Option<Arc<FaultLocation>>) -> Option<FaultLocation> {
        let place = Place::of(sources, span)?;
        Some(FaultLocation {
            call,
            file: place.file,
            line: place.start.0,
            column: place.start.1,
            bytes: place.bytes,
            end: place.end,
            text: place.text,
        })
    }

    /// The calls around the line, innermost first.
    pub fn calls(&self) -> impl Iterator<Item = &FaultLocation> {
        std::iter::successors(self.call.as_deref(), |location| location.call.as_deref())
    }

    /// The lines, from the place's own to the outermost call: equal for instructions that are counted together.
    pub fn key(&self) -> Vec<(&str, u32)> {
        let all = std::iter::once(self).chain(self.calls());
        all.map(|at| (at.file.as_str(), at.line)).collect()
    }

    fn place(&self) -> Place {
        Place {
            file: self.file.clone(),
            bytes: self.bytes,
            start: (self.line, self.column),
            end: self.end,
            text: self.text.clone(),
            label: String::new(),
        }
    }
}

/// Another place involved in a fault: the other access of a race, a waiting thread of a deadlock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultNote {
    /// What happened there.
    pub message: String,
    /// Where.
    pub location: Option<FaultLocation>,
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
        format!("in block ({bx}, {by}, {bz}), thread ({tx}, {ty}, {tz})")
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
