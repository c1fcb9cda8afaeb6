//! The blocks that lines open and close by their indentation.

use super::{Lexer, Line, TokenKind};

/// The white space before a line. Tabs reach to the next multiple of 8; a line whose depth in another block depends on
/// that is an error, which `characters` shows.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Width {
    columns: u32,
    characters: u32,
}

/// The open blocks.
#[derive(Default)]
pub(super) struct Indentation {
    blocks: Vec<Width>,
    /// The width of the current line, while blocks that it closes are still to be told.
    closing: Option<Width>,
}

impl Indentation {
    /// A [`TokenKind::Dedent`] that is still to be told, or an error where no open block is as wide as the line.
    pub(super) fn pending(&mut self) -> Option<TokenKind> {
        let width = self.closing?;
        let block = self.blocks.last().copied().unwrap_or_default();
        if block == width {
            self.closing = None;
            return None;
        }
        if block.columns > width.columns && block.characters > width.characters {
            self.blocks.pop();
            return Some(TokenKind::Dedent);
        }
        self.closing = None;
        Some(TokenKind::Error)
    }

    /// Closes a block at the end of the file.
    pub(super) fn close(&mut self) -> bool {
        self.blocks.pop().is_some()
    }
}

impl Lexer<'_> {
    /// Reads the white space before a line.
    pub(super) fn line_start(&mut self) -> Option<TokenKind> {
        let mut width = Width::default();
        let start = self.at;
        loop {
            match self.peek() {
                Some(b' ') => {
                    width.columns += 1;
                    width.characters += 1;
                }
                Some(b'\t') => {
                    width.columns = (width.columns / 8 + 1) * 8;
                    width.characters += 1;
                }
                Some(b'\x0c') => width = Width::default(),
                Some(b'\\') => {
                    let at = self.at;
                    self.at += 1;
                    if !self.eat_newline() {
                        self.line = Line::Rest;
                        let message = "a `\\` outside strings joins lines: the line must end after it";
                        return Some(self.error(at, self.at, message));
                    }
                    if self.peek().is_none() {
                        self.line = Line::Rest;
                        return Some(self.error(
                            at,
                            self.at,
                            "the file ends after a `\\`, which joins lines",
                        ));
                    }
                    if width != Width::default() {
                        // The first line counts.
                        while matches!(self.peek(), Some(b' ' | b'\t' | b'\x0c')) {
                            self.at += 1;
                        }
                    }
                    continue;
                }
                _ => break,
            }
            self.at += 1;
        }
        self.line = Line::First;
        if matches!(self.peek(), None | Some(b'\n' | b'\r' | b'#')) {
            return None;
        }
        let block = self.indentation.blocks.last().copied().unwrap_or_default();
        if block == width {
            return None;
        }
        if block.columns < width.columns && block.characters < width.characters {
            self.indentation.blocks.push(width);
            return Some(TokenKind::Indent);
        }
        if block.columns > width.columns && block.characters > width.characters {
            self.indentation.closing = Some(width);
            return None;
        }
        let message = "tabs and spaces are mixed: how deep this line is depends on the width of a tab";
        Some(self.error(start, self.at, message))
    }
}
