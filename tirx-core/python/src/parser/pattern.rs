//! Patterns of `case`.

use super::Parser;
use crate::Ranged;
use crate::ast::*;
use crate::error::{Result, SyntaxError};
use crate::lexer::TokenKind;

/// `1`, `-1`
fn is_real(expr: &Expr) -> bool {
    match expr {
        Expr::NumberLiteral(number) => !matches!(number.value, Number::Complex { .. }),
        Expr::UnaryOp(sign) => is_real(&sign.operand),
        _ => false,
    }
}

impl Parser<'_> {
    /// `a`, `a, b`
    pub(super) fn case_pattern(&mut self) -> Result<Pattern> {
        let start = self.start();
        let first = self.star_or_pattern()?;
        if !self.at(TokenKind::Comma) {
            return match first {
                Pattern::MatchStar(star) => {
                    let message = "`*` stands in a sequence of patterns; a sequence of one ends with a comma";
                    Err(SyntaxError::new(star.range, message))
                }
                first => Ok(first),
            };
        }
        let mut patterns = vec![first];
        while self.eat(TokenKind::Comma) && !matches!(self.current.kind, TokenKind::Colon | TokenKind::If) {
            patterns.push(self.star_or_pattern()?);
        }
        let range = self.range(start);
        Ok(Pattern::MatchSequence(PatternMatchSequence { range, patterns }))
    }

    fn star_or_pattern(&mut self) -> Result<Pattern> {
        if !self.at(TokenKind::Star) {
            return self.pattern();
        }
        let start = self.start();
        self.bump();
        let name = Some(self.identifier("a name after `*`")?).filter(|name| name.as_str() != "_");
        let range = self.range(start);
        Ok(Pattern::MatchStar(PatternMatchStar { range, name }))
    }

    /// `a | b as c`
    fn pattern(&mut self) -> Result<Pattern> {
        let start = self.start();
        let mut pattern = self.nested(|p| p.closed_pattern())?;
        if self.at(TokenKind::Bar) {
            let mut patterns = vec![pattern];
            while self.eat(TokenKind::Bar) {
                patterns.push(self.nested(|p| p.closed_pattern())?);
            }
            let range = self.range(start);
            pattern = Pattern::MatchOr(PatternMatchOr { range, patterns });
        }
        if self.eat(TokenKind::As) {
            let name = self.capture()?;
            pattern = Pattern::MatchAs(PatternMatchAs {
                range: self.range(start),
                pattern: Some(Box::new(pattern)),
                name: Some(name),
            });
        }
        Ok(pattern)
    }

    /// A name that is bound.
    fn capture(&mut self) -> Result<Identifier> {
        let name = self.identifier("a name")?;
        match name.as_str() {
            "_" => Err(SyntaxError::new(
                name.range,
                "`_` matches everything and is no name here",
            )),
            _ => Ok(name),
        }
    }

    fn closed_pattern(&mut self) -> Result<Pattern> {
        let start = self.start();
        let range = self.current.range();
        let singleton = |p: &mut Self, value| {
            p.bump();
            Ok(Pattern::MatchSingleton(PatternMatchSingleton { range, value }))
        };
        match self.current.kind {
            TokenKind::None => singleton(self, Singleton::None),
            TokenKind::True => singleton(self, Singleton::True),
            TokenKind::False => singleton(self, Singleton::False),
            TokenKind::LeftBrace => self.mapping(),
            TokenKind::LeftParenthesis | TokenKind::LeftBracket => self.group_or_sequence(),
            TokenKind::String
            | TokenKind::FStringStart
            | TokenKind::Int
            | TokenKind::Float
            | TokenKind::Imaginary
            | TokenKind::Minus => {
                let value = Box::new(self.literal_value()?);
                let range = self.range(start);
                Ok(Pattern::MatchValue(PatternMatchValue { range, value }))
            }
            TokenKind::Name => {
                let name = self.identifier("a pattern")?;
                match self.current.kind {
                    TokenKind::Dot => {
                        let value = self.dotted(start, name)?;
                        if self.at(TokenKind::LeftParenthesis) {
                            return self.class_pattern(start, value);
                        }
                        let range = self.range(start);
                        let value = Box::new(value);
                        Ok(Pattern::MatchValue(PatternMatchValue { range, value }))
                    }
                    TokenKind::LeftParenthesis if name.as_str() != "_" => {
                        let cls = self.loaded(name);
                        self.class_pattern(start, cls)
                    }
                    _ => Ok(Pattern::MatchAs(PatternMatchAs {
                        range: name.range,
                        pattern: None,
                        name: Some(name).filter(|name| name.as_str() != "_"),
                    })),
                }
            }
            TokenKind::Star => {
                let message = "`*` stands in a sequence of patterns, in `[…]`, `(…)` or between commas";
                Err(SyntaxError::new(range, message))
            }
            _ => Err(self.unexpected("a pattern")),
        }
    }

    fn loaded(&self, name: Identifier) -> Expr {
        let Identifier { range, id } = name;
        let ctx = ExprContext::Load;
        Expr::Name(ExprName { range, id, ctx })
    }

    /// `a.b.c` after `a`.
    fn dotted(&mut self, start: u32, first: Identifier) -> Result<Expr> {
        let mut value = self.loaded(first);
        while self.eat(TokenKind::Dot) {
            let attr = self.identifier("the name of an attribute")?;
            self.level()?;
            value = Expr::Attribute(ExprAttribute {
                range: self.range(start),
                value: Box::new(value),
                attr,
                ctx: ExprContext::Load,
            });
        }
        Ok(value)
    }

    /// A string, `1`, `-1`, `1 + 2j`
    fn literal_value(&mut self) -> Result<Expr> {
        let start = self.start();
        if matches!(self.current.kind, TokenKind::String | TokenKind::FStringStart) {
            return self.strings();
        }
        let real = self.signed_number()?;
        let op = match self.current.kind {
            TokenKind::Plus => Operator::Add,
            TokenKind::Minus => Operator::Sub,
            _ => return Ok(real),
        };
        if !is_real(&real) {
            return Err(SyntaxError::new(
                real.range(),
                "a complex number in a pattern starts with its real part",
            ));
        }
        self.bump();
        if !self.at(TokenKind::Imaginary) {
            return Err(self.unexpected("an imaginary number, like `2j`"));
        }
        let imaginary = self.atom()?;
        Ok(Expr::BinOp(ExprBinOp {
            range: self.range(start),
            left: Box::new(real),
            op,
            right: Box::new(imaginary),
        }))
    }

    fn signed_number(&mut self) -> Result<Expr> {
        let start = self.start();
        let is_negative = self.eat(TokenKind::Minus);
        if !matches!(
            self.current.kind,
            TokenKind::Int | TokenKind::Float | TokenKind::Imaginary
        ) {
            return Err(self.unexpected("a number"));
        }
        let number = self.atom()?;
        if !is_negative {
            return Ok(number);
        }
        Ok(Expr::UnaryOp(ExprUnaryOp {
            range: self.range(start),
            op: UnaryOp::USub,
            operand: Box::new(number),
        }))
    }

    /// `(a)`, `(a, b)`, `[a, b]`
    fn group_or_sequence(&mut self) -> Result<Pattern> {
        let start = self.start();
        let close = match self.open().kind {
            TokenKind::LeftBracket => TokenKind::RightBracket,
            _ => TokenKind::RightParenthesis,
        };
        let mut patterns = Vec::new();
        let mut has_comma = false;
        while !self.at(close) {
            patterns.push(self.star_or_pattern()?);
            if !self.at(TokenKind::Comma) {
                break;
            }
            self.bump();
            has_comma = true;
        }
        self.close(close, "`,` or ")?;
        if close == TokenKind::RightParenthesis && !has_comma && patterns.len() == 1 {
            return match patterns.pop() {
                Some(Pattern::MatchStar(star)) => {
                    let message =
                        "`*` stands in a sequence of patterns; a sequence of one takes a comma: `(*a,)`";
                    Err(SyntaxError::new(star.range, message))
                }
                Some(pattern) => Ok(pattern),
                None => Err(self.unexpected("a pattern")),
            };
        }
        let range = self.range(start);
        Ok(Pattern::MatchSequence(PatternMatchSequence { range, patterns }))
    }

    /// `{key: pattern, **rest}`
    fn mapping(&mut self) -> Result<Pattern> {
        let start = self.start();
        self.open();
        let (mut keys, mut patterns, mut rest) = (Vec::new(), Vec::new(), None);
        while !self.at(TokenKind::RightBrace) {
            if rest.is_some() {
                return Err(self.unexpected("`}` after `**`, which takes the rest"));
            }
            if self.eat(TokenKind::DoubleStar) {
                rest = Some(self.capture()?);
            } else {
                keys.push(self.key()?);
                self.expect(TokenKind::Colon)?;
                patterns.push(self.pattern()?);
            }
            if !self.eat(TokenKind::Comma) {
                break;
            }
        }
        self.close(TokenKind::RightBrace, "`,` or ")?;
        Ok(Pattern::MatchMapping(PatternMatchMapping {
            range: self.range(start),
            keys,
            patterns,
            rest,
        }))
    }

    /// A literal or `a.b`.
    fn key(&mut self) -> Result<Expr> {
        let start = self.start();
        match self.current.kind {
            TokenKind::None | TokenKind::True | TokenKind::False => self.atom(),
            TokenKind::Name => {
                let name = self.identifier("a key")?;
                match self.at(TokenKind::Dot) {
                    true => self.dotted(start, name),
                    false => {
                        let message = "a key of a pattern is a literal or `a.b`: a name alone would be bound";
                        Err(SyntaxError::new(name.range, message))
                    }
                }
            }
            TokenKind::String
            | TokenKind::FStringStart
            | TokenKind::Int
            | TokenKind::Float
            | TokenKind::Imaginary
            | TokenKind::Minus => self.literal_value(),
            _ => Err(self.unexpected("a key: a literal or `a.b`")),
        }
    }

    /// `(a, b=c)` after a class.
    fn class_pattern(&mut self, start: u32, cls: Expr) -> Result<Pattern> {
        let from = self.start();
        self.open();
        let (mut patterns, mut keywords) = (Vec::new(), Vec::new());
        while !self.at(TokenKind::RightParenthesis) {
            let start = self.start();
            if self.at(TokenKind::Name) && self.peek(1) == TokenKind::Equal {
                let attr = self.capture()?;
                self.bump();
                let pattern = self.pattern()?;
                let range = self.range(start);
                keywords.push(PatternKeyword { range, attr, pattern });
            } else {
                let pattern = self.pattern()?;
                if !keywords.is_empty() {
                    let message = "a positional pattern cannot follow a named one";
                    return Err(SyntaxError::new(pattern.range(), message));
                }
                patterns.push(pattern);
            }
            if !self.eat(TokenKind::Comma) {
                break;
            }
        }
        self.close(TokenKind::RightParenthesis, "`,` or ")?;
        let arguments = PatternArguments {
            range: self.range(from),
            patterns,
            keywords,
        };
        Ok(Pattern::MatchClass(PatternMatchClass {
            range: self.range(start),
            cls: Box::new(cls),
            arguments,
        }))
    }
}
