//! Sums of terms: the data of the canonical form.
//!
//! See [`super::canonical`] for the idea. This file defines how terms are added, joined, ordered and printed back as an
//! expression, and what is known of their values.

use super::const_int_bound::ConstIntBound;
use super::modular_set::ModularSet;
use super::{Analyzer, fold};
use crate::ir::{BinOp, DType, Expr, ExprKind};

/// No upper factor.
pub(super) const INFINITE: i128 = i128::MAX;

/// Factors larger than this are not combined.
pub(super) const LARGEST: i128 = 1 << 62;

/// `(index % upper) // lower * scale`; `upper` is a multiple of `lower` or infinite.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Term {
    pub(super) index: Expr,
    pub(super) lower: i128,
    pub(super) upper: i128,
    pub(super) scale: i128,
    /// Division truncates instead of flooring.
    pub(super) truncates: bool,
}

/// Terms and a constant.
#[derive(Clone, Debug)]
pub(super) struct Sum {
    pub(super) dtype: DType,
    pub(super) terms: Vec<Term>,
    pub(super) base: i128,
    /// It is one term and nothing was added to it: its negative prints as `x * -1`, not `0 - x`.
    pub(super) single: bool,
}

impl Term {
    pub(super) fn atom(index: Expr) -> Term {
        Term {
            index,
            lower: 1,
            upper: INFINITE,
            scale: 1,
            truncates: false,
        }
    }

    /// Without division the two kinds of rounding are the same.
    pub(super) fn rounds_as(&self, truncates: bool) -> bool {
        self.truncates == truncates || (self.lower == 1 && self.upper == INFINITE)
    }

    pub(super) fn is_atom(&self) -> bool {
        self.lower == 1 && self.upper == INFINITE
    }

    /// The term with another scale.
    pub(super) fn times(&self, scale: i128) -> Term {
        Term {
            scale,
            ..self.clone()
        }
    }

    /// Whether the term is written as an addition: also one with a negative scale whose opposite is outside the dtype.
    pub(super) fn is_added(&self) -> bool {
        self.scale > 0 || self.index.dtype.max_int().is_some_and(|most| -self.scale > most)
    }

    pub(super) fn division(&self) -> (BinOp, BinOp) {
        match self.truncates {
            true => (BinOp::Div, BinOp::Mod),
            false => (BinOp::FloorDiv, BinOp::FloorMod),
        }
    }

    /// The term with its scale multiplied by `by`.
    pub(super) fn into_expr(self, by: i128) -> Expr {
        let dtype = self.index.dtype;
        let (divide, remainder) = self.division();
        let scale = self.scale * by;
        if scale == 0 {
            return Expr::constant(dtype, 0);
        }
        let mut result = self.index;
        if self.upper != INFINITE {
            result = fold::binary(remainder, result, Expr::constant(dtype, self.upper));
        }
        if self.lower != 1 {
            result = fold::binary(divide, result, Expr::constant(dtype, self.lower));
        }
        if scale != 1 {
            result = fold::mul(result, Expr::constant(dtype, scale));
        }
        result
    }

    /// Whether `expr` is what [`Term::into_expr`] makes, node by node.
    fn is_written(&self, expr: &Expr, by: i128) -> bool {
        let (divide, remainder) = self.division();
        let mut rest = expr;
        for (op, constant, present) in [
            (BinOp::Mul, self.scale * by, self.scale * by != 1),
            (divide, self.lower, self.lower != 1),
            (remainder, self.upper, self.upper != INFINITE),
        ] {
            if present {
                match rest.as_binary(op) {
                    Some((inner, c)) if c.is_int(constant) => rest = inner,
                    _ => return false,
                }
            }
        }
        *rest == self.index
    }

    pub(super) fn bound(&self, analyzer: &Analyzer) -> ConstIntBound {
        let mut bound = analyzer.const_int_bound(&self.index);
        if self.is_atom() {
            // The usual case.
        } else if bound.min >= 0 || !self.truncates {
            if self.upper != INFINITE && !(bound.min >= 0 && bound.max < self.upper) {
                bound = ConstIntBound::new(0, self.upper - 1);
            }
            let divide = |v: i128| {
                if v.abs() >= ConstIntBound::POS_INF {
                    v
                } else {
                    fold::floor_div(v, self.lower)
                }
            };
            bound = ConstIntBound::new(divide(bound.min), divide(bound.max));
        } else {
            let most = bound.min.saturating_abs().max(bound.max.saturating_abs());
            let most = most.min(self.upper.saturating_sub(1)) / self.lower;
            bound = ConstIntBound::new(-most, most);
        }
        let ends = [
            bound.min.saturating_mul(self.scale),
            bound.max.saturating_mul(self.scale),
        ];
        ConstIntBound::new(ends[0].min(ends[1]), ends[0].max(ends[1]))
    }

