//! Expressions.

use std::fmt;
use std::sync::Arc;

use super::{Buffer, DType, Minifloat, Var, odd_f32, odd_f64};
use crate::intrin::{Effect, Op};
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
        /// One index a dimension.
        indices: Vec<Expr>,
        /// Lanes to load, where not all.
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
    /// Lanes picked by constant `indices` from the concatenation of `vectors`.
    Shuffle {
        /// Where lanes come from.
        vectors: Vec<Expr>,
        /// Which lanes.
        indices: Vec<Expr>,
    },
    /// A call of an intrinsic; the table row says what it means.
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
    /// Levels below and including this node.
    depth: u32,
    /// Nodes, shared ones counted each time they are reached; `u32::MAX` stands for any more.
    size: u32,
    /// Equal expressions have equal ones, so that hashing costs nothing and most inequalities are seen at once.
    hash: u32,
    /// What evaluating it, or anything in it, does: [`UPDATES`] and [`READS`].
    does: u8,
}

/// It may do more than give a value.
const UPDATES: u8 = 1;
/// Its value depends on memory or machine state, or it updates some.
const READS: u8 = 2;

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

/// Raw constructors: they check nothing and fold nothing. Operands must already have one dtype.
/// [`crate::fold`] has those that fold constants; [`crate::typing`] those that apply the promotion rules.
impl Expr {
    /// An expression.
    pub fn new(kind: ExprKind, dtype: DType, span: Span) -> Expr {
        let (mut depth, mut size) = (0, 1u32);
        let (mut hash, mut does) = own_hash(&kind, dtype);
        kind.for_each_operand(|e| {
            let node = &*e.0;
            if node.depth > depth {
                depth = node.depth;
            }
            size = size.saturating_add(node.size);
            hash = mix(hash, node.hash as u64);
            does |= node.does;
        });
        Expr(Arc::new(ExprNode {
            kind,
            dtype,
            span,
            depth: depth + 1,
            size,
            // The upper half of a product is the well mixed one.
            hash: (hash >> 32) as u32,
            does,
        }))
    }

    /// Levels of the tree: 1 for a leaf. Bounds the recursion of whoever walks it.
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Nodes of the tree, shared ones counted each time they are reached: what a walk costs. `u32::MAX` or more is
    /// `u32::MAX`.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Whether evaluating it may do more than give a value.
    pub fn has_effect(&self) -> bool {
        self.does & UPDATES != 0
    }

    /// Whether evaluating it reads no memory and no machine state and does nothing else: it may be evaluated
    /// elsewhere, more often or not at all.
    pub fn is_pure(&self) -> bool {
        self.does == 0
    }

    /// An integer or bool constant, wrapped to the dtype's range; a floating dtype gives a floating constant,
    /// a vector dtype a broadcast.
    pub fn constant(dtype: DType, value: i128) -> Expr {
        if dtype.is_vector() {
            return Expr::broadcast(Expr::constant(dtype.element(), value), dtype.lanes);
        }
        if dtype.is_floating() {
            return Expr::float(dtype, value as f64);
        }
        if let Some(shared) = small::constant(dtype, value) {
            return shared;
        }
        Expr::new(ExprKind::Int(dtype.wrap(value)), dtype, Span::NONE)
    }

    /// An `int32` constant.
    pub fn int32(value: i32) -> Expr {
        Expr::constant(DType::INT32, value as i128)
    }

    /// An `int64` constant.
    pub fn int64(value: i64) -> Expr {
        Expr::constant(DType::INT64, value as i128)
    }

    /// A bool constant.
    pub fn bool(value: bool) -> Expr {
        Expr::constant(DType::BOOL, value as i128)
    }

    /// A floating constant (vector dtypes broadcast).
    pub fn float(dtype: DType, value: f64) -> Expr {
        if dtype.is_vector() {
            return Expr::broadcast(Expr::float(dtype.element(), value), dtype.lanes);
        }
        let value = match dtype.bits {
            32 => value as f32 as f64,
            16 if dtype.is_float() => half::f16::from_f32(odd_f32(value)).to_f64(),
            16 => half::bf16::from_f32(odd_f32(value)).to_f64(),
            ..=8 => Minifloat::of(dtype.code).map_or(value, |format| format.round(value)),
            _ => value,
        };
        Expr::new(ExprKind::Float(value), dtype, Span::NONE)
    }

    /// An integer as a floating constant, rounded once.
    pub fn float_of(dtype: DType, value: i128) -> Expr {
        match dtype.bits {
            64 => Expr::float(dtype, value as f64),
            _ => Expr::float(dtype, odd_f64(value)),
        }
    }

