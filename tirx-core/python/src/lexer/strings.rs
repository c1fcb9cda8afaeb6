//! Where strings end, and the text between the fields of f-strings.

use super::{Lexer, TokenKind};

/// Whether a word before quotes is their prefix.
pub(super) fn is_prefix(word: &[u8]) -> bool {
    let lower = |at: usize| word.get(at).map(u8::to_ascii_lowercase);
    matches!(
        (lower(0), lower(1)),
        (Some(b'r' | b'b' | b'f' | b't' | b'u'), None)
            | (Some(b'r'), Some(b'b' | b'f' | b't'))
            | (Some(b'b' | b'f' | b't'), Some(b'r'))
    )
}

/// An f-string that is not closed yet.
#[derive(Clone)]
pub(super) struct OpenFString {
    quote: u8,
    is_triple: bool,
    is_raw: bool,
    /// Open brackets around it.
    nesting: u32,
    /// Formats of fields around the current place, each of which is text again: `f"{a:{b:…`.
    formats: u32,
    /// Where it starts.
    start: usize,
}

impl OpenFString {
    pub(super) fn nesting(&self) -> u32 {
        self.nesting
    }

    /// Whether a place with so many open brackets is in a field, not in text.
    pub(super) fn is_in_field(&self, nesting: u32) -> bool {
        nesting > self.nesting + self.formats
    }

    /// A `:`. Whether it starts the format of a field.
    pub(super) fn start_format(&mut self, nesting: u32) -> bool {
        let starts = nesting == self.nesting + self.formats + 1;
        self.formats += u32::from(starts);
        starts
    }

    /// A `}` or a line break. Ends the format of a field.
    pub(super) fn end_format(&mut self, nesting: u32) {
        if self.formats > 0 && !self.is_in_field(nesting) {
            self.formats -= 1;
        }
    }
}

impl Lexer<'_> {
    /// A string whose prefix starts at `start` and whose quotes are next; of an f-string the start.
    pub(super) fn string(&mut self, start: usize) -> TokenKind {
        let prefix = &self.bytes[start..self.at];
        let has = |letter: u8| prefix.iter().any(|b| b.to_ascii_lowercase() == letter);
        let (is_formatted, is_template, is_raw) = (has(b'f'), has(b't'), has(b'r'));
        let quote = self.bytes[self.at];
        let is_triple = self.bytes[self.at..].starts_with(&[quote; 3]);
        self.at += if is_triple { 3 } else { 1 };
        if is_formatted {
            self.fstrings.push(OpenFString {
                quote,
                is_triple,
                is_raw,
                nesting: self.nesting,
                formats: 0,
                start,
            });
            return TokenKind::FStringStart;
        }
        if !self.skip_string(quote, is_triple) {
            return self.unclosed(start, quote, is_triple);
        }
        match is_template {
            true => self.error(start, self.at, "template strings (`t\"…\"`) are not supported"),
            false => TokenKind::String,
        }
    }

    /// Goes behind the closing quotes; `false` where there are none.
    fn skip_string(&mut self, quote: u8, is_triple: bool) -> bool {
        loop {
            match self.peek() {
                None => return false,
                Some(b'\\') => {
                    self.at += 1;
                    if !self.eat_newline() && self.at < self.bytes.len() {
                        self.at += 1;
                    }
                }
                Some(b'\n' | b'\r') if !is_triple => return false,
                Some(b) if b == quote => {
                    if !is_triple {
                        self.at += 1;
                        return true;
                    }
                    if self.bytes[self.at..].starts_with(&[quote; 3]) {
                        self.at += 3;
                        return true;
                    }
                    self.at += 1;
                }
                Some(_) => self.at += 1,
            }
        }
    }

    fn unclosed(&mut self, start: usize, quote: u8, is_triple: bool) -> TokenKind {
        let quote = char::from(quote);
        match is_triple {
            true => {
                let message = format!("this string is never closed: `{quote}{quote}{quote}` is missing");
                let opening = self.source[start..].find(quote).unwrap_or(0) + 3;
                self.error(start, start + opening, message)
            }
            false => {
                let message =
                    format!("this string is not closed: `{quote}` is missing before the end of the line");
                self.error(start, self.at, message)
            }
        }
    }

    /// Text of an f-string up to a field, or its closing quotes; nothing where a field starts or ends here.
    pub(super) fn fstring_text(&mut self, open: OpenFString) -> Option<TokenKind> {
        let closes = |at: usize, bytes: &[u8]| match open.is_triple {
            true => bytes[at..].starts_with(&[open.quote; 3]),
            false => bytes[at] == open.quote,
        };
        if self.at < self.bytes.len() && closes(self.at, self.bytes) {
            self.at += if open.is_triple { 3 } else { 1 };
            self.nesting = open.nesting;
            self.fstrings.pop();
            return Some(TokenKind::FStringEnd);
        }
        let start = self.at;
        let in_format = open.formats > 0;
        // Within the braces of `\N{…}`.
        let mut in_name = false;
        while let Some(byte) = self.peek() {
            match byte {
                b'\n' | b'\r' if !open.is_triple => break,
                b'\\' => {
                    self.at += 1;
                    if matches!(self.peek(), Some(b'{' | b'}')) {
                        continue;
                    }
                    if !open.is_raw && self.bytes[self.at..].starts_with(b"N{") {
                        in_name = true;
                        self.at += 2;
                        continue;
                    }
                    if !self.eat_newline() && self.at < self.bytes.len() {
                        self.at += 1;
                    }
                    continue;
                }
                b'}' if in_name => in_name = false,
                b'{' | b'}' => {
                    if in_format || self.bytes.get(self.at + 1) != Some(&byte) {
                        return (self.at > start).then_some(TokenKind::FStringText);
                    }
                    self.at += 1;
                }
                _ if closes(self.at, self.bytes) => return Some(TokenKind::FStringText),
                _ => {}
            }
            self.at += 1;
        }
        self.nesting = open.nesting;
        self.fstrings.pop();
        Some(self.unclosed(open.start, open.quote, open.is_triple))
    }
}