    pub(super) fn modular(&self, analyzer: &Analyzer) -> ModularSet {
        let inner = if self.is_atom() {
            analyzer.modular_set(&self.index)
        } else {
            let unscaled = Term {
                scale: 1,
                ..self.clone()
            };
            analyzer.modular_set(&unscaled.into_expr(1))
        };
        ModularSet::new(
            inner.coeff.saturating_mul(self.scale),
            inner.base.saturating_mul(self.scale),
        )
    }
}

impl ModularSet {
    /// Whether zero is among the values.
    pub(super) fn is_multiple_of_zero(self) -> bool {
        if self.coeff == 0 {
            self.base == 0
        } else {
            self.base % self.coeff == 0
        }
    }
}

impl Sum {
    pub(super) fn constant(dtype: DType, base: i128) -> Sum {
        Sum {
            dtype,
            terms: Vec::new(),
            base,
            single: false,
        }
    }

    pub(super) fn of_term(term: Term) -> Sum {
        let mut sum = Sum::constant(term.index.dtype, 0);
        sum.add_term(term, 1);
        sum.single = true;
        sum
    }

    pub(super) fn len(&self) -> usize {
        self.terms.len()
    }

    pub(super) fn plus(mut self, constant: i128) -> Sum {
        self.base += constant;
        self
    }

    pub(super) fn minus(&self, other: &Sum) -> Sum {
        let mut result = self.clone();
        result.add_sum(other.clone(), -1);
        result
    }

    pub(super) fn negated(&self) -> Sum {
        let mut result = Sum::constant(self.dtype, 0);
        result.add_sum(self.clone(), -1);
        result
    }

    pub(super) fn shares_term(&self, other: &Sum) -> bool {
        self.terms
            .iter()
            .any(|t| other.terms.iter().any(|u| t.index == u.index))
    }

    /// Adds a term: next to those of its index, the high digits first.
    pub(super) fn add_term(&mut self, mut term: Term, by: i128) {
        term.scale *= by;
        if term.scale == 0 {
            return;
        }
        let start = self.terms.iter().position(|t| t.index == term.index);
        let Some(start) = start else {
            self.terms.push(term);
            return;
        };
        let mut at = start;
        while at < self.terms.len() {
            let here = &mut self.terms[at];
            if at > start && here.index != term.index || term.lower > here.lower {
                break;
            }
            if term.lower == here.lower && term.upper == here.upper && here.rounds_as(term.truncates) {
                here.scale += term.scale;
                if here.scale == 0 {
                    self.terms.remove(at);
                }
                return;
            }
            at += 1;
        }
        self.terms.insert(at, term);
    }

    pub(super) fn add_sum(&mut self, other: Sum, by: i128) {
        for term in other.terms {
            self.add_term(term, by);
        }
        self.base += other.base * by;
    }

    pub(super) fn scale(&mut self, by: i128) {
        if by == 0 {
            self.terms.clear();
        }
        self.terms.iter_mut().for_each(|t| t.scale *= by);
        self.base *= by;
    }

    /// Divides what is known to be divisible.
    pub(super) fn divide_exactly(&mut self, by: i128) {
        self.terms.iter_mut().for_each(|t| t.scale /= by);
        self.base /= by;
    }

    /// The part whose coefficients are divisible by `by`, and the rest.
    pub(super) fn split(&self, by: i128) -> (Sum, Sum) {
        let (mut divisible, mut rest) = (Sum::constant(self.dtype, 0), Sum::constant(self.dtype, 0));
        let base = if self.base % by == 0 {
            &mut divisible
        } else {
            &mut rest
        };
        base.base = self.base;
        for term in &self.terms {
            let part = if term.scale % by == 0 {
                &mut divisible
            } else {
                &mut rest
            };
            part.terms.push(term.clone());
        }
        (divisible, rest)
    }

