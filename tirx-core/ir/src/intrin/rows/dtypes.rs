//! Dtypes of matrices: their names in PTX, by TVM's names and by PTX's own.

use tirx_dtype::ElementType;

use crate::intrin::row::Ty;

/// Further names of types, with PTX's.
const ALIASES: &[(&str, &str)] = &[
    ("fp16", "f16"),
    ("fp32", "f32"),
    ("fp64", "f64"),
    ("tensor_float32", TF32),
    ("tfloat32", TF32),
    ("bit1", "b1"),
    ("e8m0", "ue8m0"),
];

/// A float32 of which matrix instructions read the upper 19 bits; no dtype of its own.
const TF32: &str = "tf32";

/// PTX's name of a dtype.
pub(in crate::intrin) fn ptx_name(name: &str) -> Option<&'static str> {
    let alias = ALIASES.iter().find(|(alias, _)| *alias == name);
    match alias.map_or(name, |(_, ptx)| ptx) {
        TF32 => Some(TF32),
        name => ElementType::of_matrices(name)?.ptx,
    }
}

/// How many bits an element has.
pub(in crate::intrin) fn bits(name: &str) -> Option<u32> {
    match ptx_name(name)? {
        TF32 => Some(32),
        ptx => Some(u32::from(ElementType::of_matrices(ptx)?.bits)),
    }
}

/// The register that holds elements of a dtype.
pub(in crate::intrin) fn register(name: &str) -> Ty {
    match ptx_name(name) {
        Some("f32") => Ty::F32,
        Some("f64") => Ty::F64,
        _ => Ty::B32,
    }
}
