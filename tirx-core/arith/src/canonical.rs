//! The canonical form: a sum of terms `(index % upper) // lower * scale` and a constant.
//!
//! **Idea.** A term is a digit of `index` in a mixed radix, times a weight. Terms of one index stand together, the
//! high digits first, so that neighbours join: `x // 32 * 32 + x % 32` is two digits of `x` whose weights fit, hence
//! `x`. Dividing a sum by a constant divides the terms whose weight it divides; the rest is a smaller quotient, or
//! nothing if its bounds say so. This is what makes row-major indices of tiles collapse.
//!
//! **Order.** Terms print by falling weight; terms of one weight as they came. Negative terms follow as subtractions.
//!
//! **Cost.** Adding a term looks at each term there is: quadratic in the terms of one sum, which are few.

use super::const_int_bound::ConstIntBound;
use super::modular_set::{ModularSet, gcd};
use super::overflow::is_index;
use super::rewrite::Mode;
use super::sum::{INFINITE, LARGEST, Sum, Term, sum_as_written, sum_of};
use super::{Analyzer, fold};
use crate::intrin::Op;
use crate::ir::{BinOp, DType, Expr, ExprKind};

/// An expression in the canonical simplifier.
pub(super) enum Canon {
    /// An expression that is not a sum.
    Expr(Expr),
    /// A sum.
    Sum(Sum),
}

impl Canon {
    /// The expression; `like` itself where it is that already.
    pub(super) fn into_expr_or(self, analyzer: &Analyzer, like: &Expr) -> Expr {
        match self {
            Canon::Expr(e) => e,
            Canon::Sum(s) => s.into_expr_or(analyzer, Some(like)),
        }
    }

    /// The expression.
    pub(super) fn into_expr(self, analyzer: &Analyzer) -> Expr {
        match self {
            Canon::Expr(e) => e,
            Canon::Sum(s) => s.into_expr(analyzer),
        }
    }

    fn into_sum(self) -> Sum {
        match self {
            Canon::Sum(s) => s,
            Canon::Expr(e) => match e.as_int() {
                Some(v) => Sum::constant(e.dtype, v),
                None => Sum::of_term(Term::atom(e)),
            },
        }
    }

    /// One term: the sum's only one, or all of it as an index.
    fn into_term(self, analyzer: &Analyzer) -> Term {
        match self {
            Canon::Sum(s) => match s.as_term() {
                Some(term) => term.clone(),
                None => Term::atom(s.into_expr(analyzer)),
            },
            Canon::Expr(e) => Term::atom(e),
        }
    }

    fn as_constant(&self) -> Option<i128> {
        match self {
            Canon::Expr(e) => e.as_int(),
            Canon::Sum(s) if s.terms.is_empty() => Some(s.base),
            Canon::Sum(_) => None,
        }
    }
}

impl Analyzer {
    /// Brings integer arithmetic to the canonical form; other nodes are rewritten as by
    /// [`Analyzer::rewrite_simplify`].
    pub fn canonical_simplify(&mut self, expr: &Expr) -> Expr {
        let result = self.visit(expr, Mode::Canonical);
        // An equal result is replaced by the original node, so that unchanged nodes stay shared.
        if result == *expr { expr.clone() } else { result }
    }

