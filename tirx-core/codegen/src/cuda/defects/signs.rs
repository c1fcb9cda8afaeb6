//! Integers that are the negation of something, however they are written: `x - x * 3`, `y - (x + y)`, `x * -4`, `~x + 1`; see
//! "Minimum of three loses a sign" in [the list](super).

use super::in_all_lanes;
use crate::intrin::Op;
use crate::ir::{BinOp, Expr, ExprKind, at};

/// Expressions of more nodes are not looked into.
const MAX_NODES: u32 = 64;

/// What an expression is the negation of, where it does not say so itself (as `0 - x` and `x * -1` do).
pub(super) fn negated(e: &Expr) -> Option<Expr> {
    if e.size() > MAX_NODES {
        return None;
    }
    // The least number has no negation.
    let turned = |constant: &Expr| {
        let greatest = e.dtype.element().max_int()?;
        let value = in_all_lanes(constant).filter(|value| *value < -1 && -value <= greatest)?;
        Some(Expr::constant(e.dtype, -value))
    };
    let positive = match &e.kind {
        ExprKind::Binary(BinOp::Div, x, by) => {
            return Some(Expr::binary(BinOp::Div, x.clone(), turned(by)?));
        }
        ExprKind::Binary(BinOp::Mul, x, by) => Expr::binary(BinOp::Mul, x.clone(), turned(by)?),
        ExprKind::Binary(BinOp::Sub, a, _) if in_all_lanes(a) == Some(0) => return None,
        ExprKind::Binary(BinOp::Sub, a, b) => Expr::binary(BinOp::Sub, b.clone(), a.clone()),
        ExprKind::Binary(BinOp::Add, a, b) => Expr::binary(BinOp::Sub, minus(a), b.clone()),
        _ => return None,
    };
    let mut sum = Linear::default();
    sum.add(e, 1)?;
    let negates = sum.constant == 0
        && sum.terms.iter().any(|(_, factor)| *factor < 0)
        && sum.terms.iter().all(|(_, factor)| *factor <= 0);
    negates.then_some(positive)
}

fn minus(e: &Expr) -> Expr {
    Expr::binary(BinOp::Sub, Expr::constant(e.dtype, 0), e.clone())
}

/// A sum of values, each times a constant.
#[derive(Default)]
struct Linear<'a> {
    terms: Vec<(&'a Expr, i128)>,
    constant: i128,
}

impl<'a> Linear<'a> {
    /// Adds an expression times a factor; `None` where the factors become too large to follow.
    fn add(&mut self, e: &'a Expr, factor: i128) -> Option<()> {
        if let Some(value) = in_all_lanes(e) {
            self.constant = self.constant.checked_add(value.checked_mul(factor)?)?;
            return Some(());
        }
        match &e.kind {
            ExprKind::Binary(BinOp::Add, a, b) => {
                self.add(a, factor)?;
                self.add(b, factor)
            }
            ExprKind::Binary(BinOp::Sub, a, b) => {
                self.add(a, factor)?;
                self.add(b, factor.checked_neg()?)
            }
            ExprKind::Binary(BinOp::Mul, a, b) => match (in_all_lanes(a), in_all_lanes(b)) {
                (_, Some(by)) => self.add(a, factor.checked_mul(by)?),
                (Some(by), None) => self.add(b, factor.checked_mul(by)?),
                (None, None) => self.term(e, factor),
            },
            ExprKind::Call {
                op: Op::ShiftLeft,
                args,
            } => match in_all_lanes(&args[at!(ShiftLeft.y)]) {
                Some(by @ 0..64) => self.add(&args[at!(ShiftLeft.x)], factor.checked_mul(1 << by)?),
                _ => self.term(e, factor),
            },
            // All bits turned are the negation less one.
            ExprKind::Call {
                op: Op::BitwiseNot,
                args,
            } => {
                self.constant = self.constant.checked_sub(factor)?;
                self.add(&args[at!(BitwiseNot.x)], factor.checked_neg()?)
            }
            _ => self.term(e, factor),
        }
    }

    fn term(&mut self, e: &'a Expr, factor: i128) -> Option<()> {
        match self.terms.iter_mut().find(|(term, _)| is_same(term, e)) {
            Some((_, sum)) => *sum = sum.checked_add(factor)?,
            None => self.terms.push((e, factor)),
        }
        Some(())
    }
}

/// Whether two values are the same. Buffers may be several names of one memory.
fn is_same(a: &Expr, b: &Expr) -> bool {
    match (&a.kind, &b.kind) {
        (
            ExprKind::BufferLoad {
                buffer,
                indices,
                predicate: None,
            },
            ExprKind::BufferLoad {
                buffer: other,
                indices: places,
                predicate: None,
            },
        ) => buffer.data == other.data && a.dtype == b.dtype && indices == places,
        _ => a == b,
    }
}
