//! The CUDA C++ types of dtypes, and the headers that declare them.

use std::borrow::Cow;

use super::helpers::{Header, Helper, Needs};
use crate::ir::{DType, TypeCode};

/// The C++ type of one element; `None` where CUDA has none.
pub(super) fn element(dtype: DType) -> Option<&'static str> {
    Some(match (dtype.code, dtype.bits) {
        (TypeCode::Bool, _) => "bool",
        (TypeCode::Int, 8) => "int8_t",
        (TypeCode::Int, 16) => "int16_t",
        (TypeCode::Int, 32) => "int",
        (TypeCode::Int, 64) => "int64_t",
        (TypeCode::UInt, 8) => "uint8_t",
        (TypeCode::UInt, 16) => "uint16_t",
        (TypeCode::UInt, 32) => "unsigned int",
        (TypeCode::UInt, 64) => "uint64_t",
        (TypeCode::Float, 16) => "half",
        (TypeCode::Float, 32) => "float",
        (TypeCode::Float, 64) => "double",
        (TypeCode::BFloat, 16) => "nv_bfloat16",
        (TypeCode::Float8_e4m3fn, _) => "__nv_fp8_e4m3",
        (TypeCode::Float8_e5m2, _) => "__nv_fp8_e5m2",
        (TypeCode::Float8_e8m0fnu, _) => "__nv_fp8_e8m0",
        (TypeCode::Float6_e2m3fn, _) => "__nv_fp6_e2m3",
        (TypeCode::Float6_e3m2fn, _) => "__nv_fp6_e3m2",
        (TypeCode::Float4_e2m1fn, _) => "__nv_fp4_e2m1",
        (TypeCode::Handle, 64) => "void*",
        _ => return None,
    })
}

/// The header that declares an element type.
fn header(dtype: DType) -> Option<Header> {
    match dtype.code {
        TypeCode::Int | TypeCode::UInt if dtype.bits != 32 => Some(Header::Cstdint),
        TypeCode::Float if dtype.bits == 16 => Some(Header::Fp16),
        TypeCode::BFloat => Some(Header::Bf16),
        _ if dtype.is_float8() => Some(Header::Fp8),
        _ if dtype.is_float6() => Some(Header::Fp6),
        _ if dtype.is_float4() => Some(Header::Fp4),
        _ => None,
    }
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
    if dtype.is_float4() {
        return match dtype.lanes {
            2 => Some(("__nv_fp4x2_e2m1".into(), VectorForm::Nibbles)),
            4 => Some(("__nv_fp4x4_e2m1".into(), VectorForm::Nibbles)),
            lanes if lanes % 2 == 0 => Some((format!("tirx_fp4_vec<{lanes}>"), VectorForm::Nibbles)),
            // Half a byte has no address.
            _ => None,
        };
    }
    let packed = match (dtype.code, dtype.lanes) {
        (TypeCode::Float8_e4m3fn, 2) => "__nv_fp8x2_e4m3",
        (TypeCode::Float8_e4m3fn, 4) => "__nv_fp8x4_e4m3",
        (TypeCode::Float8_e5m2, 2) => "__nv_fp8x2_e5m2",
        (TypeCode::Float8_e5m2, 4) => "__nv_fp8x4_e5m2",
        (TypeCode::Float6_e2m3fn, 2) => "__nv_fp6x2_e2m3",
        (TypeCode::Float6_e2m3fn, 4) => "__nv_fp6x4_e2m3",
        (TypeCode::Float6_e3m2fn, 2) => "__nv_fp6x2_e3m2",
        (TypeCode::Float6_e3m2fn, 4) => "__nv_fp6x4_e3m2",
        _ => "",
    };
    if !packed.is_empty() {
        return Some((packed.into(), VectorForm::Bytes));
    }
    let builtin = match (dtype.code, dtype.bits) {
        (TypeCode::Int, 8) => "char",
        (TypeCode::Int, 16) => "short",
        (TypeCode::Int, 32) => "int",
        (TypeCode::UInt, 8) => "uchar",
        (TypeCode::UInt, 16) => "ushort",
        (TypeCode::UInt, 32) => "uint",
        (TypeCode::Float, 32) => "float",
        (TypeCode::Int, 64) if dtype.lanes == 2 => "longlong",
        (TypeCode::UInt, 64) if dtype.lanes == 2 => "ulonglong",
        (TypeCode::Float, 64) if dtype.lanes == 2 => "double",
        (TypeCode::Float, 16) if dtype.lanes == 2 => {
            return Some(("half2".into(), VectorForm::Fields("make_half2")));
        }
        (TypeCode::BFloat, 16) if dtype.lanes == 2 => {
            return Some(("nv_bfloat162".into(), VectorForm::Fields("make_bfloat162")));
        }
        _ => "",
    };
    // Three lanes of a narrow type have no natural alignment; CUDA's built-in ones are packed, as wanted.
    if !builtin.is_empty() && (2..=4).contains(&dtype.lanes) {
        let make = MAKERS.iter().find(|m| m.0 == builtin && m.1 == dtype.lanes)?.2;
        return Some((format!("{builtin}{}", dtype.lanes), VectorForm::Fields(make)));
    }
    Some((format!("tirx_vec<{scalar}, {}>", dtype.lanes), VectorForm::Array))
}

const MAKERS: [(&str, u16, &str); 24] = [
    ("char", 2, "make_char2"),
    ("char", 3, "make_char3"),
    ("char", 4, "make_char4"),
    ("short", 2, "make_short2"),
    ("short", 3, "make_short3"),
    ("short", 4, "make_short4"),
    ("int", 2, "make_int2"),
    ("int", 3, "make_int3"),
    ("int", 4, "make_int4"),
    ("uchar", 2, "make_uchar2"),
    ("uchar", 3, "make_uchar3"),
    ("uchar", 4, "make_uchar4"),
    ("ushort", 2, "make_ushort2"),
    ("ushort", 3, "make_ushort3"),
    ("ushort", 4, "make_ushort4"),
    ("uint", 2, "make_uint2"),
    ("uint", 3, "make_uint3"),
    ("uint", 4, "make_uint4"),
    ("float", 2, "make_float2"),
    ("float", 3, "make_float3"),
    ("float", 4, "make_float4"),
    ("longlong", 2, "make_longlong2"),
    ("ulonglong", 2, "make_ulonglong2"),
    ("double", 2, "make_double2"),
];

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
