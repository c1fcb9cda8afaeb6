//! Values of several numbers in one register: two float32 in a uint64, two bfloat16 or four float8 in a uint32.

use super::kinds::*;
use crate::intrin::operands::Operands;
use crate::intrin::row::*;
use crate::intrin::{Effect::Pure, ResultRule};
use crate::ir::DType;

/// Text that casts bits.
const fn bits(body: &'static str) -> Cuda {
    code(body).helpers(&["tirx_bit_cast"])
}

/// Text that casts bits of bfloat16.
const fn brain(body: &'static str) -> Cuda {
    bits(body).headers(&["cuda_bf16.h"])
}

const ALWAYS: ArgKind = ArgKind::Text(&["rn", "rz", "rm", "rp"]);
const ROUNDING: ArgKind = ArgKind::Text(&["", "rn", "rz", "rm", "rp"]);

/// No result if there is a destination, otherwise the dtype that the call gives.
fn stored_or_given(call: &Operands) -> DType {
    match call.get("d_addr") {
        Some(_) => DType::VOID,
        None => call.text("return_dtype").parse().unwrap_or(DType::UINT64),
    }
}

fn returned(call: &Operands) -> Result<(), String> {
    match (call.get("d_addr"), call.text("return_dtype")) {
        (Some(_), "void") | (None, "uint64") => Ok(()),
        (Some(_), _) => Err("a call with a destination gives no value: \"void\"".into()),
        (None, found) => Err(format!("a call without a destination gives uint64, not {found}")),
    }
}

/// Two packed operands; the result is the value of the call, or is stored to `d_addr`.
const fn packed(name: &'static str, script: &'static str, body: &'static str) -> Row {
    Row::new(name, script, pure_ptx(body))
        .args(TWO)
        .checked(returned)
        .value(ResultRule::Of(stored_or_given))
}

const TWO: &[Arg] = &[
    optional("d_addr", OUT64),
    arg("a", U64),
    arg("b", U64),
    arg("rounding", ROUNDING),
    arg("ftz", ArgKind::Flag),
    arg("dps", ArgKind::Has("d_addr")),
    arg("return_dtype", ArgKind::DType),
];
/// The same with a mandatory rounding.
const SUB: &[Arg] = &[
    optional("d_addr", OUT64),
    arg("a", U64),
    arg("b", U64),
    arg("rounding", ALWAYS),
    arg("ftz", ArgKind::Flag),
    arg("dps", ArgKind::Has("d_addr")),
    arg("return_dtype", ArgKind::DType),
];
const FMA: &[Arg] = &[
    optional("d_addr", OUT64),
    arg("a", U64),
    arg("b", U64),
    arg("c", U64),
    arg("rounding", ALWAYS),
    arg("ftz", ArgKind::Flag),
    arg("dps", ArgKind::Has("d_addr")),
    arg("return_dtype", ArgKind::DType),
];

