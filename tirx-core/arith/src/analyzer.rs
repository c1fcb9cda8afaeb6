//! What is known at a point of the program, and the questions that a pass asks about it.

use std::cell::RefCell;

use rustc_hash::FxHashMap;

use super::const_int_bound::KnownBound;
use super::memo::Memo;
use super::sum::Sum;
use super::{ConstIntBound, ModularSet, fold};
use crate::intrin::Op;
use crate::ir::at;
use crate::ir::{BinOp, DType, Expr, ExprKind, Mutator, Var};

/// Knows facts about variables and answers questions about integer expressions.
///
/// ```
/// use tirx_arith::Analyzer;
/// use tirx_ir::{BinOp, DType, Expr, Var};
///
/// let tx = Var::new("tx", DType::INT32);
/// let mut analyzer = Analyzer::new();
/// analyzer.bind(&tx, &Expr::int32(0), &Expr::int32(256));
/// let condition = Expr::binary(BinOp::Lt, Expr::var(&tx), Expr::int32(256));
/// assert!(analyzer.can_prove(&condition));
/// ```
#[derive(Default)]
pub struct Analyzer {
    pub(super) var_bounds: FxHashMap<Var, ConstIntBound>,
    pub(super) var_modular: FxHashMap<Var, ModularSet>,
    pub(super) var_values: FxHashMap<Var, Expr>,
    /// Bounds of compound expressions, learned from constraints.
    pub(super) known_bounds: Vec<KnownBound>,
    /// Conditions that are known to hold, compared structurally.
    pub(super) literals: Vec<Expr>,
    /// Sums that are known to be non-negative.
    pub(super) facts: Vec<Sum>,
    /// Constraints that are in effect.
    pub(super) constraint_depth: usize,
    /// Whether the expression being simplified becomes a lane of a vector: see [`Analyzer::within_lanes`].
    pub(super) lanes: bool,
    /// Nesting depth of rules applied to results of rules.
    pub(super) depth: u32,
    /// Cached results of [`Analyzer::simplify`], valid until a fact is learned or forgotten.
    simplified: Memo<Expr>,
    /// Cached results of the rewriting simplifier; `None` for an expression that stays as it is.
    rewritten: Memo<Option<Expr>>,
    /// Cached bounds and modular sets of larger expressions: a value substituted for its variable is asked about again
    /// for each operator around it.
    pub(super) bounds: RefCell<Memo<ConstIntBound>>,
    pub(super) modular: RefCell<Memo<ModularSet>>,
    undo: Vec<Undo>,
}

/// How to undo a learned fact.
enum Undo {
    Bound(Var, Option<ConstIntBound>),
    Modular(Var, Option<ModularSet>),
    Value(Var, Option<Expr>),
    KnownBound,
    Literal,
    Fact,
    Constraint,
}

/// Marks a point in the sequence of learned facts; [`Analyzer::leave`] goes back to it.
#[must_use = "leave() takes it"]
#[derive(Debug)]
pub struct Scope(usize);

impl Analyzer {
    /// An analyzer that knows nothing.
    pub fn new() -> Analyzer {
        Analyzer::default()
    }

    /// Marks the current state of knowledge.
    pub fn scope(&self) -> Scope {
        Scope(self.undo.len())
    }

    /// Forgets everything learned since `scope` was created.
    pub fn leave(&mut self, scope: Scope) {
        fn restore<V>(map: &mut FxHashMap<Var, V>, var: Var, old: Option<V>) {
            match old {
                Some(value) => map.insert(var, value),
                None => map.remove(&var),
            };
        }
        if self.undo.len() > scope.0 {
            self.forget_results();
        }
        while self.undo.len() > scope.0 {
            match self.undo.pop() {
                Some(Undo::Bound(var, old)) => restore(&mut self.var_bounds, var, old),
                Some(Undo::Modular(var, old)) => restore(&mut self.var_modular, var, old),
                Some(Undo::Value(var, old)) => restore(&mut self.var_values, var, old),
                Some(Undo::KnownBound) => drop(self.known_bounds.pop()),
                Some(Undo::Literal) => drop(self.literals.pop()),
                Some(Undo::Fact) => drop(self.facts.pop()),
                Some(Undo::Constraint) => self.constraint_depth -= 1,
                None => {}
            }
        }
    }