    /// The canonical form of an index expression.
    pub(super) fn canonical(&mut self, expr: &Expr) -> Canon {
        use BinOp::*;
        debug_assert!(is_index(expr.dtype));
        match &expr.kind {
            ExprKind::Binary(op @ (Add | Sub | Mul), a, b) => {
                let (x, y) = (self.canonical(a), self.canonical(b));
                match op {
                    Mul => self.canonical_product(x, y, expr.dtype),
                    _ => {
                        let (sum, other) = (x.into_sum(), y.into_sum());
                        let by = if *op == Add { 1 } else { -1 };
                        if self.join_may_overflow(&sum, &other, by) {
                            let (x, y) = (sum.into_expr(self), other.into_expr(self));
                            return Canon::Expr(fold::binary(*op, x, y));
                        }
                        let (mut sum, other) = self.as_atoms_near_the_edge(sum, other, by);
                        sum.single = false;
                        sum.add_sum(other, by);
                        Canon::Sum(sum)
                    }
                }
            }
            ExprKind::Binary(op @ (FloorDiv | FloorMod | Div | Mod), a, b) => {
                let (x, y) = (self.canonical(a), self.canonical(b));
                match (y.as_constant(), op) {
                    (Some(c), _) if c <= 0 || c > LARGEST => {}
                    (Some(c), FloorDiv | Div) => return self.canonical_quotient(x, c, *op == Div),
                    (Some(c), _) => return self.canonical_remainder(x, c, *op == Mod),
                    _ => {}
                }
                let (x, y) = (x.into_expr(self), y.into_expr(self));
                if x.same_node(a) && y.same_node(b) {
                    return Canon::Expr(expr.clone());
                }
                // The quotient keeps the span of the user's line, because it may fault.
                Canon::Expr(fold::binary(*op, x, y).at(expr.span))
            }
            ExprKind::Cast(a) if is_index(a.dtype) => {
                let inner = self.canonical(a);
                self.canonical_cast(inner, expr.dtype)
            }
            ExprKind::Var(v) => match self.var_values.get(v).cloned() {
                // The value was simplified when it was bound; here it is only converted to a sum again.
                Some(value) if value.as_var().is_none() => Canon::Sum(sum_as_written(&value)),
                Some(value) => Canon::Expr(value),
                None => Canon::Expr(expr.clone()),
            },
            ExprKind::Binary(..) => {
                let result = self.visit_node(expr, Mode::Canonical);
                match &result.kind {
                    // A rule turned it into a sum.
                    ExprKind::Binary(Add | Sub | Mul, ..) => Canon::Sum(sum_as_written(&result)),
                    _ => Canon::Expr(result),
                }
            }
            ExprKind::Call {
                op: Op::ShiftLeft, ..
            } => match self.swizzle_of_column(expr, Mode::Canonical) {
                Some(place) => Canon::Sum(sum_as_written(&place)),
                None => Canon::Expr(self.visit_node(expr, Mode::Canonical)),
            },
            _ => Canon::Expr(self.visit_node(expr, Mode::Canonical)),
        }
    }

    /// The canonical form of `x * y`. A constant multiplies each summand of the other operand. If one of these products could overflow, the
    /// constant becomes the scale of one term. If neither operand is a constant, the product is one term.
    fn canonical_product(&mut self, x: Canon, y: Canon, dtype: DType) -> Canon {
        let (x, y) = if x.as_constant().is_some() { (y, x) } else { (x, y) };
        if let Some(c) = y.as_constant() {
            let mut sum = x.into_sum();
            let largest = sum.terms.iter().map(|t| t.scale.abs()).max().unwrap_or(0);
            if largest.max(sum.base.abs()).max(1).saturating_mul(c.abs()) > LARGEST {
                return Canon::Expr(fold::mul(sum.into_expr(self), Expr::constant(dtype, c)));
            }
            if !self.distributes(&sum, c) {
                let mut term = Term::atom(sum.into_expr(self));
                term.scale = c;
                return Canon::Sum(Sum::of_term(term));
            }
            sum.scale(c);
            return Canon::Sum(sum);
        }
        // A product of two variable factors is an atom; its constant factors become the term's scale.
        fn factors(expr: &Expr, scale: &mut i128, out: &mut Vec<Expr>) {
            match (expr.as_binary(BinOp::Mul), expr.as_int()) {
                (Some((a, b)), _) => {
                    factors(a, scale, out);
                    factors(b, scale, out);
                }
                (None, Some(v)) => *scale = scale.saturating_mul(v),
                _ => out.push(expr.clone()),
            }
        }
        let (x, y) = (x.into_expr(self), y.into_expr(self));
        let (mut scale, mut all) = (1, Vec::new());
        factors(&x, &mut scale, &mut all);
        let factors_of_x = all.len();
        factors(&y, &mut scale, &mut all);
        // The product stays as it is written if the flat product of all factors could overflow although `x * y` does not.
        if scale.abs() > LARGEST
            || self.flat_product_may_overflow(&x, &y, &all, scale)
            || self.regrouping_may_overflow(&x, &all[factors_of_x..])
        {
            return Canon::Expr(fold::mul(x, y));
        }
        let product = all.into_iter().reduce(fold::mul);
        let mut term = Term::atom(product.unwrap_or_else(|| Expr::constant(dtype, 1)));
        term.scale = scale;
        Canon::Sum(Sum::of_term(term))
    }

