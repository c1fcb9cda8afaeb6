//! Expressions by precedence, from `a, b` down to operands.

use super::Parser;
use crate::ast::*;
use crate::error::{Result, SyntaxError};
use crate::lexer::TokenKind;
use crate::{Ranged, TextSize};

/// Whether `*a` may stand somewhere.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Star {
    No,
    /// Of an operand of `|`: `*a | b`, not `*a and b`.
    Operand,
    /// Of any expression: `*a if b else c`.
    Any,
}

/// What may stand somewhere.
#[derive(Clone, Copy)]
pub(super) struct Context {
    pub(super) star: Star,
    /// `yield` without parentheses.
    pub(super) yields: bool,
    /// `in` ends the expression: the target of a loop.
    pub(super) ends_at_in: bool,
}

impl Default for Context {
    fn default() -> Context {
        Context {
            star: Star::No,
            yields: false,
            ends_at_in: false,
        }
    }
}

impl Context {
    /// An element of a display or a tuple.
    pub(super) const ELEMENT: Context = Context {
        star: Star::Operand,
        yields: false,
        ends_at_in: false,
    };
    /// A statement, or what is within parentheses.
    pub(super) const VALUE: Context = Context {
        star: Star::Operand,
        yields: true,
        ends_at_in: false,
    };
    /// An argument, an index, or a target.
    pub(super) const ARGUMENT: Context = Context {
        star: Star::Any,
        yields: false,
        ends_at_in: false,
    };
    /// The target of a loop.
    pub(super) const LOOP: Context = Context {
        star: Star::Any,
        yields: false,
        ends_at_in: true,
    };
}

/// How tightly operators bind, loosest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Precedence {
    Lowest,
    Or,
    And,
    Not,
    Comparison,
    BitOr,
    BitXor,
    BitAnd,
    Shift,
    Sum,
    Product,
    Sign,
    Power,
    Await,
}

enum Binary {
    Bool(BoolOp),
    Compare(CmpOp),
    Arithmetic(Operator),
}

/// Whether an expression that was read from `start` on has parentheses of its own around it.
pub(super) fn is_parenthesized(expr: &Expr, start: u32) -> bool {
    expr.range().start() != TextSize::new(start)
}

/// The operator of an arithmetic token, and how tightly it binds.
fn arithmetic(kind: TokenKind) -> Option<(Operator, Precedence)> {
    Some(match kind {
        TokenKind::Plus => (Operator::Add, Precedence::Sum),
        TokenKind::Minus => (Operator::Sub, Precedence::Sum),
        TokenKind::Star => (Operator::Mult, Precedence::Product),
        TokenKind::Slash => (Operator::Div, Precedence::Product),
        TokenKind::DoubleSlash => (Operator::FloorDiv, Precedence::Product),
        TokenKind::Percent => (Operator::Mod, Precedence::Product),
        TokenKind::At => (Operator::MatMult, Precedence::Product),
        TokenKind::DoubleStar => (Operator::Pow, Precedence::Power),
        TokenKind::Ampersand => (Operator::BitAnd, Precedence::BitAnd),
        TokenKind::Bar => (Operator::BitOr, Precedence::BitOr),
        TokenKind::Caret => (Operator::BitXor, Precedence::BitXor),
        TokenKind::LeftShift => (Operator::LShift, Precedence::Shift),
        TokenKind::RightShift => (Operator::RShift, Precedence::Shift),
        _ => return None,
    })
}

impl<'src> Parser<'src> {
    /// Whether an expression starts here.
    pub(super) fn at_expr(&self) -> bool {
        use TokenKind::*;
        matches!(
            self.current.kind,
            Name | Int
                | Float
                | Imaginary
                | String
                | FStringStart
                | Ellipsis
                | True
                | False
                | None
                | Minus
                | Plus
                | Tilde
                | Star
                | LeftParenthesis
                | LeftBracket
                | LeftBrace
                | Lambda
                | Await
                | Not
                | Yield
        )
    }

