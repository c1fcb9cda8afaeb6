//! Reading the structures that packed arguments are made of.

use crate::intrin::Op;
pub(super) use crate::ir::abi::Field;
use crate::ir::{DType, Expr};

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
            Expr::int32(field.number()),
        ],
    )
}

/// Whether a pointer is null.
pub(super) fn is_null(pointer: Expr) -> Expr {
    Expr::call(Op::IsNullptr, DType::BOOL, vec![pointer])
}
