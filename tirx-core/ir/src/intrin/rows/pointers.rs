//! Addresses: of elements, moved by bytes, into buffers.

use super::kinds::*;
use crate::intrin::operands::Operands;
use crate::intrin::row::*;
use crate::intrin::{Effect::*, ResultRule};
use crate::ir::{DType, Expr, ExprKind};

/// The widest dtype of the element's indices and its buffer's extents, at least int32.
fn offset_dtype(call: &Operands) -> DType {
    let mut dtype = DType::INT32;
    if let Some(ExprKind::BufferLoad { buffer, indices, .. }) = call.get("load").map(|e: &Expr| &e.kind) {
        for e in indices.iter().chain(&buffer.shape) {
            let element = e.dtype.element();
            if element.bits > dtype.bits {
                dtype = element;
            }
        }
        dtype = dtype.with_lanes(indices.iter().map(|i| i.dtype.lanes).max().unwrap_or(1));
    }
    dtype
}

fn cache_level(call: &Operands, _: Machine) -> Result<Words, String> {
    let level = if call.int("locality") == Some(3) {
        "L1"
    } else {
        "L2"
    };
    Ok(Words {
        texts: vec![("level", level.into())],
        ..Words::default()
    })
}

rows! { $ pointers {
    /// Pointer to a buffer element (argument: a load), or the address of a tensor map.
    AddressOf = Row::new("tirx.address_of", "address_of", special()).args(&[arg("obj", ANY)])
        .value(ResultRule::AddressOf).effect(Pure);
    /// A pointer moved by bytes and retyped.
    PtrByteOffset = Row::new("tirx.ptr_byte_offset", "ptr_byte_offset", special())
        .args(&[arg("data", ANY), arg("byte_offset", ANY), arg("dtype", NODE)]).gives(DType::HANDLE).effect(Pure);
    /// A pointer moved by bytes.
    HandleAddByteOffset = Row::new("tirx.handle_add_byte_offset", "handle_add_byte_offset", special())
        .args(&[arg("data", ANY), arg("byte_offset", ANY)]).gives(DType::HANDLE).effect(Pure);
    /// Element offset of a buffer element.
    BufferOffset = Row::new("tirx.buffer_offset", "buffer_offset", lowered()).args(&[arg("load", ANY)])
        .value(ResultRule::Of(offset_dtype)).effect(Pure);
    /// Pointer into a buffer: type annotation, data, offset, extent, mask (1 read, 2 write).
    TvmAccessPtr = Row::new("tirx.tvm_access_ptr", "tvm_access_ptr", special())
        .args(&[arg("ptype", NODE), arg("data", ANY), arg("offset", ANY), arg("extent", ANY), arg("rw_mask", ANY)])
        .gives(DType::HANDLE).effect(Pure);
    /// Asks for the cache line of an address in global memory: in the L1 cache if `locality` is 3, else in L2. `rw` and `cache` change nothing.
    Prefetch = Row::new("tirx.prefetch", "prefetch", state_ptx("prefetch.global.{level} [{address}];").words(cache_level))
        .args(&[
            arg("address", GLOBAL), arg("rw", ArgKind::Immediate(0, 1)), arg("locality", ArgKind::Immediate(0, 3)),
            arg("cache", ArgKind::Immediate(0, 1)),
        ])
        .effect(Opaque).sources(&["address"]);
    /// Prints a buffer from the device.
    PrintBuffer = Row::new("tirx.print_buffer", "print_buffer", special())
        .args(&[arg("buffer_var", ANY), arg("dtype", NAME), rest("rest", NODE)]).sources(&["buffer_var"]);
} }
