//! What follows an operand: calls, subscripts and attributes.

use super::Parser;
use super::expr::{Context, is_parenthesized};
use crate::Ranged;
use crate::ast::*;
use crate::error::{Result, SyntaxError};
use crate::lexer::TokenKind;

impl Parser<'_> {
    /// `a(b)[c].d` after `a`.
    pub(super) fn postfix(&mut self, start: u32, mut value: Expr) -> Result<Expr> {
        loop {
            value = match self.current.kind {
                TokenKind::LeftParenthesis => {
                    let arguments = self.arguments(false)?;
                    Expr::Call(ExprCall {
                        range: self.range(start),
                        func: Box::new(value),
                        arguments,
                    })
                }
                TokenKind::LeftBracket => {
                    let slice = self.subscript()?;
                    Expr::Subscript(ExprSubscript {
                        range: self.range(start),
                        value: Box::new(value),
                        slice: Box::new(slice),
                        ctx: ExprContext::Load,
                    })
                }
                TokenKind::Dot => {
                    self.bump();
                    let attr = self.identifier("the name of an attribute")?;
                    Expr::Attribute(ExprAttribute {
                        range: self.range(start),
                        value: Box::new(value),
                        attr,
                        ctx: ExprContext::Load,
                    })
                }
                _ => return Ok(value),
            };
            self.level()?;
        }
    }

    /// `(a, *b, c=d, **e)` of a call, or of a class.
    pub(super) fn arguments(&mut self, of_class: bool) -> Result<Arguments> {
        let start = self.start();
        self.open();
        let (mut args, mut keywords) = (Vec::new(), Vec::<Keyword>::new());
        // A generator without parentheses, which must be alone.
        let mut bare = None;
        while !self.at(TokenKind::RightParenthesis) {
            let from = self.start();
            if self.eat(TokenKind::DoubleStar) {
                let value = self.expression()?;
                let range = self.range(from);
                keywords.push(Keyword {
                    range,
                    arg: None,
                    value,
                });
            } else {
                let mut value = self.named(Context::ARGUMENT)?;
                if matches!(self.current.kind, TokenKind::For | TokenKind::Async) {
                    let generators = self.generators(&value, from)?;
                    let range = self.range(from);
                    bare = bare.or(Some(range));
                    value = Expr::Generator(ExprGenerator {
                        range,
                        elt: Box::new(value),
                        generators,
                        parenthesized: false,
                    });
                }
                if self.at(TokenKind::Equal) {
                    let arg = match value {
                        Expr::Name(name) if name.range.start().to_u32() == from => Identifier {
                            range: name.range,
                            id: name.id,
                        },
                        other => {
                            let message = "the left side of `=` in arguments must be the name of a parameter";
                            return Err(SyntaxError::new(other.range(), message));
                        }
                    };
                    self.bump();
                    let value = self.expression()?;
                    let range = self.range(from);
                    keywords.push(Keyword {
                        range,
                        arg: Some(arg),
                        value,
                    });
                } else {
                    let is_starred = matches!(value, Expr::Starred(_)) && !is_parenthesized(&value, from);
                    if keywords.iter().any(|k| k.arg.is_none()) || !is_starred && !keywords.is_empty() {
                        let message = "a positional argument cannot follow a keyword argument";
                        return Err(SyntaxError::new(value.range(), message));
                    }
                    args.push(value);
                }
            }
            if !self.at(TokenKind::Comma) {
                break;
            }
            self.bump();
            // A comma, even the last one, asks for parentheses.
            self.check_bare(bare)?;
        }
        if of_class || args.len() + keywords.len() > 1 {
            self.check_bare(bare)?;
        }
        self.close(TokenKind::RightParenthesis, "`,` or ")?;
        Ok(Arguments {
            range: self.range(start),
            args,
            keywords,
        })
    }

    fn check_bare(&self, generator: Option<crate::TextRange>) -> Result<()> {
        match generator {
            Some(range) => {
                let message = "a generator that is not the only argument takes parentheses";
                Err(SyntaxError::new(range, message))
            }
            None => Ok(()),
        }
    }

    /// `[a]`, `[a, b:c]`
    fn subscript(&mut self) -> Result<Expr> {
        self.open();
        if self.at(TokenKind::RightBracket) {
            return Err(self.unexpected("an index"));
        }
        let start = self.start();
        let first = self.slice()?;
        let slice = match self.at(TokenKind::Comma) || matches!(first, Expr::Starred(_)) {
            false => first,
            true => {
                let mut elts = vec![first];
                while self.eat(TokenKind::Comma) && (self.at_expr() || self.at(TokenKind::Colon)) {
                    elts.push(self.slice()?);
                }
                self.level()?;
                Expr::Tuple(ExprTuple {
                    range: self.range(start),
                    elts,
                    ctx: ExprContext::Load,
                    parenthesized: false,
                })
            }
        };
        self.close(TokenKind::RightBracket, "`,` or ")?;
        Ok(slice)
    }

    /// `a`, `a:b`, `a:b:c`
    fn slice(&mut self) -> Result<Expr> {
        let start = self.start();
        let mut lower = None;
        if !self.at(TokenKind::Colon) {
            let first = self.named(Context::ARGUMENT)?;
            if !self.at(TokenKind::Colon) {
                return Ok(first);
            }
            if matches!(first, Expr::Starred(_) | Expr::Named(_)) && !is_parenthesized(&first, start) {
                let message = "this bound of a slice takes parentheses";
                return Err(SyntaxError::new(first.range(), message));
            }
            lower = Some(Box::new(first));
        }
        self.bump();
        let bound = |p: &mut Self| match p.current.kind {
            TokenKind::Colon | TokenKind::Comma | TokenKind::RightBracket => Ok(None),
            _ => p.expression().map(|e| Some(Box::new(e))),
        };
        let upper = bound(self)?;
        let step = match self.eat(TokenKind::Colon) {
            true => bound(self)?,
            false => None,
        };
        self.level()?;
        Ok(Expr::Slice(ExprSlice {
            range: self.range(start),
            lower,
            upper,
            step,
        }))
    }
}
