//! The CUDA C++ types of dtypes, and the headers that declare them.

use std::borrow::Cow;

use super::helpers::{Header, Helper, Needs};
use crate::ir::{DType, ElementType};

/// The C++ type of one element; `None` where CUDA has none.
pub(super) fn element(dtype: DType) -> Option<&'static str> {
    ElementType::from_dtype(dtype)?.cuda
}

/// The header that declares an element type.
pub(super) fn header(dtype: DType) -> Option<Header> {
    Header::named(ElementType::from_dtype(dtype)?.cuda_header?)
}

/// How a vector type is constructed and accessed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum VectorForm {
    /// A built-in type with fields `x`, `y`, `z`, `w`, made by this function.
    Fields(&'static str),
    /// `tirx_vec<T, N>`.
    Array,
    /// CUDA's packed type of two or four bytes; its lanes are those of a `tirx_vec` of the same bits.
    Bytes,
    /// Two lanes per byte: CUDA's type for two or four lanes, `tirx_fp4_vec<N>` for more.
    Nibbles,
}

/// The lanes' field names.
pub(super) const FIELDS: [&str; 4] = ["x", "y", "z", "w"];

/// Name and form of a vector type with a supported element.
pub(super) fn vector(dtype: DType) -> Option<(String, VectorForm)> {
    let scalar = element(dtype)?;
    if dtype.is_handle() {
        return None;
    }
    let vectors = ElementType::from_dtype(dtype)?.cuda_vectors;
    if let Some((_, name, make)) = vectors.iter().find(|(lanes, ..)| *lanes == dtype.lanes) {
        let form = match make {
            Some(make) => VectorForm::Fields(make),
            None if dtype.is_float4() => VectorForm::Nibbles,
            None => VectorForm::Bytes,
        };
        return Some(((*name).into(), form));
    }
    if dtype.is_float4() {
        // Half a byte has no address.
        let whole = dtype.lanes.is_multiple_of(2);
        return whole.then(|| (format!("tirx_fp4_vec<{}>", dtype.lanes), VectorForm::Nibbles));
    }
    Some((format!("tirx_vec<{scalar}, {}>", dtype.lanes), VectorForm::Array))
}

/// The C++ type of a dtype, whose headers and helpers are requested; `None` where CUDA has none.
pub(super) fn spell(dtype: DType, needs: &mut Needs) -> Option<Cow<'static, str>> {
    if dtype.is_void() {
        return Some("void".into());
    }
    needs.headers.extend(header(dtype));
    if dtype.is_scalar() {
        return Some(element(dtype)?.into());
    }
    let (name, form) = vector(dtype)?;
    match form {
        VectorForm::Array => needs.helpers.insert(Helper::Vec),
        VectorForm::Nibbles if dtype.lanes > 4 => needs.helpers.insert(Helper::Fp4Vec),
        _ => false,
    };
    Some(name.into())
}

/// Whether CUDA has a packed type for these two or four narrow floats, and converts it whole.
pub(super) fn is_packed(dtype: DType) -> bool {
    let form = vector(dtype).map(|v| v.1);
    dtype.lanes <= 4 && matches!(form, Some(VectorForm::Bytes | VectorForm::Nibbles))
}

/// Whether values of this integer type are computed in a wider C++ type (`int`).
pub(super) fn is_promoted(dtype: DType) -> bool {
    dtype.is_integer() && dtype.bits < 32
}

/// Whether it is an integer of 16 bits.
pub(super) fn is_16_bit_integer(dtype: DType) -> bool {
    dtype.is_integer() && dtype.bits == 16
}

/// Whether it is a 16-bit floating type.
pub(super) fn is_half(dtype: DType) -> bool {
    dtype.is_floating() && dtype.bits == 16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings() {
        let mut needs = Needs::default();
        for (dtype, expected) in [
            ("float32", "float"),
            ("int8", "int8_t"),
            ("uint32x4", "uint4"),
            ("float16x2", "half2"),
            ("float16x8", "tirx_vec<half, 8>"),
            ("bool", "bool"),
            ("int64x2", "longlong2"),
            ("float64x4", "tirx_vec<double, 4>"),
            ("float8_e4m3fn", "__nv_fp8_e4m3"),
            ("float6_e3m2fnx4", "__nv_fp6x4_e3m2"),
            ("float4_e2m1fnx2", "__nv_fp4x2_e2m1"),
            ("float4_e2m1fnx8", "tirx_fp4_vec<8>"),
        ] {
            assert_eq!(
                spell(dtype.parse().unwrap(), &mut needs).as_deref(),
                Some(expected)
            );
        }
        assert!(needs.headers.contains(&Header::Fp16) && needs.helpers.contains(&Helper::Vec));
        for none in ["int4", "float8_e4m3b11fnuz", "handlex2", "float4_e2m1fnx3"] {
            assert_eq!(
                none.parse().ok().and_then(|d| spell(d, &mut needs)),
                None,
                "{none}"
            );
        }
    }
}
