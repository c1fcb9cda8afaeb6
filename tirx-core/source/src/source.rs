//! Where text came from: files, spans into them, and line lookup.
//!
//! **Calls.** The body of a `@T.inline` function becomes part of each kernel line that calls it. The span of such a part names the
//! function's text *and* the call: its [`FileId`] is one that [`SourceMap::called`] made of the file and the span of the call, which
//! may be within a call itself. All look-ups see the file's text; [`SourceMap::call`] gives the call. So a span keeps its size, and
//! whoever moves a statement moves its calls along.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// A file of a [`SourceMap`]. `FileId::NONE` marks code that no user wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct FileId(pub u32);

impl FileId {
    /// No file: the node was made by the compiler.
    pub const NONE: FileId = FileId(0);

    fn is_some(self) -> bool {
        self != FileId::NONE
    }
}

/// A byte range of one file. `Span::NONE` where no text is responsible.
///
/// Spans never take part in equality of IR: two nodes that differ in span alone are structurally equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Span {
    /// The file.
    pub file: FileId,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// No source text.
    pub const NONE: Span = Span {
        file: FileId::NONE,
        start: 0,
        end: 0,
    };

    /// A span of `file`.
    pub fn new(file: FileId, start: u32, end: u32) -> Span {
        Span { file, start, end }
    }

    /// Whether the span points at text.
    pub fn is_some(self) -> bool {
        self.file != FileId::NONE
    }

    /// `self` where it points at text, otherwise `other`.
    pub fn or(self, other: Span) -> Span {
        if self.is_some() { self } else { other }
    }

    /// The smallest span that covers both, where they are in one file; otherwise `self`.
    pub fn to(self, other: Span) -> Span {
        if self.file != other.file {
            return self.or(other);
        }
        Span {
            file: self.file,
            start: self.start.min(other.start),
            end: self.end.max(other.end),
        }
    }
}

/// One text.
#[derive(Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// The name shown in messages: a path as the user gave it, or `<manifest kernel "add">`.
    pub name: String,
    /// The text.
    pub text: String,
    line_starts: Vec<u32>,
}

impl SourceFile {
    fn new(name: String, text: String) -> SourceFile {
        let line_starts = std::iter::once(0).chain(
            text.bytes()
                .enumerate()
                .filter(|(_, b)| *b == b'\n')
                .map(|(i, _)| i as u32 + 1),
        );
        let line_starts = line_starts.collect();
        SourceFile {
            name,
            text,
            line_starts,
        }
    }
}

/// A position for people: all counted from 1; the column counts characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location<'a> {
    /// The file's name.
    pub file: &'a str,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// The text of the line, without its end.
    pub line_text: &'a str,
}

/// The texts of one compilation. Cheap to clone; adding a file to a clone does not change the original. Clones share the calls.
#[derive(Clone, Debug, Default)]
pub struct SourceMap {
    files: Vec<Arc<SourceFile>>,
    calls: Arc<RwLock<Calls>>,
}

/// Equal texts: calls only explain spans.
impl PartialEq for SourceMap {
    fn eq(&self, other: &SourceMap) -> bool {
        self.files == other.files
    }
}

impl Eq for SourceMap {}

/// The calls that spans are in, by their numbers.
#[derive(Debug, Default)]
struct Calls {
    /// The file of the called function, and the call.
    list: Vec<(FileId, Span)>,
    numbers: HashMap<(FileId, Span), u32>,
}

/// The number of the first file that stands for one within a call. Real files have small numbers.
const FIRST_CALL: u32 = 1 << 30;
/// Most calls that are told apart: a recursive function could have any number.
const MAX_CALLS: u32 = 1 << 16;
/// Most calls around a span that are followed.
const MAX_DEPTH: usize = 64;

impl SourceMap {
    /// An empty map.
    pub fn new() -> SourceMap {
        SourceMap::default()
    }

