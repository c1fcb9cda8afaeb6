//! The text that a string stands for.

use crate::error::{Result, SyntaxError};
use crate::{TextRange, TextSize};

/// What stands before the text of a string.
pub(super) struct Opening {
    pub(super) is_raw: bool,
    pub(super) is_bytes: bool,
    /// Quotes on either side.
    pub(super) quotes: usize,
    /// Bytes of the prefix and the quotes.
    pub(super) len: usize,
}

impl Opening {
    pub(super) fn parse(string: &str) -> Opening {
        let bytes = string.as_bytes();
        let prefix = bytes.iter().take_while(|b| b.is_ascii_alphabetic()).count();
        let has = |letter: u8| bytes[..prefix].iter().any(|b| b.to_ascii_lowercase() == letter);
        let quotes = match bytes[prefix..] {
            [a, b, c, ..] if a == b && b == c => 3,
            _ => 1,
        };
        Opening {
            is_raw: has(b'r'),
            is_bytes: has(b'b'),
            quotes,
            len: prefix + quotes,
        }
    }
}

/// How a text is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum LiteralKind {
    /// Without escapes.
    Raw,
    Text,
    Bytes,
    /// In an f-string, with doubled braces.
    Formatted,
    RawFormatted,
}

/// Replaces escapes and doubled braces of a text that stands at `at`.
pub(super) fn unescape(text: &str, at: u32, kind: LiteralKind) -> Result<Box<str>> {
    let is_formatted = matches!(kind, LiteralKind::Formatted | LiteralKind::RawFormatted);
    let is_raw = matches!(kind, LiteralKind::Raw | LiteralKind::RawFormatted);
    let is_special = |c: char| c == '\\' && !is_raw || is_formatted && matches!(c, '{' | '}');
    let Some(first) = text.find(is_special) else {
        return Ok(text.into());
    };
    let mut value = String::with_capacity(text.len());
    let mut rest = text;
    let mut next = Some(first);
    while let Some(found) = next {
        value.push_str(&rest[..found]);
        rest = &rest[found..];
        let mut chars = rest.chars();
        match chars.next() {
            Some(brace @ ('{' | '}')) => {
                value.push(brace);
                rest = chars.as_str();
                rest = rest.strip_prefix(brace).unwrap_or(rest);
            }
            _ => {
                let escape = chars.as_str();
                let is_brace = is_formatted && (escape.starts_with("{{") || escape.starts_with("}}"));
                rest = match is_brace || escape.is_empty() {
                    // `\` before a brace is itself.
                    true => {
                        value.push('\\');
                        escape
                    }
                    false => {
                        let offset = (text.len() - rest.len()) as u32;
                        escaped(escape, at + offset, kind, &mut value)?
                    }
                };
            }
        }
        next = rest.find(is_special);
    }
    value.push_str(rest);
    Ok(value.into())
}

/// Appends what an escape stands for, which follows the `\` at `at`, and gives the text after it.
fn escaped<'a>(text: &'a str, at: u32, kind: LiteralKind, value: &mut String) -> Result<&'a str> {
    let mut chars = text.chars();
    let first = chars.next().unwrap_or('\\');
    let rest = chars.as_str();
    let is_text = kind != LiteralKind::Bytes;
    let plain = match first {
        '\\' | '\'' | '"' => first,
        'a' => '\x07',
        'b' => '\x08',
        'f' => '\x0c',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\x0b',
        '\n' => return Ok(rest),
        '\r' => return Ok(rest.strip_prefix('\n').unwrap_or(rest)),
        '0'..='7' => {
            let digits = text
                .bytes()
                .take(3)
                .take_while(|b| matches!(b, b'0'..=b'7'))
                .count();
            let code = u32::from_str_radix(&text[..digits], 8).unwrap_or(0);
            value.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            return Ok(&text[digits..]);
        }
        'x' => return hexadecimal(rest, at, 'x', 2, value),
        'u' if is_text => return hexadecimal(rest, at, 'u', 4, value),
        'U' if is_text => return hexadecimal(rest, at, 'U', 8, value),
        'N' if is_text => {
            let name = rest.find('}').map_or(0, |end| end + 1);
            let range = TextRange::at(TextSize::new(at), TextSize::new(2 + name as u32));
            let message =
                "escapes by name are not supported: write the character itself, or `\\u` and its number";
            return Err(SyntaxError::new(range, message));
        }
        other => {
            // No escape: both characters remain.
            value.push('\\');
            other
        }
    };
    value.push(plain);
    Ok(rest)
}

/// `\x`, `\u` and `\U` with so many digits.
fn hexadecimal<'a>(
    text: &'a str,
    at: u32,
    letter: char,
    count: usize,
    value: &mut String,
) -> Result<&'a str> {
    let digits = text.bytes().take(count).take_while(u8::is_ascii_hexdigit).count();
    let wrong = |message: String| {
        let range = TextRange::at(TextSize::new(at), TextSize::new(2 + digits as u32));
        Err(SyntaxError::new(range, message))
    };
    if digits < count {
        return wrong(format!("`\\{letter}` takes {count} hexadecimal digits"));
    }
    let code = u32::from_str_radix(&text[..digits], 16).unwrap_or(u32::MAX);
    match char::from_u32(code) {
        Some(c) => value.push(c),
        // Half of a character of UTF-16, which no text of Rust can hold.
        None if (0xd800..0xe000).contains(&code) => value.push(char::REPLACEMENT_CHARACTER),
        None => return wrong(format!("U+{code:X} is beyond the last character, U+10FFFF")),
    }
    Ok(&text[digits..])
}
