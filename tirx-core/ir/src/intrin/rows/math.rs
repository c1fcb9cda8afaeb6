//! Mathematical functions of floats, and of each lane of vectors.
//!
//! The function that CUDA has for it depends on the dtype: `codegen/src/cuda/math.rs` has them.

use super::kinds::*;
use crate::intrin::operands::Operands;
use crate::intrin::row::*;
use crate::intrin::{Effect::Pure, ResultRule};
use crate::ir::DType;

const MATH: Traits = Traits::PLAIN.arithmetic();

const ONE: &[Arg] = &[arg("x", ANY)];
const TWO: &[Arg] = &[arg("x", ANY), arg("y", ANY)];

const fn unary(name: &'static str, script: &'static str) -> Row {
    Row::new(name, script, special())
        .args(ONE)
        .value(ResultRule::Arg(0))
        .effect(Pure)
        .traits(MATH)
        .section("CUDA Math API")
}

const fn binary(name: &'static str, script: &'static str) -> Row {
    unary(name, script).args(TWO)
}

const ROUNDING: ArgKind = ArgKind::Text(&["rn", "rz", "rm", "rp"]);

/// Two operands of float32, a destination, and how the result is rounded.
const fn into_32(name: &'static str, script: &'static str, cuda: Cuda) -> Row {
    Row::new(name, script, cuda)
        .args(TWO_32)
        .signature("(d_addr, a, b, rounding='rn', ftz=False, sat=False)")
}

/// The same of float64, which has neither `.ftz` nor `.sat`.
const fn into_64(name: &'static str, script: &'static str, cuda: Cuda) -> Row {
    Row::new(name, script, cuda)
        .args(TWO_64)
        .signature("(d_addr, a, b, rounding='rn', ftz=False, sat=False)")
        .checked(no_modifiers)
}

const TWO_32: &[Arg] = &[
    arg("d_addr", ArgKind::Register(Access::Out, Ty::F32)),
    arg("a", F32),
    arg("b", F32),
    arg("rounding", ROUNDING),
    arg("ftz", ArgKind::Flag),
    arg("sat", ArgKind::Flag),
];
const FMA_32: &[Arg] = &[
    arg("d_addr", ArgKind::Register(Access::Out, Ty::F32)),
    arg("a", F32),
    arg("b", F32),
    arg("c", F32),
    arg("rounding", ROUNDING),
    arg("ftz", ArgKind::Flag),
    arg("sat", ArgKind::Flag),
];
const TWO_64: &[Arg] = &[
    arg("d_addr", ArgKind::Register(Access::Out, Ty::F64)),
    arg("a", F64),
    arg("b", F64),
    arg("rounding", ROUNDING),
    arg("ftz", ArgKind::Flag),
    arg("sat", ArgKind::Flag),
];
const FMA_64: &[Arg] = &[
    arg("d_addr", ArgKind::Register(Access::Out, Ty::F64)),
    arg("a", F64),
    arg("b", F64),
    arg("c", F64),
    arg("rounding", ROUNDING),
    arg("ftz", ArgKind::Flag),
    arg("sat", ArgKind::Flag),
];

fn no_modifiers(call: &Operands) -> Result<(), String> {
    match call.flag("ftz") || call.flag("sat") {
        true => Err("float64 has neither ftz nor sat".into()),
        false => Ok(()),
    }
}

