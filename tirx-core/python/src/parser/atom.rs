//! Names, literals and displays.

use super::Parser;
use super::expr::{Context, is_parenthesized};
use crate::Ranged;
use crate::ast::*;
use crate::error::{Result, SyntaxError};
use crate::lexer::{Token, TokenKind};

impl Parser<'_> {
    pub(super) fn atom(&mut self) -> Result<Expr> {
        let range = self.current.range();
        Ok(match self.current.kind {
            TokenKind::Name => {
                let token = self.bump();
                let id = self.name(self.text(token));
                let ctx = ExprContext::Load;
                Expr::Name(ExprName { range, id, ctx })
            }
            TokenKind::Int | TokenKind::Float | TokenKind::Imaginary => {
                let token = self.bump();
                let value = self.number(token)?;
                Expr::NumberLiteral(ExprNumberLiteral { range, value })
            }
            TokenKind::String | TokenKind::FStringStart => self.strings()?,
            TokenKind::True | TokenKind::False => {
                let value = self.bump().kind == TokenKind::True;
                Expr::BooleanLiteral(ExprBooleanLiteral { range, value })
            }
            TokenKind::None => {
                self.bump();
                Expr::NoneLiteral(ExprNoneLiteral { range })
            }
            TokenKind::Ellipsis => {
                self.bump();
                Expr::EllipsisLiteral(ExprEllipsisLiteral { range })
            }
            TokenKind::LeftParenthesis => self.parentheses()?,
            TokenKind::LeftBracket => self.list()?,
            TokenKind::LeftBrace => self.braces()?,
            _ => return Err(self.unexpected("an expression")),
        })
    }

    pub(super) fn number(&self, token: Token) -> Result<Number> {
        let text: String = self.text(token).chars().filter(|c| *c != '_').collect();
        let wrong = || SyntaxError::new(token.range(), "this is no number");
        let float = |text: &str| text.parse::<f64>().map_err(|_| wrong());
        Ok(match token.kind {
            TokenKind::Float => Number::Float(float(&text)?),
            TokenKind::Imaginary => Number::Complex {
                real: 0.0,
                imag: float(&text[..text.len() - 1])?,
            },
            _ => {
                let radix = match text.as_bytes() {
                    [b'0', b'x' | b'X', ..] => 16,
                    [b'0', b'o' | b'O', ..] => 8,
                    [b'0', b'b' | b'B', ..] => 2,
                    _ => 10,
                };
                let digits = if radix == 10 { &text[..] } else { &text[2..] };
                Number::Int(Int(match u64::from_str_radix(digits, radix) {
                    Ok(value) => IntValue::Small(value),
                    // The lexer has seen the digits: there are too many.
                    Err(_) => IntValue::Big(text.into()),
                }))
            }
        })
    }

    /// `(a)`, `(a, b)`, `(a for b in c)`, `()`
    fn parentheses(&mut self) -> Result<Expr> {
        let start = self.start();
        self.open();
        if self.at(TokenKind::RightParenthesis) {
            self.close(TokenKind::RightParenthesis, "")?;
            return Ok(self.tuple(start, Vec::new()));
        }
        let inner = self.start();
        let first = self.named(Context::VALUE)?;
        match self.current.kind {
            TokenKind::Comma => {
                let elts = self.elements(first, |p| p.named(Context::ELEMENT))?;
                self.close(TokenKind::RightParenthesis, "`,` or ")?;
                self.level()?;
                Ok(self.tuple(start, elts))
            }
            TokenKind::For | TokenKind::Async => {
                let generators = self.generators(&first, inner)?;
                self.close(TokenKind::RightParenthesis, "")?;
                self.level()?;
                Ok(Expr::Generator(ExprGenerator {
                    range: self.range(start),
                    elt: Box::new(first),
                    generators,
                    parenthesized: true,
                }))
            }
            _ => {
                if let Expr::Starred(_) = &first {
                    let message =
                        "`*` before an expression unpacks it; a tuple of one takes a comma: `(*a,)`";
                    return Err(SyntaxError::new(first.range(), message));
                }
                self.close(TokenKind::RightParenthesis, "`,` or ")?;
                Ok(first)
            }
        }
    }

    fn tuple(&self, start: u32, elts: Vec<Expr>) -> Expr {
        Expr::Tuple(ExprTuple {
            range: self.range(start),
            elts,
            ctx: ExprContext::Load,
            parenthesized: true,
        })
    }

    /// `[a, b]`, `[a for b in c]`
    fn list(&mut self) -> Result<Expr> {
        let start = self.start();
        self.open();
        let mut elts = Vec::new();
        if !self.at(TokenKind::RightBracket) {
            let inner = self.start();
            let first = self.named(Context::ELEMENT)?;
            if matches!(self.current.kind, TokenKind::For | TokenKind::Async) {
                let generators = self.generators(&first, inner)?;
                self.close(TokenKind::RightBracket, "")?;
                self.level()?;
                return Ok(Expr::ListComp(ExprListComp {
                    range: self.range(start),
                    elt: Box::new(first),
                    generators,
                }));
            }
            elts = self.elements(first, |p| p.named(Context::ELEMENT))?;
        }
        self.close(TokenKind::RightBracket, "`,` or ")?;
        self.level()?;
        Ok(Expr::List(ExprList {
            range: self.range(start),
            elts,
            ctx: ExprContext::Load,
        }))
    }

    /// `{a: b}`, `{a}`, and their comprehensions.
    fn braces(&mut self) -> Result<Expr> {
        let start = self.start();
        self.open();
        if self.at(TokenKind::RightBrace) {
            return self.dict(start, Vec::new());
        }
        if self.at(TokenKind::DoubleStar) {
            let item = self.dict_item()?;
            return self.dict(start, vec![item]);
        }
        let inner = self.start();
        let first = self.named(Context::ELEMENT)?;
        match self.current.kind {
            TokenKind::Colon => {
                if matches!(first, Expr::Starred(_) | Expr::Named(_)) && !is_parenthesized(&first, inner) {
                    let message = "a key of a dictionary is an expression; this one takes parentheses";
                    return Err(SyntaxError::new(first.range(), message));
                }
                self.bump();
                let value = self.expression()?;
                if !matches!(self.current.kind, TokenKind::For | TokenKind::Async) {
                    return self.dict(
                        start,
                        vec![DictItem {
                            key: Some(first),
                            value,
                        }],
                    );
                }
                let generators = self.comprehensions()?;
                self.close(TokenKind::RightBrace, "")?;
                self.level()?;
                Ok(Expr::DictComp(ExprDictComp {
                    range: self.range(start),
                    key: Box::new(first),
                    value: Box::new(value),
                    generators,
                }))
            }
            TokenKind::For | TokenKind::Async => {
                let generators = self.generators(&first, inner)?;
                self.close(TokenKind::RightBrace, "")?;
                self.level()?;
                Ok(Expr::SetComp(ExprSetComp {
                    range: self.range(start),
                    elt: Box::new(first),
                    generators,
                }))
            }
            _ => {
                let elts = self.elements(first, |p| p.named(Context::ELEMENT))?;
                self.close(TokenKind::RightBrace, "`,` or ")?;
                self.level()?;
                Ok(Expr::Set(ExprSet {
                    range: self.range(start),
                    elts,
                }))
            }
        }
    }

    /// The items of a dictionary after the first one.
    fn dict(&mut self, start: u32, mut items: Vec<DictItem>) -> Result<Expr> {
        if !items.is_empty() {
            while self.eat(TokenKind::Comma) && !self.at(TokenKind::RightBrace) {
                items.push(self.dict_item()?);
            }
        }
        self.close(TokenKind::RightBrace, "`,` or ")?;
        self.level()?;
        Ok(Expr::Dict(ExprDict {
            range: self.range(start),
            items,
        }))
    }

    fn dict_item(&mut self) -> Result<DictItem> {
        if self.eat(TokenKind::DoubleStar) {
            let value = self.bit_or_operand("`**`")?;
            return Ok(DictItem { key: None, value });
        }
        let key = Some(self.expression()?);
        self.expect(TokenKind::Colon)?;
        let value = self.expression()?;
        Ok(DictItem { key, value })
    }

    /// `for a in b if c` after an element that starts at `start`.
    pub(super) fn generators(&mut self, element: &Expr, start: u32) -> Result<Vec<Comprehension>> {
        if matches!(element, Expr::Starred(_)) && !is_parenthesized(element, start) {
            let message = "`*` cannot stand in a comprehension: use a second `for` over its items";
            return Err(SyntaxError::new(element.range(), message));
        }
        self.comprehensions()
    }

    fn comprehensions(&mut self) -> Result<Vec<Comprehension>> {
        let mut generators = Vec::new();
        while matches!(self.current.kind, TokenKind::For | TokenKind::Async) {
            let start = self.start();
            let is_async = self.eat(TokenKind::Async);
            if !self.eat(TokenKind::For) {
                return Err(self.unexpected("`for`"));
            }
            let mut target = self.expression_list(Context::LOOP)?;
            self.assign_to(&mut target, ExprContext::Store)?;
            self.expect(TokenKind::In)?;
            let iter = self.operators(Context::default())?;
            let mut ifs = Vec::new();
            while self.eat(TokenKind::If) {
                ifs.push(self.operators(Context::default())?);
            }
            generators.push(Comprehension {
                range: self.range(start),
                target,
                iter,
                ifs,
                is_async,
            });
        }
        Ok(generators)
    }
}