    /// Learns that `min <= var < min + extent`. This implies that the loop runs at least once, so it holds within the
    /// loop's body only.
    pub fn bind(&mut self, var: &Var, min: &Expr, extent: &Expr) {
        let Some((min, extent)) = self.bind_range(var, min, extent) else {
            return;
        };
        if !var.dtype().is_int() || min.dtype != var.dtype() || extent.dtype != var.dtype() {
            return;
        }
        let index = Expr::var(var);
        if min.as_int().is_none() {
            self.learn_not_negative(&index, &min, 0);
        }
        if extent.as_int().is_none() {
            self.learn_not_negative(&fold::add(min, extent), &index, -1);
        }
    }

    /// Learns only the constant bounds of a loop variable, which stay valid after the loop. Gives the simplified `min`
    /// and `extent`, unless the loop has exactly one iteration.
    pub fn bind_range(&mut self, var: &Var, min: &Expr, extent: &Expr) -> Option<(Expr, Expr)> {
        if extent.is_int(1) {
            self.bind_value(var, min);
            return None;
        }
        let (min, extent) = (self.simplify(min), self.simplify(extent));
        if extent.is_int(1) {
            self.bind_value(var, &min);
            return None;
        }
        let (low, high) = (self.const_int_bound(&min), self.const_int_bound(&extent));
        if low.min == low.max && self.modular_set(&min).coeff == 0 {
            // The step is one, so nothing about divisibility follows.
            self.forget_modular(var);
        }
        let last = if high.max >= ConstIntBound::POS_INF || low.max >= ConstIntBound::POS_INF {
            ConstIntBound::POS_INF
        } else {
            low.max + high.max - 1
        };
        let bound =
            ConstIntBound::new(low.min, last.max(low.min)).intersect(ConstIntBound::of_dtype(var.dtype()));
        self.set_bound(var, bound);
        Some((min, extent))
    }

    /// Learns that `var` equals `value`, and substitutes `value` for it from here on. The value must be pure.
    pub fn bind_value(&mut self, var: &Var, value: &Expr) {
        let value = self.simplify(value);
        self.bind_facts_of(var, &value);
        if value.dtype == var.dtype() {
            let old = self.var_values.insert(var.clone(), value);
            self.note(Undo::Value(var.clone(), old));
        }
    }

    /// Learns the bounds and the modular set of `value` for `var` without substituting it: for values that read memory
    /// or must be computed once.
    pub fn bind_facts_of(&mut self, var: &Var, value: &Expr) {
        if value.dtype.is_integer() && value.dtype == var.dtype() {
            let bound = self.const_int_bound(value);
            let modular = self.modular_set(value);
            self.set_bound(var, bound);
            self.set_modular(var, modular);
        }
    }

    /// The value that is substituted for a variable, if [`Analyzer::bind_value`] gave one.
    pub fn value_of(&self, var: &Var) -> Option<&Expr> {
        self.var_values.get(var)
    }

    /// Learns bounds of a variable directly.
    pub fn set_bound(&mut self, var: &Var, bound: ConstIntBound) {
        let known = self.var_bounds.get(var).copied();
        if bound == known.unwrap_or_else(|| ConstIntBound::of_dtype(var.dtype().element())) {
            // Nothing new: what is cached stays valid.
            return;
        }
        let old = self.var_bounds.insert(var.clone(), bound);
        self.note(Undo::Bound(var.clone(), old));
    }

    /// Learns the modular set of a variable directly.
    pub fn set_modular(&mut self, var: &Var, modular: ModularSet) {
        if modular
            == self
                .var_modular
                .get(var)
                .copied()
                .unwrap_or(ModularSet::EVERYTHING)
        {
            return;
        }
        let old = self.var_modular.insert(var.clone(), modular);
        self.note(Undo::Modular(var.clone(), old));
    }