    /// Joins digits that fit together and orders the terms.
    pub(super) fn joined(mut terms: Vec<Term>) -> Vec<Term> {
        for i in 0..terms.len() {
            if terms[i].scale == 0 {
                continue;
            }
            for j in i + 1..terms.len() {
                let (before, after) = terms.split_at_mut(j);
                let (high, low) = (&mut before[i], &mut after[0]);
                if high.index != low.index || high.upper < low.lower {
                    break;
                }
                let one_rounding = high.rounds_as(low.truncates) || low.rounds_as(high.truncates);
                if high.upper == low.upper && high.lower == low.lower && one_rounding {
                    low.scale += high.scale;
                    high.scale = 0;
                } else if high.lower == low.upper
                    && low.scale != 0
                    && high.scale % low.scale == 0
                    && high.lower == (high.scale / low.scale).saturating_mul(low.lower)
                    && high.truncates == low.truncates
                {
                    low.upper = high.upper;
                    high.scale = 0;
                    break;
                }
            }
        }
        terms.retain(|t| t.scale != 0);
        terms.sort_by(|a, b| {
            b.scale
                .cmp(&a.scale)
                .then(b.lower.cmp(&a.lower))
                .then(b.upper.cmp(&a.upper))
                .then(b.truncates.cmp(&a.truncates))
        });
        terms
    }

    /// The term, if the sum is nothing else.
    pub(super) fn as_term(&self) -> Option<&Term> {
        match &*self.terms {
            [term] if self.base == 0 => Some(term),
            _ => None,
        }
    }

    pub(super) fn into_expr(self, analyzer: &Analyzer) -> Expr {
        self.into_expr_or(analyzer, None)
    }

    /// The sum as an expression: `like` itself where the result would be equal. Most sums are canonical already, and
    /// comparing is cheaper than building.
    pub(super) fn into_expr_or(self, analyzer: &Analyzer, like: Option<&Expr>) -> Expr {
        let dtype = self.dtype;
        // A constant index, or a remainder by 1, would be folded: the result differs from `like`.
        let like = like.filter(|_| {
            self.terms
                .iter()
                .all(|t| t.index.as_int().is_none() && t.upper > 1)
        });
        if self.single && self.base == 0 && self.terms.len() == 1 {
            let mut terms = self.terms;
            let term = terms.remove(0);
            return match like {
                Some(like) if like.dtype == dtype && term.scale != 0 && term.is_written(like, 1) => {
                    like.clone()
                }
                _ => term.into_expr(1),
            };
        }
        let terms = Sum::joined(self.terms);
        if let Some(like) = like
            && like.dtype == dtype
            && is_written(&terms, self.base, like)
        {
            return like.clone();
        }
        // Another order, where a partial sum of the usual one may overflow.
        if let Some(expr) = analyzer.in_order_without_overflow(dtype, &terms, self.base) {
            return expr;
        }
        let mut result = Expr::constant(dtype, 0);
        // A constant at a limit of the dtype comes first, with the terms that bring it back towards zero.
        let (towards_zero, terms) = analyzer.split_for_constant_at_limit(dtype, terms, self.base);
        let mut base = self.base;
        if !towards_zero.is_empty() {
            result = Expr::constant(dtype, std::mem::take(&mut base));
            for term in towards_zero {
                result = match term.is_added() {
                    true => fold::add(result, term.into_expr(1)),
                    false => fold::sub(result, term.into_expr(-1)),
                };
            }
        }
        for term in terms.iter().filter(|t| t.is_added()) {
            result = fold::add(result, term.clone().into_expr(1));
        }
        // Added terms, a positive constant, subtracted terms, a negative constant. Of a constant that is no value of the dtype, the limit
        // stands here, and the rest is the next operand.
        let most = dtype.max_int().unwrap_or(INFINITE);
        let least = dtype.min_int().unwrap_or(-INFINITE);
        if base > 0 {
            result = fold::add(result, Expr::constant(dtype, base.min(most)));
        }
        for term in terms.iter().filter(|t| !t.is_added()) {
            result = fold::sub(result, term.clone().into_expr(-1));
        }
        if base > most {
            result = Expr::binary(BinOp::Add, result, Expr::constant(dtype, base - most));
        }
        if base < 0 {
            result = match base <= least {
                true => fold::add(result, Expr::constant(dtype, least)),
                false => fold::sub(result, Expr::constant(dtype, -base)),
            };
        }
        if base < least {
            result = Expr::binary(BinOp::Sub, result, Expr::constant(dtype, least - base));
        }
        result
    }
}