    /// A string.
    pub fn string(value: impl Into<Arc<str>>) -> Expr {
        Expr::new(ExprKind::Str(value.into()), DType::HANDLE, Span::NONE)
    }

    /// The value of `var`.
    pub fn var(var: &Var) -> Expr {
        Expr::new(ExprKind::Var(var.clone()), var.dtype(), Span::NONE)
    }

    /// A binary node.
    pub fn binary(op: BinOp, a: Expr, b: Expr) -> Expr {
        debug_assert_eq!(a.dtype, b.dtype, "operands of {op:?}: {a:?} and {b:?}");
        let dtype = if op.is_comparison() {
            DType::BOOL.with_lanes(a.dtype.lanes)
        } else {
            a.dtype
        };
        let span = a.span.to(b.span);
        Expr::new(ExprKind::Binary(op, a, b), dtype, span)
    }

    /// Logical negation.
    pub fn logical_not(a: Expr) -> Expr {
        let (dtype, span) = (a.dtype, a.span);
        Expr::new(ExprKind::Not(a), dtype, span)
    }

    /// Conversion; the operand itself where it has the dtype already.
    pub fn cast(self, dtype: DType) -> Expr {
        if self.dtype == dtype {
            return self;
        }
        let span = self.span;
        Expr::new(ExprKind::Cast(self), dtype, span)
    }

    /// A select.
    pub fn select(condition: Expr, true_value: Expr, false_value: Expr) -> Expr {
        let (dtype, span) = (true_value.dtype, condition.span.to(false_value.span));
        Expr::new(ExprKind::Select(condition, true_value, false_value), dtype, span)
    }

    /// A ramp.
    pub fn ramp(base: Expr, stride: Expr, lanes: u16) -> Expr {
        let (dtype, span) = (base.dtype.with_lanes(base.dtype.lanes * lanes), base.span);
        Expr::new(ExprKind::Ramp { base, stride, lanes }, dtype, span)
    }

    /// A broadcast.
    pub fn broadcast(value: Expr, lanes: u16) -> Expr {
        let (dtype, span) = (value.dtype.with_lanes(value.dtype.lanes * lanes), value.span);
        Expr::new(ExprKind::Broadcast { value, lanes }, dtype, span)
    }

    /// A load. The dtype has as many lanes as the buffer's element times those of the vector index.
    pub fn load(buffer: &Buffer, indices: Vec<Expr>) -> Expr {
        let lanes: u16 = indices.iter().map(|i| i.dtype.lanes).product();
        let dtype = buffer.dtype.with_lanes(buffer.dtype.lanes * lanes);
        Expr::new(
            ExprKind::BufferLoad {
                buffer: buffer.clone(),
                indices,
                predicate: None,
            },
            dtype,
            Span::NONE,
        )
    }

    /// A call.
    pub fn call(op: Op, dtype: DType, args: Vec<Expr>) -> Expr {
        Expr::new(ExprKind::Call { op, args }, dtype, Span::NONE)
    }

    /// `value` under a name.
    pub fn let_in(var: &Var, value: Expr, body: Expr) -> Expr {
        let (dtype, span) = (body.dtype, body.span);
        Expr::new(ExprKind::Let(var.clone(), value, body), dtype, span)
    }

    /// The same expression with `span`.
    pub fn at(mut self, span: Span) -> Expr {
        if self.span == span || !span.is_some() {
            return self;
        }
        match Arc::get_mut(&mut self.0) {
            Some(node) => {
                node.span = span;
                self
            }
            None => Expr::new(self.kind.clone(), self.dtype, span),
        }
    }