    /// Invalidates the caches: a fact was learned.
    fn note(&mut self, undo: Undo) {
        self.undo.push(undo);
        self.forget_results();
    }

    /// Sets whether the following expressions become lanes of a vector; gives the previous setting. For lanes both
    /// values of a `Select` are computed, so its condition says nothing about either.
    pub fn within_lanes(&mut self, lanes: bool) -> bool {
        if self.lanes != lanes {
            self.forget_results();
        }
        std::mem::replace(&mut self.lanes, lanes)
    }

    fn forget_results(&mut self) {
        self.simplified.forget();
        self.rewritten.forget();
        self.bounds.get_mut().forget();
        self.modular.get_mut().forget();
    }

    /// The cached result of the rewriting simplifier.
    pub(super) fn rewritten(&self, expr: &Expr) -> Option<Expr> {
        let known = self.rewritten.get_with_spans(expr)?;
        Some(match known {
            Some(result) => result.clone().at(expr.span),
            None => expr.clone(),
        })
    }

    pub(super) fn remember_rewritten(&mut self, expr: &Expr, result: &Expr) {
        let changed = (!result.same_node(expr)).then(|| result.clone());
        self.rewritten.insert(expr, changed);
    }

    fn forget_modular(&mut self, var: &Var) {
        if self.var_modular.contains_key(var) {
            self.set_modular(var, ModularSet::EVERYTHING);
        }
    }

    /// Learns that `condition` holds until the returned scope is left. A condition that reads memory or has an effect
    /// teaches nothing: it may be false later.
    pub fn enter_constraint(&mut self, condition: &Expr) -> Scope {
        // It is evaluated where it does not hold yet.
        let condition = self.rewrite_simplify(&strip_likely(condition));
        let scope = self.scope();
        self.constraint_depth += 1;
        self.note(Undo::Constraint);
        self.learn(&condition);
        scope
    }

    /// Learns a `condition` that holds for every thread alike (such as: the length of a loop that runs is positive),
    /// until the enclosing scope is left.
    pub fn assume(&mut self, condition: &Expr) {
        let condition = self.rewrite_simplify(&strip_likely(condition));
        self.learn(&condition);
    }

    /// Runs `f` where `condition` holds.
    pub fn with_constraint<R>(&mut self, condition: &Expr, f: impl FnOnce(&mut Analyzer) -> R) -> R {
        let scope = self.enter_constraint(condition);
        let result = f(self);
        self.leave(scope);
        result
    }

    fn learn(&mut self, condition: &Expr) {
        if condition.dtype != DType::BOOL || condition.as_int().is_some() {
            return;
        }
        // `a & b` of truth values holds where both do, as `a and b`.
        let both = match &condition.kind {
            ExprKind::Call {
                op: Op::BitwiseAnd,
                args,
            } => Some((&args[at!(BitwiseAnd.x)], &args[at!(BitwiseAnd.y)])),
            _ => condition.as_binary(BinOp::And),
        };
        if let Some((a, b)) = both {
            self.learn(&strip_likely(a));
            self.learn(&strip_likely(b));
            return;
        }
        if !is_pure_and_memory_free(condition) {
            return;
        }
        self.literals.push(condition.clone());
        self.note(Undo::Literal);
        if let ExprKind::Binary(op, a, b) = &condition.kind
            && a.dtype.is_integer()
            && a.dtype.is_scalar()
        {
            let (op, a, b) = (*op, a.clone(), b.clone());
            self.learn_comparison(op, &a, &b);
        }
    }

