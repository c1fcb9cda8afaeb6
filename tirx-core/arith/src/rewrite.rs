//! Rewriting one node at a time: rules, constraints, comparisons by bounds.
//!
//! **Idea.** Operands are simplified first; then the node is built by [`Analyzer::make`], which folds constants, asks
//! the bounds, the constraints and the modular sets, and applies the first rule of the table that holds. The
//! replacement is built by `make` again, node by node; operands that it moves are not visited again. Both simplifiers
//! share this walk; in canonical mode, integer arithmetic goes through [`super::canonical`].
//!
//! **Termination.** Rules nest at most [`DEEPEST`] deep; past that a node is only folded.
//!
//! **Cost.** Linear in the expression for the walk; a comparison, quotient or remainder looks at its operands once
//! more for their bounds.

use super::analyzer::{has_effect, is_pure_and_memory_free};
use super::const_int_bound::ConstIntBound;
use super::overflow::is_index;
use super::pattern::{Match, Pattern, Rule};
use super::rules::LOGIC_RULES;
use super::{Analyzer, fold};
use crate::intrin::Op;
use crate::ir::at;
use crate::ir::{BinOp, DType, Expr, ExprKind};

/// Deepest nesting of rules applied to the result of a rule.
const DEEPEST: u32 = 8;

/// Nodes of an arm of a choice that are looked at before the choice's condition is learned.
const SMALL: u32 = 16;

/// Which simplifier is running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Rewrite,
    Canonical,
}

impl Analyzer {
    /// Applies the rules of the table, constraints and bounds, leaves first.
    pub fn rewrite_simplify(&mut self, expr: &Expr) -> Expr {
        self.visit(expr, Mode::Rewrite)
    }

    pub(super) fn visit(&mut self, expr: &Expr, mode: Mode) -> Expr {
        if mode == Mode::Canonical && is_index(expr.dtype) {
            return self.canonical(expr).into_expr_or(self, expr);
        }
        // Results are cached, since statements of one kernel share index arithmetic. Within a rule the result may
        // depend on the nesting depth, so it is not.
        if mode == Mode::Rewrite && expr.size() > 2 && self.depth == 0 {
            if let Some(known) = self.rewritten(expr) {
                return known;
            }
            let result = self.visit_node(expr, mode);
            self.remember_rewritten(expr, &result);
            return result;
        }
        self.visit_node(expr, mode)
    }

    /// Rewrites a node whose kind has no canonical form of its own.
    pub(super) fn visit_node(&mut self, expr: &Expr, mode: Mode) -> Expr {
        let span = expr.span;
        match &expr.kind {
            ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Str(_) => expr.clone(),
            ExprKind::Var(v) => match self.var_values.get(v) {
                Some(value) => value.clone().at(expr.span),
                None => expr.clone(),
            },
            ExprKind::Binary(op, a, b) => {
                let (x, y) = (self.visit(a, mode), self.visit(b, mode));
                self.make_at(*op, x, y, mode, Some(expr)).at(span)
            }
            ExprKind::Not(a) => {
                let x = self.visit(a, mode);
                self.negate(x, mode).at(span)
            }
            ExprKind::Cast(a) => {
                let x = self.visit(a, mode);
                self.convert(x, a, expr).at(span)
            }
            ExprKind::Select(c, t, f) => {
                let c2 = self.visit(c, mode);
                match c2.as_int() {
                    // The operands have no effect, so the unused value can be dropped.
                    Some(0) => return self.visit(f, mode),
                    Some(_) => return self.visit(t, mode),
                    None => {}
                }
                let (t2, f2) = match self.lanes || expr.dtype.is_vector() {
                    true => (self.visit(t, mode), self.visit(f, mode)),
                    false => self.visit_choices(&c2, t, f, mode),
                };
                if t2.same_node(t) && f2.same_node(f) && c2.same_node(c) {
                    return expr.clone();
                }
                self.choose(c2, t2, f2, mode).at(span)
            }
            ExprKind::Ramp { base, stride, lanes } => {
                let (b, s) = (self.visit(base, mode), self.visit(stride, mode));
                if *lanes == 1 {
                    return b;
                }
                if s.is_int(0) {
                    return Expr::broadcast(b, *lanes).at(span);
                }
                if b.same_node(base) && s.same_node(stride) {
                    return expr.clone();
                }
                Expr::ramp(b, s, *lanes).at(span)
            }
            ExprKind::Broadcast { value, lanes } => {
                let v = self.visit(value, mode);
                if *lanes == 1 {
                    return v;
                }
                if v.same_node(value) {
                    return expr.clone();
                }
                Expr::broadcast(v, *lanes).at(span)
            }
            ExprKind::BufferLoad {
                buffer,
                indices,
                predicate,
            } => {
                let new = self.visit_all(indices, mode);
                let new_predicate = predicate.as_ref().map(|p| self.visit(p, mode));
                let same = new.is_none() && new_predicate.iter().zip(predicate).all(|(a, b)| a.same_node(b));
                if same {
                    return expr.clone();
                }
                let new = new.unwrap_or_else(|| indices.clone());
                let kind = ExprKind::BufferLoad {
                    buffer: buffer.clone(),
                    indices: new,
                    predicate: new_predicate,
                };
                Expr::new(kind, expr.dtype, span)
            }
            ExprKind::Shuffle { vectors, indices } => {
                let Some(new) = self.visit_all(vectors, mode) else {
                    return expr.clone();
                };
                let kind = ExprKind::Shuffle {
                    vectors: new,
                    indices: indices.clone(),
                };
                Expr::new(kind, expr.dtype, span)
            }
            ExprKind::Call { op, args } => self.visit_call(*op, args, expr, mode),
            ExprKind::Let(var, value, body) => {
                let v = self.visit(value, mode);
                let scope = self.scope();
                if matches!(v.kind, ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Var(_)) {
                    self.bind_value(var, &v);
                    let result = self.visit(body, mode);
                    self.leave(scope);
                    return result;
                }
                self.bind_facts_of(var, &v);
                let b = self.visit(body, mode);
                self.leave(scope);
                if v.same_node(value) && b.same_node(body) {
                    return expr.clone();
                }
                Expr::let_in(var, v, b).at(span)
            }
        }
    }

