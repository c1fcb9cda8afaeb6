//! Dtypes of matrices: their names in PTX, by TVM's names and by PTX's own.

use crate::intrin::row::Ty;

/// TVM's names, PTX's name, bits.
const NAMES: &[(&[&str], &str, u32)] = &[
    (&["float16", "fp16", "f16"], "f16", 16),
    (&["bfloat16", "bf16"], "bf16", 16),
    (&["tf32", "tensor_float32", "tfloat32"], "tf32", 32),
    (&["float32", "fp32", "f32"], "f32", 32),
    (&["float64", "fp64", "f64"], "f64", 64),
    (&["int8", "s8"], "s8", 8),
    (&["uint8", "u8"], "u8", 8),
    (&["int4", "s4"], "s4", 4),
    (&["uint4", "u4"], "u4", 4),
    (&["int1", "uint1", "bit1", "b1"], "b1", 1),
    (&["int32", "s32"], "s32", 32),
    (&["float8_e4m3fn", "float8_e4m3fnuz", "e4m3"], "e4m3", 8),
    (&["float8_e5m2", "e5m2"], "e5m2", 8),
    (&["float6_e2m3fn", "e2m3"], "e2m3", 6),
    (&["float6_e3m2fn", "e3m2"], "e3m2", 6),
    (&["float4_e2m1fn", "e2m1"], "e2m1", 4),
    (&["float8_e8m0fnu", "ue8m0", "e8m0"], "ue8m0", 8),
];

/// PTX's name of a dtype.
pub(in crate::intrin) fn ptx_name(name: &str) -> Option<&'static str> {
    NAMES
        .iter()
        .find(|(names, ..)| names.contains(&name))
        .map(|(_, ptx, _)| *ptx)
}

/// How many bits an element has.
pub(in crate::intrin) fn bits(name: &str) -> Option<u32> {
    NAMES
        .iter()
        .find(|(names, ..)| names.contains(&name))
        .map(|(.., bits)| *bits)
}

/// The register that holds elements of a dtype.
pub(in crate::intrin) fn register(name: &str) -> Ty {
    match ptx_name(name) {
        Some("f32") => Ty::F32,
        Some("f64") => Ty::F64,
        _ => Ty::B32,
    }
}
