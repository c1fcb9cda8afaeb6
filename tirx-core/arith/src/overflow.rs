//! Could a rewritten expression overflow where the original does not?
//!
//! Signed overflow is undefined in C++, so a rewritten sum must not have an overflowing intermediate value unless the
//! original sum may. Most operands are unbounded (`n * 4 + 3` may be anything): for them there is no check, and the
//! rewriting is TVM's. Where bounds show that the original stays within its dtype at every step, they must show the
//! same of the replacement.

use super::const_int_bound::ConstIntBound;
use super::pattern::{Match, Pattern};
use super::sum::{Sum, Term};
use super::{Analyzer, fold};
use crate::intrin::Op;
use crate::ir::{BinOp, DType, Expr, ExprKind};

/// Whether the operator's result may leave the dtype of its operands.
pub(super) fn may_overflow(op: BinOp) -> bool {
    matches!(op, BinOp::Add | BinOp::Sub | BinOp::Mul)
}

/// A signed scalar of an index dtype: its arithmetic is assumed not to overflow.
pub(super) fn is_index(dtype: DType) -> bool {
    dtype.is_int() && dtype.is_scalar() && matches!(dtype.bits, 32 | 64)
}

impl Analyzer {
    /// Whether bounds show that no sum, difference or product of `expr` leaves its dtype. Operands of other operators
    /// are not entered.
    pub(super) fn stays_within(&self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Binary(op, a, b) if may_overflow(*op) && is_index(expr.dtype) => {
                let exact = ConstIntBound::of_binary(*op, self.const_int_bound(a), self.const_int_bound(b));
                exact.is_within(ConstIntBound::of_dtype(expr.dtype))
                    && self.stays_within(a)
                    && self.stays_within(b)
            }
            _ => true,
        }
    }

    /// Whether anything is known of an operand: a value that may be the least or the greatest of its dtype may be any
    /// value, and so may a sum of such values.
    pub(super) fn is_known(&self, expr: &Expr) -> bool {
        let range = ConstIntBound::of_dtype(expr.dtype);
        match &expr.kind {
            ExprKind::Int(_) => true,
            ExprKind::Binary(op, a, b) if may_overflow(*op) => {
                let exact = ConstIntBound::of_binary(*op, self.const_int_bound(a), self.const_int_bound(b));
                exact.is_within(range) && self.is_known(a) && self.is_known(b)
            }
            kind => {
                let bound = self.const_int_bound(expr);
                let inside = [bound.min > range.min, bound.max < range.max];
                match kind {
                    _ if bound.min == bound.max => true,
                    // A mask or a shift gives knowledge if it bounds either end.
                    ExprKind::Call {
                        op: Op::BitwiseAnd | Op::BitwiseOr | Op::BitwiseXor | Op::BitwiseNot | Op::ShiftRight,
                        ..
                    } => inside.contains(&true),
                    _ => inside == [true, true],
                }
            }
        }
    }

    /// Whether the replacement of a rule stays within the dtype of its operands, or its pattern may leave it too.
    pub(super) fn keeps_within(&self, pattern: &Pattern, replacement: &Pattern, found: &Match<'_>) -> bool {
        let range = ConstIntBound::of_dtype(found.number(0).dtype);
        if self.bound_within(replacement, found, range).is_some()
            || chooses_before_it_computes(pattern, replacement)
            || computes_only_the_result(pattern, replacement, found, range)
        {
            return true;
        }
        match found.operands().all(|e| self.is_known(e)) {
            // Bounds that a value near the end of the dtype takes out of it say little about the program.
            true => {
                self.bound_within(pattern, found, range).is_none()
                    && !found.operands().any(|e| self.reaches_the_edge(e, range))
            }
            false => {
                let at_the_edge = found.operands().any(|e| self.is_at_the_edge(e, range));
                !at_the_edge && !self.takes_apart_at_the_edge(pattern, found, range)
            }
        }
    }

    /// Whether an operand of the pattern is a sum with a summand near the end of the dtype: a constant, or another value of
    /// which this is known. See [`Analyzer::as_atoms_near_the_edge`].
    fn takes_apart_at_the_edge(&self, pattern: &Pattern, found: &Match<'_>, range: ConstIntBound) -> bool {
        let Pattern::Binary(BinOp::Add | BinOp::Sub, a, b) = pattern else {
            return false;
        };
        let near = |p: &Pattern| found.constant(p).is_some_and(|c| is_near_the_edge(c, range));
        let reaches = |p: &Pattern| match p {
            Pattern::Any(name) => found.any(*name).is_some_and(|e| self.reaches_the_edge(e, range)),
            _ => false,
        };
        [a, b].into_iter().any(|side| match &**side {
            Pattern::Binary(BinOp::Add | BinOp::Sub, x, y) => near(x) || near(y) || reaches(x) || reaches(y),
            _ => false,
        })
    }

    /// Whether a value that is no constant and of which something is known takes up more than half of the dtype on one
    /// side of zero, as `n & 2147483647` does: few sums of it and something else stay within.
    fn reaches_the_edge(&self, expr: &Expr, range: ConstIntBound) -> bool {
        let bound = self.const_int_bound(expr);
        (bound.max > range.max / 2 + 1 || bound.min < range.min / 2)
            && expr.as_int().is_none()
            && self.is_known(expr)
    }

    /// Whether a value is on one side of zero and may be near the end of the dtype, as `n & 2147483647`, or is a sum of
    /// such a value: what is added to it must stay as the kernel adds it.
    fn is_at_the_edge(&self, expr: &Expr, range: ConstIntBound) -> bool {
        let one_sign = |bound: ConstIntBound| bound.min >= 0 || bound.max <= 0;
        if self.reaches_the_edge(expr, range) && one_sign(self.const_int_bound(expr)) {
            return true;
        }
        match &expr.kind {
            ExprKind::Binary(BinOp::Add | BinOp::Sub, a, b) => {
                self.is_at_the_edge(a, range) || self.is_at_the_edge(b, range)
            }
            _ => false,
        }
    }

    /// The bound of what a pattern matched; `None` if something on the way to it may leave `range`.
    pub(super) fn bound_within(
        &self,
        pattern: &Pattern,
        found: &Match<'_>,
        range: ConstIntBound,
    ) -> Option<ConstIntBound> {
        if let Pattern::Any(name) = pattern {
            return Some(self.const_int_bound(found.any(*name)?));
        }
        if let Some(value) = found.constant(pattern) {
            return Some(ConstIntBound::exactly(value));
        }
        match pattern {
            Pattern::Binary(op, a, b) => {
                let x = self.bound_within(a, found, range)?;
                let y = self.bound_within(b, found, range)?;
                let bound = ConstIntBound::of_binary(*op, x, y);
                (!may_overflow(*op) || bound.is_within(range)).then_some(bound)
            }
            Pattern::Select(parts) => {
                let t = self.bound_within(&parts[1], found, range)?;
                let f = self.bound_within(&parts[2], found, range)?;
                Some(t.union(f))
            }
            _ => Some(ConstIntBound::EVERYTHING),
        }
    }

    /// Whether bounds show that the value of a sum is in its dtype.
    pub(super) fn sum_stays_within(&self, sum: &Sum) -> bool {
        self.bound_of_sum(sum)
            .is_within(ConstIntBound::of_dtype(sum.dtype))
    }

    /// Whether a part of a sum may leave the dtype although the whole sum stays within.
    pub(super) fn part_may_overflow(&self, whole: &Sum, part: &Sum) -> bool {
        self.sum_stays_within(whole) && !self.sum_stays_within(part)
    }

    /// Whether a term that two sums share leaves the dtype when its occurrences are joined, although the sums do not:
    /// `m - 1 + m` of an `m` whose double is too large.
    pub(super) fn join_may_overflow(&self, a: &Sum, b: &Sum, by: i128) -> bool {
        let range = ConstIntBound::of_dtype(a.dtype);
        let within = |bound: ConstIntBound| bound.is_within(range);
        let leaves = |t: &Term, u: &Term| {
            let scale = t.scale + u.scale * by;
            let joins = t.index == u.index && t.lower == u.lower && t.upper == u.upper;
            joins && scale.abs() > t.scale.abs() && !within(t.times(scale.abs()).bound(self))
        };
        if !a.terms.iter().any(|t| b.terms.iter().any(|u| leaves(t, u))) {
            return false;
        }
        let (x, y) = (self.bound_of_sum(a), self.bound_of_sum(b));
        within(x) && within(y) && within(x.add(y.mul(ConstIntBound::exactly(by))))
    }

    /// The operands of an addition, each as one term if its summands must not be added to those of the other one by one:
    /// `2147483647 - max(m, 0)` is never negative, while `n + 2147483647` leaves the dtype for every positive `n`;
    /// `m - (n | 2147483647)` says more of `m` than the bounds do; and `n - 1349337883` may be added to `x | 2147483646`
    /// where `n` may not. Only if nothing is known of their sum; what is known is ordered by [`Analyzer::in_order_without_overflow`].
    /// A constant stays with a value of which nothing is known, too, unless the other operand takes the constant away.
    pub(super) fn as_atoms_near_the_edge(&self, sum: Sum, other: Sum, by: i128) -> (Sum, Sum) {
        let range = ConstIntBound::of_dtype(sum.dtype);
        if sum.terms.is_empty() || other.terms.is_empty() {
            return (sum, other);
        }
        let several = |s: &Sum| s.len() + usize::from(s.base != 0) > 1;
        let stays_near = is_near_the_edge(sum.base + other.base * by, range);
        let at_the_edge = |s: &Sum| match several(s) {
            true => {
                let mut atoms = s.terms.iter().filter(|t| t.is_atom());
                atoms.any(|t| self.reaches_the_edge(&t.index, range))
                    || is_near_the_edge(s.base, range) && (stays_near || self.sum_stays_within(s))
            }
            false => s
                .terms
                .iter()
                .any(|t| t.is_atom() && self.is_at_the_edge(&t.index, range)),
        };
        let edges = [at_the_edge(&sum), at_the_edge(&other)];
        if edges == [false, false] || !(several(&sum) || several(&other)) {
            return (sum, other);
        }
        let total = self.bound_of_sum(&sum).add(self.bound_of_sum(&other));
        if total.is_within(range) {
            return (sum, other);
        }
        let whole = |s: Sum, at_the_edge: bool| match several(&s) && (at_the_edge || !self.has_one_sign(&s)) {
            true => Sum::of_term(Term::atom(s.into_expr(self))),
            false => s,
        };
        (whole(sum, edges[0]), whole(other, edges[1]))
    }

    /// Whether no summand is negative, or none positive: a partial sum is between zero and the whole one.
    fn has_one_sign(&self, sum: &Sum) -> bool {
        let bounds = || sum.terms.iter().map(|t| t.bound(self));
        sum.base >= 0 && bounds().all(|b| b.min >= 0) || sum.base <= 0 && bounds().all(|b| b.max <= 0)
    }

    /// Whether a part of a sum may leave the dtype where the sum does not, because the summands that are taken away keep
    /// it within: `(n & 2147483647) + m - 1349337883` without the constant. Only where a summand is near the end of the
    /// dtype; to other sums of which nothing is known this may be done.
    pub(super) fn takes_away_near_the_edge(&self, whole: &Sum, part: &Sum) -> bool {
        let range = ConstIntBound::of_dtype(whole.dtype);
        let at_the_edge = |t: &Term| {
            t.is_atom() && (self.reaches_the_edge(&t.index, range) || self.is_at_the_edge(&t.index, range))
        };
        if part.len() + usize::from(part.base != 0) < 2 || !part.terms.iter().any(at_the_edge) {
            return false;
        }
        let taken = whole.minus(part);
        if taken.terms.is_empty() && taken.base == 0 {
            return false;
        }
        let (taken, left) = (self.bound_of_sum(&taken), self.bound_of_sum(part));
        let below_the_whole = taken.min >= 0 && left.min >= range.min;
        let above_the_whole = taken.max <= 0 && left.max <= range.max;
        !(below_the_whole || above_the_whole)
    }

    /// Whether the product of two expressions stays within the dtype, but may leave it when it is written as a product
    /// of `factors` and `scale`.
    pub(super) fn flat_product_may_overflow(
        &self,
        x: &Expr,
        y: &Expr,
        factors: &[Expr],
        scale: i128,
    ) -> bool {
        let range = ConstIntBound::of_dtype(x.dtype);
        let bound = |e: &Expr| self.const_int_bound(e);
        if factors.len() < 2 || !bound(x).mul(bound(y)).is_within(range) {
            return false;
        }
        let mut product = ConstIntBound::exactly(1);
        let mut leaves = |by: ConstIntBound| {
            product = product.mul(by);
            !product.is_within(range)
        };
        factors.iter().any(|f| leaves(bound(f))) || leaves(ConstIntBound::exactly(scale))
    }

    /// Whether `x * (y * z)`, of these `inner` factors, may stay within the dtype while `x * y` leaves it: if `z` is zero.
    /// Symbolic extents beside an index of known bounds are not zero.
    pub(super) fn regrouping_may_overflow(&self, x: &Expr, inner: &[Expr]) -> bool {
        fn symbol(analyzer: &Analyzer, expr: &Expr) -> bool {
            match &expr.kind {
                ExprKind::Cast(value) => symbol(analyzer, value),
                ExprKind::Var(_) => !analyzer.is_known(expr),
                _ => false,
            }
        }
        let range = ConstIntBound::of_dtype(x.dtype);
        let index = self.is_known(x) && inner.iter().all(|factor| symbol(self, factor));
        let may_be_zero = |factor: &Expr| {
            let bound = self.const_int_bound(factor);
            bound.min <= 0 && bound.max >= 0 && !index
        };
        let mut product = self.const_int_bound(x);
        (1..inner.len()).any(|at| {
            product = product.mul(self.const_int_bound(&inner[at - 1]));
            !product.is_within(range) && inner[at..].iter().any(may_be_zero)
        })
    }

    /// Whether a partial sum may leave `range` in the usual order, although the whole sum stays within.
    fn usual_order_may_overflow(&self, terms: &[Term], base: i128, range: ConstIntBound) -> bool {
        if terms.len() + usize::from(base != 0) < 2 {
            return false;
        }
        let mut sum = ConstIntBound::exactly(0);
        let mut leaves = |bound: ConstIntBound| {
            sum = sum.add(bound);
            !sum.is_within(range)
        };
        let mut outside = base < range.min || base > range.max;
        for term in terms.iter().filter(|t| t.is_added()) {
            outside |= leaves(term.bound(self));
        }
        outside |= leaves(ConstIntBound::exactly(base.max(0)));
        for term in terms.iter().filter(|t| !t.is_added()) {
            let bound = term.bound(self);
            // What is subtracted is the opposite.
            outside |= leaves(bound) || bound.min < -range.max;
        }
        outside && sum.add(ConstIntBound::exactly(base.min(0))).is_within(range)
    }

    /// Terms and a constant as an expression. The usual order is additions, the constant if it is positive,
    /// subtractions; where a partial sum of it may leave the dtype and the whole sum does not, another order is used if
    /// there is one.
    pub(super) fn in_order_without_overflow(&self, dtype: DType, terms: &[Term], base: i128) -> Option<Expr> {
        /// The operands of the additions and subtractions.
        enum Part {
            Added(Term),
            Subtracted(Term),
            Constant(i128),
        }
        let range = ConstIntBound::of_dtype(dtype);
        if !self.usual_order_may_overflow(terms, base, range) {
            return None;
        }
        // A constant outside the dtype is written as two.
        let near = base.clamp(range.min, range.max);
        let constants = [near, base - near].map(|c| (Part::Constant(c), ConstIntBound::exactly(c)));
        let (added, subtracted): (Vec<&Term>, Vec<&Term>) = terms.iter().partition(|t| t.is_added());
        // A product outside the dtype may have an opposite within it.
        let part = |term: &Term, added: bool| {
            let bound = term.bound(self);
            let opposite = term.times(-term.scale);
            let fits = [bound.is_within(range), opposite.bound(self).is_within(range)];
            match (added, fits) {
                (true, [true, _]) | (false, [true, false]) => Some((Part::Added(term.clone()), bound)),
                (_, [_, true]) => Some((Part::Subtracted(opposite), bound)),
                _ => None,
            }
        };
        let mut left: Vec<(Part, ConstIntBound)> = Vec::with_capacity(terms.len() + 2);
        for term in added {
            left.push(part(term, true)?);
        }
        left.extend(constants);
        for term in subtracted {
            left.push(part(term, false)?);
        }
        let bounds: Vec<ConstIntBound> = left.iter().map(|(_, bound)| *bound).collect();
        let mut result = Expr::constant(dtype, 0);
        for next in order_within(&bounds, range)? {
            result = match &left[next].0 {
                Part::Added(term) => fold::add(result, term.clone().into_expr(1)),
                Part::Subtracted(term) => fold::sub(result, term.clone().into_expr(1)),
                Part::Constant(c) => fold::add(result, Expr::constant(dtype, *c)),
            };
        }
        Some(result)
    }

    /// The terms that bring a constant near the end of the dtype back towards zero, and the others: the constant is written
    /// with the former first. `2147483647 - max(m, 0)` stays within whatever is added to it, `n + 2147483647` does not.
    pub(super) fn split_for_constant_at_limit(
        &self,
        dtype: DType,
        terms: Vec<Term>,
        base: i128,
    ) -> (Vec<Term>, Vec<Term>) {
        let range = ConstIntBound::of_dtype(dtype);
        if !is_near_the_edge(base, range) || base < range.min || base > range.max || terms.len() < 2 {
            return (Vec::new(), terms);
        }
        // The usual order: additions, the constant if it is positive, subtractions.
        let added = terms.iter().filter(|t| t.is_added());
        let added = added.fold(ConstIntBound::exactly(base.max(0)), |sum, t| {
            sum.add(t.bound(self))
        });
        let subtracted = terms.iter().filter(|t| !t.is_added());
        let all = subtracted.fold(added, |sum, t| sum.add(t.bound(self)));
        if added.is_within(range) && all.is_within(range) {
            return (Vec::new(), terms);
        }
        let back = |t: &Term| {
            let bound = t.bound(self);
            let opposite = match base > 0 {
                true => bound.max <= 0 && bound.min > range.min,
                false => bound.min >= 0 && bound.max < range.max,
            };
            opposite && bound.add(ConstIntBound::exactly(base)).is_within(range)
        };
        // One of them, the one that brings it back farthest: several may together go beyond the other end.
        let left = |t: &Term| {
            let bound = t.bound(self).add(ConstIntBound::exactly(base));
            if base > 0 { bound.max } else { -bound.min }
        };
        let candidates = (0..terms.len()).filter(|at| back(&terms[*at]));
        match candidates.min_by_key(|at| left(&terms[*at])) {
            Some(at) => {
                let mut others = terms;
                (vec![others.remove(at)], others)
            }
            None => (Vec::new(), terms),
        }
    }
}

