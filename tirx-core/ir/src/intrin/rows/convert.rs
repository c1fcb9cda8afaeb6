//! Conversions between dtypes: of values, of bits, and of values in memory.

use super::kinds::*;
use crate::intrin::convert::{Conversion, FORMAT_NAMES, Format, NARROW, ROUNDINGS, SCALES};
use crate::intrin::operands::Operands;
use crate::intrin::row::*;
use crate::intrin::{Effect::Pure, GpuSet, ResultRule};
use crate::ir::DType;

const TYPE: ArgKind = ArgKind::Text(FORMAT_NAMES);

fn carrier(call: &Operands) -> DType {
    Format::named(call.text("dtype")).map_or(DType::VOID, |format| format.carrier)
}

/// The GPUs of a form.
fn gpus(call: &Operands) -> Option<(&'static str, GpuSet)> {
    let conversion = Conversion::read(call).ok()?;
    (conversion.arch != GpuSet::ANY).then_some((" of this form", conversion.arch))
}

/// The release of a form.
fn release(call: &Operands) -> Option<(&'static str, Release)> {
    let conversion = Conversion::read(call).ok()?;
    (conversion.release > (13, 0)).then_some((" of this form", conversion.release))
}

fn known(call: &Operands) -> Result<(), String> {
    Conversion::read(call).map(|_| ())
}

rows! { $ convert {
    /// The bits of a float.
    CudaFloatAsUint = Row::new("tirx.cuda.float_as_uint", "cuda.float_as_uint", function("__float_as_uint"))
        .args(&[arg("x", F32)]).gives(DType::UINT32).effect(Pure).section("CUDA Math API: type casts");
    /// A float from its bits.
    CudaUintAsFloat = Row::new("tirx.cuda.uint_as_float", "cuda.uint_as_float", function("__uint_as_float"))
        .args(&[arg("bits", U32)]).gives(DType::FLOAT32).effect(Pure).section("CUDA Math API: type casts");
    /// float16 to float32.
    CudaHalf2float = Row::new("tirx.cuda.half2float", "cuda.half2float", function("__half2float"))
        .args(&[arg("src", ArgKind::Value(DType::FLOAT16))]).gives(DType::FLOAT32).effect(Pure)
        .section("CUDA Math API: half precision");
    /// bfloat16 to float32.
    CudaBfloat162float = Row::new("tirx.cuda.bfloat162float", "cuda.bfloat162float", function("__bfloat162float"))
        .args(&[arg("src", ArgKind::Value(DType::BFLOAT16))]).gives(DType::FLOAT32).effect(Pure)
        .section("CUDA Math API: bfloat16 precision");
    /// Two float32 in memory to two float16: destination, source.
    CudaFloat22half2 = Row::new("tirx.cuda.float22half2", "cuda.float22half2", code("*static_cast<half2*>(dst) = __float22half2_rn(*static_cast<const float2*>(src));").headers(&["cuda_fp16.h"]))
        .args(&[arg("dst", OUT32), arg("src", IN32)]).traits(Traits::PLAIN.memory(Memory::ReadsAndWrites));
    /// Eight float16 in memory to eight float32: source, destination.
    CudaHalf8tofloat8 = Row::new("tirx.cuda.half8tofloat8", "cuda.half8tofloat8", code("#pragma unroll\nfor (int i = 0; i < 4; ++i) {\n  static_cast<float2*>(dst_addr)[i] = __half22float2(static_cast<const half2*>(src_addr)[i]);\n}").headers(&["cuda_fp16.h"]))
        .args(&[arg("src_addr", IN32), arg("dst_addr", OUT32)]).traits(Traits::PLAIN.memory(Memory::ReadsAndWrites));
    /// Eight float32 in memory to eight float16: source, destination.
    CudaFloat8tohalf8 = Row::new("tirx.cuda.float8tohalf8", "cuda.float8tohalf8", code("#pragma unroll\nfor (int i = 0; i < 4; ++i) {\n  static_cast<half2*>(dst_addr)[i] = __float22half2_rn(static_cast<const float2*>(src_addr)[i]);\n}").headers(&["cuda_fp16.h"]))
        .args(&[arg("src_addr", IN32), arg("dst_addr", OUT32)]).traits(Traits::PLAIN.memory(Memory::ReadsAndWrites));
    /// Converts values to the PTX type `dtype` from `atype`: one value, or as many as `dtype` packs. `rbits` are the
    /// random bits of `rounding="rs"`, `scale_factor` is the factor of `scaled`.
    PtxCvt = Row::new("tirx.ptx.cvt", "ptx.cvt", special())
        .args(&[
            rest("values", ANY), optional("rbits", U32), optional("scale_factor", U16),
            arg("count", ArgKind::Count("values")), arg("has_rbits", ArgKind::Has("rbits")),
            arg("has_scale_factor", ArgKind::Has("scale_factor")),
            arg("dtype", TYPE), arg("atype", TYPE), arg("rounding", ArgKind::Text(ROUNDINGS)),
            arg("ftz", ArgKind::Flag), arg("sat", ArgKind::Flag), arg("relu", ArgKind::Flag), arg("satfinite", ArgKind::Flag),
            arg("scaled", ArgKind::Text(SCALES)),
        ])
        .signature("(dtype, *values, atype, rounding='', ftz=False, sat=False, relu=False, satfinite=False, scaled='', \
                    rbits=None, scale_factor=None)")
        .checked(known).value(ResultRule::Of(carrier)).effect(Pure).needs_by(gpus).since_by(release).section("cvt");
    /// Eight float32 as eight float4_e2m1fn in one word, rounded to the nearest even and saturated; `x0` is in the lowest four bits.
    /// TVM 0.27.0.post1 does not have it yet.
    CudaCvtE2m1x8F32 = Row::new("tirx.cuda.cvt_e2m1x8_f32", "cuda.cvt_e2m1x8_f32",
        pure_ptx(".reg .b8 b0, b1, b2, b3; \
                  cvt.rn.satfinite.e2m1x2.f32 b0, {x1}, {x0}; cvt.rn.satfinite.e2m1x2.f32 b1, {x3}, {x2}; \
                  cvt.rn.satfinite.e2m1x2.f32 b2, {x5}, {x4}; cvt.rn.satfinite.e2m1x2.f32 b3, {x7}, {x6}; \
                  mov.b32 {result}, {{b0, b1, b2, b3}};"))
        .args(&[
            arg("x0", F32), arg("x1", F32), arg("x2", F32), arg("x3", F32),
            arg("x4", F32), arg("x5", F32), arg("x6", F32), arg("x7", F32),
        ])
        .gives(DType::UINT32).effect(Pure).arch(NARROW).section("cvt");
} }
