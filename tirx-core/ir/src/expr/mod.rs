//! Expressions.

mod build;
pub(crate) mod contents;
mod equal;

use std::fmt;
use std::sync::Arc;

use self::contents::Contents;
use super::{Buffer, DType, Var};
use crate::intrin::Op;
use crate::source::Span;

/// Arithmetic, comparison and logic on two operands of one dtype.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names say it")]
pub enum BinOp {
    Add,
    Sub,
    Mul,
    /// Division: exact for floats, truncating (C's `/`) for integers.
    Div,
    /// Remainder of the truncating division (C's `%`).
    Mod,
    /// Division rounded to minus infinity (Python's `//`).
    FloorDiv,
    /// Remainder of the floor division (Python's `%`).
    FloorMod,
    Min,
    Max,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    And,
    Or,
}

impl BinOp {
    /// Whether the result is bool while the operands may be anything.
    pub fn is_comparison(self) -> bool {
        matches!(
            self,
            BinOp::Eq | BinOp::Ne | BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge
        )
    }

    /// Whether operands and result are bool.
    pub fn is_logical(self) -> bool {
        matches!(self, BinOp::And | BinOp::Or)
    }

    /// Whether swapping the operands keeps the value.
    pub fn is_commutative(self) -> bool {
        use BinOp::*;
        matches!(self, Add | Mul | Min | Max | Eq | Ne | And | Or)
    }
}

/// What an expression is. See [`super`] for what it means.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// The value of a variable.
    Var(Var),
    /// An integer or bool constant (0/1), in range of the node's dtype.
    Int(i128),
    /// A floating constant, rounded to the node's dtype.
    Float(f64),
    /// A string, only as an argument of calls and attributes; dtype `handle`.
    Str(Arc<str>),
    /// Conversion to the node's dtype, as C converts (float to int truncates).
    Cast(Expr),
    /// Two operands.
    Binary(BinOp, Expr, Expr),
    /// Logical negation.
    Not(Expr),
    /// `condition ? true_value : false_value`, all three evaluated.
    Select(Expr, Expr, Expr),
    /// Elements of a buffer. One index may be a vector (`Ramp`/`Broadcast`): the value then has as many lanes.
    BufferLoad {
        /// The buffer.
        buffer: Buffer,
        /// One index per dimension.
        indices: Vec<Expr>,
        /// Mask of the lanes to load; `None` loads all.
        predicate: Option<Expr>,
    },
    /// `base, base + stride, …`, `lanes` values.
    Ramp {
        /// First lane.
        base: Expr,
        /// Step.
        stride: Expr,
        /// Count; equals the dtype's lanes over the base's.
        lanes: u16,
    },
    /// One value in all lanes.
    Broadcast {
        /// The value.
        value: Expr,
        /// Count.
        lanes: u16,
    },
    /// Lanes selected by constant `indices` from the concatenation of `vectors`.
    Shuffle {
        /// The source vectors.
        vectors: Vec<Expr>,
        /// Which lanes.
        indices: Vec<Expr>,
    },
    /// A call of an intrinsic, whose row defines it.
    Call {
        /// The intrinsic.
        op: Op,
        /// Its arguments. Strings are [`ExprKind::Str`].
        args: Vec<Expr>,
    },
    /// `value` under a name within `body`.
    Let(Var, Expr, Expr),
}

/// An expression with its dtype and source text.
#[derive(Debug)]
pub struct ExprNode {
    /// What it is.
    pub kind: ExprKind,
    /// The dtype of its value.
    pub dtype: DType,
    /// The text it came from.
    pub span: Span,
    /// Height of the tree, this node included.
    depth: u32,
    /// Number of nodes, shared ones counted once per occurrence; saturates at `u32::MAX`.
    size: u32,
    /// Equal expressions have equal hashes, so that hashing is free and most inequalities are found at once.
    hash: u32,
    /// What it and its operands do and hold.
    contents: Contents,
}

impl Drop for ExprNode {
    /// Frees a deep expression level by level. Shallow ones are freed as always, by recursion.
    fn drop(&mut self) {
        const SHALLOW: u32 = 100;
        if self.depth <= SHALLOW {
            return;
        }
        let mut left = Vec::new();
        fn take(node: &mut ExprNode, left: &mut Vec<Expr>) {
            let kind = std::mem::replace(&mut node.kind, ExprKind::Int(0));
            node.depth = 1;
            kind.for_each_operand(|operand| {
                if operand.depth() > SHALLOW {
                    left.push(operand.clone());
                }
            });
        }
        take(self, &mut left);
        while let Some(operand) = left.pop() {
            // Whoever holds the last reference takes the node apart.
            if let Ok(mut node) = Arc::try_unwrap(operand.0) {
                take(&mut node, &mut left);
            }
        }
    }
}

/// A shared expression.
///
/// `==` is structural with variables and buffers by identity and spans ignored; for equality up to renaming of
/// bound variables see `ir::structural_equal`.
#[derive(Clone)]
pub struct Expr(Arc<ExprNode>);

impl std::ops::Deref for Expr {
    type Target = ExprNode;
    fn deref(&self) -> &ExprNode {
        &self.0
    }
}

impl fmt::Debug for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}:{}", self.kind, self.dtype)
    }
}

impl Expr {
    /// Levels of the tree: 1 for a leaf. Bounds the recursion of whoever walks it.
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Number of nodes of the tree, shared ones counted once per occurrence: the cost of a walk. Saturates at
    /// `u32::MAX`.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Whether evaluating it has a side effect.
    pub fn has_effect(&self) -> bool {
        self.contents.has(Contents::UPDATES)
    }

