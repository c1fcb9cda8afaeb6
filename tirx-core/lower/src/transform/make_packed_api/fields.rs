//! The structures that packed arguments are made of: which field has which number, and its type.
//!
//! The numbers are those of `tvm_struct_get` in TVM 0.26.

use crate::intrin::Op;
use crate::ir::{DType, Expr, TypeCode};

/// A field of a tensor descriptor, an argument or an array.
#[derive(Clone, Copy)]
pub(super) enum Field {
    Data = 1,
    Shape = 2,
    Strides = 3,
    Rank = 4,
    DTypeCode = 5,
    DTypeBits = 6,
    DTypeLanes = 7,
    ByteOffset = 8,
    DeviceId = 9,
    DeviceType = 10,
    /// Of an argument: what it is.
    TypeIndex = 13,
    /// Of an argument: its value.
    Value = 15,
    /// An element of an array of `int64`.
    Int64Element = 17,
}

/// Type indices of arguments.
pub(super) mod type_index {
    pub(in super::super) const NONE: i32 = 0;
    pub(in super::super) const INT: i32 = 1;
    pub(in super::super) const BOOL: i32 = 2;
    pub(in super::super) const FLOAT: i32 = 3;
    pub(in super::super) const POINTER: i32 = 4;
    pub(in super::super) const TENSOR_POINTER: i32 = 7;
    pub(in super::super) const FIRST_OBJECT: i32 = 64;
    pub(in super::super) const TENSOR: i32 = 70;
}

/// Bytes from a tensor object to its descriptor.
pub(super) const TENSOR_HEADER: i32 = 24;

/// Element `index` of `structure`, its field as `dtype`.
pub(super) fn get(structure: &Expr, index: usize, field: Field, dtype: DType) -> Expr {
    Expr::call(
        Op::TvmStructGet,
        dtype,
        vec![
            structure.clone(),
            Expr::int32(index as i32),
            Expr::int32(field as i32),
        ],
    )
}

/// Whether a pointer is null.
pub(super) fn is_null(pointer: Expr) -> Expr {
    Expr::call(Op::IsNullptr, DType::BOOL, vec![pointer])
}

/// `DLDataTypeCode` of an element type.
pub(super) fn dtype_code(dtype: DType) -> i128 {
    match dtype.code {
        TypeCode::Int => 0,
        TypeCode::UInt => 1,
        TypeCode::Float => 2,
        TypeCode::Handle => 3,
        TypeCode::BFloat => 4,
        TypeCode::Bool => 6,
        TypeCode::Float8_e3m4 => 7,
        TypeCode::Float8_e4m3 => 8,
        TypeCode::Float8_e4m3b11fnuz => 9,
        TypeCode::Float8_e4m3fn => 10,
        TypeCode::Float8_e4m3fnuz => 11,
        TypeCode::Float8_e5m2 => 12,
        TypeCode::Float8_e5m2fnuz => 13,
        TypeCode::Float8_e8m0fnu => 14,
        TypeCode::Float6_e2m3fn => 15,
        TypeCode::Float6_e3m2fn => 16,
        TypeCode::Float4_e2m1fn => 17,
    }
}
