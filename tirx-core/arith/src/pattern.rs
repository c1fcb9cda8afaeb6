//! Patterns of rewrite rules, and how they are matched.

use std::sync::Arc;

use crate::arith::fold;
use crate::ir::{BinOp, DType, Expr, ExprKind};

/// Most names a rule may use.
pub(super) const NAMES: usize = 6;

/// Most constants a rule may use: `c1 … c3`.
pub(super) const CONSTANTS: usize = 4;

/// A pattern tree.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Pattern {
    /// Any expression (the same at each occurrence).
    Any(u8),
    /// An integer constant.
    Const(u8),
    /// This integer.
    Number(i128),
    /// `true` or `false`.
    Bool(bool),
    Binary(BinOp, Box<Pattern>, Box<Pattern>),
    Not(Box<Pattern>),
    Select(Box<[Pattern; 3]>),
    /// A vector whose length is the rule's `lanes`.
    Ramp(Box<[Pattern; 2]>),
    Broadcast(Box<Pattern>),
}

/// A rule, read. Its commuted variants share replacement and conditions.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub(super) pattern: Pattern,
    pub(super) replacement: Arc<Pattern>,
    /// All must hold.
    pub(super) condition: Arc<[Pattern]>,
    /// What must not overflow.
    pub(super) fits: Arc<[Pattern]>,
    /// A bit for each name that does not occur exactly once on each side: what it matches must not have effects.
    pub(super) moved: u16,
    /// The replacement has a sum, difference or product.
    pub(super) computes: bool,
    /// The kinds of the root's operands; 0 for any.
    pub(super) kinds: [u8; 2],
}

/// The bindings of a match.
#[derive(Clone, Debug)]
pub(super) struct Match<'e> {
    any: [Option<&'e Expr>; NAMES],
    constants: [Option<i128>; CONSTANTS],
    /// The integer dtype of the rule's operands (one lane).
    dtype: Option<DType>,
    lanes: u16,
}

impl<'e> Match<'e> {
    const NOTHING: Match<'static> = Match {
        any: [None; NAMES],
        constants: [None; CONSTANTS],
        dtype: None,
        lanes: 0,
    };

    /// Matches a binary node without building it.
    pub(super) fn binary(rule: &Rule, a: &'e Expr, b: &'e Expr) -> Option<Match<'e>> {
        let Pattern::Binary(_, p, q) = &rule.pattern else {
            return None;
        };
        let mut found = Match::NOTHING;
        (found.matches(p, a) && found.matches(q, b)).then_some(found)
    }

    /// Matches a node.
    pub(super) fn whole(rule: &Rule, expr: &'e Expr) -> Option<Match<'e>> {
        let mut found = Match::NOTHING;
        found.matches(&rule.pattern, expr).then_some(found)
    }

    fn matches(&mut self, pattern: &Pattern, expr: &'e Expr) -> bool {
        match (pattern, &expr.kind) {
            (Pattern::Any(n), _) => {
                let slot = &mut self.any[*n as usize];
                if let Some(known) = *slot {
                    return known == expr;
                }
                *slot = Some(expr);
                self.note_dtype(expr.dtype);
                true
            }
            (Pattern::Const(n), ExprKind::Int(v)) if !expr.dtype.is_bool() => {
                let slot = &mut self.constants[*n as usize];
                if let Some(known) = slot {
                    return known == v;
                }
                *slot = Some(*v);
                self.note_dtype(expr.dtype);
                true
            }
            (Pattern::Number(n), ExprKind::Int(v)) if !expr.dtype.is_bool() => {
                self.note_dtype(expr.dtype);
                n == v
            }
            (Pattern::Bool(n), ExprKind::Int(v)) => expr.dtype.is_bool() && *n == (*v != 0),
            (Pattern::Binary(op, p, q), ExprKind::Binary(o, a, b)) => {
                op == o && self.matches(p, a) && self.matches(q, b)
            }
            (Pattern::Not(p), ExprKind::Not(a)) => self.matches(p, a),
            (Pattern::Select(p), ExprKind::Select(c, t, f)) => {
                self.matches(&p[0], c) && self.matches(&p[1], t) && self.matches(&p[2], f)
            }
            (Pattern::Ramp(p), ExprKind::Ramp { base, stride, lanes }) => {
                self.same_lanes(*lanes) && self.matches(&p[0], base) && self.matches(&p[1], stride)
            }
            (Pattern::Broadcast(p), ExprKind::Broadcast { value, lanes }) => {
                self.same_lanes(*lanes) && self.matches(p, value)
            }
            _ => false,
        }
    }

    fn same_lanes(&mut self, lanes: u16) -> bool {
        if self.lanes == 0 {
            self.lanes = lanes;
        }
        self.lanes == lanes
    }

    fn note_dtype(&mut self, dtype: DType) {
        if self.dtype.is_none() && dtype.is_integer() {
            self.dtype = Some(dtype.element());
        }
    }

    /// The expression under a name.
    pub(super) fn any(&self, name: u8) -> Option<&'e Expr> {
        *self.any.get(name as usize)?
    }

    /// The expressions under all names.
    pub(super) fn operands(&self) -> impl Iterator<Item = &'e Expr> {
        self.any.iter().copied().flatten()
    }

    /// The lanes of the vectors matched; 0 if none was.
    pub(super) fn lanes(&self) -> u16 {
        self.lanes
    }

    /// A number in the dtype of the rule's operands.
    pub(super) fn number(&self, value: i128) -> Expr {
        Expr::constant(self.dtype.unwrap_or(DType::INT32), value)
    }

    /// The value of a pattern of constants; `None` if it has other names or divides by zero. Booleans are 0 and 1.
    pub(super) fn constant(&self, pattern: &Pattern) -> Option<i128> {
        match pattern {
            Pattern::Const(n) => self.constants[*n as usize],
            Pattern::Number(v) => Some(*v),
            Pattern::Bool(v) => Some(*v as i128),
            Pattern::Any(n) => self.any(*n)?.as_int(),
            Pattern::Binary(op, a, b) => {
                let (a, b) = (self.constant(a)?, self.constant(b)?);
                // 128 bits, so that nothing wraps: whether a constant of the replacement fits is checked there.
                match op {
                    BinOp::Mul => a.checked_mul(b),
                    BinOp::Or => Some((a != 0 || b != 0) as i128),
                    BinOp::And => Some((a != 0 && b != 0) as i128),
                    _ if op.is_comparison() => fold::eval_int(*op, DType::INT64, a, b),
                    _ => wide(*op, a, b),
                }
            }
            Pattern::Not(a) => Some((self.constant(a)? == 0) as i128),
            _ => None,
        }
    }
}

fn wide(op: BinOp, a: i128, b: i128) -> Option<i128> {
    match op {
        BinOp::Add => a.checked_add(b),
        BinOp::Sub => a.checked_sub(b),
        BinOp::Min => Some(a.min(b)),
        BinOp::Max => Some(a.max(b)),
        BinOp::Div => a.checked_div(b),
        BinOp::Mod => a.checked_rem(b),
        BinOp::FloorDiv if b != 0 => Some(fold::floor_div(a, b)),
        BinOp::FloorMod if b != 0 => Some(fold::floor_mod(a, b)),
        _ => None,
    }
}
