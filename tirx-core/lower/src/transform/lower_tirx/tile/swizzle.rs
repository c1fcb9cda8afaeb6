//! Addresses through a swizzle, with as little computation in loops as possible.
//!
//! An offset is `base + fixed + Σ digit * stride`: a part that depends on the thread, a common part, and a part that
//! loops count. A swizzle repeats with its period and is linear in exclusive-or, so that
//! * a step by whole periods is added behind it, and folds into the address;
//! * steps whose bits lie above those of the base are swizzled alone and exclusive-ored with the swizzled base: where the
//!   loop is unrolled that is one operation with a constant;
//! * only other steps need the whole computation in each iteration.

use super::context::Context;
use super::multiples::is_multiple;
use crate::intrin::Op;
use crate::ir::{BinOp, Expr};
use crate::layout::Swizzle;
use crate::layout::apply::binary;

/// A loop variable, and its stride.
pub(super) struct Step {
    pub(super) digit: Expr,
    pub(super) stride: Expr,
}

/// The place of an offset; `base_end` is an exclusive bound of the base, where it is known.
pub(super) fn swizzled(
    swizzle: Swizzle,
    base: &Expr,
    base_end: Option<i128>,
    fixed: &Expr,
    steps: &[Step],
    cx: &mut Context<'_>,
) -> Expr {
    let period = 1i128 << swizzle.period_bits();
    let add = |a: Expr, b: Expr| if b.is_int(0) { a } else { binary(BinOp::Add, a, b) };
    let scaled = |s: &Step| binary(BinOp::Mul, s.digit.clone(), s.stride.clone());
    let (mut inside, mut behind) = (base.clone(), Expr::int32(0));
    let fixed_inside = !is_multiple(fixed, period, cx.facts);
    if fixed_inside {
        inside = add(inside, fixed.clone());
    } else {
        behind = add(behind, fixed.clone());
    }
    let (mut mixed, mut lowest) = (Expr::int32(0), None);
    for step in steps {
        match step.stride.as_int() {
            Some(stride) if stride % period == 0 => behind = add(behind, scaled(step)),
            stride => {
                mixed = add(mixed, scaled(step));
                let bits = stride.map_or(0, |s| 1 << s.trailing_zeros().min(62));
                lowest = Some(lowest.map_or(bits, |l: i128| l.min(bits)));
            }
        }
    }
    let place = match lowest {
        None => swizzle.apply(&cx.facts.simplify(&inside)),
        Some(lowest) if !fixed_inside && base_end.is_some_and(|end| end <= lowest) => {
            let a = swizzle.apply(&cx.facts.simplify(&inside));
            let b = swizzle.apply(&cx.facts.simplify(&mixed));
            if b.is_int(0) {
                a
            } else {
                let b = crate::layout::apply::cast_index(b, a.dtype);
                Expr::call(Op::BitwiseXor, a.dtype, vec![a, b])
            }
        }
        Some(_) => swizzle.apply(&cx.facts.simplify(&add(inside, mixed))),
    };
    add(place, behind)
}