    /// Whether the summands can be multiplied one by one: not if the bounds show that one of the products may leave the
    /// dtype although their sum does not.
    fn distributes(&self, sum: &Sum, c: i128) -> bool {
        if sum.len() + usize::from(sum.base != 0) < 2 {
            return true;
        }
        let most = ConstIntBound::of_dtype(sum.dtype).max;
        // Subtracting a product takes its opposite.
        let inside = |v: i128| v.saturating_mul(c).saturating_abs() <= most;
        let product = self.bound_of_sum(sum).mul(ConstIntBound::exactly(c));
        let stays = product.is_within(ConstIntBound::of_dtype(sum.dtype));
        inside(sum.base)
            && sum.terms.iter().all(|term| {
                let bound = term.bound(self);
                // A division of an unbounded value gives bounds that carry no information about the program.
                let known = stays || bound.min.saturating_abs().max(bound.max.saturating_abs()) <= most >> 7;
                !known || (inside(bound.min) && inside(bound.max))
            })
    }

    fn canonical_cast(&mut self, inner: Canon, dtype: DType) -> Canon {
        let sum = match inner {
            Canon::Expr(e) => {
                if let ExprKind::Cast(original) = &e.kind
                    && original.dtype == dtype
                    && e.dtype.bits > dtype.bits
                {
                    return Canon::Expr(original.clone());
                }
                return Canon::Expr(fold::cast(e, dtype));
            }
            Canon::Sum(sum) => sum,
        };
        if dtype.bits < sum.dtype.bits && !self.sum_fits(&sum, dtype) {
            return Canon::Expr(fold::cast(sum.into_expr(self), dtype));
        }
        let mut out = Sum::constant(dtype, sum.base);
        for term in Sum::joined(sum.terms) {
            let index = match &term.index.kind {
                ExprKind::Cast(original) if original.dtype == dtype && term.index.dtype.bits > dtype.bits => {
                    original.clone()
                }
                _ => fold::cast(term.index.clone(), dtype),
            };
            out.add_term(Term { index, ..term }, 1);
        }
        Canon::Sum(out)
    }

    /// Whether every intermediate value of the sum is one of `dtype`.
    fn sum_fits(&self, sum: &Sum, dtype: DType) -> bool {
        let range = ConstIntBound::of_dtype(dtype);
        let (mut low, mut high) = (sum.base.min(0), sum.base.max(0));
        for term in &sum.terms {
            if !self.const_int_bound(&term.index).is_within(range)
                || (term.upper != INFINITE && term.upper > range.max)
                || term.lower > range.max
                || term.scale.abs() > range.max
            {
                return false;
            }
            let bound = term.bound(self);
            low += bound.min.min(0);
            high += bound.max.max(0);
        }
        low >= range.min && high <= range.max
    }

