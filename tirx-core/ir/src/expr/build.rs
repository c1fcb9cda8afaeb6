//! Construction of expressions. These constructors check nothing and fold nothing; see [`crate::fold`] and
//! [`crate::typing`].

use std::sync::Arc;

use super::contents::Contents;
use super::equal::{mix, own_hash};
use super::{BinOp, Expr, ExprKind, ExprNode};
use crate::intrin::Op;
use crate::ir::{Buffer, DType, Minifloat, Var, odd_f32, odd_f64};
use crate::source::Span;

/// Raw constructors: they check nothing and fold nothing. Operands must already have one dtype.
/// [`crate::fold`] has those that fold constants; [`crate::typing`] those that apply the promotion rules.
impl Expr {
    /// An expression.
    pub fn new(kind: ExprKind, dtype: DType, span: Span) -> Expr {
        let (mut depth, mut size) = (0, 1u32);
        let mut hash = own_hash(&kind, dtype);
        let mut contents = Contents::of_node(&kind, dtype);
        kind.for_each_operand(|e| {
            let node = &*e.0;
            if node.depth > depth {
                depth = node.depth;
            }
            size = size.saturating_add(node.size);
            hash = mix(hash, node.hash as u64);
            contents = contents.and(node.contents);
        });
        Expr(Arc::new(ExprNode {
            kind,
            dtype,
            span,
            depth: depth + 1,
            size,
            // The upper bits of a product are the best mixed ones.
            hash: (hash >> 32) as u32,
            contents,
        }))
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
            16 if dtype.is_float() => tirx_dtype::f16::from_f32(odd_f32(value)).to_f64(),
            16 => tirx_dtype::bf16::from_f32(odd_f32(value)).to_f64(),
            ..=8 => Minifloat::from_type_code(dtype.code).map_or(value, |format| format.round(value)),
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
}

/// Frequent `int32` constants, made once per thread.
mod small {
    use std::cell::RefCell;

    use super::{DType, Expr, ExprKind, Span};

    const FIRST: i128 = -1;
    const LAST: i128 = 256;

    thread_local! {
        // The list is a part of the thread's own memory: a thread that has none of them costs nothing.
        static CONSTANTS: [RefCell<Option<Expr>>; (LAST - FIRST + 1) as usize] =
            const { [const { RefCell::new(None) }; (LAST - FIRST + 1) as usize] };
    }

    /// The constant, if it is one of them.
    pub(super) fn constant(dtype: DType, value: i128) -> Option<Expr> {
        if dtype != DType::INT32 || !(FIRST..=LAST).contains(&value) {
            return None;
        }
        // A thread that is ending has none.
        let shared = CONSTANTS.try_with(|constants| {
            let mut place = constants.get((value - FIRST) as usize)?.try_borrow_mut().ok()?;
            let constant = place.get_or_insert_with(|| Expr::new(ExprKind::Int(value), dtype, Span::NONE));
            Some(constant.clone())
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
