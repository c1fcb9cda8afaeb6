//! Source lines: the kernel line that each line of the CUDA text was generated from.
//!
//! While the text is written, its pieces are moved, indented and joined. A line therefore carries its origin as a mark
//! before its end; [`split`] removes the marks when the text is complete. nvcc never sees one, and no `#line` is
//! written: a comment in the kernel file moves lines, and must not change what is compiled.

use crate::source::{FileId, SourceMap, Span};

/// Begins a mark. The emitter writes control characters of strings as escapes, so no line has one.
const MARK: char = '\u{1}';

/// Marks the origin of the line at the end of `out`.
pub(super) fn push_mark(out: &mut String, span: Span) {
    if span.is_some() {
        out.push(MARK);
        for (number, end) in [(span.file.0, " "), (span.start, " "), (span.end, "")] {
            push_decimal(out, number);
            out.push_str(end);
        }
    }
}

/// Writes a number. A line has three, and the formatter takes longer than everything else that is done for a line.
fn push_decimal(out: &mut String, number: u32) {
    let mut digits = 1;
    let mut weight = 1;
    while number / weight >= 10 {
        weight *= 10;
        digits += 1;
    }
    for _ in 0..digits {
        out.push(char::from(b'0' + (number / weight % 10) as u8));
        weight = (weight / 10).max(1);
    }
}

/// Writes raw CUDA text, each line with the place where the kernel file has it.
pub(super) fn push_raw(out: &mut String, source: &str, span: Span, sources: &SourceMap) {
    let places = raw_places(source, span, sources);
    for (i, line) in source.lines().enumerate() {
        // A mark in user text would be mistaken for one of these.
        out.extend(line.chars().filter(|c| *c != MARK));
        push_mark(out, places.get(i).copied().unwrap_or(span));
        out.push('\n');
    }
}

/// The origin of each line of a raw source: its place in a file that contains the text verbatim, otherwise the call.
fn raw_places(source: &str, span: Span, sources: &SourceMap) -> Vec<Span> {
    let found = sources.files().enumerate().find_map(|(i, file)| {
        let at = file.text.find(source)?;
        Some((FileId(i as u32 + 1), at))
    });
    let Some((file, mut at)) = found else {
        return vec![span; source.lines().count()];
    };
    source
        .split_inclusive('\n')
        .map(|line| {
            let blank = line.len() - line.trim_start().len();
            let end = line.trim_end().len().max(blank);
            let place = Span::new(file, (at + blank) as u32, (at + end) as u32);
            at += line.len();
            place
        })
        .collect()
}

/// The text without marks, and the place of each line.
pub(super) fn split(marked: &str) -> (String, Vec<Span>) {
    let mut text = String::with_capacity(marked.len());
    let mut places = Vec::new();
    for line in marked.split_inclusive('\n') {
        // A line has one mark at most, at its end.
        let (line, place) = match line.rsplit_once(MARK) {
            Some((code, mark)) => (code, read_mark(mark)),
            None => (line.trim_end_matches('\n'), Span::NONE),
        };
        text.push_str(line);
        text.push('\n');
        places.push(place);
    }
    (text, places)
}

/// The text without marks.
pub(super) fn unmarked(marked: &str) -> String {
    split(marked).0
}

fn read_mark(mark: &str) -> Span {
    let mut numbers = mark.trim_ascii_end().split(' ').map(|n| n.parse().ok());
    match (
        numbers.next().flatten(),
        numbers.next().flatten(),
        numbers.next().flatten(),
    ) {
        (Some(file), Some(start), Some(end)) => Span::new(FileId(file), start, end),
        _ => Span::NONE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_come_out_again() {
        let mut sources = SourceMap::new();
        let file = sources.add(
            "k.py",
            "x = 1\nSOURCE = \"\"\"\nint f() {\n  return 1;\n}\n\"\"\"\n",
        );
        let mut marked = String::from("// head\n");
        push_raw(
            &mut marked,
            "int f() {\n  return 1;\n}",
            Span::new(file, 0, 1),
            &sources,
        );
        marked.push_str("f();");
        push_mark(&mut marked, Span::new(file, 0, 5));
        marked.push('\n');
        let (text, places) = split(&marked);
        assert_eq!(text, "// head\nint f() {\n  return 1;\n}\nf();\n");
        let shown: Vec<&str> = places.iter().map(|span| sources.text(*span)).collect();
        assert_eq!(shown, ["", "int f() {", "return 1;", "}", "x = 1"]);
    }

    #[test]
    fn numbers_are_written_in_full() {
        for number in [0, 7, 10, 99, 100, 4_294_967_295] {
            let mut out = String::new();
            push_decimal(&mut out, number);
            assert_eq!(out, number.to_string());
        }
    }

    #[test]
    fn a_raw_text_that_no_file_holds_is_at_its_call() {
        let mut sources = SourceMap::new();
        let file = sources.add("k.py", "call(\"int f();\\nint g();\")\n");
        let call = Span::new(file, 0, 4);
        assert_eq!(raw_places("int f();\nint g();", call, &sources), [call, call]);
    }
}
