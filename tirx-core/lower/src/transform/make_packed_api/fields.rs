//! Reading the structures that packed arguments are made of.

use crate::intrin::Op;
pub(super) use crate::ir::abi::Field;
use crate::ir::{DType, Expr};

/// Bytes from a tensor object to its descriptor.
pub(super) const TENSOR_HEADER: i32 = 24;

/// Element `index` of `structure`, its field as `dtype`.
pub(super) fn get(structure: &Expr, index: usize, field: Field, dtype: DType) -> Expr {
    let get = Op::TvmStructGet.call().set("arr", structure);
    let get = get.set("index", index as i32).set("field", field.number());
    get.dtype(dtype).build()
}

/// Whether a pointer is null.
pub(super) fn is_null(pointer: Expr) -> Expr {
    Expr::call(Op::IsNullptr, DType::BOOL, vec![pointer])
}