/// Whether `expr` is what [`Sum::into_expr`] makes of joined terms and a constant, node by node.
fn is_written(terms: &[Term], base: i128, expr: &Expr) -> bool {
    // Only constants: they fold.
    if terms.is_empty() {
        return expr.is_int(base);
    }
    // From the last operand, which is the outermost, to the first.
    let mut rest = expr;
    if base < 0 {
        match rest.as_binary(BinOp::Sub) {
            Some((inner, c)) if c.is_int(-base) => rest = inner,
            _ => return false,
        }
    }
    for term in terms.iter().rev().filter(|t| t.scale < 0) {
        match rest.as_binary(BinOp::Sub) {
            Some((inner, last)) if term.is_written(last, -1) => rest = inner,
            _ => return false,
        }
    }
    let mut positive = terms.iter().rev().filter(|t| t.scale > 0).peekable();
    if positive.peek().is_none() {
        return rest.is_int(base.max(0));
    }
    if base > 0 {
        match rest.as_binary(BinOp::Add) {
            Some((inner, c)) if c.is_int(base) => rest = inner,
            _ => return false,
        }
    }
    while let Some(term) = positive.next() {
        if positive.peek().is_none() {
            return term.is_written(rest, 1);
        }
        match rest.as_binary(BinOp::Add) {
            Some((inner, last)) if term.is_written(last, 1) => rest = inner,
            _ => return false,
        }
    }
    false
}

/// A simplified expression as a sum: its structure only, nothing is simplified.
pub(super) fn sum_of(expr: &Expr) -> Sum {
    let mut sum = Sum::constant(expr.dtype, 0);
    collect(expr, 1, true, &mut sum);
    sum
}

/// The same, but a multiple of a sum stays whole: multiplied out its summands could leave the dtype.
pub(super) fn sum_as_written(expr: &Expr) -> Sum {
    let mut sum = Sum::constant(expr.dtype, 0);
    collect(expr, 1, false, &mut sum);
    sum
}

fn collect(expr: &Expr, by: i128, distribute: bool, sum: &mut Sum) {
    match &expr.kind {
        ExprKind::Int(v) => sum.base = sum.base.saturating_add(v.saturating_mul(by)),
        ExprKind::Binary(BinOp::Add, a, b) => {
            collect(a, by, distribute, sum);
            collect(b, by, distribute, sum);
        }
        ExprKind::Binary(BinOp::Sub, a, b) => {
            collect(a, by, distribute, sum);
            collect(b, -by, distribute, sum);
        }
        ExprKind::Binary(BinOp::Mul, a, b) => match b.as_int() {
            Some(c) if c.saturating_mul(by).abs() <= LARGEST => {
                let is_sum = matches!(a.kind, ExprKind::Binary(BinOp::Add | BinOp::Sub, ..));
                match is_sum && !distribute {
                    true => sum.add_term(Term::atom(a.clone()), by * c),
                    false => collect(a, by * c, distribute, sum),
                }
            }
            _ => sum.add_term(Term::atom(expr.clone()), by),
        },
        ExprKind::Binary(op @ (BinOp::FloorDiv | BinOp::Div), a, b) => {
            let truncates = *op == BinOp::Div;
            let term = match b.as_int() {
                Some(lower) if (1..=LARGEST).contains(&lower) => {
                    let inner = if truncates { BinOp::Mod } else { BinOp::FloorMod };
                    match a.as_binary(inner).map(|(x, m)| (x, m.as_int())) {
                        Some((x, Some(upper))) if (1..=LARGEST).contains(&upper) && upper % lower == 0 => {
                            Term {
                                index: x.clone(),
                                lower,
                                upper,
                                scale: 1,
                                truncates,
                            }
                        }
                        _ => Term {
                            index: a.clone(),
                            lower,
                            upper: INFINITE,
                            scale: 1,
                            truncates,
                        },
                    }
                }
                _ => Term::atom(expr.clone()),
            };
            sum.add_term(term, by);
        }
        ExprKind::Binary(op @ (BinOp::FloorMod | BinOp::Mod), a, b) => {
            let term = match b.as_int() {
                Some(upper) if (1..=LARGEST).contains(&upper) => Term {
                    index: a.clone(),
                    lower: 1,
                    upper,
                    scale: 1,
                    truncates: *op == BinOp::Mod,
                },
                _ => Term::atom(expr.clone()),
            };
            sum.add_term(term, by);
        }
        _ => sum.add_term(Term::atom(expr.clone()), by),
    }
}
