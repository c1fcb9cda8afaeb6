//! Variants of `copy`, and their common predicates.

mod fallback;
mod gmem_smem;
pub(super) mod partition;
mod reg;
mod vec_forced;

use super::context::Context;
use super::variant::{Completion, Predicate, Variant, ready};
use crate::ir::{BufferRegion, Expr, TileCall, TileOp};

pub(super) static VARIANTS: &[Variant] = &[
    vec_forced::variant("vec_256b", vec_forced::plan::<32>),
    vec_forced::variant("vec_128b", vec_forced::plan::<16>),
    vec_forced::variant("vec_64b", vec_forced::plan::<8>),
    vec_forced::variant("vec_32b", vec_forced::plan::<4>),
    vec_forced::variant("vec_16b", vec_forced::plan::<2>),
    Variant {
        ops: &[TileOp::Copy],
        name: "gmem_smem",
        aliases: &["vec_auto"],
        priority: 10,
        only_forced: false,
        predicates: &[
            SCOPE,
            FULL_SCOPE,
            SAME_ELEMENTS,
            Predicate {
                name: "between global and shared memory",
                holds: |call, cx| Ok(gmem_smem::between_global_and_shared(call.tile, cx)?),
            },
            Predicate {
                name: "the elements divide among the threads",
                holds: |call, cx| Ok(gmem_smem::divides(call.tile, cx)?),
            },
        ],
        completion: Completion::OwnPart,
        plan: |call, cx| ready(call, cx, gmem_smem::lower),
        doc: "vectors of up to 16 bytes, spread over the threads of the scope",
        ..Variant::DEFAULT
    },
    Variant {
        ops: &[TileOp::Copy],
        name: "reg",
        aliases: &["vec_auto"],
        priority: 10,
        only_forced: false,
        predicates: &[
            SCOPE,
            FULL_SCOPE,
            SAME_ELEMENTS,
            Predicate {
                name: "between local and global or shared memory",
                holds: |call, cx| Ok(reg::with_registers(call.tile, cx)?),
            },
        ],
        options: vec_forced::HINTS,
        completion: Completion::OwnPart,
        plan: |call, cx| ready(call, cx, reg::lower),
        doc: "each thread moves what it holds, in vectors of up to 16 bytes",
        ..Variant::DEFAULT
    },
    Variant {
        ops: &[TileOp::Copy],
        name: "fallback",
        aliases: &[],
        priority: 0,
        only_forced: false,
        predicates: &[SAME_ELEMENTS],
        completion: Completion::OwnPart,
        plan: |call, cx| ready(call, cx, fallback::lower),
        doc: "element by element, by the first active thread of the scope",
        ..Variant::DEFAULT
    },
];

/// Predicate: the scope can be partitioned.
pub(super) const SCOPE: Predicate = Predicate {
    name: "scope thread, warp, warpgroup or cta",
    holds: |_, cx| Ok(cx.thread_count().map(drop)?),
};

/// Predicate: every thread of the scope is active.
pub(super) const FULL_SCOPE: Predicate = Predicate {
    name: "all threads of the scope are active",
    holds: |_, cx| Ok(full_scope(cx)?),
};

/// Predicate: both sides have a layout, one dtype and, apart from dimensions of one element, the same extents.
pub(super) const SAME_ELEMENTS: Predicate = Predicate {
    name: "one dtype, layouts, the same extents",
    holds: |call, cx| Ok(same_elements(call.tile, cx)?),
};

pub(super) fn full_scope(cx: &Context<'_>) -> Result<(), String> {
    use crate::ir::ExecScope;
    if cx.scope == ExecScope::Thread {
        return Ok(());
    }
    match (cx.active, cx.threads.and_then(|t| t.count)) {
        (Some(active), Some(threads)) => active.is_full(cx.scope, threads),
        _ => Err("the number of threads of a CTA is not known".to_string()),
    }
}

pub(super) fn operands(call: &TileCall) -> Result<(&BufferRegion, &BufferRegion), String> {
    match (call.region(0), call.region(1)) {
        (Some(dst), Some(src)) => Ok((dst, src)),
        _ => Err("copy is between two regions".to_string()),
    }
}

/// The dimensions of more than one element.
fn wide(region: &BufferRegion) -> Vec<usize> {
    let dims = 0..region.ranges.len();
    dims.filter(|d| !region.ranges[*d].1.is_int(1)).collect()
}

fn same_elements(call: &TileCall, cx: &mut Context<'_>) -> Result<(), String> {
    let (dst, src) = operands(call)?;
    for region in [dst, src] {
        if region.buffer.layout.is_none() {
            return Err(format!("{} has no layout", region.buffer.name));
        }
    }
    if dst.buffer.dtype != src.buffer.dtype {
        return Err(format!(
            "dtypes differ: dst is {}, src is {}",
            dst.buffer.dtype, src.buffer.dtype
        ));
    }
    let (d, s) = (wide(dst), wide(src));
    let same = |a: &Expr, b: &Expr, cx: &mut Context<'_>| match (a.as_int(), b.as_int()) {
        (Some(a), Some(b)) => a == b,
        _ => a == b || a.dtype == b.dtype && cx.facts.can_prove_equal(a, b),
    };
    let equal = d.len() == s.len()
        && d.iter()
            .zip(&s)
            .all(|(i, j)| same(&dst.ranges[*i].1, &src.ranges[*j].1, cx));
    if equal {
        Ok(())
    } else {
        Err("the extents of dst and src differ".to_string())
    }
}
