//! Construction of statements that several variants use.

use std::sync::Arc;

use crate::intrin::Op;
use crate::ir::{Buffer, BufferNode, DType, Expr, Stmt, StmtKind, Var, View};
use crate::layout::Layout;
use crate::source::Span;

/// The storage of a buffer as one dimension of elements, and its declaration.
pub(super) fn flat_view(buffer: &Buffer, span: Span) -> (Buffer, Stmt) {
    let size = match Layout::from_buffer(buffer) {
        Some(layout) => layout.memory_span(),
        None => crate::layout::apply::product(&buffer.shape),
    };
    let flat = Buffer::new(BufferNode {
        elem_offset: buffer.elem_offset.clone(),
        align: buffer.align,
        offset_factor: buffer.offset_factor,
        view: View::from_buffer(buffer).map(Arc::new),
        ..BufferNode::flat(
            format!("{}_flat", buffer.name),
            buffer.data.clone(),
            buffer.dtype,
            vec![size],
            span,
        )
    });
    let declare = Stmt::new(StmtKind::DeclBuffer(flat.clone()), span);
    (flat, declare)
}

/// The address of an element.
pub(super) fn address(buffer: &Buffer, indices: Vec<Expr>, span: Span) -> Expr {
    let element = Expr::load(buffer, indices).at(span);
    Expr::call(Op::AddressOf, DType::HANDLE, vec![element]).at(span)
}

/// A buffer in the calling thread's own memory, and its allocation.
pub(super) fn local(name: &str, elements: i128, dtype: DType, span: Span) -> (Buffer, Stmt) {
    let buffer = Buffer::fresh(name, vec![Expr::int32(elements as i32)], dtype, "local", span);
    let allocate = Stmt::new(StmtKind::AllocBuffer(buffer.clone(), Vec::new()), span);
    (buffer, allocate)
}

/// `for name in range(extent)` around the statement that `body` makes of the variable; a single iteration needs no
/// loop.
pub(super) fn repeat(name: &str, extent: i128, span: Span, body: impl FnOnce(Expr) -> Stmt) -> Stmt {
    if extent == 1 {
        return body(Expr::int32(0));
    }
    let var = Var::at(name, DType::INT32, span);
    let inner = body(Expr::var(&var).at(span));
    Stmt::for_serial(&var, Expr::int32(extent as i32), inner, span)
}

/// The PTX type of one load or store of this many bytes: `(vec, ptx_type, return_type)`.
fn form(bytes: i128) -> (&'static str, &'static str, &'static str) {
    match bytes {
        32 => ("v8", "u32", "uint32"),
        16 => ("v4", "u32", "uint32"),
        8 => ("v2", "u32", "uint32"),
        4 => ("", "u32", "uint32"),
        2 => ("", "u16", "uint16"),
        _ => ("", "u8", "uint32"),
    }
}

/// Cache hints of a load.
#[derive(Clone, Default)]
pub(super) struct CacheHints {
    /// Through the read-only path: `ld.global.nc`.
    pub(super) read_only: bool,
    pub(super) l1_evict: String,
    pub(super) l2_evict: String,
    pub(super) prefetch_size: String,
}

/// `dst[0 .. bytes] = *address`, from `space`.
pub(super) fn load(
    dst: Expr,
    address: Expr,
    space: &str,
    bytes: i128,
    hints: &CacheHints,
    span: Span,
) -> Stmt {
    let (vec, ptx, result) = form(bytes);
    let op = match hints.read_only {
        true => Op::PtxLdGlobalNc,
        false => Op::PtxLd,
    };
    let call = op
        .call()
        .set("dst", dst)
        .set("addr", address)
        .set("return_type", result)
        .set("vec", vec)
        .set("ptx_type", ptx)
        .set("l1_evict", &hints.l1_evict)
        .set("l2_evict", &hints.l2_evict)
        .set("prefetch_size", &hints.prefetch_size)
        .at(span);
    match hints.read_only {
        true => call.stmt(),
        false => call.set("space", space).stmt(),
    }
}

/// `*address = src[0 .. bytes]`, in `space`.
pub(super) fn store(address: Expr, src: Expr, space: &str, bytes: i128, span: Span) -> Stmt {
    let (vec, ptx, _) = form(bytes);
    Op::PtxSt
        .call()
        .set("address", address)
        .set("src", src)
        .set("space", space)
        .set("vec", vec)
        .set("ptx_type", ptx)
        .at(span)
        .stmt()
}

/// The PTX state space of a storage scope.
pub(super) fn space(scope: &str) -> &str {
    if scope.starts_with("shared") {
        "shared"
    } else {
        scope
    }
}
