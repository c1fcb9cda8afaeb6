//! `T.print_buffer` as loops of `printf` in the first thread of each CTA.

use crate::intrin::Op;
use crate::ir::{BinOp, Buffer, DType, Expr, Stmt, Var};
use crate::source::Span;

/// The statements that print `shape` elements of `buffer` (flat), or its first element where `scalar`.
///
/// None where the elements have no `printf` directive.
pub(super) fn lower(buffer: &Buffer, shape: &[Expr], scalar: bool, span: Span) -> Option<Stmt> {
    let dtype = buffer.dtype;
    let (directive, printed) = directive(dtype)?;
    let name = &buffer.data.name();
    let element = |index: Expr| {
        let value = Expr::load(buffer, vec![index]).at(span);
        if printed == dtype {
            value
        } else {
            value.cast(printed)
        }
    };
    let zero = || Expr::constant(DType::INT32, 0);
    let body = if scalar {
        print(
            &format!("Scalar (dtype: T.{dtype}): {directive}\n\n"),
            vec![element(zero())],
        )
    } else {
        let extents: Option<Vec<String>> = shape.iter().map(|e| e.as_int().map(|n| n.to_string())).collect();
        let head = match extents {
            Some(extents) => format!("({name}, shape=({}), dtype=T.{dtype}):\n[", extents.join(",")),
            None => format!("({name}, dtype=T.{dtype}):\n["),
        };
        let rows = rows(
            shape,
            0,
            zero(),
            &|index| print(directive, vec![element(index)]),
            span,
        );
        Stmt::seq([print(&head, vec![]), rows, print("]\n", vec![])])
    };
    let rank = Expr::call(Op::CudaThreadRank, DType::INT32, vec![]);
    let first = Expr::binary(BinOp::Eq, rank, zero());
    Some(Stmt::if_else(first, body, None, span))
}

/// The loops over the elements below one row, with separators between them.
fn rows(shape: &[Expr], axis: usize, row: Expr, element: &dyn Fn(Expr) -> Stmt, span: Span) -> Stmt {
    let Some(extent) = shape.get(axis) else {
        return element(row);
    };
    let var = Var::new(format!("i{axis}"), extent.dtype);
    let index = || Expr::var(&var);
    let inner = if row.is_int(0) {
        index()
    } else {
        Expr::binary(BinOp::Add, Expr::binary(BinOp::Mul, row, extent.clone()), index())
    };
    let innermost = axis + 1 == shape.len();
    let below = rows(shape, axis + 1, inner, element, span);
    let last = Expr::binary(BinOp::Sub, extent.clone(), Expr::constant(extent.dtype, 1));
    let between = print(if innermost { " " } else { "\n  " }, vec![]);
    let between = Stmt::if_else(Expr::binary(BinOp::Lt, index(), last), between, None, span);
    let body = if innermost {
        Stmt::seq([below, between])
    } else {
        Stmt::seq([print("[", vec![]), below, print("]", vec![]), between])
    };
    Stmt::for_serial(&var, extent.clone(), body, span)
}

/// The directive for an element, and the dtype it is passed in.
fn directive(dtype: DType) -> Option<(&'static str, DType)> {
    if !dtype.is_scalar() {
        return None;
    }
    Some(if dtype.is_floating() {
        ("%f", if dtype.bits == 64 { dtype } else { DType::FLOAT32 })
    } else if dtype.is_uint() && dtype.bits == 64 {
        ("%llu", dtype)
    } else if dtype.is_uint() {
        ("%u", DType::UINT32)
    } else if dtype.is_bool() {
        ("%d", DType::INT32)
    } else if dtype.is_int() && dtype.bits == 64 {
        ("%lld", dtype)
    } else if dtype.is_int() {
        ("%d", DType::INT32)
    } else {
        return None;
    })
}

fn print(format: &str, mut args: Vec<Expr>) -> Stmt {
    args.insert(0, Expr::string(format));
    Stmt::evaluate(Expr::call(Op::CudaPrintf, DType::VOID, args))
}
