//! Some bits of a loop's variable, moved down: `x >> 3 & 7` is written for `(x & 56) >> 3`; see the last entry of
//! [the list](super).
//!
//! Only values that can change in a loop are rewritten, so that the text of all others is as it stands in the IR.

use rustc_hash::{FxHashMap, FxHashSet};

use super::in_all_lanes;
use crate::intrin::{Effect, Op};
use crate::ir::at;
use crate::ir::{BinOp, Expr, ExprKind, Var, Visitor};

/// The bits of `value` that `mask` names.
#[derive(Clone, Debug)]
struct Masked {
    value: Expr,
    mask: i128,
    /// It is a remainder as C++ computes it, which is negative where the value is.
    truncated: bool,
}

/// What is known of a function's variables.
#[derive(Debug, Default)]
pub(in crate::cuda) struct Digits {
    /// Those that can have another value in the next turn of a loop.
    varying: FxHashSet<Var>,
    /// Those that are bound to some bits of such a value.
    masked: FxHashMap<Var, Masked>,
    /// How many loops are around the current statement.
    loops: usize,
}

impl Digits {
    /// Takes note of a variable that has another value in each turn of a loop, or in each call.
    pub(in crate::cuda) fn varies(&mut self, var: &Var) {
        self.varying.insert(var.clone());
    }

    /// What follows is in one loop more.
    pub(in crate::cuda) fn enter_loop(&mut self) {
        self.loops += 1;
    }

    /// The innermost loop ends.
    pub(in crate::cuda) fn leave_loop(&mut self) {
        self.loops -= 1;
    }

    /// Takes note of a variable that is bound to a value.
    pub(in crate::cuda) fn bound(&mut self, var: &Var, value: &Expr) {
        let origin = self.origin(value);
        if origin == Origin::Fixed {
            return;
        }
        self.varying.insert(var.clone());
        // What is read from memory may be another value where the variable is used.
        if origin == Origin::Varying
            && let Some(masked) = self.masked(value)
        {
            self.masked.insert(var.clone(), masked);
        }
    }

    /// The same value, moved down first and masked then; of a vector, in each lane.
    pub(in crate::cuda) fn moved_first(&self, e: &Expr) -> Option<Expr> {
        let (masked, by, divides) = match &e.kind {
            _ if !e.dtype.is_integer() => return None,
            ExprKind::Call {
                op: Op::ShiftRight,
                args,
            } => {
                let by = in_all_lanes(&args[at!(ShiftRight.y)])?;
                (self.masked(&args[at!(ShiftRight.x)])?, by, false)
            }
            ExprKind::Binary(op @ (BinOp::FloorDiv | BinOp::Div), x, by) => {
                let by = in_all_lanes(by).filter(|by| *by > 0 && by.count_ones() == 1)?;
                (self.masked(x)?, by.trailing_zeros().into(), *op == BinOp::Div)
            }
            _ => return None,
        };
        let Masked {
            value,
            mask,
            truncated,
        } = masked;
        let digits = mask >> u32::try_from(by).ok().filter(|by| *by < 64)?;
        if digits == 0 || truncated && !divides || self.origin(&value) == Origin::Fixed {
            return None;
        }
        let dtype = e.dtype;
        if truncated {
            let quotient = Expr::binary(BinOp::Div, value, Expr::constant(dtype, 1 << by));
            return Some(Expr::binary(
                BinOp::Mod,
                quotient,
                Expr::constant(dtype, digits + 1),
            ));
        }
        let moved = Expr::call(Op::ShiftRight, dtype, vec![value, Expr::constant(dtype, by)]);
        let mask = Expr::constant(dtype, digits);
        Some(Expr::call(Op::BitwiseAnd, dtype, vec![moved, mask]))
    }

    /// What a value is some bits of.
    fn masked(&self, e: &Expr) -> Option<Masked> {
        let (value, mask, truncated) = match &e.kind {
            ExprKind::Var(var) => return self.masked.get(var).cloned(),
            ExprKind::Call {
                op: Op::BitwiseAnd,
                args,
            } => {
                let (x, y) = (&args[at!(BitwiseAnd.x)], &args[at!(BitwiseAnd.y)]);
                match (in_all_lanes(x), in_all_lanes(y)) {
                    (None, Some(mask)) => (x, mask, false),
                    (Some(mask), None) => (y, mask, false),
                    _ => return None,
                }
            }
            ExprKind::Binary(op @ (BinOp::FloorMod | BinOp::Mod), value, by) => {
                let by = in_all_lanes(by).filter(|by| *by > 0 && by.count_ones() == 1)?;
                (value, by - 1, *op == BinOp::Mod && e.dtype.is_int())
            }
            _ => return None,
        };
        (mask > 0).then(|| Masked {
            value: value.clone(),
            mask,
            truncated,
        })
    }

    fn origin(&self, e: &Expr) -> Origin {
        let mut finder = Finder {
            varying: &self.varying,
            origin: Origin::Fixed,
        };
        finder.visit_expr(e);
        // Outside of loops, what memory holds is one value.
        match finder.origin {
            Origin::State if self.loops == 0 => Origin::Fixed,
            origin => origin,
        }
    }
}

/// What a value depends on; the later includes the earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Origin {
    /// Constants, arguments and indices of threads.
    Fixed,
    /// Variables of loops.
    Varying,
    /// Memory, or calls.
    State,
}

struct Finder<'a> {
    varying: &'a FxHashSet<Var>,
    origin: Origin,
}

impl Visitor for Finder<'_> {
    fn visit_expr(&mut self, e: &Expr) {
        let here = match &e.kind {
            ExprKind::Var(var) if self.varying.contains(var) => Origin::Varying,
            ExprKind::BufferLoad { .. } => Origin::State,
            ExprKind::Call { op, .. } if op.effect() != Effect::Pure => Origin::State,
            _ => Origin::Fixed,
        };
        self.origin = self.origin.max(here);
        self.walk_expr(e);
    }
}
