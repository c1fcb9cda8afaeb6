//! Text to tokens: indentation, line joining, names, operators. Numbers and strings are in files of their own.

mod indentation;
mod names;
mod numbers;
mod strings;
mod token;

use indentation::Indentation;
use strings::OpenFString;
pub(crate) use token::{Token, TokenKind};

use crate::error::SyntaxError;
use crate::{TextRange, TextSize};

/// What a lexer reads next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Line {
    /// The indentation of a line.
    Start,
    /// The first token of a line.
    First,
    /// A later one.
    Rest,
}

/// Reads tokens on demand. A token of kind [`TokenKind::Error`] stands for what is none; its message is in `errors`.
pub(crate) struct Lexer<'src> {
    source: &'src str,
    /// The bytes up to where reading ends.
    bytes: &'src [u8],
    at: usize,
    line: Line,
    /// Open brackets. A line break within brackets is white space.
    nesting: u32,
    indentation: Indentation,
    /// The f-strings around the current place, outermost first.
    fstrings: Vec<OpenFString>,
    /// Messages of error tokens, in order.
    pub(crate) errors: Vec<SyntaxError>,
}

impl<'src> Lexer<'src> {
    /// Reads a file.
    pub(crate) fn new(source: &'src str) -> Lexer<'src> {
        Lexer {
            source,
            bytes: source.as_bytes(),
            // A byte order mark.
            at: if source.starts_with('\u{feff}') { 3 } else { 0 },
            line: Line::Start,
            nesting: 0,
            indentation: Indentation::default(),
            fstrings: Vec::new(),
            errors: Vec::new(),
        }
    }

    /// Reads the expression in `range` of a file. The lexer starts inside of a bracket, so that line breaks are white space and the first
    /// line is not indentation.
    pub(crate) fn from_range(source: &'src str, range: TextRange) -> Lexer<'src> {
        Lexer {
            bytes: &source.as_bytes()[..range.end().to_usize()],
            at: range.start().to_usize(),
            line: Line::Rest,
            nesting: 1,
            ..Lexer::new(source)
        }
    }

    /// Goes on at the start of a line, all brackets and strings closed.
    pub(crate) fn restart(&mut self, at: usize) {
        self.at = at;
        self.line = Line::Start;
        self.nesting = 0;
        self.fstrings.clear();
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// Eats a line break.
    fn eat_newline(&mut self) -> bool {
        let found = self.eat(b'\r');
        self.eat(b'\n') || found
    }

    fn rest(&self) -> &'src str {
        &self.source[self.at..self.bytes.len()]
    }

    fn error(&mut self, start: usize, end: usize, message: impl Into<String>) -> TokenKind {
        let range = TextRange::new(TextSize::new(start as u32), TextSize::new(end as u32));
        self.errors.push(*SyntaxError::new(range, message));
        TokenKind::Error
    }

    /// The next token; [`TokenKind::EndOfFile`] again and again at the end.
    pub(crate) fn next(&mut self) -> Token {
        let token = |kind, start: usize, end: usize| Token {
            kind,
            start: start as u32,
            end: end as u32,
        };
        if let Some(fstring) = self.fstrings.last()
            && !fstring.is_in_field(self.nesting)
        {
            let start = self.at;
            if let Some(kind) = self.fstring_text(fstring.clone()) {
                return token(kind, start, self.at);
            }
        }
        loop {
            if let Some(kind) = self.indentation.pending() {
                return match kind {
                    TokenKind::Error => {
                        let message =
                            "this line is indented less than its block and more than the block around it";
                        self.error(self.at, self.at, message);
                        token(kind, self.at, self.at)
                    }
                    kind => token(kind, self.at, self.at),
                };
            }
            if self.line == Line::Start {
                let start = self.at;
                if let Some(kind) = self.line_start() {
                    return token(kind, start, self.at);
                }
                continue;
            }
            let start = self.at;
            let Some(byte) = self.peek() else {
                return token(self.end_of_file(), start, self.at);
            };
            match byte {
                b' ' | b'\t' | b'\x0c' => self.at += 1,
                b'#' => self.skip_comment(),
                b'\\' => {
                    self.at += 1;
                    if !self.eat_newline() {
                        let message = "a `\\` outside strings joins lines: the line must end after it";
                        return token(self.error(start, self.at, message), start, self.at);
                    }
                    if self.peek().is_none() {
                        let message = "the file ends after a `\\`, which joins lines";
                        return token(self.error(start, self.at, message), start, self.at);
                    }
                }
                b'\n' | b'\r' => {
                    self.eat_newline();
                    if self.nesting == 0 && self.line == Line::Rest {
                        self.line = Line::Start;
                        return token(TokenKind::Newline, start, self.at);
                    }
                    if self.nesting == 0 {
                        self.line = Line::Start;
                    }
                    if let Some(fstring) = self.fstrings.last_mut() {
                        fstring.end_format(self.nesting);
                    }
                }
                _ => {
                    self.line = Line::Rest;
                    let kind = self.token(byte);
                    return token(kind, start, self.at);
                }
            }
        }
    }

    fn skip_comment(&mut self) {
        while !matches!(self.peek(), None | Some(b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn end_of_file(&mut self) -> TokenKind {
        if self.line == Line::Rest && self.nesting == 0 {
            // The last line lacks its line break.
            self.line = Line::First;
            return TokenKind::Newline;
        }
        // Within brackets blocks stay open: the parser may start again from a line before.
        match self.nesting == 0 && self.indentation.close() {
            true => TokenKind::Dedent,
            false => TokenKind::EndOfFile,
        }
    }

    /// The token that starts with `first`.
    fn token(&mut self, first: u8) -> TokenKind {
        use TokenKind::*;
        match first {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => self.word(),
            b'0'..=b'9' => self.number(),
            b'.' if matches!(self.bytes.get(self.at + 1), Some(b'0'..=b'9')) => self.number(),
            b'"' | b'\'' => self.string(self.at),
            0x80.. => self.word(),
            _ => {
                let start = self.at;
                self.at += 1;
                let equal = |lexer: &mut Self, with: TokenKind, without: TokenKind| match lexer.eat(b'=') {
                    true => with,
                    false => without,
                };
                match first {
                    b'(' | b'[' | b'{' => {
                        self.nesting += 1;
                        match first {
                            b'(' => LeftParenthesis,
                            b'[' => LeftBracket,
                            _ => LeftBrace,
                        }
                    }
                    b')' | b']' => {
                        self.nesting = self.nesting.saturating_sub(1);
                        if first == b')' {
                            RightParenthesis
                        } else {
                            RightBracket
                        }
                    }
                    b'}' => {
                        if let Some(fstring) = self.fstrings.last_mut() {
                            if fstring.nesting() == self.nesting {
                                let message = "a single `}` in an f-string: write `}}` for the character";
                                return self.error(start, start + 1, message);
                            }
                            fstring.end_format(self.nesting);
                        }
                        self.nesting = self.nesting.saturating_sub(1);
                        RightBrace
                    }
                    b':' => {
                        let nesting = self.nesting;
                        match self.fstrings.last_mut().is_some_and(|f| f.start_format(nesting)) {
                            true => Colon,
                            false => equal(self, ColonEqual, Colon),
                        }
                    }
                    b',' => Comma,
                    b';' => Semicolon,
                    b'~' => Tilde,
                    b'.' if self.bytes[self.at..].starts_with(b"..") => {
                        self.at += 2;
                        Ellipsis
                    }
                    b'.' => Dot,
                    b'=' => equal(self, EqualEqual, Equal),
                    b'!' => equal(self, NotEqual, Exclamation),
                    b'+' => equal(self, PlusEqual, Plus),
                    b'-' if self.eat(b'>') => Arrow,
                    b'-' => equal(self, MinusEqual, Minus),
                    b'*' if self.eat(b'*') => equal(self, DoubleStarEqual, DoubleStar),
                    b'*' => equal(self, StarEqual, Star),
                    b'/' if self.eat(b'/') => equal(self, DoubleSlashEqual, DoubleSlash),
                    b'/' => equal(self, SlashEqual, Slash),
                    b'%' => equal(self, PercentEqual, Percent),
                    b'@' => equal(self, AtEqual, At),
                    b'&' => equal(self, AmpersandEqual, Ampersand),
                    b'|' => equal(self, BarEqual, Bar),
                    b'^' => equal(self, CaretEqual, Caret),
                    b'<' if self.eat(b'<') => equal(self, LeftShiftEqual, LeftShift),
                    b'<' => equal(self, LessEqual, Less),
                    b'>' if self.eat(b'>') => equal(self, RightShiftEqual, RightShift),
                    b'>' => equal(self, GreaterEqual, Greater),
                    other => {
                        let shown = char::from(other).escape_default();
                        self.error(
                            start,
                            self.at,
                            format!("`{shown}` means nothing in Python outside strings"),
                        )
                    }
                }
            }
        }
    }

    /// A name, a keyword, or the prefix of a string.
    fn word(&mut self) -> TokenKind {
        let start = self.at;
        while self
            .peek()
            .is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_')
        {
            self.at += 1;
        }
        if self.peek().is_some_and(|b| !b.is_ascii()) {
            return self.unicode_word(start);
        }
        let word = &self.bytes[start..self.at];
        if word.len() <= 2 && matches!(self.peek(), Some(b'"' | b'\'')) && strings::is_prefix(word) {
            return self.string(start);
        }
        TokenKind::keyword(word).unwrap_or(TokenKind::Name)
    }

    /// A name with characters that are not ASCII.
    fn unicode_word(&mut self, start: usize) -> TokenKind {
        let mut replaced = None;
        while let Some(c) = self.rest().chars().next() {
            if !names::continues_name(c) || self.at == start && !names::starts_name(c) {
                break;
            }
            if names::is_replaced(c) {
                replaced = Some((self.at, c));
            }
            self.at += c.len_utf8();
        }
        if self.at == start {
            let Some(c) = self.rest().chars().next() else {
                return TokenKind::EndOfFile;
            };
            self.at += c.len_utf8();
            let message = format!(
                "`{c}` (U+{:04X}) means nothing in Python outside strings",
                c as u32
            );
            return self.error(start, self.at, message);
        }
        match replaced {
            Some((at, c)) => self.error(
                at,
                at + c.len_utf8(),
                format!(
                    "Python replaces `{c}` (U+{:04X}) in names by another character: write that one",
                    c as u32
                ),
            ),
            None => TokenKind::Name,
        }
    }
}