    fn learn_comparison(&mut self, op: BinOp, a: &Expr, b: &Expr) {
        let (x, y) = (self.const_int_bound(a), self.const_int_bound(b));
        let inf = ConstIntBound::EVERYTHING;
        let (for_a, for_b) = match op {
            BinOp::Lt => (
                ConstIntBound::new(inf.min, y.max - 1),
                ConstIntBound::new(x.min + 1, inf.max),
            ),
            BinOp::Le => (
                ConstIntBound::new(inf.min, y.max),
                ConstIntBound::new(x.min, inf.max),
            ),
            BinOp::Gt => return self.learn_comparison(BinOp::Lt, b, a),
            BinOp::Ge => return self.learn_comparison(BinOp::Le, b, a),
            BinOp::Eq => (y, x),
            // `x != c` narrows a range only at one of its ends.
            BinOp::Ne => {
                let cut = |known: ConstIntBound, other: ConstIntBound| match other.min == other.max {
                    true if known.min == other.min => ConstIntBound::new(known.min + 1, inf.max),
                    true if known.max == other.max => ConstIntBound::new(inf.min, known.max - 1),
                    _ => inf,
                };
                (cut(x, y), cut(y, x))
            }
            _ => return,
        };
        self.learn_bound(a, x, for_a);
        self.learn_bound(b, y, for_b);
        if op == BinOp::Eq {
            self.learn_divisibility(a, b);
            self.learn_divisibility(b, a);
        }
        if a.dtype.is_int() && matches!(a.dtype.bits, 32 | 64) {
            match op {
                BinOp::Lt => self.learn_not_negative(b, a, -1),
                BinOp::Le => self.learn_not_negative(b, a, 0),
                BinOp::Eq => {
                    self.learn_not_negative(a, b, 0);
                    self.learn_not_negative(b, a, 0);
                }
                _ => {}
            }
        }
    }

    fn learn_bound(&mut self, expr: &Expr, known: ConstIntBound, new: ConstIntBound) {
        let bound = known.intersect(new);
        if bound == known || expr.as_int().is_some() {
            return;
        }
        match &expr.kind {
            ExprKind::Var(v) => self.set_bound(v, bound),
            _ => {
                self.known_bounds.push(KnownBound {
                    expr: expr.clone(),
                    bound,
                });
                self.note(Undo::KnownBound);
                // x + c within [l, h] bounds x as well, and so does x // c.
                if let ExprKind::Binary(op, a, b) = &expr.kind
                    && let Some(c) = b.as_int()
                    && expr.dtype.is_int()
                    && matches!(expr.dtype.bits, 32 | 64)
                {
                    let inner = match op {
                        BinOp::Add => ConstIntBound::new(bound.min - c, bound.max - c),
                        BinOp::Sub => ConstIntBound::new(bound.min + c, bound.max + c),
                        BinOp::FloorDiv if c > 0 => ConstIntBound::new(
                            bound.min.saturating_mul(c),
                            bound.max.saturating_mul(c).saturating_add(c - 1),
                        ),
                        _ => return,
                    };
                    let known = self.const_int_bound(a);
                    self.learn_bound(a, known, inner);
                }
            }
        }
    }

    /// `x % c == r` gives the modular set of a variable.
    fn learn_divisibility(&mut self, remainder: &Expr, value: &Expr) {
        if let Some((x, c)) = remainder.as_binary(BinOp::FloorMod)
            && let (ExprKind::Var(var), Some(c), Some(r)) = (&x.kind, c.as_int(), value.as_int())
            && c > 0
        {
            let new = self.modular_set(x).intersect(ModularSet::new(c, r));
            self.set_modular(var, new);
        }
    }

    /// Learns that `a - b + c >= 0`.
    fn learn_not_negative(&mut self, a: &Expr, b: &Expr, c: i128) {
        let fact = self.canonical_difference(a, b).plus(c);
        // For a single variable constant bounds hold all this information.
        if fact.len() > 1 {
            self.facts.push(fact);
            self.note(Undo::Fact);
        }
    }