rows! { $ math {
    /// `exp(x)`.
    Exp = unary("tirx.exp", "exp");
    /// `exp2(x)`.
    Exp2 = unary("tirx.exp2", "exp2");
    /// `exp10(x)`.
    Exp10 = unary("tirx.exp10", "exp10");
    /// `erf(x)`.
    Erf = unary("tirx.erf", "erf");
    /// `tanh(x)`.
    Tanh = unary("tirx.tanh", "tanh");
    /// `sigmoid(x)`.
    Sigmoid = unary("tirx.sigmoid", "sigmoid");
    /// `log(x)`.
    Log = unary("tirx.log", "log");
    /// `log2(x)`.
    Log2 = unary("tirx.log2", "log2");
    /// `log10(x)`.
    Log10 = unary("tirx.log10", "log10");
    /// `log1p(x)`.
    Log1p = unary("tirx.log1p", "log1p");
    /// `tan(x)`.
    Tan = unary("tirx.tan", "tan");
    /// `cos(x)`.
    Cos = unary("tirx.cos", "cos");
    /// `cosh(x)`.
    Cosh = unary("tirx.cosh", "cosh");
    /// `sin(x)`.
    Sin = unary("tirx.sin", "sin");
    /// `sinh(x)`.
    Sinh = unary("tirx.sinh", "sinh");
    /// `asin(x)`.
    Asin = unary("tirx.asin", "asin");
    /// `acos(x)`.
    Acos = unary("tirx.acos", "acos");
    /// `atan(x)`.
    Atan = unary("tirx.atan", "atan");
    /// `acosh(x)`.
    Acosh = unary("tirx.acosh", "acosh");
    /// `asinh(x)`.
    Asinh = unary("tirx.asinh", "asinh");
    /// `atanh(x)`.
    Atanh = unary("tirx.atanh", "atanh");
    /// `sqrt(x)`.
    Sqrt = unary("tirx.sqrt", "sqrt");
    /// `rsqrt(x)`.
    Rsqrt = unary("tirx.rsqrt", "rsqrt");
    /// `floor(x)`.
    Floor = unary("tirx.floor", "floor");
    /// `ceil(x)`.
    Ceil = unary("tirx.ceil", "ceil");
    /// `trunc(x)`.
    Trunc = unary("tirx.trunc", "trunc");
    /// `round(x)`: to nearest, ties to even (as CUDA's `rint`).
    Round = unary("tirx.round", "round");
    /// `nearbyint(x)`.
    Nearbyint = unary("tirx.nearbyint", "nearbyint");
    /// `fabs(x)`.
    Fabs = unary("tirx.fabs", "fabs");
    /// `atan2(x, y)`.
    Atan2 = binary("tirx.atan2", "atan2");
    /// `pow(x, y)`.
    Pow = binary("tirx.pow", "pow");
    /// `fmod(x, y)`.
    Fmod = binary("tirx.fmod", "fmod");
    /// `hypot(x, y)`.
    Hypot = binary("tirx.hypot", "hypot");
    /// `copysign(x, y)`.
    Copysign = binary("tirx.copysign", "copysign");
    /// `nextafter(x, y)`.
    Nextafter = binary("tirx.nextafter", "nextafter");
    /// `ldexp(x, y)`.
    Ldexp = binary("tirx.ldexp", "ldexp");
    /// `x * y + z`, rounded once.
    Fma = unary("tirx.fma", "fma").args(&[arg("x", ANY), arg("y", ANY), arg("z", ANY)]);
    /// `isnan(x)`.
    Isnan = unary("tirx.isnan", "isnan").value(ResultRule::BoolOfArg0);
    /// `isinf(x)`.
    Isinf = unary("tirx.isinf", "isinf").value(ResultRule::BoolOfArg0);
    /// `isfinite(x)`.
    Isfinite = unary("tirx.isfinite", "isfinite").value(ResultRule::BoolOfArg0);
    /// `ex2.approx.ftz.f32`.
    PtxExp2 = Row::new("tirx.ptx.exp2", "ptx.exp2", pure_ptx("ex2.approx.ftz.f32 {result}, {x};"))
        .args(&[arg("x", F32)]).gives(DType::FLOAT32).effect(Pure).section("ex2");
    /// `rcp.approx.ftz.f32`.
    PtxRcp = Row::new("tirx.ptx.rcp", "ptx.rcp", pure_ptx("rcp.approx.ftz.f32 {result}, {x};")).args(&[arg("x", F32)])
        .gives(DType::FLOAT32).effect(Pure).section("rcp");
    /// Fast approximate division.
    CudaFdividef = Row::new("tirx.cuda.fdividef", "cuda.fdividef", function("__fdividef"))
        .args(&[arg("x", F32), arg("y", F32)]).gives(DType::FLOAT32).effect(Pure).section("CUDA Math API");
    /// The greater of two; with `nan`, NaN if either is NaN.
    PtxMaxF32 = Row::new("tirx.ptx.max_f32", "ptx.max_f32", pure_ptx("max{?ftz:.ftz}{?nan:.NaN}.f32 {result}, {a}, {b};"))
        .args(&[arg("a", F32), arg("b", F32), arg("ftz", ArgKind::Flag), arg("nan", ArgKind::Flag)]).gives(DType::FLOAT32)
        .effect(Pure).signature("(a, b, ftz=False, nan=False)").section("max");
    /// `max.f32` of three (sm_100).
    PtxReduce3MaxF32 = Row::new("tirx.ptx.reduce3_max_f32", "ptx.reduce3_max_f32", pure_ptx("max.f32 {result}, {a}, {b}, {c};"))
        .args(&[arg("a", F32), arg("b", F32), arg("c", F32)]).gives(DType::FLOAT32).effect(Pure).arch(SM_100)
        .section("max");
    /// `min.f32` of three (sm_100).
    PtxReduce3MinF32 = Row::new("tirx.ptx.reduce3_min_f32", "ptx.reduce3_min_f32", pure_ptx("min.f32 {result}, {a}, {b}, {c};"))
        .args(&[arg("a", F32), arg("b", F32), arg("c", F32)]).gives(DType::FLOAT32).effect(Pure).arch(SM_100)
        .section("min");
    /// `add.rn.f32.bf16` (sm_100): an accumulator and the bits of a bfloat16.
    PtxAddRnF32Bf16 = Row::new("tirx.ptx.add_rn_f32_bf16", "ptx.add_rn_f32_bf16", pure_ptx("add.rn.f32.bf16 {result}, {x}, {acc};"))
        .args(&[arg("acc", F32), arg("x", U16)]).gives(DType::FLOAT32).effect(Pure).arch(SM_100).section("add");
    /// `add.f32` of `a` and `b` into the variable at `d_addr`.
    PtxAddF32 = into_32("tirx.ptx.add_f32", "ptx.add_f32",
        pure_ptx("add{.rounding}{?ftz:.ftz}{?sat:.sat}.f32 {d_addr}, {a}, {b};")).section("add");
    /// `add.f64` of `a` and `b` into the variable at `d_addr`.
    PtxAddF64 = into_64("tirx.ptx.add_f64", "ptx.add_f64",
        pure_ptx("add{.rounding}{?ftz:.ftz}{?sat:.sat}.f64 {d_addr}, {a}, {b};")).section("add");
    /// `sub.f32` of `a` and `b` into the variable at `d_addr`.
    PtxSubF32 = into_32("tirx.ptx.sub_f32", "ptx.sub_f32",
        pure_ptx("sub{.rounding}{?ftz:.ftz}{?sat:.sat}.f32 {d_addr}, {a}, {b};")).section("sub");
    /// `sub.f64` of `a` and `b` into the variable at `d_addr`.
    PtxSubF64 = into_64("tirx.ptx.sub_f64", "ptx.sub_f64",
        pure_ptx("sub{.rounding}{?ftz:.ftz}{?sat:.sat}.f64 {d_addr}, {a}, {b};")).section("sub");
    /// `mul.f32` of `a` and `b` into the variable at `d_addr`.
    PtxMulF32 = into_32("tirx.ptx.mul_f32", "ptx.mul_f32",
        pure_ptx("mul{.rounding}{?ftz:.ftz}{?sat:.sat}.f32 {d_addr}, {a}, {b};")).section("mul");
    /// `mul.f64` of `a` and `b` into the variable at `d_addr`.
    PtxMulF64 = into_64("tirx.ptx.mul_f64", "ptx.mul_f64",
        pure_ptx("mul{.rounding}{?ftz:.ftz}{?sat:.sat}.f64 {d_addr}, {a}, {b};")).section("mul");
    /// `a * b + c`, rounded once, into the variable at `d_addr`.
    PtxFmaF32 = into_32("tirx.ptx.fma_f32", "ptx.fma_f32",
        pure_ptx("fma{.rounding}{?ftz:.ftz}{?sat:.sat}.f32 {d_addr}, {a}, {b}, {c};"))
        .args(FMA_32).signature("(d_addr, a, b, c, rounding='rn', ftz=False, sat=False)").section("fma");
    /// `a * b + c`, rounded once, into the variable at `d_addr`.
    PtxFmaF64 = into_64("tirx.ptx.fma_f64", "ptx.fma_f64",
        pure_ptx("fma{.rounding}{?ftz:.ftz}{?sat:.sat}.f64 {d_addr}, {a}, {b}, {c};"))
        .args(FMA_64).signature("(d_addr, a, b, c, rounding='rn', ftz=False, sat=False)").section("fma");
} }