    /// Adds a text and returns its id.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> FileId {
        self.files
            .push(Arc::new(SourceFile::new(name.into(), text.into())));
        FileId(self.files.len() as u32)
    }

    /// The file behind an id.
    pub fn file(&self, id: FileId) -> Option<&SourceFile> {
        let id = self.written(id);
        self.files.get((id.0 as usize).checked_sub(1)?).map(|f| &**f)
    }

    /// The file `file`, of which a function is called at `call`: spans of the result are in that call. `file` itself where there is no
    /// call, or too many were made.
    pub fn called(&self, file: FileId, call: Span) -> FileId {
        let file = self.written(file);
        if !call.is_some() || !file.is_some() {
            return file;
        }
        let mut calls = self.calls.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = calls.numbers.get(&(file, call)) {
            return FileId(FIRST_CALL + number);
        }
        let number = calls.list.len() as u32;
        if number >= MAX_CALLS {
            return file;
        }
        calls.list.push((file, call));
        calls.numbers.insert((file, call), number);
        FileId(FIRST_CALL + number)
    }

    fn call_of(&self, id: FileId) -> Option<(FileId, Span)> {
        let number = id.0.checked_sub(FIRST_CALL)?;
        let calls = self.calls.read().unwrap_or_else(PoisonError::into_inner);
        calls.list.get(number as usize).copied()
    }

    /// The file whose text an id stands for.
    pub fn written(&self, id: FileId) -> FileId {
        self.call_of(id).map_or(id, |(file, _)| file)
    }

    /// The call that made a span's code part of its kernel; `None` for code that is written in the kernel itself.
    pub fn call(&self, span: Span) -> Option<Span> {
        self.call_of(span.file).map(|(_, call)| call)
    }

    /// The calls around a span, innermost first.
    pub fn calls(&self, span: Span) -> Vec<Span> {
        std::iter::successors(self.call(span), |call| self.call(*call))
            .take(MAX_DEPTH)
            .collect()
    }

    /// All files, in the order of their ids, from `FileId(1)`.
    pub fn files(&self) -> impl Iterator<Item = &SourceFile> {
        self.files.iter().map(|f| &**f)
    }

    /// The text under a span; empty where there is none.
    pub fn text(&self, span: Span) -> &str {
        self.file(span.file)
            .and_then(|f| f.text.get(span.start as usize..span.end as usize))
            .unwrap_or("")
    }

    /// The position of a span's first byte.
    pub fn locate(&self, span: Span) -> Option<Location<'_>> {
        let file = self.file(span.file)?;
        let start = (span.start as usize).min(file.text.len());
        let line = file.line_starts.partition_point(|&s| s as usize <= start);
        let line_start = file.line_starts[line - 1] as usize;
        let line_text = file.text[line_start..]
            .split('\n')
            .next()
            .unwrap_or("")
            .trim_end_matches('\r');
        let column = file.text.get(line_start..start).map_or(0, |t| t.chars().count()) as u32 + 1;
        Some(Location {
            file: &file.name,
            line: line as u32,
            column,
            line_text,
        })
    }

    /// Whether the file turns a warning off: `# tirx: allow(name)` on the line of the span, on the one before it, or at the
    /// head of the file.
    pub fn allows(&self, name: &str, span: Span) -> bool {
        let (Some(file), Some(at)) = (self.file(span.file), self.locate(span)) else {
            return false;
        };
        let allowed = |line: &str| {
            let marker = line
                .split_once("# tirx: allow(")
                .and_then(|(_, rest)| rest.split_once(')'));
            marker.is_some_and(|(names, _)| names.split(',').any(|n| n.trim() == name))
        };
        let line = at.line as usize;
        let lines = file.text.lines();
        let near = lines.clone().skip(line.saturating_sub(2)).take(2.min(line));
        let mut head = lines.take_while(|l| l.trim().is_empty() || l.trim_start().starts_with('#'));
        near.into_iter().any(allowed) || head.any(allowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locates_lines_and_columns() {
        let mut map = SourceMap::new();
        let f = map.add("a.py", "one\ntwo é x\n");
        let at = map.locate(Span::new(f, 11, 12)).unwrap();
        assert_eq!(
            (at.file, at.line, at.column, at.line_text),
            ("a.py", 2, 7, "two é x")
        );
        assert_eq!(map.text(Span::new(f, 0, 3)), "one");
        assert_eq!(map.locate(Span::NONE), None);
    }

    #[test]
    fn calls_are_part_of_a_span() {
        let mut map = SourceMap::new();
        let f = map.add("a.py", "def put(x): y = x\nput(1)\nput(2)\n");
        let copy = map.clone();
        let (one, two) = (Span::new(f, 18, 24), Span::new(f, 25, 31));
        let body = Span::new(map.called(f, one), 12, 17);
        let other = Span::new(map.called(f, two), 12, 17);
        assert_ne!(body, other);
        assert_eq!(map.called(f, one), body.file, "each call has one number");
        for (span, call) in [(body, one), (other, two)] {
            assert_eq!(map.text(span), "y = x");
            assert_eq!(map.locate(span).unwrap().line, 1);
            // A clone knows the calls that are made later.
            assert_eq!(copy.call(span), Some(call));
        }
        let nested = Span::new(map.called(body.file, body), 12, 13);
        assert_eq!((map.text(nested), map.calls(nested)), ("y", vec![body, one]));
        assert_eq!(map.called(f, Span::NONE), f);
        assert_eq!(map.calls(one), []);
    }
}
