//! What a swizzle does to a place whose column is known.
//!
//! A swizzle of a layout is `(u ^ ((u & mask) >> atom)) << bits`: of the chunk's number `u`, the lowest bits (the column) are
//! exclusive-ored with bits further up (the row). Written so, no part of `u` can be taken out, and code for each of many places
//! computes all of it. Where the column is a constant, everything else can: for `u = 8 * thread + 1027`, `mask = 56` and
//! `atom = 3` it is `64 * thread + 8192 + ((3 ^ (thread & 7)) << 3)`, whose exclusive-or is the same for many places.

use super::Analyzer;
use super::overflow::is_index;
use super::rewrite::Mode;
use crate::intrin::Op;
use crate::ir::{BinOp, DType, Expr, ExprKind};

/// The parts of a swizzle: `(chunk ^ ((chunk & (low << atom)) >> atom)) << bits`, `low` of `len` ones.
struct Swizzled<'a> {
    chunk: &'a Expr,
    len: u32,
    atom: i128,
    bits: i128,
}

impl Analyzer {
    /// The place with the column and the row apart, if the column is a constant.
    pub(super) fn swizzle_of_column(&mut self, expr: &Expr, mode: Mode) -> Option<Expr> {
        let found = parts(expr)?;
        // The number of the chunk before it was simplified says that the place itself does not overflow.
        let size = 1i128 << found.bits;
        let is_quotient = found
            .chunk
            .as_binary(BinOp::FloorDiv)
            .is_some_and(|(_, by)| by.is_int(size));
        let chunk = self.visit(found.chunk, mode);
        let largest = expr.dtype.max_int()? >> (found.bits + 1);
        let bound = self.const_int_bound(&chunk);
        if !is_quotient && (bound.min < -largest || bound.max > largest) {
            return None;
        }
        let width = 1i128 << found.len;
        let set = self.modular_set(&chunk);
        if set.coeff % width != 0 {
            return None;
        }
        let column = set.base.rem_euclid(width);
        let number = |value: i128| Expr::constant(expr.dtype, value);
        let binary = |op, a: Expr, b: i128| Expr::binary(op, a, number(b));
        let row = binary(BinOp::FloorDiv, chunk.clone(), 1 << found.atom);
        let row = self.visit(&binary(BinOp::FloorMod, row, width), mode);
        let mixed = match (row.as_int(), column) {
            (Some(row), column) => number(row ^ column),
            (None, 0) => row,
            (None, column) => Expr::call(Op::BitwiseXor, expr.dtype, vec![row, number(column)]),
        };
        let rest = binary(BinOp::Mul, binary(BinOp::Sub, chunk, column), size);
        let place = Expr::binary(BinOp::Add, rest, binary(BinOp::Mul, mixed, size));
        Some(self.visit(&place, mode).at(expr.span))
    }
}

fn parts(expr: &Expr) -> Option<Swizzled<'_>> {
    let (mixed, bits) = with_constant(expr, Op::ShiftLeft, expr.dtype)?;
    let (chunk, other) = call(mixed, Op::BitwiseXor)?;
    let (masked, atom) = with_constant(other, Op::ShiftRight, expr.dtype)?;
    let (same, mask) = with_constant(masked, Op::BitwiseAnd, expr.dtype)?;
    let is_shift = |by: i128| (0..i128::from(expr.dtype.bits)).contains(&by);
    if !is_index(expr.dtype) || !is_shift(bits) || !is_shift(atom) || mask < 0 || same != chunk {
        return None;
    }
    let low = mask >> atom;
    let len = (low + 1).trailing_zeros();
    let is_swizzle = low > 0 && low << atom == mask && low + 1 == 1 << len && i128::from(len) <= atom;
    is_swizzle.then_some(Swizzled {
        chunk,
        len,
        atom,
        bits,
    })
}

/// The operands of a call of two.
fn call(expr: &Expr, wanted: Op) -> Option<(&Expr, &Expr)> {
    match &expr.kind {
        ExprKind::Call { op, args } if *op == wanted => match &args[..] {
            [a, b] => Some((a, b)),
            _ => None,
        },
        _ => None,
    }
}

/// The operands of a call whose second one is a constant.
fn with_constant(expr: &Expr, wanted: Op, dtype: DType) -> Option<(&Expr, i128)> {
    let (a, b) = call(expr, wanted)?;
    (a.dtype == dtype).then_some((a, b.as_int()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Var;

    fn swizzle(chunk: Expr) -> Expr {
        let bits = |op, a: Expr, b: i32| Expr::call(op, DType::INT32, vec![a, Expr::int32(b)]);
        let row = bits(Op::ShiftRight, bits(Op::BitwiseAnd, chunk.clone(), 56), 3);
        let mixed = Expr::call(Op::BitwiseXor, DType::INT32, vec![chunk, row]);
        bits(Op::ShiftLeft, mixed, 3)
    }

    fn line(x: &Var, scale: i32, base: i32) -> Expr {
        let x = Expr::binary(BinOp::Mul, Expr::var(x), Expr::int32(scale));
        Expr::binary(BinOp::Add, x, Expr::int32(base))
    }

    fn printed(expr: &Expr) -> String {
        format!("{expr:?}")
    }

    #[test]
    fn a_known_column_is_taken_apart_and_keeps_every_place() {
        let x = Var::new("x", DType::INT32);
        let mut facts = Analyzer::new();
        facts.bind(&x, &Expr::int32(0), &Expr::int32(128));
        for (scale, base) in [(8, 0), (8, 1027), (16, 5), (24, 64)] {
            let expr = swizzle(line(&x, scale, base));
            let simple = facts.simplify(&expr);
            assert_ne!(printed(&simple), printed(&expr), "{scale} {base}");
            for value in 0..128 {
                let mut at = Analyzer::new();
                at.bind_value(&x, &Expr::int32(value));
                let chunk = i128::from(value * scale + base);
                let expected = (chunk ^ ((chunk & 56) >> 3)) << 3;
                assert_eq!(
                    at.simplify(&simple).as_int(),
                    Some(expected),
                    "{scale} {base} {value}"
                );
            }
        }
    }

    #[test]
    fn an_unknown_column_or_a_place_that_may_overflow_stays() {
        let x = Var::new("x", DType::INT32);
        let mut facts = Analyzer::new();
        let unbounded = swizzle(line(&x, 8, 3));
        assert!(facts.swizzle_of_column(&unbounded, Mode::Canonical).is_none());
        facts.bind(&x, &Expr::int32(0), &Expr::int32(128));
        assert!(
            facts
                .swizzle_of_column(&swizzle(line(&x, 3, 0)), Mode::Canonical)
                .is_none()
        );
    }
}