    /// The canonical form of `x // c`, or of `x / c` if `truncates`, for `0 < c <= LARGEST`. The terms that `c` divides are divided one by one.
    /// The rest is dropped if its bounds are within `0..c`; otherwise it becomes one term. If taking the sum apart could overflow, the whole
    /// sum is divided as one term.
    fn canonical_quotient(&mut self, x: Canon, c: i128, truncates: bool) -> Canon {
        let dtype = match &x {
            Canon::Expr(e) => e.dtype,
            Canon::Sum(s) => s.dtype,
        };
        if let Some(v) = x.as_constant() {
            let value = if truncates { v / c } else { fold::floor_div(v, c) };
            return Canon::Sum(Sum::constant(dtype, value));
        }
        if c == 1 {
            return x;
        }
        let sum = match x {
            Canon::Sum(sum) if sum.as_term().is_none() => sum,
            other => {
                let bound = match &other {
                    Canon::Sum(s) => self.bound_of_sum(s),
                    Canon::Expr(e) => self.const_int_bound(e),
                };
                if bound.min >= 0 && bound.max < c {
                    return Canon::Sum(Sum::constant(dtype, 0));
                }
                let term = other.into_term(self);
                // `x * 9 // 4` is `x * 2` if `x * 1` is within 0..4: only the remainder of the scale could add to the quotient.
                if !truncates && term.scale > c && term.scale % c != 0 {
                    let remainder = Term {
                        scale: term.scale % c,
                        ..term.clone()
                    };
                    let bound = remainder.bound(self);
                    if bound.min >= 0 && bound.max < c {
                        let scale = term.scale / c;
                        return Canon::Sum(Sum::of_term(Term { scale, ..term }));
                    }
                }
                return Canon::Sum(Sum::of_term(self.divide_term(term, c, truncates)));
            }
        };
        let (mut quotient, mut rest) = sum.split(c);
        if rest.terms.is_empty() && rest.base == 0 {
            quotient.divide_exactly(c);
            return Canon::Sum(quotient);
        }
        if self.part_may_overflow(&sum, &rest) || self.takes_away_near_the_edge(&sum, &rest) {
            let whole = Term::atom(sum.into_expr(self));
            return Canon::Sum(Sum::of_term(self.divide_term(whole, c, truncates)));
        }
        // A truncating division distributes over a sum only if neither part is negative.
        if truncates && (self.bound_of_sum(&quotient).min < 0 || self.bound_of_sum(&rest).min < 0) {
            let bound = self.bound_of_sum(&sum);
            if bound.min >= 0 && bound.max < c {
                return Canon::Sum(Sum::constant(dtype, 0));
            }
            let whole = Term::atom(sum.into_expr(self));
            return Canon::Sum(Sum::of_term(self.divide_term(whole, c, truncates)));
        }
        quotient.divide_exactly(c);
        if rest.terms.is_empty() {
            quotient.base += fold::floor_div(rest.base, c);
            return Canon::Sum(quotient);
        }
        let bound = self.bound_of_sum(&rest);
        let rest_is_zero = bound.min >= 0 && bound.max < c;
        if !truncates && !rest_is_zero {
            // If the sum of the scales' remainders by `c` is within 0..c, each scale can be divided by itself.
            let mut remainders = rest.clone();
            remainders
                .terms
                .iter_mut()
                .for_each(|t| t.scale = fold::floor_mod(t.scale, c));
            remainders.base = fold::floor_mod(remainders.base, c);
            let bound = self.bound_of_sum(&remainders);
            if bound.min >= 0 && bound.max < c {
                rest.terms
                    .iter_mut()
                    .for_each(|t| t.scale = fold::floor_div(t.scale, c));
                rest.base = fold::floor_div(rest.base, c);
                rest.terms.retain(|t| t.scale != 0);
                quotient.add_sum(rest, 1);
                quotient.single = false;
                return Canon::Sum(quotient);
            }
        }
        if !rest_is_zero {
            let term = self.divide_term(self.as_one_term(rest), c, truncates);
            quotient.add_term(term, 1);
        }
        quotient.single = false;
        Canon::Sum(quotient)
    }

    /// A sum as one term: itself if it is one as soon as it is written, or else all of it as an index.
    fn as_one_term(&self, sum: Sum) -> Term {
        if let Some(term) = sum.as_term() {
            return term.clone();
        }
        let expr = sum.into_expr(self);
        match sum_of(&expr).as_term() {
            Some(term) => term.clone(),
            None => Term::atom(expr),
        }
    }

