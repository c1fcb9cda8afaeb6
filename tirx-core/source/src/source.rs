//! Where text came from: files, spans into them, and line lookup.

use std::sync::Arc;

/// A file of a [`SourceMap`]. `FileId::NONE` marks code that no user wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct FileId(pub u32);

impl FileId {
    /// No file: the node was made by the compiler.
    pub const NONE: FileId = FileId(0);
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

/// The texts of one compilation. Cheap to clone; adding a file to a clone does not change the original.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceMap {
    files: Vec<Arc<SourceFile>>,
}

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
        self.files.get((id.0 as usize).checked_sub(1)?).map(|f| &**f)
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
}
