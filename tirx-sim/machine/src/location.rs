//! Where in the kernel's text an instruction comes from.

use std::sync::Arc;

use tirx_source::diagnostic::TextRange;
use tirx_source::source::{SourceMap, Span};

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
    pub fn from_span(sources: &SourceMap, span: Span) -> Option<FaultLocation> {
        let around = sources.calls(span);
        // From the outermost call on.
        let call = around.into_iter().rev().fold(None, |call, around| {
            FaultLocation::at(sources, around, call).map(Arc::new)
        });
        FaultLocation::at(sources, span, call)
    }

    fn at(sources: &SourceMap, span: Span, call: Option<Arc<FaultLocation>>) -> Option<FaultLocation> {
        let place = TextRange::from_span(sources, span)?;
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

    pub(crate) fn place(&self) -> TextRange {
        TextRange {
            file: self.file.clone(),
            bytes: self.bytes,
            start: (self.line, self.column),
            end: self.end,
            text: self.text.clone(),
            label: String::new(),
        }
    }
}