    /// Whether evaluating it reads no memory and no machine state and has no side effect, so that it may be evaluated
    /// elsewhere, more often or not at all.
    pub fn is_pure(&self) -> bool {
        !self.contents.has(Contents::UPDATES.and(Contents::READS))
    }

    /// Whether it has a call of an intrinsic.
    pub fn has_call(&self) -> bool {
        self.contents.has(Contents::CALLS)
    }

    /// Whether the type of a value, a buffer or a pointer in it is a floating type that some targets lack
    /// ([`DType::is_bfloat16`], [`DType::is_small_float`]).
    pub fn has_narrow_float(&self) -> bool {
        self.contents.has(Contents::NARROW_FLOATS)
    }

    /// Whether it has a sum of three terms.
    pub fn has_long_sum(&self) -> bool {
        self.contents.has(Contents::LONG_SUMS)
    }

    /// The constant, if it is an integer or bool one.
    pub fn as_int(&self) -> Option<i128> {
        match self.kind {
            ExprKind::Int(v) => Some(v),
            _ => None,
        }
    }

    /// The constant, if it is a floating one.
    pub fn as_float(&self) -> Option<f64> {
        match self.kind {
            ExprKind::Float(v) => Some(v),
            _ => None,
        }
    }

    /// The text, if it is a string.
    pub fn as_str(&self) -> Option<&str> {
        match &self.kind {
            ExprKind::Str(s) => Some(s),
            _ => None,
        }
    }

    /// The variable, if it is one.
    pub fn as_var(&self) -> Option<&Var> {
        match &self.kind {
            ExprKind::Var(v) => Some(v),
            _ => None,
        }
    }

    /// The operands, if it is this binary node.
    pub fn as_binary(&self, op: BinOp) -> Option<(&Expr, &Expr)> {
        match &self.kind {
            ExprKind::Binary(o, a, b) if *o == op => Some((a, b)),
            _ => None,
        }
    }

    /// The arguments, if it is a call of `op`.
    pub fn as_call(&self, op: Op) -> Option<&[Expr]> {
        match &self.kind {
            ExprKind::Call { op: o, args } if *o == op => Some(args),
            _ => None,
        }
    }

    /// Whether it is the integer constant `value` (of any integer dtype).
    pub fn is_int(&self, value: i128) -> bool {
        self.as_int() == Some(value)
    }

    /// A hash of the whole expression, equal for equal ones.
    #[doc(hidden)]
    pub fn structural_hash(&self) -> u32 {
        self.hash
    }

    /// Whether both are the same node in memory.
    pub fn same_node(&self, other: &Expr) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The operands, left to right. Indices of a load, arguments of a call; a `Let` gives value and body.
    pub fn operands(&self) -> Operands<'_> {
        let (few, first, second): ([Option<&Expr>; 3], &[Expr], &[Expr]) = match &self.kind {
            ExprKind::Var(_) | ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Str(_) => {
                ([None; 3], &[], &[])
            }
            ExprKind::Cast(a) | ExprKind::Not(a) | ExprKind::Broadcast { value: a, .. } => {
                ([Some(a), None, None], &[], &[])
            }
            ExprKind::Binary(_, a, b)
            | ExprKind::Ramp {
                base: a, stride: b, ..
            }
            | ExprKind::Let(_, a, b) => ([Some(a), Some(b), None], &[], &[]),
            ExprKind::Select(a, b, c) => ([Some(a), Some(b), Some(c)], &[], &[]),
            ExprKind::BufferLoad {
                indices, predicate, ..
            } => ([None; 3], indices, predicate.as_slice()),
            ExprKind::Shuffle { vectors, indices } => ([None; 3], vectors, indices),
            ExprKind::Call { args, .. } => ([None; 3], args, &[]),
        };
        Operands {
            few,
            next: 0,
            first: first.iter(),
            second: second.iter(),
        }
    }
}

/// The operands of an expression in order, without allocating a list.
#[derive(Clone, Debug)]
pub struct Operands<'a> {
    few: [Option<&'a Expr>; 3],
    next: usize,
    first: std::slice::Iter<'a, Expr>,
    second: std::slice::Iter<'a, Expr>,
}

impl<'a> Iterator for Operands<'a> {
    type Item = &'a Expr;

    fn next(&mut self) -> Option<&'a Expr> {
        if let Some(Some(operand)) = self.few.get(self.next) {
            self.next += 1;
            return Some(operand);
        }
        match self.first.next() {
            Some(operand) => Some(operand),
            None => self.second.next(),
        }
    }
}

impl ExprKind {
    /// The operands, left to right; see [`Expr::operands`].
    pub fn for_each_operand<'a>(&'a self, mut f: impl FnMut(&'a Expr)) {
        match self {
            ExprKind::Var(_) | ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Str(_) => {}
            ExprKind::Cast(a) | ExprKind::Not(a) => f(a),
            ExprKind::Broadcast { value, .. } => f(value),
            ExprKind::Binary(_, a, b)
            | ExprKind::Ramp {
                base: a, stride: b, ..
            }
            | ExprKind::Let(_, a, b) => {
                f(a);
                f(b);
            }
            ExprKind::Select(a, b, c) => {
                f(a);
                f(b);
                f(c);
            }
            ExprKind::BufferLoad {
                indices, predicate, ..
            } => indices.iter().chain(predicate).for_each(f),
            ExprKind::Shuffle { vectors, indices } => vectors.iter().chain(indices).for_each(f),
            ExprKind::Call { args, .. } => args.iter().for_each(f),
        }
    }
}
