//! Expressions.

use super::{Comparison, Outcome};
use crate::ir::{Expr, ExprKind, print_expr};

impl Comparison {
    pub(super) fn expr(&mut self, a: &Expr, b: &Expr) -> Outcome {
        if a.dtype != b.dtype {
            return self.differ(
                format!("{} ({})", print_expr(a), a.dtype),
                format!("{} ({})", print_expr(b), b.dtype),
            );
        }
        use ExprKind::*;
        match (&a.kind, &b.kind) {
            (Var(x), Var(y)) => self.var(x, y),
            (Int(x), Int(y)) if x == y => Ok(()),
            (Float(x), Float(y)) if x.to_bits() == y.to_bits() => Ok(()),
            (Str(x), Str(y)) if x == y => Ok(()),
            (Cast(x), Cast(y)) | (Not(x), Not(y)) => self.field("value", |s| s.expr(x, y)),
            (Binary(op, x1, x2), Binary(other, y1, y2)) if op == other => {
                self.field("a", |s| s.expr(x1, y1))?;
                self.field("b", |s| s.expr(x2, y2))
            }
            (Select(c1, t1, f1), Select(c2, t2, f2)) => {
                self.field("condition", |s| s.expr(c1, c2))?;
                self.field("true_value", |s| s.expr(t1, t2))?;
                self.field("false_value", |s| s.expr(f1, f2))
            }
            (
                BufferLoad {
                    buffer: x,
                    indices: i,
                    predicate: p,
                },
                BufferLoad {
                    buffer: y,
                    indices: j,
                    predicate: q,
                },
            ) => {
                self.field("buffer", |s| s.buffer_use(x, y))?;
                self.field("indices", |s| s.exprs(i, j))?;
                self.field("predicate", |s| s.option(p, q))
            }
            (
                Ramp {
                    base: x,
                    stride: s1,
                    lanes: l,
                },
                Ramp {
                    base: y,
                    stride: s2,
                    lanes: m,
                },
            ) if l == m => {
                self.field("base", |s| s.expr(x, y))?;
                self.field("stride", |s| s.expr(s1, s2))
            }
            (Broadcast { value: x, lanes: l }, Broadcast { value: y, lanes: m }) if l == m => {
                self.field("value", |s| s.expr(x, y))
            }
            (
                Shuffle {
                    vectors: v,
                    indices: i,
                },
                Shuffle {
                    vectors: w,
                    indices: j,
                },
            ) => {
                self.field("vectors", |s| s.exprs(v, w))?;
                self.field("indices", |s| s.exprs(i, j))
            }
            (Call { op, args: x }, Call { op: other, args: y }) if op == other => {
                self.field("args", |s| s.exprs(x, y))
            }
            (Let(v, x, body), Let(w, y, other)) => {
                self.field("value", |s| s.expr(x, y))?;
                self.bind(v, w)?;
                self.field("body", |s| s.expr(body, other))
            }
            _ => self.differ(print_expr(a), print_expr(b)),
        }
    }
}