    /// The expressions of a list, if one of them changes; most do not change and need no list.
    fn visit_all(&mut self, exprs: &[Expr], mode: Mode) -> Option<Vec<Expr>> {
        let mut new: Option<Vec<Expr>> = None;
        for (i, old) in exprs.iter().enumerate() {
            let expr = self.visit(old, mode);
            if new.is_some() || !expr.same_node(old) {
                new.get_or_insert_with(|| exprs[..i].to_vec()).push(expr);
            }
        }
        new
    }

    /// Simplifies both arms of a choice, each under the condition that leads there.
    fn visit_choices(&mut self, condition: &Expr, t: &Expr, f: &Expr, mode: Mode) -> (Expr, Expr) {
        if condition.dtype != DType::BOOL {
            return (self.visit(t, mode), self.visit(f, mode));
        }
        // Learning a condition costs more than all else here, and a mask chooses between values that it says nothing about.
        let t2 = match is_beyond_conditions(t) {
            true => self.visit(t, mode),
            false => self.with_constraint(condition, |a| a.visit(t, mode)),
        };
        let f2 = match is_beyond_conditions(f) {
            true => self.visit(f, mode),
            false => {
                let otherwise = self.negate(condition.clone(), Mode::Rewrite);
                self.with_constraint(&otherwise, |a| a.visit(f, mode))
            }
        };
        (t2, f2)
    }

    fn choose(&mut self, condition: Expr, t: Expr, f: Expr, mode: Mode) -> Expr {
        let whole = Expr::select(condition, t, f);
        for rule in LOGIC_RULES.select() {
            if let Some(found) = Match::whole(rule, &whole)
                && let Some(result) = self.apply(rule, &found, mode)
            {
                return result;
            }
        }
        whole
    }

    fn visit_call(&mut self, op: Op, args: &[Expr], expr: &Expr, mode: Mode) -> Expr {
        if op == Op::IfThenElse {
            let c = &args[at!(IfThenElse.cond)];
            let (t, f) = (&args[at!(IfThenElse.t)], &args[at!(IfThenElse.f)]);
            let c2 = self.visit(c, mode);
            match c2.as_int() {
                Some(0) => return self.visit(f, mode),
                Some(_) => return self.visit(t, mode),
                None => {}
            }
            let (t2, f2) = self.visit_choices(&c2, t, f, mode);
            if t2 == f2 {
                return t2;
            }
            if c2.same_node(c) && t2.same_node(t) && f2.same_node(f) {
                return expr.clone();
            }
            return Expr::call(op, expr.dtype, vec![c2, t2, f2]).at(expr.span);
        }
        if op == Op::ShiftLeft
            && let Some(place) = self.swizzle_of_column(expr, mode)
        {
            return place;
        }
        let new = self.visit_all(args, mode);
        let args = new.as_deref().unwrap_or(args);
        if let Some(folded) = fold_call(op, args, expr.dtype) {
            return folded.at(expr.span);
        }
        if op == Op::Likely
            && let [inner] = args
            && self.literal_value(inner).is_some()
        {
            return inner.clone();
        }
        match new {
            Some(new) => Expr::call(op, expr.dtype, new).at(expr.span),
            None => expr.clone(),
        }
    }

