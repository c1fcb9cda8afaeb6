//! `sum`, `max`, `min` → `shared`: a thread an output element.
//!
//! **Idea.** The outputs are spread over the threads of the scope; the thread of an output goes through the inputs that
//! make it, in order, and keeps the result in a register. A barrier of the scope follows.
//!
//! **Conditions.** All threads of the scope active and all regions in shared memory, or scope thread with regions that
//! are not spread over threads. Constant extents; the output has the extents of the input without the reduced dimensions,
//! which may be left out or of extent one. With `accum=True` the output's old value takes part.
//!
//! **Cost.** `ceil(outputs / threads)` rounds of as many loads as inputs make an output.

use super::build::{elements, local, repeat};
use super::context::Context;
use super::copy::{FULL_SCOPE, SCOPE};
use super::elementwise::{barrier, coordinate_of};
use super::table::{Predicate, Variant};
use crate::arith::fold;
use crate::ir::typing::{self, Arithmetic};
use crate::ir::{BinOp, BufferRegion, ExecScope, Expr, Stmt, TileArg, TileCall, TileOp};
use crate::layout::apply::binary;

pub(super) static VARIANTS: &[Variant] = &[Variant {
    ops: &[TileOp::Sum, TileOp::Max, TileOp::Min],
    name: "shared",
    aliases: &[],
    priority: 10,
    only_forced: false,
    predicates: &[
        SCOPE,
        FULL_SCOPE,
        Predicate {
            name: "every region in shared memory, or in the calling thread's reach at scope thread",
            holds: reachable,
        },
    ],
    lower,
    doc: "each output element by one thread",
}];

fn operands(call: &TileCall) -> Result<(&BufferRegion, &BufferRegion), String> {
    match (call.region(0), call.region(1)) {
        (Some(dst), Some(src)) => Ok((dst, src)),
        _ => Err("a reduction is between two regions".to_string()),
    }
}

fn reachable(call: &TileCall, cx: &mut Context<'_>) -> Result<(), String> {
    let (dst, src) = operands(call)?;
    for region in [dst, src] {
        let buffer = &region.buffer;
        let spread = buffer.layout.as_ref().is_some_and(|l| l.has_hardware_axis());
        let shared = buffer.scope().starts_with("shared");
        if spread || !shared && cx.scope != ExecScope::Thread {
            return Err(format!("{} is not in shared memory", buffer.name));
        }
        if buffer.layout.is_none() {
            return Err(format!("{} has no layout", buffer.name));
        }
    }
    Ok(())
}

/// Which dimensions of the input are reduced.
fn reduced(call: &TileCall, rank: usize) -> Result<Vec<bool>, String> {
    let mut all = vec![false; rank];
    let Some(TileArg::Axes(axes)) = call.args.get(2) else {
        return Err("no axes are given".to_string());
    };
    for axis in axes {
        let at = if *axis < 0 { axis + rank as i64 } else { *axis };
        match usize::try_from(at).ok().and_then(|at| all.get_mut(at)) {
            Some(axis) => *axis = true,
            None => return Err(format!("axis {axis} of an input of {rank} dimensions")),
        }
    }
    Ok(all)
}

fn lower(call: &TileCall, cx: &mut Context<'_>) -> Result<Stmt, String> {
    let (dst, src) = operands(call)?;
    let reduced = reduced(call, src.ranges.len())?;
    let extents = src
        .const_extents()
        .ok_or("the extents of the input are not constant")?;
    let outputs = elements(dst).ok_or("the extents of the output are not constant")?;
    let wide = |list: Vec<i128>| list.into_iter().filter(|e| *e != 1).collect::<Vec<_>>();
    let kept: Vec<i128> = extents
        .iter()
        .zip(&reduced)
        .filter(|(_, r)| !**r)
        .map(|(e, _)| *e)
        .collect();
    let own = dst.const_extents().unwrap_or_default();
    if wide(kept.clone()) != wide(own.clone()) {
        return Err(format!(
            "the output has extents {own:?}, but {kept:?} are left of the input"
        ));
    }
    let accumulates = match call.args.get(3) {
        Some(TileArg::Expr(e)) => match e.as_int() {
            Some(v) => v != 0,
            None => return Err("accum is not known when the kernel is compiled".to_string()),
        },
        _ => false,
    };
    let threads = cx.thread_count()?;
    let rounds = (outputs + threads - 1) / threads;
    cx.partition = Some([rounds, threads, 1]);
    let inputs: i128 = extents
        .iter()
        .zip(&reduced)
        .filter(|(_, r)| **r)
        .map(|(e, _)| *e)
        .product();
    let span = cx.span;
    let dtype = dst.buffer.dtype;
    let thread = cx.thread_index();
    let (acc, allocate) = local("acc", 1, dtype, span);
    let zero = || vec![Expr::int32(0)];
    let old = || Expr::load(&acc, zero()).at(span);
    let mut failed = None;
    let mut ok = |value: crate::diagnostic::Result<Expr>| {
        value.unwrap_or_else(|error| {
            failed = Some(error.message);
            old()
        })
    };
    // The input's coordinate from the number of the output and that of the input among those that make it.
    let source = |output: &Expr, input: &Expr| {
        let (mut left_out, mut left_in) = (output.clone(), input.clone());
        let mut at = Vec::new();
        for (dim, (start, extent)) in src.ranges.iter().enumerate().rev() {
            let rest = if reduced[dim] { &mut left_in } else { &mut left_out };
            let extent = Expr::constant(rest.dtype, extent.as_int().unwrap_or(1));
            let digit = fold::floormod(rest.clone(), extent.clone());
            *rest = fold::floordiv(rest.clone(), extent);
            at.push(binary(BinOp::Add, digit, start.clone()));
        }
        at.reverse();
        at
    };
    let op = match call.op {
        TileOp::Sum => Arithmetic::Add,
        TileOp::Max => Arithmetic::Max,
        _ => Arithmetic::Min,
    };
    let body = repeat("s", rounds, span, |round| {
        let output = fold::add(fold::mul(round, Expr::int32(threads as i32)), thread.clone());
        let place = coordinate_of(&output, dst);
        let first = if accumulates {
            Expr::load(&dst.buffer, place.clone()).at(span)
        } else if call.op == TileOp::Sum {
            ok(typing::cast(typing::Operand::Int(0), dtype, span))
        } else {
            let first = Expr::load(&src.buffer, source(&output, &Expr::int32(0))).at(span);
            ok(typing::cast(first.into(), dtype, span))
        };
        let turns = repeat("r", inputs, span, |input| {
            let next = Expr::load(&src.buffer, source(&output, &input)).at(span);
            let next = ok(typing::cast(next.into(), dtype, span));
            let value = ok(typing::binary(op, old().into(), next.into(), span));
            Stmt::store(&acc, zero(), value, span)
        });
        let all = Stmt::seq([
            Stmt::store(&acc, zero(), first, span),
            turns,
            Stmt::store(&dst.buffer, place, old(), span),
        ]);
        if rounds * threads == outputs {
            return all;
        }
        let inside = Expr::binary(BinOp::Lt, output, Expr::int32(outputs as i32)).at(span);
        Stmt::if_else(inside, all, None, span)
    });
    match failed {
        Some(reason) => Err(reason),
        None => Ok(Stmt::seq(
            [allocate, body].into_iter().chain(barrier(cx.scope, span)),
        )),
    }
}
