//! What can be assigned to.

use super::Parser;
use crate::Ranged;
use crate::ast::*;
use crate::error::{Result, SyntaxError};

/// What an expression is that cannot be assigned to.
fn describe(expr: &Expr) -> &'static str {
    match expr {
        Expr::BoolOp(_) | Expr::BinOp(_) | Expr::UnaryOp(_) => "the result of an operator",
        Expr::Compare(_) => "a comparison",
        Expr::Call(_) => "the result of a call",
        Expr::Lambda(_) => "a `lambda`",
        Expr::If(_) => "a conditional expression",
        Expr::Dict(_) => "a dictionary",
        Expr::Set(_) => "a set",
        Expr::ListComp(_) | Expr::SetComp(_) | Expr::DictComp(_) | Expr::Generator(_) => "a comprehension",
        Expr::Await(_) => "an `await` expression",
        Expr::Yield(_) | Expr::YieldFrom(_) => "a `yield` expression",
        Expr::FString(_) | Expr::StringLiteral(_) | Expr::BytesLiteral(_) => "a string",
        Expr::NumberLiteral(_) => "a number",
        Expr::BooleanLiteral(_) | Expr::NoneLiteral(_) | Expr::EllipsisLiteral(_) => "a constant",
        Expr::Named(_) => "a named expression",
        Expr::List(_) => "a list",
        Expr::Tuple(_) => "a tuple",
        Expr::Starred(_) => "an unpacked expression",
        Expr::Slice(_) | Expr::Attribute(_) | Expr::Subscript(_) | Expr::Name(_) => "this",
    }
}

impl Parser<'_> {
    /// Makes an expression a target of an assignment or a deletion.
    pub(super) fn assign_to(&self, target: &mut Expr, to: ExprContext) -> Result<()> {
        match target {
            Expr::Name(_) | Expr::Attribute(_) | Expr::Subscript(_) => self.assign_to_place(target, to, ""),
            Expr::List(ExprList { elts, ctx, .. }) | Expr::Tuple(ExprTuple { elts, ctx, .. }) => {
                *ctx = to;
                elts.iter_mut().try_for_each(|e| self.assign_to(e, to))
            }
            Expr::Starred(ExprStarred { value, ctx, .. }) if to == ExprContext::Store => {
                *ctx = to;
                self.assign_to(value, to)
            }
            other => self.assign_to_place(other, to, ""),
        }
    }

    /// The same of a name, an attribute or a subscript alone. `why` says what takes one.
    pub(super) fn assign_to_place(&self, target: &mut Expr, to: ExprContext, why: &str) -> Result<()> {
        match target {
            Expr::Name(ExprName { ctx, .. })
            | Expr::Attribute(ExprAttribute { ctx, .. })
            | Expr::Subscript(ExprSubscript { ctx, .. }) => *ctx = to,
            other => {
                let done = match to {
                    ExprContext::Del => "deleted",
                    _ => "assigned to",
                };
                let message = format!("{} cannot be {done}{why}", describe(other));
                return Err(SyntaxError::new(other.range(), message));
            }
        }
        Ok(())
    }
}
