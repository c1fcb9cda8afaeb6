//! Expressions: operands have the dtypes that their operator requires, and the node the resulting dtype.

use super::Verifier;
use crate::ir::{BinOp, DType, Expr, ExprKind, Var, print_expr};
use crate::source::Span;

impl Verifier<'_> {
    pub(super) fn exprs(&mut self, exprs: &[Expr]) {
        exprs.iter().for_each(|e| self.expr(e));
    }

    pub(super) fn expr(&mut self, e: &Expr) {
        for operand in e.operands() {
            // The body of a `Let` sees the variable.
            if !matches!(e.kind, ExprKind::Let(..)) {
                self.expr(operand);
            }
            let value = !operand.dtype.is_void();
            self.check(value, e.span, || {
                format!("`{}` is used as a value", print_expr(operand))
            });
        }
        let dtype = e.dtype;
        match &e.kind {
            ExprKind::Var(var) => {
                self.check(self.vars.contains(var), e.span, || {
                    format!("variable {} is used outside of its scope", var.name())
                });
                self.follows(e, var.dtype());
            }
            ExprKind::Int(value) => {
                let range = dtype.min_int().zip(dtype.max_int());
                let ok = dtype.is_handle() || range.is_some_and(|(low, high)| (low..=high).contains(value));
                self.check(ok && dtype.is_scalar(), e.span, || {
                    format!("constant {value} of dtype {dtype}")
                });
            }
            ExprKind::Float(value) => {
                let ok = dtype.is_floating() && dtype.is_scalar();
                self.check(ok, e.span, || format!("constant {value} of dtype {dtype}"));
            }
            ExprKind::Str(_) => self.follows(e, DType::HANDLE),
            ExprKind::Cast(value) => {
                let ok = value.dtype.lanes == dtype.lanes;
                self.check(ok, e.span, || format!("cast of {} to {dtype}", value.dtype));
            }
            ExprKind::Binary(op, a, b) => self.binary(e, *op, a, b),
            ExprKind::Not(a) => {
                self.check(a.dtype.is_bool(), e.span, || format!("`not` of {}", a.dtype));
                self.follows(e, a.dtype);
            }
            ExprKind::Select(c, t, f) => {
                let lanes = c.dtype.lanes == 1 || c.dtype.lanes == t.dtype.lanes;
                self.check(c.dtype.is_bool() && lanes, e.span, || {
                    format!("Select between {} by {}", t.dtype, c.dtype)
                });
                self.check(t.dtype == f.dtype, e.span, || {
                    format!("Select of {} or {}", t.dtype, f.dtype)
                });
                self.follows(e, t.dtype);
            }
            ExprKind::BufferLoad {
                buffer,
                indices,
                predicate,
            } => {
                let place = self.access(e.span, buffer, indices, predicate.as_ref());
                self.follows(e, place);
            }
            ExprKind::Ramp { base, stride, lanes } => {
                let ok = base.dtype == stride.dtype && base.dtype.is_integer() && *lanes > 0;
                self.check(ok, e.span, || {
                    format!("Ramp of {} by {}", base.dtype, stride.dtype)
                });
                self.follows(e, base.dtype.with_lanes(base.dtype.lanes.saturating_mul(*lanes)));
            }
            ExprKind::Broadcast { value, lanes } => {
                self.follows(
                    e,
                    value.dtype.with_lanes(value.dtype.lanes.saturating_mul(*lanes)),
                );
            }
            ExprKind::Shuffle { vectors, indices } => {
                let element = vectors.first().map_or(DType::VOID, |v| v.dtype.element());
                let same = vectors.iter().all(|v| v.dtype.element() == element);
                self.check(same, e.span, || "Shuffle of vectors of several dtypes".into());
                let available: i128 = vectors.iter().map(|v| i128::from(v.dtype.lanes)).sum();
                let ok = indices
                    .iter()
                    .all(|i| i.as_int().is_some_and(|i| (0..available).contains(&i)));
                self.check(ok, e.span, || format!("Shuffle picks lanes beyond {available}"));
                self.follows(e, element.with_lanes(indices.len() as u16));
            }
            ExprKind::Call { op, args } => self.call(e, *op, args),
            ExprKind::Let(var, value, body) => {
                self.expr(value);
                self.scope(|s| {
                    s.define(var, e.span);
                    s.expr(body);
                });
                self.bound(e.span, var, value);
                self.follows(e, body.dtype);
            }
        }
    }

    /// The node's dtype is what follows from its operands.
    pub(super) fn follows(&mut self, e: &Expr, expected: DType) {
        self.check(e.dtype == expected, e.span, || {
            format!(
                "`{}` has dtype {} but its operands give {expected}",
                print_expr(e),
                e.dtype
            )
        });
    }

    pub(super) fn bound(&mut self, span: Span, var: &Var, value: &Expr) {
        self.check(var.dtype() == value.dtype, span, || {
            format!(
                "variable {} of dtype {} is bound to a {}",
                var.name(),
                var.dtype(),
                value.dtype
            )
        });
    }

    pub(super) fn binary(&mut self, e: &Expr, op: BinOp, a: &Expr, b: &Expr) {
        let dtype = a.dtype;
        self.check(dtype == b.dtype, e.span, || {
            format!("{op:?} of {dtype} and {} in `{}`", b.dtype, print_expr(e))
        });
        use BinOp::*;
        let ok = match op {
            And | Or => dtype.is_bool(),
            Mod | FloorDiv | FloorMod => dtype.is_integer() || dtype.is_floating(),
            Eq | Ne => true,
            Lt | Le | Gt | Ge | Add | Sub | Mul | Div | Min | Max => !dtype.is_handle(),
        };
        self.check(ok, e.span, || format!("{op:?} of {dtype} in `{}`", print_expr(e)));
        self.follows(
            e,
            if op.is_comparison() {
                DType::BOOL.with_lanes(dtype.lanes)
            } else {
                dtype
            },
        );
    }
}
