//! Bounds of generated values, which keep a kernel free of overflow, NaN and out-of-bounds indices.

use tirx_core::ir::DType;

/// The possible values of an expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bounds {
    /// From and to, both included.
    Int(i128, i128),
    /// A finite number no larger in magnitude.
    Float(f64),
    /// Either.
    Bool,
}

impl Bounds {
    /// The full range of a dtype; for floats, the range that computations stay within.
    pub fn from_dtype(dtype: DType) -> Bounds {
        if dtype.is_bool() {
            Bounds::Bool
        } else if dtype.is_integer() {
            let (low, high) = (dtype.min_int(), dtype.max_int());
            Bounds::Int(low.unwrap_or(0), high.unwrap_or(0))
        } else {
            Bounds::Float(most(dtype))
        }
    }

    /// The range of values in buffers of a dtype: all integers, moderate floats.
    pub fn stored(dtype: DType) -> Bounds {
        match Bounds::from_dtype(dtype) {
            Bounds::Float(most) => Bounds::Float(most.min(1000.0)),
            other => other,
        }
    }

    /// Whether all values of `other` are within.
    pub fn holds(self, other: Bounds) -> bool {
        match (self, other) {
            (Bounds::Int(a, b), Bounds::Int(c, d)) => a <= c && d <= b,
            (Bounds::Float(a), Bounds::Float(b)) => b <= a,
            (a, b) => a == b,
        }
    }

    /// Both kinds of value.
    pub fn union(self, other: Bounds) -> Bounds {
        match (self, other) {
            (Bounds::Int(a, b), Bounds::Int(c, d)) => Bounds::Int(a.min(c), b.max(d)),
            (Bounds::Float(a), Bounds::Float(b)) => Bounds::Float(a.max(b)),
            (a, _) => a,
        }
    }

    /// The ends of an integer.
    pub fn ints(self) -> (i128, i128) {
        match self {
            Bounds::Int(a, b) => (a, b),
            Bounds::Bool => (0, 1),
            Bounds::Float(m) => (-(m as i128), m as i128),
        }
    }

    /// The largest magnitude.
    pub fn magnitude(self) -> f64 {
        match self {
            Bounds::Int(a, b) => (a.unsigned_abs().max(b.unsigned_abs())) as f64,
            Bounds::Float(m) => m,
            Bounds::Bool => 1.0,
        }
    }
}

/// The magnitude that floats of a dtype are kept below, far from infinity.
pub(super) fn most(dtype: DType) -> f64 {
    match (dtype.is_bfloat16(), dtype.bits) {
        (_, 8) => 240.0,
        (false, 16) => 60000.0,
        (false, 64) => 1e100,
        _ => 1e30,
    }
}
