//! What the two compute legalizations share: arithmetic of a type that the target lacks is done in float32.
//!
//! **Idea.** Values of the type stay what they are in memory, in variables and in casts; each operation on them — arithmetic, comparison,
//! minimum, select of computed values, math function — has its operands converted to float32, and its result
//! converted back where it is of the type. A conversion back that is converted to float32 at once is dropped, so a
//! chain of operations rounds once at its end, as TVM 0.26 does.
//!
//! **Invariants.** Bits that are only moved (loads, stores, shuffles, reinterpretation, calls of raw functions) are not
//! converted. **Cost.** One walk.

use crate::intrin::{Effect, Op, ResultRule};
use crate::ir::{BinOp, DType, Expr, ExprKind, Mutator, PrimFunc};

/// The function with operations on types that `unsupported` accepts done in float32.
pub(super) fn legalize(func: PrimFunc, unsupported: fn(DType) -> bool) -> PrimFunc {
    let mut pass = Legalize { unsupported };
    let body = pass.stmt(&func.body);
    PrimFunc { body, ..func }
}

struct Legalize {
    unsupported: fn(DType) -> bool,
}

impl Legalize {
    fn wide(dtype: DType) -> DType {
        DType::FLOAT32.with_lanes(dtype.lanes)
    }

    /// An operand in float32.
    fn promote(&self, expr: Expr) -> Expr {
        if !(self.unsupported)(expr.dtype) {
            return expr;
        }
        let wide = Legalize::wide(expr.dtype);
        match &expr.kind {
            // What was rounded on the way here, before it is stored, needs no rounding.
            ExprKind::Cast(inner) if inner.dtype == wide => inner.clone(),
            ExprKind::Float(value) => Expr::float(wide, *value).at(expr.span),
            ExprKind::Broadcast { value, lanes } => {
                let span = expr.span;
                Expr::broadcast(self.promote(value.clone()), *lanes).at(span)
            }
            _ => expr.cast(wide),
        }
    }
}

impl Mutator for Legalize {
    fn expr(&mut self, expr: &Expr) -> Expr {
        let span = expr.span;
        match &expr.kind {
            ExprKind::Binary(op, a, b) if (self.unsupported)(a.dtype) => {
                let (x, y) = (self.expr(a), self.expr(b));
                let wide = Expr::binary(*op, self.promote(x), self.promote(y)).at(span);
                if op.is_comparison() {
                    wide
                } else {
                    debug_assert!(!matches!(op, BinOp::And | BinOp::Or), "{expr:?}");
                    wide.cast(expr.dtype)
                }
            }
            ExprKind::Select(c, t, f) if (self.unsupported)(expr.dtype) => {
                let (c, t, f) = (self.expr(c), self.expr(t), self.expr(f));
                Expr::select(c, self.promote(t), self.promote(f))
                    .at(span)
                    .cast(expr.dtype)
            }
            ExprKind::Cast(a) if (self.unsupported)(a.dtype) => {
                let value = self.expr(a);
                let value = self.promote(value);
                if value.dtype == expr.dtype {
                    value
                } else {
                    Expr::new(ExprKind::Cast(value), expr.dtype, span)
                }
            }
            ExprKind::Cast(a) if (self.unsupported)(expr.dtype) => {
                let value = self.expr(a);
                let wide = Legalize::wide(expr.dtype);
                let value = if value.dtype == wide {
                    value
                } else {
                    value.cast(wide)
                };
                Expr::new(ExprKind::Cast(value), expr.dtype, span)
            }
            ExprKind::Call { op, args } if computes(*op) => {
                if !args.iter().any(|a| (self.unsupported)(a.dtype)) {
                    return self.walk_expr(expr);
                }
                let args: Vec<Expr> = args
                    .iter()
                    .map(|a| {
                        let a = self.expr(a);
                        self.promote(a)
                    })
                    .collect();
                if !(self.unsupported)(expr.dtype) {
                    return Expr::new(ExprKind::Call { op: *op, args }, expr.dtype, span);
                }
                let wide = Legalize::wide(expr.dtype);
                Expr::new(ExprKind::Call { op: *op, args }, wide, span).cast(expr.dtype)
            }
            _ => self.walk_expr(expr),
        }
    }
}

/// Whether a call computes with its arguments rather than moving their bits.
fn computes(op: Op) -> bool {
    op.effect() == Effect::Pure
        && matches!(op.info().result, ResultRule::Arg(_) | ResultRule::BoolOfArg0)
        && !matches!(
            op,
            Op::BitwiseAnd
                | Op::BitwiseOr
                | Op::BitwiseXor
                | Op::BitwiseNot
                | Op::ShiftLeft
                | Op::ShiftRight
                | Op::IfThenElse
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Var;
    use crate::script::print_expr;

    fn legalized(expr: &Expr) -> String {
        let mut pass = Legalize {
            unsupported: DType::is_bfloat16,
        };
        print_expr(&pass.expr(expr))
    }

    #[test]
    fn operations_are_done_in_float32() {
        let x = Var::new("x", DType::BFLOAT16);
        let v = || Expr::var(&x);
        assert_eq!(
            legalized(&(v() * v() + v())),
            "T.Cast(\"bfloat16\", T.Cast(\"float32\", x) * T.Cast(\"float32\", x) + T.Cast(\"float32\", x))"
        );
        assert_eq!(
            legalized(&Expr::binary(BinOp::Lt, v(), Expr::float(DType::BFLOAT16, 2.0))),
            "T.Cast(\"float32\", x) < T.float32(2.0)"
        );
        let exp = Expr::call(Op::Exp, DType::BFLOAT16, vec![v()]);
        assert_eq!(
            legalized(&exp.cast(DType::FLOAT32)),
            "T.exp(T.Cast(\"float32\", x))"
        );
        assert_eq!(legalized(&v()), "x");
    }
}