/// Whether the replacement computes one of the two values that the pattern chooses from, whatever is chosen: `min(x, y) + z` for
/// `min(x + z, y + z)`.
fn chooses_before_it_computes(pattern: &Pattern, replacement: &Pattern) -> bool {
    let (Pattern::Binary(BinOp::Min | BinOp::Max, a, b), Pattern::Binary(op, x, y)) = (pattern, replacement)
    else {
        return false;
    };
    let arms = |side: &Pattern| match side {
        Pattern::Binary(BinOp::Min | BinOp::Max, p, q) => vec![(**p).clone(), (**q).clone()],
        other => vec![other.clone()],
    };
    let (firsts, seconds) = (arms(x), arms(y));
    let is_operand = |x: &Pattern, y: &Pattern| {
        let computed =
            |x: &Pattern, y: &Pattern| Pattern::Binary(*op, Box::new(x.clone()), Box::new(y.clone()));
        [a, b].into_iter().any(|operand| {
            **operand == computed(x, y)
                || matches!(op, BinOp::Add | BinOp::Mul) && **operand == computed(y, x)
        })
    };
    may_overflow(*op) && firsts.iter().all(|x| seconds.iter().all(|y| is_operand(x, y)))
}

/// Whether the replacement of a sum of sums (or differences, or products) has one operation of that kind at most, whose value is that of the
/// pattern, and constants of the dtype: `x + (c1 + c2)` for `(x + c1) + c2`.
fn computes_only_the_result(
    pattern: &Pattern,
    replacement: &Pattern,
    found: &Match<'_>,
    range: ConstIntBound,
) -> bool {
    fn computes(pattern: &Pattern, found: &Match<'_>, range: ConstIntBound) -> bool {
        if let Some(value) = found.constant(pattern) {
            return value < range.min || value > range.max;
        }
        match pattern {
            Pattern::Binary(op, a, b) => {
                may_overflow(*op) || [a, b].iter().any(|p| computes(p, found, range))
            }
            Pattern::Not(a) | Pattern::Broadcast(a) => computes(a, found, range),
            Pattern::Select(parts) => parts.iter().any(|p| computes(p, found, range)),
            Pattern::Ramp(_) => true,
            _ => false,
        }
    }
    let sums = |p: &Pattern| matches!(p, Pattern::Binary(op, ..) if may_overflow(*op));
    // A difference as a sum with the opposite is no gain.
    let several = |p: &Pattern| matches!(p, Pattern::Binary(_, a, b) if sums(a) || sums(b));
    match replacement {
        _ if !sums(pattern) || !several(pattern) => false,
        Pattern::Binary(_, a, b) if sums(replacement) && found.constant(replacement).is_none() => {
            ![a, b].iter().any(|p| computes(p, found, range))
        }
        other => !computes(other, found, range),
    }
}

