//! Numbers of mixed radix: a number's digits, and the sum of what each digit is worth.
//!
//! Coordinates of a region, iterators of a layout and turns of loops all are digits of one number. Lists are outermost first. The
//! outermost digit of an expression is not reduced: the number is below the product of the extents.

use crate::arith::fold;
use crate::ir::Expr;

/// What a number's digits are worth together, of `(extent, worth of a step)` for each.
pub(super) fn place<'d>(number: i128, digits: impl DoubleEndedIterator<Item = &'d (i128, i128)>) -> i128 {
    let (mut rest, mut place) = (number, 0);
    for (extent, stride) in digits.rev() {
        place += rest % extent * stride;
        rest /= extent;
    }
    place
}

/// The digits of a number. One of extent 1 is 0.
pub(super) fn split(number: &Expr, extents: &[i128]) -> Vec<Expr> {
    let mut rest = number.clone();
    let zero = || Expr::constant(number.dtype, 0);
    let outermost = extents.iter().position(|extent| *extent != 1);
    let mut digits: Vec<Expr> = extents.iter().map(|_| zero()).collect();
    for (at, extent) in extents.iter().enumerate().rev().filter(|(_, e)| **e != 1) {
        let by = Expr::constant(rest.dtype, *extent);
        if outermost == Some(at) {
            digits[at] = rest;
            break;
        }
        digits[at] = fold::floormod(rest.clone(), by.clone());
        rest = fold::floordiv(rest, by);
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_of_a_constant_add_up_to_its_place() {
        let digits = [(3, 100), (1, 7), (4, 10)];
        assert_eq!(place(7, digits.iter()), 130);
        let found = split(&Expr::int32(7), &[3, 1, 4]);
        assert_eq!(found, [1, 0, 3].map(Expr::int32));
        assert_eq!(split(&Expr::int32(0), &[]), []);
    }
}
