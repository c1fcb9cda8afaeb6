//! Variants of `copy`, and their common predicates.

mod fallback;
mod matrix;
pub(super) mod partition;
mod reg;
mod vec_forced;
mod vectors;

use super::call::Call;
use super::context::Context;
use super::variant::{Completion, Decline, Predicate, Variant};
use crate::intrin::Arch;
use crate::ir::{BufferRegion, Expr, TileOp};

pub(super) static VARIANTS: &[Variant] = &[
    vec_forced::variant("vec_256b", Arch::least(100), vec_forced::plan::<32>),
    vec_forced::variant("vec_128b", Arch::ANY, vec_forced::plan::<16>),
    vec_forced::variant("vec_64b", Arch::ANY, vec_forced::plan::<8>),
    vec_forced::variant("vec_32b", Arch::ANY, vec_forced::plan::<4>),
    vec_forced::variant("vec_16b", Arch::ANY, vec_forced::plan::<2>),
    Variant {
        ops: &[TileOp::Copy],
        name: "gmem_smem",
        aliases: &["vec_auto"],
        predicates: &[
            SCOPE,
            FULL_SCOPE,
            SAME_ELEMENTS,
            Predicate {
                name: "between global and shared memory",
                holds: vectors::between_global_and_shared,
            },
            Predicate {
                name: "the elements divide among the threads",
                holds: vectors::divides,
            },
        ],
        completion: Completion::OwnPart,
        options: vectors::OPTIONS,
        plan: vectors::plan,
        doc: "vectors of up to 16 bytes, spread over the threads of the scope",
        ..Variant::DEFAULT
    },
    Variant {
        ops: &[TileOp::Copy],
        name: "ldstmatrix",
        arch: Arch::least(75),
        predicates: &[
            FULL_SCOPE,
            SAME_ELEMENTS,
            Predicate {
                name: "between local and shared memory",
                holds: matrix::between_local_and_shared,
            },
        ],
        completion: Completion::OwnPart,
        plan: matrix::plan,
        doc: "fragments of 8x8 matrices by ldmatrix and stmatrix, up to four at a time",
        ..Variant::DEFAULT
    },
    Variant {
        ops: &[TileOp::Copy],
        name: "reg",
        aliases: &["vec_auto"],
        predicates: &[
            SCOPE,
            FULL_SCOPE,
            SAME_ELEMENTS,
            Predicate {
                name: "between local and global or shared memory",
                holds: reg::with_registers,
            },
        ],
        options: vec_forced::HINTS,
        completion: Completion::OwnPart,
        plan: reg::plan,
        doc: "each thread moves what it holds, in vectors of up to 16 bytes",
        ..Variant::DEFAULT
    },
    Variant {
        ops: &[TileOp::Copy],
        name: "same_memory",
        aliases: &["vec_auto"],
        predicates: &[
            SCOPE,
            FULL_SCOPE,
            SAME_ELEMENTS,
            Predicate {
                name: "within shared or within global memory, without overlap",
                holds: vectors::within_a_memory,
            },
            Predicate {
                name: "the elements divide among the threads",
                holds: vectors::divides,
            },
        ],
        completion: Completion::OwnPart,
        options: vectors::OPTIONS,
        plan: vectors::plan,
        doc: "vectors of up to 16 bytes, spread over the threads of the scope",
        ..Variant::DEFAULT
    },
    Variant {
        ops: &[TileOp::Copy],
        name: "ragged",
        priority: 5,
        predicates: &[
            SCOPE,
            FULL_SCOPE,
            SAME_ELEMENTS,
            Predicate {
                name: "both sides in global or shared memory, without overlap",
                holds: vectors::in_memory,
            },
        ],
        completion: Completion::OwnPart,
        options: vectors::OPTIONS,
        plan: vectors::plan_ragged,
        doc: "vectors of up to 16 bytes, spread over the threads of the scope, some of which have nothing to do in the last round",
        ..Variant::DEFAULT
    },
    Variant {
        ops: &[TileOp::Copy],
        name: "fallback",
        priority: 0,
        predicates: &[SAME_ELEMENTS],
        completion: Completion::OwnPart,
        plan: fallback::plan,
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
    holds: same_elements,
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

/// The dimensions of more than one element.
fn wide(region: &BufferRegion) -> Vec<usize> {
    let dims = 0..region.ranges.len();
    dims.filter(|d| !region.ranges[*d].1.is_int(1)).collect()
}

fn same_elements(call: &Call<'_>, cx: &mut Context<'_>) -> Result<(), Decline> {
    let (dst, src) = call.moved()?;
    for region in [dst, src] {
        if region.buffer.layout.is_none() {
            return Err(format!("{} has no layout", region.buffer.name).into());
        }
    }
    if dst.buffer.dtype != src.buffer.dtype {
        return Err(format!(
            "dtypes differ: dst is {}, src is {}",
            dst.buffer.dtype, src.buffer.dtype
        )
        .into());
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
        Err("the extents of dst and src differ".into())
    }
}