    fn convert(&mut self, value: Expr, old: &Expr, whole: &Expr) -> Expr {
        let dtype = whole.dtype;
        if let ExprKind::Broadcast { value: inner, lanes } = &value.kind {
            return Expr::broadcast(fold::cast(inner.clone(), dtype.element()), *lanes);
        }
        if let ExprKind::Ramp { base, stride, lanes } = &value.kind
            && value.dtype.is_int()
            && dtype.is_int()
            && (dtype.bits >= value.dtype.bits && value.dtype.bits >= 32)
        {
            let to = dtype.element();
            return Expr::ramp(
                fold::cast(base.clone(), to),
                fold::cast(stride.clone(), to),
                *lanes,
            );
        }
        // A cast through a wider integer changes nothing.
        if let ExprKind::Cast(inner) = &value.kind
            && inner.dtype == dtype
            && dtype.is_integer()
            && value.dtype.is_integer()
            && value.dtype.bits >= dtype.bits
        {
            return inner.clone();
        }
        let constant = matches!(value.kind, ExprKind::Int(_) | ExprKind::Float(_));
        if value.same_node(old) && !constant {
            return whole.clone();
        }
        fold::cast(value, dtype)
    }

    /// A binary node of simplified operands, simplified.
    pub(super) fn make(&mut self, op: BinOp, a: Expr, b: Expr, mode: Mode) -> Expr {
        if mode == Mode::Canonical && is_index(a.dtype) && !op.is_comparison() {
            let whole = Expr::binary(op, a, b);
            return self.canonical(&whole).into_expr(self);
        }
        self.make_at(op, a, b, mode, None)
    }

    /// As [`Analyzer::make`]; gives `original` back if nothing changes.
    pub(super) fn make_at(
        &mut self,
        op: BinOp,
        a: Expr,
        b: Expr,
        mode: Mode,
        original: Option<&Expr>,
    ) -> Expr {
        match op {
            BinOp::Gt => return self.make_at(BinOp::Lt, b, a, mode, None),
            BinOp::Ge => return self.make_at(BinOp::Le, b, a, mode, None),
            _ => {}
        }
        let keep = |a: Expr, b: Expr| match original.map(|o| (o, &o.kind)) {
            Some((whole, ExprKind::Binary(o, x, y))) if *o == op && x.same_node(&a) && y.same_node(&b) => {
                whole.clone()
            }
            _ => Expr::binary(op, a, b),
        };
        // Only constants are folded.
        let constant = |e: &Expr| matches!(e.kind, ExprKind::Int(_) | ExprKind::Float(_));
        if constant(&a) || constant(&b) {
            let folded = fold::binary(op, a.clone(), b.clone());
            if !matches!(&folded.kind, ExprKind::Binary(o, ..) if *o == op) {
                return folded;
            }
        }
        if a.dtype.is_vector() {
            return self.make_vector(op, &a, &b, mode).unwrap_or_else(|| keep(a, b));
        }
        let integer = a.dtype.is_integer();
        let result = if op.is_comparison() && integer {
            self.compare_node(op, &a, &b, mode)
        } else if op.is_logical() {
            self.try_rules(&LOGIC_RULES, op, &a, &b, mode)
        } else if integer {
            self.arithmetic_node(op, &a, &b, mode)
        } else {
            None
        };
        let result = result.unwrap_or_else(|| keep(a, b));
        match self.literal_value(&result) {
            Some(value) => Expr::bool(value),
            None => result,
        }
    }

    /// The value of a condition that a constraint states.
    fn literal_value(&mut self, condition: &Expr) -> Option<bool> {
        if condition.dtype != DType::BOOL || self.literals.is_empty() || condition.as_int().is_some() {
            return None;
        }
        if self.literals.contains(condition) {
            return Some(true);
        }
        let opposite = plain_negation(condition);
        self.literals.contains(&opposite).then_some(false)
    }