rows! { $ packed {
    /// Two float32 packed.
    CudaMakeFloat2 = Row::new("tirx.cuda.make_float2", "cuda.make_float2", bits("return tirx_bit_cast<unsigned long long>(make_float2(x, y));"))
        .args(&[arg("x", F32), arg("y", F32)]).gives(DType::UINT64).effect(Pure);
    /// The first of two packed float32.
    CudaFloat2X = Row::new("tirx.cuda.float2_x", "cuda.float2_x", bits("return tirx_bit_cast<float2>(packed).x;"))
        .args(&[arg("packed", U64)]).gives(DType::FLOAT32).effect(Pure);
    /// The second of two packed float32.
    CudaFloat2Y = Row::new("tirx.cuda.float2_y", "cuda.float2_y", bits("return tirx_bit_cast<float2>(packed).y;"))
        .args(&[arg("packed", U64)]).gives(DType::FLOAT32).effect(Pure);
    /// Sums of packed float32.
    CudaFadd2Rn = Row::new("tirx.cuda.fadd2_rn", "cuda.fadd2_rn", bits("return tirx_bit_cast<unsigned long long>(__fadd2_rn(tirx_bit_cast<float2>(a), tirx_bit_cast<float2>(b)));"))
        .args(&[arg("a", U64), arg("b", U64)]).gives(DType::UINT64).effect(Pure).arch(SM_100).section("CUDA Math API");
    /// Products of packed float32.
    CudaFmul2Rn = Row::new("tirx.cuda.fmul2_rn", "cuda.fmul2_rn", bits("return tirx_bit_cast<unsigned long long>(__fmul2_rn(tirx_bit_cast<float2>(a), tirx_bit_cast<float2>(b)));"))
        .args(&[arg("a", U64), arg("b", U64)]).gives(DType::UINT64).effect(Pure).arch(SM_100).section("CUDA Math API");
    /// Two float32 as packed bfloat16.
    CudaFloat22bfloat162Rn = Row::new("tirx.cuda.float22bfloat162_rn", "cuda.float22bfloat162_rn", brain("return tirx_bit_cast<unsigned int>(__float22bfloat162_rn(make_float2(v0, v1)));"))
        .args(&[arg("v0", F32), arg("v1", F32)]).gives(DType::UINT32).effect(Pure);
    /// Two packed float32 as packed bfloat16.
    CudaFloat22bfloat162RnFromFloat2 = Row::new("tirx.cuda.float22bfloat162_rn_from_float2", "cuda.float22bfloat162_rn_from_float2", brain("return tirx_bit_cast<unsigned int>(__float22bfloat162_rn(tirx_bit_cast<float2>(packed)));"))
        .args(&[arg("packed", U64)]).gives(DType::UINT32).effect(Pure);
    /// Two packed bfloat16 as packed float32.
    CudaBfloat1622float2 = Row::new("tirx.cuda.bfloat1622float2", "cuda.bfloat1622float2", brain("return tirx_bit_cast<unsigned long long>(__bfloat1622float2(tirx_bit_cast<__nv_bfloat162>(packed)));"))
        .args(&[arg("packed", U32)]).gives(DType::UINT64).effect(Pure);
    /// The lesser of packed bfloat16; if one is NaN, the other.
    CudaHmin2 = Row::new("tirx.cuda.hmin2", "cuda.hmin2", brain("return tirx_bit_cast<unsigned int>(__hmin2(tirx_bit_cast<__nv_bfloat162>(a), tirx_bit_cast<__nv_bfloat162>(b)));"))
        .args(&[arg("a", U32), arg("b", U32)]).gives(DType::UINT32).effect(Pure);
    /// The greater of packed bfloat16; if one is NaN, the other.
    CudaHmax2 = Row::new("tirx.cuda.hmax2", "cuda.hmax2", brain("return tirx_bit_cast<unsigned int>(__hmax2(tirx_bit_cast<__nv_bfloat162>(a), tirx_bit_cast<__nv_bfloat162>(b)));"))
        .args(&[arg("a", U32), arg("b", U32)]).gives(DType::UINT32).effect(Pure);
    /// Four float32 as packed float8_e4m3fn, saturating.
    CudaFp8x4E4m3FromFloat4 = Row::new("tirx.cuda.fp8x4_e4m3_from_float4", "cuda.fp8x4_e4m3_from_float4", bits("return tirx_bit_cast<unsigned int>(__nv_fp8x4_e4m3(make_float4(x, y, z, w)));").headers(&["cuda_fp8.h"]))
        .args(&[arg("x", F32), arg("y", F32), arg("z", F32), arg("w", F32)]).gives(DType::UINT32).effect(Pure);
    /// `add.f32x2`: adds both numbers of `a` and `b`; into the variable at `d_addr` unless `dps=False`.
    PtxAddF32x2 = packed("tirx.ptx.add_f32x2", "ptx.add_f32x2",
        "add{.rounding}{?ftz:.ftz}.f32x2 {?d_addr:{d_addr}}{!d_addr:{result}}, {a}, {b};").section("add");
    /// `sub.f32x2`: subtracts both numbers of `a` and `b`; into the variable at `d_addr` unless `dps=False`.
    PtxSubF32x2 = packed("tirx.ptx.sub_f32x2", "ptx.sub_f32x2",
        "sub{.rounding}{?ftz:.ftz}.f32x2 {?d_addr:{d_addr}}{!d_addr:{result}}, {a}, {b};").args(SUB).section("sub");
    /// `mul.f32x2`: multiplies both numbers of `a` and `b`; into the variable at `d_addr` unless `dps=False`.
    PtxMulF32x2 = packed("tirx.ptx.mul_f32x2", "ptx.mul_f32x2",
        "mul{.rounding}{?ftz:.ftz}.f32x2 {?d_addr:{d_addr}}{!d_addr:{result}}, {a}, {b};").section("mul");
    /// `fma.f32x2`: `a * b + c` for both numbers, rounded once; into the variable at `d_addr` unless `dps=False`.
    PtxFmaF32x2 = packed("tirx.ptx.fma_f32x2", "ptx.fma_f32x2",
        "fma{.rounding}{?ftz:.ftz}.f32x2 {?d_addr:{d_addr}}{!d_addr:{result}}, {a}, {b}, {c};").args(FMA).section("fma");
} }
