//! A diagnostic with its places resolved, ready to be shown to people or written for editors.
//!
//! A [`Message`] owns its texts, so that it outlives the [`SourceMap`]; all forms of output are made from it.

use crate::source::{SourceMap, Span};

use super::Diagnostic;

/// Severity of a message, or the role of a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// An error: nothing can be built.
    Error,
    /// A warning: the build continues.
    Warning,
    /// An explanation.
    Note,
    /// A suggested fix.
    Help,
}

impl Level {
    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Note => "note",
            Level::Help => "help",
        }
    }
}

/// A range of a file's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextRange {
    /// The file as the user named it.
    pub file: String,
    /// First byte, from 0, and one past the last.
    pub bytes: (u32, u32),
    /// Line and column of the first character, from 1; columns count characters.
    pub start: (u32, u32),
    /// Line and column after the last character.
    pub end: (u32, u32),
    /// The text of the first line.
    pub text: String,
    /// The label under the underline; empty for none.
    pub label: String,
}

impl TextRange {
    /// Resolves a span; `None` where it points at no text.
    pub fn from_span(sources: &SourceMap, span: Span) -> Option<TextRange> {
        let start = sources.locate(span)?;
        let last = Span {
            start: span.end.max(span.start),
            ..span
        };
        let end = sources.locate(last)?;
        Some(TextRange {
            file: start.file.to_string(),
            bytes: (span.start, last.start),
            start: (start.line, start.column),
            end: (end.line, end.column),
            text: start.line_text.to_string(),
            label: String::new(),
        })
    }

    /// Number of characters of the first line that are underlined: up to the end of the range, or of the line if the range continues
    /// on the next one. At least 1, so that an empty range shows, too.
    fn underlined_characters(&self) -> usize {
        let ((first_line, start_column), (last_line, end_column)) = (self.start, self.end);
        // Columns count from 1.
        let up_to_line_end = (self.text.trim_end().chars().count() + 1).saturating_sub(start_column as usize);
        let characters = match first_line == last_line {
            true => up_to_line_end.min(end_column.saturating_sub(start_column) as usize),
            false => up_to_line_end,
        };
        characters.max(1)
    }
}

/// What the note at a call around an error says.
pub const CALLED: &str = "called from here";
/// Notes of a message up to which the calls around it are shown.
const MAX_NOTES: usize = 6;

/// A message or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its severity or role.
    pub level: Level,
    /// Its text.
    pub text: String,
    /// Where; the file's line is shown.
    pub place: Option<TextRange>,
    /// Notes and help, in order.
    pub children: Vec<Message>,
}

impl Message {
    /// A message without a place.
    pub fn new(level: Level, text: impl Into<String>) -> Message {
        Message {
            level,
            text: text.into(),
            place: None,
            children: Vec::new(),
        }
    }

    /// Resolves a diagnostic. If its span is in code that other code calls, each of these calls becomes a note after the diagnostic's own
    /// notes, up to `MAX_NOTES` notes in total; a call that a note already points at is left out.
    pub fn from_diagnostic(diagnostic: &Diagnostic, sources: &SourceMap) -> Message {
        let mut message = Message::new(Level::Error, diagnostic.message.as_str());
        message.place = TextRange::from_span(sources, diagnostic.span);
        if let Some(place) = &mut message.place {
            place.label.clone_from(&diagnostic.label);
        }
        for note in &diagnostic.notes {
            let mut child = Message::new(Level::Note, note.message.as_str());
            child.place = TextRange::from_span(sources, note.span);
            message.children.push(child);
        }
        for call in sources.calls(diagnostic.span) {
            let known = diagnostic.notes.iter().any(|note| note.span == call);
            if !known && message.children.len() < MAX_NOTES {
                let mut child = Message::new(Level::Note, CALLED);
                child.place = TextRange::from_span(sources, call);
                message.children.push(child);
            }
        }
        let help = diagnostic
            .help
            .iter()
            .map(|h| Message::new(Level::Help, h.as_str()));
        message.children.extend(help);
        message
    }

    /// The message with a note or help at the end.
    pub fn child(mut self, level: Level, text: impl Into<String>) -> Message {
        self.children.push(Message::new(level, text));
        self
    }

    /// Text for people, in the form of rustc's messages; with terminal colours where asked for. Ends with a newline.
    pub fn render(&self, colour: bool) -> String {
        let paint = Paint { colour };
        let mut out = String::new();
        self.render_head(&mut out, &paint, '^');
        for child in &self.children {
            match &child.place {
                Some(_) => child.render_head(&mut out, &paint, '-'),
                None => {
                    let equals = paint.with(BLUE, "=");
                    let level = paint.with(BOLD, child.level.name());
                    out.push_str(&format!("  {equals} {level}: {}\n", child.text));
                }
            }
        }
        out
    }

    fn render_head(&self, out: &mut String, paint: &Paint, mark: char) {
        let colour = match self.level {
            Level::Error => RED,
            Level::Warning => YELLOW,
            Level::Note => GREEN,
            Level::Help => CYAN,
        };
        let level = paint.with(colour, self.level.name());
        let text = paint.with(BOLD, &format!(": {}", self.text));
        out.push_str(&format!("{level}{text}\n"));
        let Some(place) = &self.place else { return };
        let number = place.start.0.to_string();
        let pad = " ".repeat(number.len());
        let (shown, before) = excerpt(&place.text, place.start.1 as usize - 1);
        let indent: String = shown
            .chars()
            .take(before)
            .map(|c| if c == '\t' { '\t' } else { ' ' })
            .collect();
        let room = shown.chars().count().saturating_sub(before).max(1);
        let marks: String = std::iter::repeat_n(mark, place.underlined_characters().min(room)).collect();
        let marks = match place.label.is_empty() {
            true => marks,
            false => format!("{marks} {}", place.label),
        };
        let (arrow, bar) = (paint.with(BLUE, "-->"), paint.with(BLUE, "|"));
        let (line, column) = place.start;
        out.push_str(&format!(
            "{pad}{arrow} {}:{line}:{column}\n{pad} {bar}\n",
            place.file
        ));
        let number = paint.with(BLUE, &number);
        out.push_str(&format!("{number} {bar} {shown}\n"));
        let marks = paint.with(if mark == '^' { colour } else { BLUE }, &marks);
        out.push_str(&format!("{pad} {bar} {indent}{marks}\n"));
    }

