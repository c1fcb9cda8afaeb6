//! The CUDA functions of mathematical intrinsics, by dtype.

use crate::intrin::Op;

/// The CUDA names of one intrinsic.
pub(super) struct MathRow {
    /// The intrinsic.
    pub(super) op: Op,
    /// Its name for `float` and for `double`.
    pub(super) names: (&'static str, &'static str),
    /// Its name for `half` and `nv_bfloat16`; where empty, `float` computes it.
    pub(super) half: &'static str,
}

const fn row(op: Op, float: &'static str, double: &'static str, half: &'static str) -> MathRow {
    MathRow {
        op,
        names: (float, double),
        half,
    }
}

/// `round` is to nearest even, as TVM 0.26 has it.
#[rustfmt::skip]
static ROWS: &[MathRow] = &[
    row(Op::Exp, "expf", "exp", "hexp"),
    row(Op::Exp2, "exp2f", "exp2", "hexp2"),
    row(Op::Exp10, "exp10f", "exp10", "hexp10"),
    row(Op::Erf, "erff", "erf", ""),
    row(Op::Tanh, "tanhf", "tanh", "htanh"),
    row(Op::Log, "logf", "log", "hlog"),
    row(Op::Log2, "log2f", "log2", "hlog2"),
    row(Op::Log10, "log10f", "log10", "hlog10"),
    row(Op::Log1p, "log1pf", "log1p", ""),
    row(Op::Tan, "tanf", "tan", ""),
    row(Op::Cos, "cosf", "cos", "hcos"),
    row(Op::Cosh, "coshf", "cosh", ""),
    row(Op::Sin, "sinf", "sin", "hsin"),
    row(Op::Sinh, "sinhf", "sinh", ""),
    row(Op::Asin, "asinf", "asin", ""),
    row(Op::Acos, "acosf", "acos", ""),
    row(Op::Atan, "atanf", "atan", ""),
    row(Op::Acosh, "acoshf", "acosh", ""),
    row(Op::Asinh, "asinhf", "asinh", ""),
    row(Op::Atanh, "atanhf", "atanh", ""),
    row(Op::Sqrt, "sqrtf", "sqrt", "hsqrt"),
    row(Op::Rsqrt, "rsqrtf", "rsqrt", "hrsqrt"),
    row(Op::Floor, "floorf", "floor", "hfloor"),
    row(Op::Ceil, "ceilf", "ceil", "hceil"),
    row(Op::Trunc, "truncf", "trunc", "htrunc"),
    row(Op::Round, "nearbyintf", "nearbyint", "hrint"),
    row(Op::Nearbyint, "nearbyintf", "nearbyint", "hrint"),
    row(Op::Fabs, "fabsf", "fabs", "__habs"),
    row(Op::Atan2, "atan2f", "atan2", ""),
    row(Op::Pow, "powf", "pow", ""),
    row(Op::Fmod, "fmodf", "fmod", ""),
    row(Op::Hypot, "hypotf", "hypot", ""),
    row(Op::Copysign, "copysignf", "copysign", ""),
    row(Op::Nextafter, "nextafterf", "nextafter", ""),
    row(Op::Fma, "fmaf", "fma", "__hfma"),
];

/// The row of `op`, if it is a plain function of its arguments.
pub(super) fn find(op: Op) -> Option<&'static MathRow> {
    ROWS.iter().find(|r| r.op == op)
}

/// Whether `name` is a function of the table.
pub(super) fn is_function(name: &str) -> bool {
    ROWS.iter()
        .any(|r| r.names.0 == name || r.names.1 == name || r.half == name)
        || matches!(name, "ldexp" | "ldexpf")
}