    /// The canonical form, further simplified by the rules: equal index expressions become structurally equal.
    pub fn simplify(&mut self, expr: &Expr) -> Expr {
        if is_simple(expr) && !self.has_value(expr) {
            return expr.clone();
        }
        if !has_effect(expr) {
            return self.simplify_pure(expr);
        }
        /// Simplifies the operands that have no effect, so that effects keep their number and position.
        struct Around<'a>(&'a mut Analyzer);
        impl Mutator for Around<'_> {
            fn expr(&mut self, expr: &Expr) -> Expr {
                if has_effect(expr) {
                    self.walk_expr(expr)
                } else {
                    self.0.simplify_pure(expr)
                }
            }
        }
        Around(self).walk_expr(expr)
    }

    fn simplify_pure(&mut self, expr: &Expr) -> Expr {
        if let Some(known) = self.simplified.get_with_spans(expr) {
            return known.clone().at(expr.span);
        }
        // Canonical first, because rewriting may hide structure that it needs; canonical last, because it determines
        // the order of terms.
        let first = self.canonical_simplify(expr);
        let mut result = first.clone();
        if !is_leaf(&result) {
            result = self.rewrite_simplify(&first);
            // Terms of one index that sorting separated are joined in a second round.
            if !is_leaf(&result) && (!result.same_node(&first) || result.has_long_sum()) {
                result = self.canonical_simplify(&result);
            }
        }
        self.simplified.insert(expr, result.clone());
        result.at(expr.span)
    }

    fn has_value(&self, expr: &Expr) -> bool {
        matches!(&expr.kind, ExprKind::Var(v) if self.var_values.contains_key(v))
    }

    /// Whether the condition holds whatever the variables are, given what is known.
    pub fn can_prove(&mut self, condition: &Expr) -> bool {
        if let Some(v) = condition.as_int() {
            return v != 0;
        }
        if has_effect(condition) {
            return false;
        }
        let simple = self.rewrite_simplify(condition);
        simple.as_int() == Some(1) || simple.as_int().is_none() && self.simplify(&simple).as_int() == Some(1)
    }

    /// Whether two integer expressions of one dtype are equal whatever the variables are.
    pub fn can_prove_equal(&mut self, a: &Expr, b: &Expr) -> bool {
        if a == b {
            return !has_effect(a);
        }
        if a.dtype != b.dtype {
            return match (a.as_int(), b.as_int()) {
                (Some(x), Some(y)) => x == y,
                _ if a.dtype.is_int() && b.dtype.is_int() => {
                    let wide = DType::int(a.dtype.bits.max(b.dtype.bits)).with_lanes(a.dtype.lanes);
                    a.dtype.lanes == b.dtype.lanes
                        && self.can_prove_equal(&fold::cast(a.clone(), wide), &fold::cast(b.clone(), wide))
                }
                _ => false,
            };
        }
        if let (Some(x), Some(y)) = (a.as_int(), b.as_int()) {
            return x == y;
        }
        if !a.dtype.is_integer() || has_effect(a) || has_effect(b) {
            return false;
        }
        self.can_prove(&fold::binary(BinOp::Eq, a.clone(), b.clone()))
    }

    /// Whether `expr >= bound` holds, by its constant bounds.
    pub fn can_prove_at_least(&mut self, expr: &Expr, bound: i128) -> bool {
        self.const_int_bound(expr).min >= bound || {
            let simple = self.simplify(expr);
            self.const_int_bound(&simple).min >= bound
        }
    }

    /// Whether `expr < bound` holds, by its constant bounds.
    pub fn can_prove_less(&mut self, expr: &Expr, bound: i128) -> bool {
        self.const_int_bound(expr).max < bound || {
            let simple = self.simplify(expr);
            self.const_int_bound(&simple).max < bound
        }
    }
}

/// The argument of `likely(...)`.
fn strip_likely(expr: &Expr) -> Expr {
    match expr.as_call(Op::Likely) {
        Some([inner]) => inner.clone(),
        _ => expr.clone(),
    }
}

fn is_leaf(expr: &Expr) -> bool {
    matches!(
        expr.kind,
        ExprKind::Int(_) | ExprKind::Var(_) | ExprKind::Float(_) | ExprKind::Str(_)
    )
}

fn is_simple(expr: &Expr) -> bool {
    is_leaf(expr)
}

/// Whether evaluating the expression has a side effect.
pub fn has_effect(expr: &Expr) -> bool {
    expr.has_effect()
}

/// Whether the value depends on nothing but variables.
pub fn is_pure_and_memory_free(expr: &Expr) -> bool {
    expr.is_pure()
}