    /// One line: `kernels/add.py:5:10: error: unknown name "tz" (help: did you mean "tx"?)`.
    pub fn short(&self) -> String {
        let one_line = |text: &str| text.lines().map(str::trim).collect::<Vec<_>>().join(" ");
        let place = match &self.place {
            Some(place) => format!("{}:{}:{}: ", place.file, place.start.0, place.start.1),
            None => String::new(),
        };
        let help = self.children.iter().find(|c| c.level == Level::Help);
        let help = help.map_or(String::new(), |h| format!(" (help: {})", one_line(&h.text)));
        format!("{place}{}: {}{help}", self.level.name(), one_line(&self.text))
    }
}

/// Characters of a line that are shown.
const LONGEST_LINE: usize = 200;

/// A line as it is shown, and the characters of that before the place: of a long line (generated code, a table) the part
/// around the place.
fn excerpt(line: &str, at: usize) -> (String, usize) {
    let length = line.chars().count();
    if length <= LONGEST_LINE {
        return (line.to_string(), at);
    }
    let first = at.saturating_sub(LONGEST_LINE / 3).min(length - LONGEST_LINE);
    let part: String = line.chars().skip(first).take(LONGEST_LINE).collect();
    let (before, after) = (
        if first > 0 { "…" } else { "" },
        if first + LONGEST_LINE < length { "…" } else { "" },
    );
    (
        format!("{before}{part}{after}"),
        at - first + before.chars().count(),
    )
}

const BOLD: &str = "1";
const RED: &str = "1;31";
const GREEN: &str = "1;32";
const YELLOW: &str = "1;33";
const BLUE: &str = "1;34";
const CYAN: &str = "1;36";

/// Terminal colours, or none.
struct Paint {
    colour: bool,
}

impl Paint {
    fn with(&self, code: &str, text: &str) -> String {
        match self.colour {
            true => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
            false => text.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> Message {
        let mut sources = SourceMap::new();
        let file = sources.add("k.py", "x = 1\ny = é + z\n");
        Message::from_diagnostic(
            &Diagnostic::new(Span::new(file, 15, 16), "unknown name \"z\"")
                .label("here")
                .note(Span::new(file, 0, 1), "\"x\" is declared here")
                .note(Span::NONE, "names are looked up late")
                .help("did you mean \"x\"?"),
            &sources,
        )
    }

    #[test]
    fn places_have_bytes_lines_and_columns() {
        let place = message().place.unwrap();
        assert_eq!((place.bytes, place.start, place.end), ((15, 16), (2, 9), (2, 10)));
        assert_eq!((place.text.as_str(), place.label.as_str()), ("y = é + z", "here"));
    }

    #[test]
    fn plain_text_is_the_form_of_rustc() {
        let expected = "error: unknown name \"z\"\n --> k.py:2:9\n  |\n2 | y = é + z\n  |         ^ here\n\
                        note: \"x\" is declared here\n --> k.py:1:1\n  |\n1 | x = 1\n  | -\n\
                        \x20 = note: names are looked up late\n  = help: did you mean \"x\"?\n";
        assert_eq!(message().render(false), expected);
    }

    #[test]
    fn of_a_long_line_the_part_around_the_place_is_shown() {
        let mut sources = SourceMap::new();
        let text = format!("x = [{}oops, {}]\n", "1, ".repeat(1000), "2, ".repeat(1000));
        let at = text.find("oops").unwrap() as u32;
        let file = sources.add("k.py", &text);
        let message =
            Message::from_diagnostic(&Diagnostic::new(Span::new(file, at, at + 4), "what"), &sources);
        let shown = message.render(false);
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[1], " --> k.py:1:3006");
        assert!(
            lines[3].starts_with("1 | …") && lines[3].ends_with('…'),
            "{shown}"
        );
        assert!(lines[3].chars().count() < 220, "{shown}");
        let column = |line: &str, what: char| line.chars().position(|c| c == what).unwrap();
        assert_eq!(column(lines[4], '^'), column(lines[3], 'o'), "{shown}");
        assert_eq!(lines[4].matches('^').count(), 4);
    }

    #[test]
    fn colours_add_nothing_but_escapes() {
        let coloured = message().render(true);
        assert!(
            coloured.starts_with("\u{1b}[1;31merror\u{1b}[0m\u{1b}[1m: unknown"),
            "{coloured:?}"
        );
        let mut plain = String::new();
        let mut rest = coloured.as_str();
        while let Some((before, after)) = rest.split_once('\u{1b}') {
            plain.push_str(before);
            rest = after.split_once('m').unwrap().1;
        }
        plain.push_str(rest);
        assert_eq!(plain, message().render(false));
    }

    #[test]
    fn the_short_form_is_one_line_with_the_help() {
        assert_eq!(
            message().short(),
            "k.py:2:9: error: unknown name \"z\" (help: did you mean \"x\"?)"
        );
    }
}