    /// `term // c`.
    fn divide_term(&mut self, term: Term, c: i128, truncates: bool) -> Term {
        let mut term = if term.rounds_as(truncates) {
            term
        } else {
            Term::atom(term.into_expr(1))
        };
        term.truncates = truncates;
        if term.scale % c == 0 {
            term.scale /= c;
            return term;
        }
        if term.scale > 0 && c % term.scale == 0 {
            let divisor = c / term.scale;
            let lower = term.lower.saturating_mul(divisor);
            if lower <= LARGEST.min(term.index.dtype.max_int().unwrap_or(LARGEST)) {
                if term.upper == INFINITE || term.upper % lower == 0 {
                    term.scale = 1;
                    term.lower = lower;
                    return term;
                }
                if term.upper <= lower {
                    term.scale = 0;
                    return term;
                }
                let dtype = term.index.dtype;
                let upper = Expr::constant(dtype, term.upper);
                let index = fold::binary(term.division().1, term.index, upper);
                return Term {
                    index,
                    lower,
                    upper: INFINITE,
                    scale: 1,
                    truncates,
                };
            }
        }
        let mut whole = Term::atom(term.into_expr(1));
        whole.lower = c;
        whole.truncates = truncates;
        whole
    }

    fn canonical_remainder(&mut self, x: Canon, c: i128, truncates: bool) -> Canon {
        let dtype = match &x {
            Canon::Expr(e) => e.dtype,
            Canon::Sum(s) => s.dtype,
        };
        let remainder = |v: i128| if truncates { v % c } else { fold::floor_mod(v, c) };
        if let Some(v) = x.as_constant() {
            return Canon::Sum(Sum::constant(dtype, remainder(v)));
        }
        if c == 1 {
            return Canon::Sum(Sum::constant(dtype, 0));
        }
        let sum = match x {
            Canon::Sum(sum) if sum.as_term().is_none() => sum,
            other => {
                let bound = match &other {
                    Canon::Sum(s) => self.bound_of_sum(s),
                    Canon::Expr(e) => self.const_int_bound(e),
                };
                if bound.min >= 0 && bound.max < c {
                    return other;
                }
                return self.remainder_of_term(other.into_term(self), c, truncates);
            }
        };
        let (divisible, mut rest) = sum.split(c);
        let whole = self.bound_of_sum(&sum);
        if truncates && (self.bound_of_sum(&divisible).min < 0 || self.bound_of_sum(&rest).min < 0) {
            if whole.min >= 0 && whole.max < c {
                return Canon::Sum(sum);
            }
            return self.remainder_of_term(Term::atom(sum.into_expr(self)), c, truncates);
        }
        if rest.terms.is_empty() {
            return Canon::Sum(Sum::constant(dtype, remainder(rest.base)));
        }
        let bound = self.bound_of_sum(&rest);
        if bound.min >= 0 && bound.max < c {
            return Canon::Sum(rest);
        }
        if self.part_may_overflow(&sum, &rest) || self.takes_away_near_the_edge(&sum, &rest) {
            return self.remainder_of_term(Term::atom(sum.into_expr(self)), c, truncates);
        }
        if whole.min >= 0 && whole.max < c {
            return Canon::Sum(sum);
        }
        // Moves the constant into 0..c.
        let base = fold::floor_mod(rest.base, c);
        if !truncates || bound.min - rest.base + base >= 0 && bound.min >= 0 {
            let moved = rest.clone().plus(base - rest.base);
            let stays = self.sum_stays_within(&moved) || !self.sum_stays_within(&rest);
            if stays && !self.takes_away_near_the_edge(&sum, &moved) {
                rest = moved;
            }
        }
        let term = self.as_one_term(rest);
        self.remainder_of_term(term, c, truncates)
    }

