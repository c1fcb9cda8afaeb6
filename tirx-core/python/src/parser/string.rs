//! Strings, bytes and f-strings, several of which may stand side by side.

use super::Parser;
use super::expr::Context;
use super::text::{self, LiteralKind};
use crate::ast::*;
use crate::error::{Result, SyntaxError};
use crate::lexer::{Token, TokenKind};
use crate::{Ranged, TextRange, TextSize};

enum Part {
    Text(StringLiteral),
    Bytes(Vec<u8>),
    Formatted(FString),
}

impl Parser<'_> {
    /// `"a" f"b"`
    pub(super) fn strings(&mut self) -> Result<Expr> {
        let start = self.start();
        let mut parts = Vec::new();
        while matches!(self.current.kind, TokenKind::String | TokenKind::FStringStart) {
            parts.push(match self.current.kind {
                TokenKind::String => self.plain_string()?,
                _ => Part::Formatted(self.fstring()?),
            });
        }
        let range = self.range(start);
        let bytes = parts.iter().filter(|p| matches!(p, Part::Bytes(_))).count();
        if bytes == parts.len() {
            let value = parts.into_iter().flat_map(|part| match part {
                Part::Bytes(bytes) => bytes,
                _ => Vec::new(),
            });
            let value = value.collect();
            return Ok(Expr::BytesLiteral(ExprBytesLiteral { range, value }));
        }
        if bytes > 0 {
            let message = "bytes and strings stand side by side, which are joined: write one kind";
            return Err(SyntaxError::new(range, message));
        }
        if parts.iter().any(|p| matches!(p, Part::Formatted(_))) {
            let parts = parts.into_iter().filter_map(|part| match part {
                Part::Text(text) => Some(FStringPart::Literal(text)),
                Part::Formatted(formatted) => Some(FStringPart::FString(formatted)),
                Part::Bytes(_) => None,
            });
            let value = FStringValue(parts.collect());
            return Ok(Expr::FString(ExprFString { range, value }));
        }
        let mut texts = parts.into_iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.value),
            _ => None,
        });
        let first = texts.next().unwrap_or_default();
        let value = match texts.next() {
            None => first,
            Some(second) => {
                let mut all = String::from(first);
                all.push_str(&second);
                texts.for_each(|text| all.push_str(&text));
                all.into()
            }
        };
        let value = StringLiteralValue(value);
        Ok(Expr::StringLiteral(ExprStringLiteral { range, value }))
    }

    fn plain_string(&mut self) -> Result<Part> {
        let token = self.bump();
        let range = token.range();
        let whole = self.text(token);
        let opening = text::Opening::parse(whole);
        let inner = &whole[opening.len..whole.len() - opening.quotes];
        let at = token.start + opening.len as u32;
        if !opening.is_bytes {
            let kind = if opening.is_raw {
                LiteralKind::Raw
            } else {
                LiteralKind::Text
            };
            let value = text::unescape(inner, at, kind)?;
            return Ok(Part::Text(StringLiteral { range, value }));
        }
        if let Some(offset) = inner.bytes().position(|b| !b.is_ascii()) {
            let start = TextSize::new(at + offset as u32);
            let c = inner[offset..].chars().next().map_or(0, char::len_utf8);
            let range = TextRange::at(start, TextSize::new(c as u32));
            let message = "bytes are written with ASCII characters and escapes (`\\xff`)";
            return Err(SyntaxError::new(range, message));
        }
        let value = match opening.is_raw {
            true => inner.as_bytes().to_vec(),
            // Escapes of bytes have values below 512; Python takes the low byte.
            false => text::unescape(inner, at, LiteralKind::Bytes)?
                .chars()
                .map(|c| c as u32 as u8)
                .collect(),
        };
        Ok(Part::Bytes(value))
    }

    fn fstring(&mut self) -> Result<FString> {
        let start = self.start();
        let opening = self.bump();
        let kind = match text::Opening::parse(self.text(opening)).is_raw {
            true => LiteralKind::RawFormatted,
            false => LiteralKind::Formatted,
        };
        self.open.push(opening);
        let elements = self.fstring_elements(kind)?;
        if !self.at(TokenKind::FStringEnd) {
            return Err(self.unexpected("a field or the end of the f-string"));
        }
        self.open.pop();
        self.bump();
        let range = self.range(start);
        Ok(FString { range, elements })
    }

    /// Texts and fields.
    fn fstring_elements(&mut self, kind: LiteralKind) -> Result<Vec<InterpolatedStringElement>> {
        let mut elements = Vec::new();
        loop {
            match self.current.kind {
                TokenKind::FStringText => {
                    let token = self.bump();
                    let value = text::unescape(self.text(token), token.start, kind)?;
                    let range = token.range();
                    elements.push(InterpolatedStringElement::Literal(
                        InterpolatedStringLiteralElement { range, value },
                    ));
                }
                TokenKind::LeftBrace => {
                    let field = self.field(kind)?;
                    elements.push(InterpolatedStringElement::Interpolation(field));
                }
                _ => return Ok(elements),
            }
        }
    }

    /// `{expression = !r:format}`
    fn field(&mut self, kind: LiteralKind) -> Result<InterpolatedElement> {
        let start = self.start();
        let brace = self.open();
        let inner = self.start();
        if self.at(TokenKind::RightBrace) {
            return Err(self.unexpected("an expression in the field of the f-string"));
        }
        let expression = self.expression_list(Context::VALUE)?;
        if let Expr::Lambda(lambda) = &expression
            && lambda.range.start().to_u32() == inner
        {
            let message = "`lambda` in a field of an f-string takes parentheses: `:` starts the format";
            return Err(SyntaxError::new(lambda.range, message));
        }
        let mut debug_text = None;
        if self.eat(TokenKind::Equal) {
            let range = expression.range();
            let source = self.source;
            debug_text = Some(DebugText {
                leading: source[brace.end as usize..range.start().to_usize()].into(),
                trailing: source[range.end().to_usize()..self.start() as usize].into(),
            });
        }
        let mut conversion = ConversionFlag::None;
        if self.at(TokenKind::Exclamation) {
            let mark = self.bump();
            conversion = self.conversion(mark)?;
        }
        let mut format_spec = None;
        if self.at(TokenKind::Colon) {
            self.bump();
            let start = self.start();
            let elements = self.nested(|p| p.fstring_elements(kind))?;
            let range = self.range(start);
            format_spec = Some(Box::new(InterpolatedStringFormatSpec { range, elements }));
        }
        self.close(TokenKind::RightBrace, "`!`, `:` or ")?;
        Ok(InterpolatedElement {
            range: self.range(start),
            expression: Box::new(expression),
            debug_text,
            conversion,
            format_spec,
        })
    }

    fn conversion(&mut self, mark: Token) -> Result<ConversionFlag> {
        let word = self.current;
        let wrong = "`!` in a field of an f-string must be followed by `s`, `r` or `a`, without a space";
        if word.kind != TokenKind::Name || word.start != mark.end {
            return Err(SyntaxError::new(word.range(), wrong));
        }
        let conversion = match self.text(word) {
            "s" => ConversionFlag::Str,
            "r" => ConversionFlag::Repr,
            "a" => ConversionFlag::Ascii,
            _ => return Err(SyntaxError::new(word.range(), wrong)),
        };
        self.bump();
        Ok(conversion)
    }
}