/// Whether a constant is so large that adding it to an index is likely to leave `range`.
fn is_near_the_edge(constant: i128, range: ConstIntBound) -> bool {
    constant.saturating_abs() > range.max >> 7
}

/// An order of summands in which no partial sum leaves `range`, as close to the given one as possible; `None` if there
/// is none or the search takes too long.
fn order_within(summands: &[ConstIntBound], range: ConstIntBound) -> Option<Vec<usize>> {
    let mut tries = 200u32;
    // The summands taken, and the partial sum before each.
    let mut taken: Vec<(usize, ConstIntBound)> = Vec::with_capacity(summands.len());
    let mut sum = ConstIntBound::exactly(0);
    let mut from = 0;
    while taken.len() < summands.len() {
        tries = tries.checked_sub(1)?;
        let free = |i: &usize| taken.iter().all(|(t, _)| t != i);
        let next = (from..summands.len()).find(|i| free(i) && sum.add(summands[*i]).is_within(range));
        match next {
            Some(next) => {
                taken.push((next, sum));
                sum = sum.add(summands[next]);
                from = 0;
            }
            None => {
                let (last, before) = taken.pop()?;
                sum = before;
                from = last + 1;
            }
        }
    }
    Some(taken.into_iter().map(|(i, _)| i).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Var;
    use crate::ir::print_expr;

    /// The simplified form of an expression of `n`, of which nothing is known, `x` and `y`, from -2^30 to 2^30 - 4, and
    /// `z`, from 0 to 2^30.
    fn simplified(expr: impl Fn([Expr; 4]) -> Expr) -> String {
        let vars = ["n", "x", "y", "z"].map(|name| Var::new(name, DType::INT32));
        let half = 1 << 30;
        let mut analyzer = Analyzer::new();
        for (var, (min, max)) in vars[1..]
            .iter()
            .zip([(-half, half - 4), (-half, half - 4), (0, half)])
        {
            analyzer.set_bound(var, ConstIntBound::new(min, max));
        }
        print_expr(&analyzer.simplify(&expr(vars.each_ref().map(Expr::var))))
    }

    fn remainder(a: Expr, b: i32) -> Expr {
        Expr::binary(BinOp::FloorMod, a, Expr::int32(b))
    }

    #[test]
    fn the_order_of_a_sum_keeps_it_within() {
        let minus_four = || Expr::int32(-4);
        assert_eq!(simplified(|[_, x, y, _]| minus_four() - x - y), "-4 - x - y");
        // Of `n` anything may be true, and the constant goes last.
        assert_eq!(simplified(|[n, x, ..]| minus_four() - x - n), "0 - x - n - 4");
    }

    #[test]
    fn a_constant_is_reduced_where_nothing_can_overflow() {
        assert_eq!(
            simplified(|[n, ..]| remainder(n - Expr::int32(5), 3)),
            "(n + 1) % 3"
        );
        let bits = |n: Expr| Expr::call(Op::BitwiseAnd, DType::INT32, vec![n, Expr::int32(i32::MAX)]);
        assert_eq!(
            simplified(|[n, ..]| remainder(bits(n) - Expr::int32(5), 3)),
            "(T.bitwise_and(n, 2147483647) - 5) % 3"
        );
    }

    #[test]
    fn what_two_sums_share_is_added_behind_a_choice() {
        // One of the sums is what the kernel computes, also where its other part is near the end of the dtype.
        let bits = |n: Expr| Expr::call(Op::BitwiseAnd, DType::INT32, vec![n, Expr::int32(i32::MAX)]);
        let least = |a, b| Expr::binary(BinOp::Min, a, b);
        assert_eq!(
            simplified(|[n, x, ..]| least(bits(n.clone()) - Expr::int32(1), n + x - Expr::int32(1))),
            "T.min(T.bitwise_and(n, 2147483647), n + x) - 1"
        );
        assert_eq!(
            simplified(|[n, x, y, _]| least(bits(n.clone()) + x.clone(), n + y)),
            "T.min(T.bitwise_and(n, 2147483647) + x, n + y)"
        );
    }

    #[test]
    fn sums_that_would_leave_are_not_joined() {
        let one = || Expr::int32(1);
        assert_eq!(
            simplified(|[.., z]| z.clone() - one() - (Expr::int32(7) - z)),
            "z - (7 - z) - 1"
        );
        assert_eq!(
            simplified(|[n, ..]| n.clone() - one() - (Expr::int32(7) - n)),
            "n * 2 - 8"
        );
    }

    #[test]
    fn constants_near_the_edge_stay_where_they_are() {
        let most = || Expr::int32(i32::MAX);
        assert_eq!(
            simplified(|[n, _, _, z]| n + (most() - z)),
            "n + (2147483647 - z)"
        );
        // Close to zero they go last.
        assert_eq!(simplified(|[n, _, _, z]| n + (Expr::int32(7) - z)), "n + 7 - z");
    }

    #[test]
    fn a_constant_near_the_edge_stays_with_a_value_of_which_nothing_is_known() {
        let most = || Expr::int32(i32::MAX);
        let name = || Expr::var(&Var::new("m", DType::INT32));
        // `m` may be the name of a value of 2^30 at least: `n + 2147483647` would leave the dtype.
        assert_eq!(
            simplified(|[n, ..]| (most() - name()) + n - Expr::int32(1)),
            "2147483647 - m + n - 1"
        );
        // One operation leaves nothing but the result.
        assert_eq!(
            simplified(|[n, ..]| (n + most()) - Expr::int32(i32::MAX - 2)),
            "n + 2"
        );
        assert_eq!(simplified(|[n, _, _, z]| (n + most()) - (z + most())), "n - z");
    }

    #[test]
    fn what_is_known_of_single_values_and_of_exclusive_bits_keeps_sums_within() {
        let call = |op: Op, args: Vec<Expr>| Expr::call(op, DType::INT32, args);
        let most = || Expr::int32(i32::MAX);
        // The first sum is 100 at most.
        let flipped = |z: Expr| {
            call(
                Op::BitwiseXor,
                vec![call(Op::BitwiseAnd, vec![z, Expr::int32(255)]), most()],
            )
        };
        assert_eq!(
            simplified(|[n, _, _, z]| (flipped(z) - Expr::int32(2_147_483_547)) + n),
            "T.bitwise_xor(T.bitwise_and(z, 255), 2147483647) - 2147483547 + n"
        );
        // The least value is known, though it is at the end.
        let least = || call(Op::BitwiseNot, vec![most()]);
        assert_eq!(
            simplified(|[_, _, _, z]| {
                let by = Expr::binary(BinOp::Max, z, Expr::int32(1));
                Expr::binary(BinOp::FloorDiv, least() + by.clone() - Expr::int32(1), by)
            }),
            "(T.max(z, 1) + T.bitwise_not(2147483647) - 1) // T.max(z, 1)"
        );
    }

    #[test]
    fn products_are_regrouped_if_no_factor_may_be_zero() {
        let name = |name: &str| Expr::var(&Var::new(name, DType::INT32));
        let positive = |e: Expr| Expr::binary(BinOp::Max, e, Expr::int32(1));
        // `n * m` may leave the dtype, and `z` may be zero.
        assert_eq!(simplified(|[n, _, _, z]| n * (name("m") * z)), "n * (m * z)");
        assert_eq!(
            simplified(|[n, _, _, z]| n * (name("m") * positive(z))),
            "n * m * T.max(z, 1)"
        );
        // A row of an index by symbolic extents.
        assert_eq!(simplified(|[n, _, _, z]| z * (n * name("m"))), "z * n * m");
        assert_eq!(
            simplified(|[n, ..]| n * (name("m") * Expr::int32(4))),
            "n * m * 4"
        );
    }

    #[test]
    fn a_sum_beside_one_at_the_edge_is_not_taken_apart() {
        let most = || Expr::int32(i32::MAX);
        let large = || Expr::int32(1_349_337_883);
        // `n - 1349337883` may be added to what is close to 2147483647, and `n` alone may not.
        assert_eq!(
            simplified(|[n, _, _, z]| remainder((most() - z) + (n - large()), 2)),
            "(2147483647 - z + (n - 1349337883)) % 2"
        );
        assert_eq!(
            simplified(|[n, _, _, z]| (most() - z) + (n - large()) + Expr::int32(1)),
            "2147483647 - z + (n - 1349337883) + 1"
        );
        // A part whose summands have one sign adds up in any order.
        assert_eq!(
            simplified(|[n, _, _, z]| {
                let masked = Expr::call(Op::BitwiseAnd, DType::INT32, vec![n, most()]);
                remainder(masked + (z.clone() * Expr::int32(0) + z * Expr::int32(1)), 4)
            }),
            "(T.bitwise_and(n, 2147483647) + z) % 4"
        );
    }

    #[test]
    fn constants_beside_a_sum_at_the_edge_are_not_taken_away() {
        let most = || Expr::int32(i32::MAX);
        for large in [1_349_337_883, 1_349_337_884] {
            let sum = |[n, _, _, z]: [Expr; 4]| (most() - z) + n - Expr::int32(large);
            assert_eq!(
                simplified(|vars| remainder(sum(vars), 2)),
                format!("(2147483647 - z + n - {large}) % 2")
            );
            assert_eq!(
                simplified(|vars| Expr::binary(BinOp::FloorDiv, sum(vars), Expr::int32(2))),
                format!("(2147483647 - z + n - {large}) // 2")
            );
        }
    }

    #[test]
    fn a_constant_near_the_edge_is_written_with_what_brings_it_back() {
        let most = || Expr::int32(i32::MAX);
        let clamped = |e: Expr| Expr::binary(BinOp::Min, e, Expr::int32((1 << 30) - 1));
        // The minimum becomes a difference from the greatest value, and `n + 2147483647` would leave the dtype.
        assert_eq!(
            simplified(|[n, ..]| {
                let masked = Expr::call(Op::BitwiseAnd, DType::INT32, vec![n.clone(), most()]);
                clamped(most() - masked) + n
            }),
            "2147483647 - T.max(T.bitwise_and(n, 2147483647), 1073741824) + n"
        );
        // `-1 + -2147483648` does not occur, `-1 + 32768` stays within, and 2147483647 + 32768 does not.
        let low = |n: Expr| Expr::call(Op::BitwiseOr, DType::INT32, vec![n, Expr::int32(i32::MAX)]);
        assert_eq!(
            simplified(|[n, ..]| remainder(Expr::int32(i32::MIN) + low(n), 65537)),
            "(T.bitwise_or(n, 2147483647) + -2147483648) % 65537"
        );
    }

    #[test]
    fn what_is_shifted_stays_within() {
        let least = || Expr::int32(i32::MIN);
        let shifted = |n: Expr| Expr::call(Op::ShiftRight, DType::INT32, vec![least(), n]);
        assert_eq!(
            simplified(|[n, ..]| Expr::int32(-9) - shifted(n)),
            "-9 - T.shift_right(-2147483648, n)"
        );
    }

    #[test]
    fn a_sum_that_uses_the_range_up_is_not_taken_apart() {
        let masked = |n: Expr| Expr::call(Op::BitwiseOr, DType::INT32, vec![n, Expr::int32(i32::MAX)]);
        // -1 or 2147483647: the difference is in range for each `y`, and `y + (n | 2147483647)` for none but 0.
        let (n, y) = (Var::new("n", DType::INT32), Var::new("y", DType::INT32));
        let mut analyzer = Analyzer::new();
        analyzer.set_bound(&y, ConstIntBound::new(0, 2));
        let difference = Expr::var(&y) - (Expr::int32(2) - masked(Expr::var(&n)));
        let condition = Expr::binary(BinOp::Ge, Expr::int32(0), difference);
        assert_eq!(
            print_expr(&analyzer.simplify(&condition)),
            "y + -2 + T.bitwise_or(n, 2147483647) <= 0"
        );
        // Nothing is known of the double, but its difference from the masked value is in range.
        let double = Expr::var(&n) + Expr::var(&n);
        let difference = Expr::var(&y) - (double - masked(Expr::var(&n)));
        assert_eq!(
            print_expr(&analyzer.simplify(&difference)),
            "y - (n * 2 - T.bitwise_or(n, 2147483647))"
        );
    }

    #[test]
    fn a_remainder_keeps_the_constant_that_keeps_its_sum_within() {
        let long = |v: i64| Expr::constant(DType::INT64, v.into());
        let s = Expr::var(&Var::new("s", DType::INT64));
        let other = Expr::var(&Var::new("t", DType::INT64));
        let digit = Expr::binary(BinOp::FloorMod, s, long((1 << 32) + 1));
        let most = long(1 << 62);
        let clamped = |e: Expr| {
            let less = Expr::binary(BinOp::Min, e, most.clone() - long(1));
            Expr::binary(BinOp::Max, less, long(-(1 << 62)))
        };
        let product = long(-2_041_473_773) * (digit + long(-(1 << 31)));
        let sum = clamped(product) + clamped(other);
        let whole = Expr::binary(BinOp::FloorMod, sum, long(2048));
        // Without the constant, a multiple of 2048, the least sum is below -2^63.
        assert_eq!(
            print_expr(&Analyzer::new().simplify(&whole)),
            "(T.max(T.min(t, T.int64(4611686018427387903)), T.int64(-4611686018427387904)) + \
             T.int64(4384031545338363904) - s % T.int64(4294967297) * T.int64(2041473773)) % T.int64(2048)"
        );
    }

    #[test]
    fn an_order_is_found_if_there_is_one() {
        let range = ConstIntBound::new(-8, 7);
        let exactly = |values: &[i128]| {
            values
                .iter()
                .map(|v| ConstIntBound::exactly(*v))
                .collect::<Vec<_>>()
        };
        assert_eq!(order_within(&exactly(&[1, 2, 3]), range), Some(vec![0, 1, 2]));
        assert_eq!(
            order_within(&exactly(&[7, 7, -8, -8]), range),
            Some(vec![0, 2, 1, 3])
        );
        assert_eq!(order_within(&exactly(&[7, 7]), range), None);
    }
}