    /// `term % c`.
    fn remainder_of_term(&mut self, term: Term, c: i128, truncates: bool) -> Canon {
        let dtype = term.index.dtype;
        let mut term = if term.rounds_as(truncates) {
            term
        } else {
            Term::atom(term.into_expr(1))
        };
        term.truncates = truncates;
        if term.scale % c == 0 {
            return Canon::Sum(Sum::constant(dtype, 0));
        }
        if term.scale > 0 && c % term.scale == 0 {
            let upper = term.lower.saturating_mul(c / term.scale);
            if upper <= LARGEST.min(dtype.max_int().unwrap_or(LARGEST)) {
                if term.upper == INFINITE {
                    term.upper = upper;
                    return Canon::Sum(Sum::of_term(term));
                }
                if term.upper % upper == 0 {
                    if upper == term.upper {
                        return Canon::Sum(Sum::of_term(term));
                    }
                    // A smaller modulus may simplify the index.
                    let index = Canon::Sum(sum_of(&term.index));
                    let reduced = self.canonical_remainder(index, upper, truncates);
                    let mut result = match term.lower {
                        1 => reduced.into_sum(),
                        lower => self.canonical_quotient(reduced, lower, truncates).into_sum(),
                    };
                    result.scale(term.scale);
                    return Canon::Sum(result);
                }
                if upper % term.upper == 0 {
                    return Canon::Sum(Sum::of_term(term));
                }
            }
        }
        let mut whole = Term::atom(term.into_expr(1));
        whole.upper = c;
        whole.truncates = truncates;
        Canon::Sum(Sum::of_term(whole))
    }

    /// `a < b` as `d * q + r < 0` with `d` the common divisor of the weights: the same as `q + r // d < 0`, which
    /// is simpler where `r // d` is known.
    pub(super) fn canonical_less(&mut self, a: &Expr, b: &Expr) -> Option<Expr> {
        let difference = self.canonical_difference(a, b);
        let mut divisor = difference.base;
        let mut weighty = false;
        for term in &difference.terms {
            if term.scale.abs() > 1 {
                weighty = true;
                divisor = gcd(divisor, term.scale);
            }
        }
        if !weighty || divisor <= 1 {
            return None;
        }
        let known = difference.terms.iter().all(|t| self.is_known(&t.index));
        let (mut quotient, rest) = difference.split(divisor);
        if rest.terms.is_empty() && rest.base == 0 && quotient.base == 0 && quotient.terms.len() > 1 {
            return None;
        }
        let bound = self.bound_of_sum(&rest);
        quotient.divide_exactly(divisor);
        let (low, high) = (
            fold::floor_div(bound.min, divisor),
            fold::floor_div(bound.max, divisor),
        );
        let dtype = a.dtype;
        if low == high {
            quotient.base += low;
        } else {
            let [term] = &*rest.terms else { return None };
            let lower = divisor.checked_mul(term.lower)?;
            if rest.base != 0
                || term.truncates
                || term.upper == INFINITE
                || term.upper % lower != 0
                || term.scale != 1
            {
                return None;
            }
            let digit = Canon::Sum(Sum::of_term(Term {
                lower,
                ..term.clone()
            }));
            quotient.add_sum(digit.into_sum(), 1);
        }
        // Moved to both sides, because the rules expect a constant on the right.
        let base = std::mem::take(&mut quotient.base);
        let leaves = known && !self.sum_stays_within(&quotient);
        let left = quotient.into_expr(self);
        if left.as_int().is_some() || self.depth > 4 {
            return None;
        }
        if leaves && self.stays_within(a) && self.stays_within(b) {
            return None;
        }
        self.depth += 1;
        let result = self.make_at(BinOp::Lt, left, Expr::constant(dtype, -base), Mode::Rewrite, None);
        self.depth -= 1;
        Some(result)
    }

    /// `a - b`, of operands that are simplified already.
    pub(super) fn canonical_difference(&mut self, a: &Expr, b: &Expr) -> Sum {
        let mut sum = sum_of(a);
        sum.add_sum(sum_of(b), -1);
        sum.terms = Sum::joined(std::mem::take(&mut sum.terms));
        sum
    }

    /// Bounds of a sum, term by term.
    pub(super) fn bound_of_sum(&self, sum: &Sum) -> ConstIntBound {
        let start = ConstIntBound::exactly(sum.base);
        sum.terms
            .iter()
            .fold(start, |all, term| all.add(term.bound(self)))
    }

    /// The modular set of a sum, term by term.
    pub(super) fn modular_of_sum(&self, sum: &Sum) -> ModularSet {
        let mut set = ModularSet::new(0, sum.base);
        for term in &sum.terms {
            let one = term.modular(self);
            set = ModularSet::new(gcd(set.coeff, one.coeff), set.base + one.base);
        }
        set
    }
}