    /// `a` or `a, b`
    pub(super) fn expression_list(&mut self, context: Context) -> Result<Expr> {
        let start = self.start();
        let first = self.conditional(context)?;
        if !self.at(TokenKind::Comma) {
            return Ok(first);
        }
        let context = Context {
            yields: false,
            ..context
        };
        let elts = self.elements(first, |p| p.conditional(context))?;
        Ok(Expr::Tuple(ExprTuple {
            range: self.range(start),
            elts,
            ctx: ExprContext::Load,
            parenthesized: false,
        }))
    }

    /// What follows the first element of `a, b, c`, which may end with a comma.
    pub(super) fn elements(
        &mut self,
        first: Expr,
        mut element: impl FnMut(&mut Self) -> Result<Expr>,
    ) -> Result<Vec<Expr>> {
        let mut elts = vec![first];
        while self.eat(TokenKind::Comma) && self.at_expr() {
            elts.push(element(self)?);
        }
        Ok(elts)
    }

    /// `a` or `a := b`
    pub(super) fn named(&mut self, context: Context) -> Result<Expr> {
        let start = self.start();
        let mut target = self.conditional(context)?;
        if !self.at(TokenKind::ColonEqual) {
            return Ok(target);
        }
        match &mut target {
            Expr::Name(name) => name.ctx = ExprContext::Store,
            other => {
                let message = "the target of `:=` is a name";
                return Err(SyntaxError::new(other.range(), message));
            }
        }
        self.bump();
        let value = self.expression()?;
        Ok(Expr::Named(ExprNamed {
            range: self.range(start),
            target: Box::new(target),
            value: Box::new(value),
        }))
    }

    /// An expression without `*`, `yield`, `:=` and commas.
    pub(super) fn expression(&mut self) -> Result<Expr> {
        self.conditional(Context::default())
    }

    /// `a if b else c`, `lambda: a`, and what binds tighter.
    pub(super) fn conditional(&mut self, context: Context) -> Result<Expr> {
        let around = std::mem::take(&mut self.levels);
        let expr = self.conditional_here(context)?;
        self.levels = self.levels.max(around);
        Ok(expr)
    }

    fn conditional_here(&mut self, context: Context) -> Result<Expr> {
        if self.at(TokenKind::Lambda) {
            return self.lambda();
        }
        let start = self.start();
        let body = self.operators(context)?;
        if !self.at(TokenKind::If) {
            return Ok(body);
        }
        self.bump();
        let test = self.operators(Context::default())?;
        self.expect(TokenKind::Else)?;
        let orelse = self.nested(|p| p.expression())?;
        self.level()?;
        Ok(Expr::If(ExprIf {
            range: self.range(start),
            test: Box::new(test),
            body: Box::new(body),
            orelse: Box::new(orelse),
        }))
    }

    fn lambda(&mut self) -> Result<Expr> {
        let start = self.start();
        self.bump();
        let parameters = match self.at(TokenKind::Colon) {
            true => None,
            false => Some(Box::new(self.lambda_parameters()?)),
        };
        self.expect(TokenKind::Colon)?;
        let body = self.nested(|p| p.expression())?;
        self.level()?;
        Ok(Expr::Lambda(ExprLambda {
            range: self.range(start),
            parameters,
            body: Box::new(body),
        }))
    }

    /// Operators and their operands.
    pub(super) fn operators(&mut self, context: Context) -> Result<Expr> {
        self.binary(Precedence::Lowest, context)
    }

