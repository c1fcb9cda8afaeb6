//! Calls have the arguments and the result that the row of their operation requires.

use super::Verifier;
use crate::at;
use crate::intrin::{Effect, Op, ResultRule};
use crate::ir::{DType, Expr, ExprKind, print_expr};

impl Verifier<'_> {
    pub(super) fn call(&mut self, e: &Expr, op: Op, args: &[Expr]) {
        let info = op.info();
        if let Err(message) = info.row.read(args) {
            self.check(false, e.span, || format!("T.{}: {message}", info.script));
        }
        match info.row.result {
            ResultRule::Arg(n) => {
                if let Some(arg) = args.get(n as usize) {
                    self.follows(e, arg.dtype);
                }
            }
            // One value per lane, as for `clz` of a vector.
            ResultRule::Is(dtype) if dtype.is_integer() && op.effect() == Effect::Pure => {
                let lanes = args.first().map_or(1, |a| a.dtype.lanes);
                self.follows(e, dtype.with_lanes(lanes));
            }
            ResultRule::Is(dtype) => self.follows(e, dtype),
            ResultRule::BoolOfArg0 => {
                if let Some(arg) = args.first() {
                    self.follows(e, DType::BOOL.with_lanes(arg.dtype.lanes));
                }
            }
            ResultRule::IntOfBits | ResultRule::AddressOf | ResultRule::Of(_) => {
                self.follows(e, op.result(args).unwrap_or(e.dtype))
            }
            ResultRule::Given | ResultRule::GivenLast => {}
        }
        if matches!(op, Op::BreakLoop | Op::ContinueLoop) {
            self.check(self.loops > 0, e.span, || {
                format!("T.{} outside of a loop", info.script)
            });
        }
        if op == Op::IfThenElse && args.len() == op.row().args.len() {
            let dtype = |place: usize| args[place].dtype;
            let (condition, t, f) = (
                dtype(at!(IfThenElse.cond)),
                dtype(at!(IfThenElse.t)),
                dtype(at!(IfThenElse.f)),
            );
            self.check(condition.is_bool(), e.span, || {
                format!("if_then_else by {condition}")
            });
            self.check(t == f, e.span, || format!("if_then_else of {t} or {f}"));
        }
        if op == Op::AddressOf
            && let Some(place) = args.get(at!(AddressOf.obj))
        {
            let ok = match &place.kind {
                ExprKind::BufferLoad { .. } => true,
                ExprKind::Var(var) => var.ty().is_tensor_map(),
                _ => false,
            };
            self.check(ok, e.span, || format!("address_of `{}`", print_expr(place)));
        }
    }
}
