//! The common part of the two compute legalizations: arithmetic of a type that the target lacks is done in float32.
//!
//! **Idea.** Values of the type stay what they are in memory, in variables and in casts; each operation on them —
//! arithmetic, comparison, minimum, select of computed values, math function — has its operands converted to float32,
//! and its result converted back where it is of the type. Intermediate results are not converted back, so a chain of
//! operations rounds once at its end, as in TVM 0.26; a conversion that the program asks for always rounds.
//!
//! **Invariants.** Bits that are only moved (loads, stores, shuffles, reinterpretation, calls of raw functions) are not
//! converted. **Cost.** One walk, which passes by all that has no narrow float.

use crate::intrin::Op;
use crate::ir::at;
use crate::ir::{BinOp, DType, ElementType, Expr, ExprKind, Mutator, PrimFunc, Stmt};

/// The function with operations on types that `unsupported` accepts, narrow floats, done in float32.
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

    /// An operand, legalized and in float32. The result of an operation is not rounded before it enters the next one; a
    /// conversion that the program asks for is.
    fn promoted(&mut self, expr: &Expr) -> Expr {
        if !(self.unsupported)(expr.dtype) {
            return self.expr(expr);
        }
        let wide = Legalize::wide(expr.dtype);
        match &expr.kind {
            ExprKind::Float(value) => Expr::float(wide, *value).at(expr.span),
            ExprKind::Broadcast { value, lanes } => {
                let span = expr.span;
                Expr::broadcast(self.promoted(value), *lanes).at(span)
            }
            _ => self.widened(expr).unwrap_or_else(|| self.expr(expr).cast(wide)),
        }
    }

    /// An operation whose result is of the type, computed in float32 and left so.
    fn widened(&mut self, expr: &Expr) -> Option<Expr> {
        if !(self.unsupported)(expr.dtype) {
            return None;
        }
        let wide = match &expr.kind {
            ExprKind::Binary(op, a, b) => {
                debug_assert!(!matches!(op, BinOp::And | BinOp::Or), "{expr:?}");
                Expr::binary(*op, self.promoted(a), self.promoted(b))
            }
            ExprKind::Select(c, t, f) => Expr::select(self.expr(c), self.promoted(t), self.promoted(f)),
            ExprKind::Call { op, args } if self.is_computed(expr) => {
                // The condition of a choice has another type and is not converted.
                let args = args.iter().map(|a| self.promoted(a)).collect();
                Expr::new(
                    ExprKind::Call { op: *op, args },
                    Legalize::wide(expr.dtype),
                    expr.span,
                )
            }
            _ => return None,
        };
        Some(wide.at(expr.span))
    }

    /// Whether a value of the type is the result of an operation. A lazy choice counts as one where it chooses between
    /// results of operations, so that the same is computed whether or not its condition is known at compile time.
    fn is_computed(&self, expr: &Expr) -> bool {
        (self.unsupported)(expr.dtype)
            && match &expr.kind {
                ExprKind::Binary(..) | ExprKind::Select(..) => true,
                ExprKind::Call {
                    op: Op::IfThenElse,
                    args,
                } => args[at!(IfThenElse.t)..].iter().any(|arm| self.is_computed(arm)),
                ExprKind::Call { op, args } => op.traits().arithmetic && self.any_unsupported(args),
                _ => false,
            }
    }

    /// Whether the target converts between a narrow float and float16 itself: float16 holds all its values.
    fn converts_directly(&self, value: &Expr, to: DType) -> bool {
        let largest = |d: DType| ElementType::from_dtype(d.element()).and_then(|row| row.largest);
        let held = |d: DType| largest(d) <= largest(DType::FLOAT16);
        let narrow = |d: DType| (self.unsupported)(d) && d.is_small_float() && held(d);
        let half = |d: DType| d.element() == DType::FLOAT16;
        narrow(value.dtype) && half(to) && !self.is_computed(value) || half(value.dtype) && narrow(to)
    }

    fn any_unsupported(&self, args: &[Expr]) -> bool {
        args.iter().any(|a| (self.unsupported)(a.dtype))
    }
}

impl Mutator for Legalize {
    fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        match stmt.has_narrow_float() {
            true => self.walk_stmt(stmt),
            false => stmt.clone(),
        }
    }

    fn expr(&mut self, expr: &Expr) -> Expr {
        if !expr.has_narrow_float() {
            return expr.clone();
        }
        let span = expr.span;
        if let Some(wide) = self.widened(expr) {
            return wide.cast(expr.dtype);
        }
        match &expr.kind {
            // The remaining cases have a result of another type: comparisons.
            ExprKind::Binary(op, a, b) if (self.unsupported)(a.dtype) => {
                Expr::binary(*op, self.promoted(a), self.promoted(b)).at(span)
            }
            ExprKind::Cast(a) if self.converts_directly(a, expr.dtype) => {
                Expr::new(ExprKind::Cast(self.expr(a)), expr.dtype, span)
            }
            ExprKind::Cast(a) if (self.unsupported)(a.dtype) => {
                let value = self.promoted(a);
                if value.dtype == expr.dtype {
                    value
                } else {
                    Expr::new(ExprKind::Cast(value), expr.dtype, span)
                }
            }
            ExprKind::Cast(a) if (self.unsupported)(expr.dtype) => {
                let value = self.expr(a);
                let wide = Legalize::wide(expr.dtype);
                // CUDA converts from float64 itself, and rounds once.
                let direct = value.dtype.element() == DType::FLOAT64 && expr.dtype.is_small_float();
                let value = if value.dtype == wide || direct {
                    value
                } else {
                    value.cast(wide)
                };
                Expr::new(ExprKind::Cast(value), expr.dtype, span)
            }
            ExprKind::Call { op, args } if op.traits().arithmetic && self.any_unsupported(args) => {
                let args = args.iter().map(|a| self.promoted(a)).collect();
                Expr::new(ExprKind::Call { op: *op, args }, expr.dtype, span)
            }
            _ => self.walk_expr(expr),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Var;
    use crate::ir::print_expr;

    fn legalized(expr: &Expr) -> String {
        let mut pass = Legalize {
            unsupported: DType::is_bfloat16,
        };
        print_expr(&pass.expr(expr))
    }

    #[test]
    fn a_choice_between_results_does_not_round_them() {
        let (x, c) = (Var::new("x", DType::BFLOAT16), Var::new("c", DType::BOOL));
        let v = || Expr::var(&x);
        let choose = |arm: Expr| {
            let args = vec![Expr::var(&c), arm, v()];
            Expr::call(Op::IfThenElse, DType::BFLOAT16, args).cast(DType::FLOAT32)
        };
        assert_eq!(
            legalized(&choose(v() * v())),
            "T.if_then_else(c, T.Cast(\"float32\", x) * T.Cast(\"float32\", x), T.Cast(\"float32\", x))"
        );
        assert_eq!(
            legalized(&choose(v())),
            "T.Cast(\"float32\", T.if_then_else(c, x, x))"
        );
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
        let wide = Expr::var(&Var::new("w", DType::FLOAT32));
        assert_eq!(
            legalized(&wide.cast(DType::BFLOAT16).cast(DType::FLOAT32)),
            "T.Cast(\"float32\", T.Cast(\"bfloat16\", w))"
        );
    }
}
