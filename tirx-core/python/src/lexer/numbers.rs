//! Numbers.

use super::{Lexer, TokenKind};

impl Lexer<'_> {
    pub(super) fn number(&mut self) -> TokenKind {
        let start = self.at;
        let radix: Option<fn(&u8) -> bool> = match self.bytes[start..] {
            [b'0', b'x' | b'X', ..] => Some(u8::is_ascii_hexdigit),
            [b'0', b'o' | b'O', ..] => Some(|b| matches!(b, b'0'..=b'7')),
            [b'0', b'b' | b'B', ..] => Some(|b| matches!(b, b'0' | b'1')),
            _ => None,
        };
        if let Some(is_digit) = radix {
            self.at += 2;
            let digits = self.at;
            self.digits(is_digit);
            if self.at == digits {
                let prefix = &self.source[start..digits];
                return self.error(start, self.at, format!("no digits after `{prefix}`"));
            }
            return TokenKind::Int;
        }
        self.digits(u8::is_ascii_digit);
        let integer = &self.bytes[start..self.at];
        let octal = integer.first() == Some(&b'0') && integer.iter().any(|b| matches!(b, b'1'..=b'9'));
        let mut kind = TokenKind::Int;
        if self.eat(b'.') {
            kind = TokenKind::Float;
            if self.peek() == Some(b'_') {
                return self.error(self.at, self.at + 1, "a `_` in a number stands between digits");
            }
            self.digits(u8::is_ascii_digit);
        }
        if let [b'e' | b'E', b'0'..=b'9', ..] | [b'e' | b'E', b'+' | b'-', b'0'..=b'9', ..] =
            self.bytes[self.at..]
        {
            kind = TokenKind::Float;
            self.at += 2;
            self.digits(u8::is_ascii_digit);
        }
        if self.eat(b'j') || self.eat(b'J') {
            return TokenKind::Imaginary;
        }
        if kind == TokenKind::Int && octal {
            let message = "a decimal integer does not start with `0`; an octal one starts with `0o`";
            return self.error(start, self.at, message);
        }
        kind
    }

    /// Digits, with single underscores between them.
    fn digits(&mut self, is_digit: fn(&u8) -> bool) {
        loop {
            match self.bytes[self.at..] {
                [first, ..] if is_digit(&first) => self.at += 1,
                [b'_', second, ..] if is_digit(&second) => self.at += 2,
                _ => return,
            }
        }
    }
}
