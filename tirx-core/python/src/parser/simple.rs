//! Statements of one line.

use super::Parser;
use super::expr::{Context, is_parenthesized};
use crate::ast::*;
use crate::error::{Result, SyntaxError};
use crate::lexer::TokenKind;

/// The operator of `+=` and its like.
fn augmented(kind: TokenKind) -> Option<Operator> {
    Some(match kind {
        TokenKind::PlusEqual => Operator::Add,
        TokenKind::MinusEqual => Operator::Sub,
        TokenKind::StarEqual => Operator::Mult,
        TokenKind::AtEqual => Operator::MatMult,
        TokenKind::SlashEqual => Operator::Div,
        TokenKind::PercentEqual => Operator::Mod,
        TokenKind::DoubleStarEqual => Operator::Pow,
        TokenKind::LeftShiftEqual => Operator::LShift,
        TokenKind::RightShiftEqual => Operator::RShift,
        TokenKind::BarEqual => Operator::BitOr,
        TokenKind::CaretEqual => Operator::BitXor,
        TokenKind::AmpersandEqual => Operator::BitAnd,
        TokenKind::DoubleSlashEqual => Operator::FloorDiv,
        _ => return None,
    })
}

impl Parser<'_> {
    /// Statements up to the end of the line.
    pub(super) fn simple_line(&mut self, body: &mut Vec<Stmt>) -> Result<()> {
        loop {
            body.push(self.simple_statement()?);
            if self.eat(TokenKind::Newline) {
                return Ok(());
            }
            if !self.eat(TokenKind::Semicolon) {
                return Err(self.unexpected("the end of the statement"));
            }
            if self.eat(TokenKind::Newline) {
                return Ok(());
            }
        }
    }

    fn simple_statement(&mut self) -> Result<Stmt> {
        let start = self.start();
        let kind = self.current.kind;
        Ok(match kind {
            TokenKind::Pass => {
                let range = self.bump().range();
                Stmt::Pass(StmtPass { range })
            }
            TokenKind::Break => {
                let range = self.bump().range();
                Stmt::Break(StmtBreak { range })
            }
            TokenKind::Continue => {
                let range = self.bump().range();
                Stmt::Continue(StmtContinue { range })
            }
            TokenKind::Return => {
                self.bump();
                let value = match self.at_expr() {
                    true => Some(Box::new(self.expression_list(Context::ELEMENT)?)),
                    false => None,
                };
                let range = self.range(start);
                Stmt::Return(StmtReturn { range, value })
            }
            TokenKind::Import => self.import()?,
            TokenKind::From => self.import_from()?,
            TokenKind::Raise => self.raise()?,
            TokenKind::Del => self.delete()?,
            TokenKind::Assert => {
                self.bump();
                let test = Box::new(self.expression()?);
                let msg = match self.eat(TokenKind::Comma) {
                    true => Some(Box::new(self.expression()?)),
                    false => None,
                };
                let range = self.range(start);
                Stmt::Assert(StmtAssert { range, test, msg })
            }
            TokenKind::Global => {
                let names = self.names()?;
                let range = self.range(start);
                Stmt::Global(StmtGlobal { range, names })
            }
            TokenKind::Nonlocal => {
                let names = self.names()?;
                let range = self.range(start);
                Stmt::Nonlocal(StmtNonlocal { range, names })
            }
            TokenKind::Name
                if self.text(self.current) == "type"
                    && self.peek(1) == TokenKind::Name
                    && matches!(self.peek(2), TokenKind::LeftBracket | TokenKind::Equal) =>
            {
                self.type_alias()?
            }
            _ => self.expression_statement()?,
        })
    }

    /// `global a, b`
    fn names(&mut self) -> Result<Vec<Identifier>> {
        self.bump();
        let mut names = vec![self.identifier("a name")?];
        while self.eat(TokenKind::Comma) {
            names.push(self.identifier("a name")?);
        }
        Ok(names)
    }

    fn raise(&mut self) -> Result<Stmt> {
        let start = self.start();
        self.bump();
        let one = |p: &mut Self| -> Result<_> {
            let value = p.expression()?;
            p.refuse_tuple(&value)?;
            Ok(Some(Box::new(value)))
        };
        let (mut exc, mut cause) = (None, None);
        if !matches!(self.current.kind, TokenKind::Newline | TokenKind::Semicolon) {
            exc = one(self)?;
            if self.eat(TokenKind::From) {
                cause = one(self)?;
            }
        }
        let range = self.range(start);
        Ok(Stmt::Raise(StmtRaise { range, exc, cause }))
    }

    fn delete(&mut self) -> Result<Stmt> {
        let start = self.start();
        self.bump();
        let mut targets = Vec::new();
        loop {
            let mut target = self.conditional(Context::ARGUMENT)?;
            self.assign_to(&mut target, ExprContext::Del)?;
            targets.push(target);
            if !self.eat(TokenKind::Comma) || !self.at_expr() {
                break;
            }
        }
        let range = self.range(start);
        Ok(Stmt::Delete(StmtDelete { range, targets }))
    }

    fn type_alias(&mut self) -> Result<Stmt> {
        let start = self.start();
        self.bump();
        let Identifier { range, id } = self.identifier("a name")?;
        let ctx = ExprContext::Store;
        let name = Box::new(Expr::Name(ExprName { range, id, ctx }));
        let type_params = self.type_params()?;
        self.expect(TokenKind::Equal)?;
        let value = Box::new(self.expression()?);
        Ok(Stmt::TypeAlias(StmtTypeAlias {
            range: self.range(start),
            name,
            type_params,
            value,
        }))
    }

    /// An expression, or what is assigned to it.
    fn expression_statement(&mut self) -> Result<Stmt> {
        let start = self.start();
        if !self.at_expr() {
            return Err(self.unexpected("a statement"));
        }
        let mut first = self.expression_list(Context::VALUE)?;
        if self.at(TokenKind::Equal) {
            return self.assign(start, first);
        }
        if self.at(TokenKind::Colon) {
            return self.annotated(start, first);
        }
        if let Some(op) = augmented(self.current.kind) {
            let why = format!(" with `{}`", self.current.kind.spelling());
            self.assign_to_place(&mut first, ExprContext::Store, &why)?;
            self.bump();
            let value = Box::new(self.expression_list(Context::VALUE)?);
            return Ok(Stmt::AugAssign(StmtAugAssign {
                range: self.range(start),
                target: Box::new(first),
                op,
                value,
            }));
        }
        Ok(Stmt::Expr(StmtExpr {
            range: self.range(start),
            value: Box::new(first),
        }))
    }

    fn assign(&mut self, start: u32, first: Expr) -> Result<Stmt> {
        let mut targets = Vec::new();
        let mut value = first;
        while self.at(TokenKind::Equal) {
            self.assign_to(&mut value, ExprContext::Store)?;
            self.bump();
            let next = self.expression_list(Context::VALUE)?;
            targets.push(std::mem::replace(&mut value, next));
        }
        Ok(Stmt::Assign(StmtAssign {
            range: self.range(start),
            targets,
            value: Box::new(value),
        }))
    }

    /// `a: b = c`
    fn annotated(&mut self, start: u32, mut target: Expr) -> Result<Stmt> {
        let simple = matches!(target, Expr::Name(_)) && !is_parenthesized(&target, start);
        if let Expr::Tuple(_) | Expr::List(_) = target {
            let message = "only a single target can have an annotation";
            return Err(SyntaxError::new(self.range(start), message));
        }
        self.assign_to_place(&mut target, ExprContext::Store, " and has no annotation")?;
        self.bump();
        let annotation = Box::new(self.expression()?);
        let value = match self.eat(TokenKind::Equal) {
            true => Some(Box::new(self.expression_list(Context::VALUE)?)),
            false => None,
        };
        Ok(Stmt::AnnAssign(StmtAnnAssign {
            range: self.range(start),
            target: Box::new(target),
            annotation,
            value,
            simple,
        }))
    }
}