    /// The operator at the current token, and how tightly it binds.
    fn operator(&mut self, context: Context) -> Option<(Binary, Precedence)> {
        let kind = self.current.kind;
        let compare = match kind {
            TokenKind::Or => return Some((Binary::Bool(BoolOp::Or), Precedence::Or)),
            TokenKind::And => return Some((Binary::Bool(BoolOp::And), Precedence::And)),
            TokenKind::EqualEqual => CmpOp::Eq,
            TokenKind::NotEqual => CmpOp::NotEq,
            TokenKind::Less => CmpOp::Lt,
            TokenKind::LessEqual => CmpOp::LtE,
            TokenKind::Greater => CmpOp::Gt,
            TokenKind::GreaterEqual => CmpOp::GtE,
            TokenKind::In if !context.ends_at_in => CmpOp::In,
            TokenKind::Not if self.peek(1) == TokenKind::In => CmpOp::NotIn,
            TokenKind::Is if self.peek(1) == TokenKind::Not => CmpOp::IsNot,
            TokenKind::Is => CmpOp::Is,
            _ => return arithmetic(kind).map(|(op, precedence)| (Binary::Arithmetic(op), precedence)),
        };
        Some((Binary::Compare(compare), Precedence::Comparison))
    }

    /// An operand, and the operators after it that bind tighter than the one before it.
    pub(super) fn binary(&mut self, before: Precedence, context: Context) -> Result<Expr> {
        let around = std::mem::take(&mut self.levels);
        let expr = self.nested(|p| p.binary_here(before, context))?;
        self.levels = self.levels.max(around);
        Ok(expr)
    }

    fn binary_here(&mut self, before: Precedence, context: Context) -> Result<Expr> {
        let start = self.start();
        let is_yield = self.at(TokenKind::Yield);
        let mut left = self.operand(before, context)?;
        if is_yield {
            // It has taken what follows: it is no operand.
            return Ok(left);
        }
        while let Some((operator, precedence)) = self.operator(context) {
            // `a ** b ** c` is `a ** (b ** c)`.
            if precedence < before || precedence == before && precedence != Precedence::Power {
                break;
            }
            self.bump();
            left = match operator {
                Binary::Arithmetic(op) => {
                    let right = self.right(precedence, context)?;
                    Expr::BinOp(ExprBinOp {
                        range: self.range(start),
                        left: Box::new(left),
                        op,
                        right: Box::new(right),
                    })
                }
                Binary::Bool(op) => {
                    let word = match op {
                        BoolOp::And => TokenKind::And,
                        BoolOp::Or => TokenKind::Or,
                    };
                    let mut values = vec![left, self.right(precedence, context)?];
                    while self.eat(word) {
                        values.push(self.right(precedence, context)?);
                    }
                    Expr::BoolOp(ExprBoolOp {
                        range: self.range(start),
                        op,
                        values,
                    })
                }
                Binary::Compare(op) => self.comparison(start, left, op, context)?,
            };
            self.level()?;
        }
        Ok(left)
    }

    /// The operand after an operator.
    fn right(&mut self, precedence: Precedence, context: Context) -> Result<Expr> {
        // Only the first operand may be `*a` or `yield a`.
        let context = Context {
            star: Star::No,
            yields: false,
            ..context
        };
        self.binary(precedence, context)
    }

    fn comparison(&mut self, start: u32, left: Expr, first: CmpOp, context: Context) -> Result<Expr> {
        let (mut ops, mut comparators) = (Vec::new(), Vec::new());
        let mut op = first;
        loop {
            if matches!(op, CmpOp::IsNot | CmpOp::NotIn) {
                self.bump();
            }
            ops.push(op);
            comparators.push(self.right(Precedence::Comparison, context)?);
            match self.operator(context) {
                Some((Binary::Compare(next), _)) => op = next,
                _ => break,
            }
            self.bump();
        }
        Ok(Expr::Compare(ExprCompare {
            range: self.range(start),
            left: Box::new(left),
            ops,
            comparators,
        }))
    }