    /// `not a` of a simplified operand, simplified.
    pub(super) fn negate(&mut self, a: Expr, mode: Mode) -> Expr {
        if let Some(v) = a.as_int() {
            return Expr::bool(v == 0);
        }
        if let ExprKind::Broadcast { value, lanes } = &a.kind {
            let inner = self.negate(value.clone(), mode);
            return Expr::broadcast(inner, *lanes);
        }
        if let ExprKind::Binary(op, ..) = &a.kind
            && op.is_comparison()
        {
            let opposite = plain_negation(&a);
            if opposite.as_binary(*op).is_none() && !matches!(opposite.kind, ExprKind::Not(_)) {
                return match &opposite.kind {
                    ExprKind::Binary(o, p, q) => self.make_at(*o, p.clone(), q.clone(), mode, None),
                    _ => opposite,
                };
            }
        }
        if a.dtype.is_scalar() {
            let whole = Expr::logical_not(a.clone());
            for rule in LOGIC_RULES.negation() {
                if let Some(found) = Match::whole(rule, &whole)
                    && let Some(result) = self.apply(rule, &found, mode)
                {
                    return result;
                }
            }
            if let Some(value) = self.literal_value(&whole) {
                return Expr::bool(value);
            }
            return whole;
        }
        Expr::logical_not(a)
    }

    pub(super) fn try_rules(
        &mut self,
        rules: &'static super::rule_set::RuleSet,
        op: BinOp,
        a: &Expr,
        b: &Expr,
        mode: Mode,
    ) -> Option<Expr> {
        if self.depth >= DEEPEST {
            return None;
        }
        for rule in rules.binary(op, a, b) {
            if let Some(found) = Match::binary(rule, a, b)
                && let Some(result) = self.apply(rule, &found, mode)
            {
                return Some(result);
            }
        }
        None
    }

    fn apply(&mut self, rule: &Rule, found: &Match<'_>, mode: Mode) -> Option<Expr> {
        if !rule.condition.iter().all(|c| self.holds(c, found)) {
            return None;
        }
        let range = ConstIntBound::of_dtype(found.number(0).dtype);
        let fits = |value| self.bound_within(value, found, range).is_some();
        if !rule.fits.iter().all(fits) {
            return None;
        }
        if rule.computes && !self.keeps_within(&rule.pattern, &rule.replacement, found) {
            return None;
        }
        if rule.moved != 0 {
            // A dropped or duplicated operand must have no effect.
            let mut names = rule.moved;
            while names != 0 {
                if found.any(names.trailing_zeros() as u8).is_some_and(has_effect) {
                    return None;
                }
                names &= names - 1;
            }
        }
        self.depth += 1;
        let result = self.instantiate(&rule.replacement, found, mode);
        self.depth -= 1;
        result
    }

    fn holds(&self, condition: &Pattern, found: &Match<'_>) -> bool {
        if let Some(value) = found.constant(condition) {
            return value != 0;
        }
        let Pattern::Binary(op, a, b) = condition else {
            return false;
        };
        let bound = |side| self.bound_within(side, found, ConstIntBound::EVERYTHING);
        let (Some(x), Some(y)) = (bound(a), bound(b)) else {
            return false;
        };
        match op {
            BinOp::Lt => x.max < y.min,
            BinOp::Le => x.max <= y.min,
            BinOp::Gt => x.min > y.max,
            BinOp::Ge => x.min >= y.max,
            BinOp::Ne => x.max < y.min || x.min > y.max,
            _ => false,
        }
    }

