//! Equality and hashes of expressions.

use super::{Expr, ExprKind};
use crate::ir::DType;

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

impl Expr {
    /// Whether an equal expression also has the same spans.
    pub fn has_spans_of(&self, other: &Expr) -> bool {
        self.same_node(other)
            || self.span == other.span
                && self
                    .operands()
                    .zip(other.operands())
                    .all(|(a, b)| a.has_spans_of(b))
    }
}

impl std::hash::Hash for Expr {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        state.write_u32(self.hash);
    }
}

/// One step of a multiplicative hash.
pub(super) fn mix(hash: u64, value: u64) -> u64 {
    (hash.rotate_left(5) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The hash of a node without its operands.
pub(super) fn own_hash(kind: &ExprKind, dtype: DType) -> u64 {
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
    let of_dtype = (dtype.code as u64) << 32 | (dtype.bits as u64) << 16 | dtype.lanes as u64;
    mix(mix(which, of_dtype), value)
}