    /// What stands before or after an operator that binds as `before` says.
    fn operand(&mut self, before: Precedence, context: Context) -> Result<Expr> {
        let start = self.start();
        let sign = match self.current.kind {
            TokenKind::Not => Some((UnaryOp::Not, Precedence::Not)),
            TokenKind::Minus => Some((UnaryOp::USub, Precedence::Sign)),
            TokenKind::Plus => Some((UnaryOp::UAdd, Precedence::Sign)),
            TokenKind::Tilde => Some((UnaryOp::Invert, Precedence::Sign)),
            _ => None,
        };
        if let Some((op, precedence)) = sign {
            // `a ** -b` is `a ** (-b)`.
            if before > precedence && !(before == Precedence::Power && op != UnaryOp::Not) {
                let message = format!("`{op}` cannot stand after this operator without parentheses");
                return Err(SyntaxError::new(self.current.range(), message));
            }
            self.bump();
            let operand = self.right(precedence, context)?;
            self.level()?;
            return Ok(Expr::UnaryOp(ExprUnaryOp {
                range: self.range(start),
                op,
                operand: Box::new(operand),
            }));
        }
        let refused = |p: &Self, message: &str| Err(SyntaxError::new(p.current.range(), message));
        match self.current.kind {
            TokenKind::Star if context.star == Star::No || before > Precedence::Lowest => refused(
                self,
                "`*` before an expression unpacks it; that cannot stand here",
            ),
            TokenKind::Star => {
                self.bump();
                let value = match context.star {
                    Star::Any => self.conditional(Context {
                        star: Star::No,
                        ..context
                    })?,
                    _ => self.bit_or_operand("`*`")?,
                };
                self.level()?;
                Ok(Expr::Starred(ExprStarred {
                    range: self.range(start),
                    value: Box::new(value),
                    ctx: ExprContext::Load,
                }))
            }
            TokenKind::Await if before >= Precedence::Await => {
                refused(self, "`await` cannot stand here without parentheses")
            }
            TokenKind::Await => {
                self.bump();
                let value = self.binary(Precedence::Await, Context::default())?;
                self.level()?;
                Ok(Expr::Await(ExprAwait {
                    range: self.range(start),
                    value: Box::new(value),
                }))
            }
            TokenKind::Lambda => refused(self, "`lambda` cannot stand here without parentheses"),
            TokenKind::Yield if !context.yields || before > Precedence::Lowest => {
                refused(self, "`yield` cannot stand here without parentheses")
            }
            TokenKind::Yield => self.yield_expression(),
            _ => {
                let atom = self.atom()?;
                self.postfix(start, atom)
            }
        }
    }

    /// What `*` and `**` unpack: an expression that binds as tightly as `|`, or is in parentheses.
    pub(super) fn bit_or_operand(&mut self, after: &str) -> Result<Expr> {
        let start = self.start();
        let value = self.expression()?;
        let is_loose = match &value {
            Expr::Compare(_) | Expr::BoolOp(_) | Expr::If(_) | Expr::Lambda(_) => true,
            Expr::UnaryOp(e) => e.op == UnaryOp::Not,
            _ => false,
        };
        if is_loose && !is_parenthesized(&value, start) {
            let message = format!("this expression takes parentheses after {after}");
            return Err(SyntaxError::new(value.range(), message));
        }
        Ok(value)
    }

    fn yield_expression(&mut self) -> Result<Expr> {
        let start = self.start();
        self.bump();
        if self.eat(TokenKind::From) {
            let value = self.expression()?;
            self.refuse_tuple(&value)?;
            return Ok(Expr::YieldFrom(ExprYieldFrom {
                range: self.range(start),
                value: Box::new(value),
            }));
        }
        let value = match self.at_expr() {
            true => Some(Box::new(self.expression_list(Context::ELEMENT)?)),
            false => None,
        };
        Ok(Expr::Yield(ExprYield {
            range: self.range(start),
            value,
        }))
    }

    /// Refuses a comma after an expression where several would take parentheses.
    pub(super) fn refuse_tuple(&mut self, first: &Expr) -> Result<()> {
        if !self.at(TokenKind::Comma) {
            return Ok(());
        }
        let range = crate::TextRange::new(first.range().start(), TextSize::new(self.current.end));
        Err(SyntaxError::new(range, "several values take parentheses here"))
    }
}