    /// Builds the replacement. `None` if a constant does not fit.
    fn instantiate(&mut self, pattern: &Pattern, found: &Match<'_>, mode: Mode) -> Option<Expr> {
        if !matches!(pattern, Pattern::Any(_) | Pattern::Bool(_) | Pattern::Not(_))
            && let Some(value) = found.constant(pattern)
            && !matches!(pattern, Pattern::Binary(op, ..) if op.is_comparison() || op.is_logical())
        {
            let result = found.number(value);
            return (result.as_int() == Some(value)).then_some(result);
        }
        match pattern {
            Pattern::Any(name) => found.any(*name).cloned(),
            Pattern::Bool(value) => Some(Expr::bool(*value)),
            Pattern::Binary(op, a, b) => {
                let (a, b) = (
                    self.instantiate(a, found, mode)?,
                    self.instantiate(b, found, mode)?,
                );
                Some(self.make(*op, a, b, mode))
            }
            Pattern::Not(a) => {
                let a = self.instantiate(a, found, mode)?;
                Some(self.negate(a, mode))
            }
            Pattern::Select(parts) => {
                let c = self.instantiate(&parts[0], found, mode)?;
                let t = self.instantiate(&parts[1], found, mode)?;
                let f = self.instantiate(&parts[2], found, mode)?;
                Some(Expr::select(c, t, f))
            }
            Pattern::Ramp(parts) => {
                let base = self.instantiate(&parts[0], found, mode)?;
                let stride = self.instantiate(&parts[1], found, mode)?;
                Some(if stride.is_int(0) {
                    Expr::broadcast(base, found.lanes())
                } else {
                    Expr::ramp(base, stride, found.lanes())
                })
            }
            Pattern::Broadcast(value) => Some(Expr::broadcast(
                self.instantiate(value, found, mode)?,
                found.lanes(),
            )),
            Pattern::Const(_) | Pattern::Number(_) => None,
        }
    }
}

/// The opposite of a condition, without simplifying. For floating operands `not (a < b)` is no `b <= a` (NaN).
pub(super) fn plain_negation(condition: &Expr) -> Expr {
    if let ExprKind::Binary(op, a, b) = &condition.kind {
        let ordered = !a.dtype.is_floating();
        let make = |op, a: &Expr, b: &Expr| Expr::binary(op, a.clone(), b.clone());
        match op {
            BinOp::Lt if ordered => return make(BinOp::Le, b, a),
            BinOp::Le if ordered => return make(BinOp::Lt, b, a),
            BinOp::Gt if ordered => return make(BinOp::Le, a, b),
            BinOp::Ge if ordered => return make(BinOp::Lt, a, b),
            BinOp::Eq => return make(BinOp::Ne, a, b),
            BinOp::Ne => return make(BinOp::Eq, a, b),
            _ => {}
        }
    }
    match &condition.kind {
        ExprKind::Not(inner) => inner.clone(),
        _ => Expr::logical_not(condition.clone()),
    }
}

/// Calls on constants.
fn fold_call(op: Op, args: &[Expr], dtype: DType) -> Option<Expr> {
    if op == Op::Likely {
        let condition = &args[at!(Likely.cond)];
        return condition.as_int().is_some().then(|| condition.clone());
    }
    if !dtype.is_integer() || !dtype.is_scalar() {
        return None;
    }
    // The operations that follow have two operands, an infix operator's.
    let [a, b] = args else { return None };
    let (x, y) = (a.as_int(), b.as_int());
    if let (Some(x), Some(y)) = (x, y) {
        let in_width = (0..dtype.bits as i128).contains(&y);
        let value = match op {
            Op::BitwiseAnd => x & y,
            Op::BitwiseOr => x | y,
            Op::BitwiseXor => x ^ y,
            Op::ShiftLeft if in_width => x << y,
            Op::ShiftRight if in_width => x >> y,
            _ => return None,
        };
        return Some(Expr::constant(dtype, value));
    }
    let pure = |e: &Expr| is_pure_and_memory_free(e);
    match (op, x, y) {
        (Op::BitwiseAnd, _, Some(0)) if pure(a) => Some(b.clone()),
        (Op::BitwiseAnd, Some(0), _) if pure(b) => Some(a.clone()),
        (Op::BitwiseOr | Op::BitwiseXor | Op::ShiftLeft | Op::ShiftRight, _, Some(0)) => Some(a.clone()),
        (Op::BitwiseOr | Op::BitwiseXor, Some(0), _) => Some(b.clone()),
        _ => None,
    }
}

/// Whether no condition can change what a value is simplified to: constants, and floats that are made of floats.
/// Conditions are facts about integers and truth values.
fn is_beyond_conditions(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Int(_) | ExprKind::Float(_) => true,
        ExprKind::Var(_) => e.dtype.is_floating(),
        ExprKind::BufferLoad {
            indices,
            predicate: None,
            ..
        } => e.dtype.is_floating() && indices.iter().all(|index| index.as_int().is_some()),
        ExprKind::Binary(_, a, b) if e.dtype.is_floating() && e.size() <= SMALL => {
            is_beyond_conditions(a) && is_beyond_conditions(b)
        }
        _ => false,
    }
}