    /// The same expression with `span` where it has none.
    pub fn or_at(self, span: Span) -> Expr {
        if self.span.is_some() { self } else { self.at(span) }
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

/// The operands of an expression in order, without a list of them.
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

impl PartialEq for Expr {
    fn eq(&self, other: &Expr) -> bool {
        if self.same_node(other) {
            return true;
        }
        if self.hash != other.hash || self.dtype != other.dtype {
            return false;
        }
        use ExprKind::*;
        match (&self.kind, &other.kind) {
            (Var(a), Var(b)) => a == b,
            (Int(a), Int(b)) => a == b,
            // Bits: -0.0 and 0.0 differ, a NaN equals itself.
            (Float(a), Float(b)) => a.to_bits() == b.to_bits(),
            (Str(a), Str(b)) => a == b,
            (Cast(a), Cast(b)) | (Not(a), Not(b)) => a == b,
            (Binary(o, a, b), Binary(p, c, d)) => o == p && a == c && b == d,
            (Select(a, b, c), Select(d, e, f)) => a == d && b == e && c == f,
            (
                BufferLoad {
                    buffer: a,
                    indices: i,
                    predicate: p,
                },
                BufferLoad {
                    buffer: b,
                    indices: j,
                    predicate: q,
                },
            ) => a == b && i == j && p == q,
            (
                Ramp {
                    base: a,
                    stride: s,
                    lanes: l,
                },
                Ramp {
                    base: b,
                    stride: t,
                    lanes: m,
                },
            ) => l == m && a == b && s == t,
            (Broadcast { value: a, lanes: l }, Broadcast { value: b, lanes: m }) => l == m && a == b,
            (
                Shuffle {
                    vectors: a,
                    indices: i,
                },
                Shuffle {
                    vectors: b,
                    indices: j,
                },
            ) => a == b && i == j,
            (Call { op: o, args: a }, Call { op: p, args: b }) => o == p && a == b,
            (Let(v, a, b), Let(w, c, d)) => v == w && a == c && b == d,
            _ => false,
        }
    }
}

impl Eq for Expr {}

impl std::hash::Hash for Expr {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        state.write_u32(self.hash);
    }
}

/// One step of a multiplicative hash.
fn mix(hash: u64, value: u64) -> u64 {
    (hash.rotate_left(5) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The hash of a node without its operands, and what the node itself does.
fn own_hash(kind: &ExprKind, dtype: DType) -> (u64, u8) {
    let (which, value) = match kind {
        ExprKind::Var(v) => (1, v.id() as u64),
        ExprKind::Int(v) => (2, *v as u64 ^ (*v >> 64) as u64),
        ExprKind::Float(v) => (3, v.to_bits()),
        ExprKind::Str(s) => (4, s.bytes().fold(0, |hash, byte| mix(hash, byte as u64))),
        ExprKind::Cast(_) => (5, 0),
        ExprKind::Binary(op, ..) => (6, *op as u64),
        ExprKind::Not(_) => (7, 0),
        ExprKind::Select(..) => (8, 0),
        ExprKind::BufferLoad { buffer, .. } => (9, buffer.id() as u64),
        ExprKind::Ramp { lanes, .. } => (10, *lanes as u64),
        ExprKind::Broadcast { lanes, .. } => (11, *lanes as u64),
        ExprKind::Shuffle { .. } => (12, 0),
        ExprKind::Call { op, .. } => (13, *op as u64),
        ExprKind::Let(v, ..) => (14, v.id() as u64),
    };
    let does = match kind {
        ExprKind::BufferLoad { .. } => READS,
        ExprKind::Call { op, .. } => match op.effect() {
            Effect::Annotation | Effect::Pure => 0,
            Effect::ReadState => READS,
            _ => READS | UPDATES,
        },
        _ => 0,
    };
    let of_dtype = (dtype.code as u64) << 32 | (dtype.bits as u64) << 16 | dtype.lanes as u64;
    (mix(mix(which, of_dtype), value), does)
}

/// `int32` constants that programs are full of, made once a thread.
mod small {
    use super::{DType, Expr, ExprKind, Span};

    const FIRST: i128 = -1;
    const LAST: i128 = 256;

    thread_local! {
        static CONSTANTS: std::cell::RefCell<Vec<Option<Expr>>> =
            std::cell::RefCell::new(vec![None; (LAST - FIRST + 1) as usize]);
    }

    /// The constant, if it is one of them.
    pub(super) fn constant(dtype: DType, value: i128) -> Option<Expr> {
        if dtype != DType::INT32 || !(FIRST..=LAST).contains(&value) {
            return None;
        }
        // While a thread ends there are none.
        let shared = CONSTANTS.try_with(|constants| {
            let mut constants = constants.try_borrow_mut().ok()?;
            let place = constants.get_mut((value - FIRST) as usize)?;
            Some(match place {
                Some(known) => known.clone(),
                None => place
                    .insert(Expr::new(ExprKind::Int(value), dtype, Span::NONE))
                    .clone(),
            })
        });
        shared.ok().flatten()
    }
}

impl From<&Var> for Expr {
    fn from(var: &Var) -> Expr {
        Expr::var(var)
    }
}

/// Arithmetic operators build raw nodes (no folding, operands of one dtype).
macro_rules! operator {
    ($($trait:ident $method:ident $op:ident),*) => {$(
        impl std::ops::$trait for Expr {
            type Output = Expr;
            fn $method(self, other: Expr) -> Expr {
                Expr::binary(BinOp::$op, self, other)
            }
        }
    )*};
}
operator!(Add add Add, Sub sub Sub, Mul mul Mul);
