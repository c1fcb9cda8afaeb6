//! `copy` → `vec_256b`, `vec_128b`, `vec_64b`, `vec_32b`, `vec_16b`: one instruction of that many bits.
//!
//! **Idea.** The calling thread loads, stores, or loads and stores the whole region by one instruction each.
//!
//! **Conditions.** `dispatch=` names the variant; scope thread; between global, shared and local memory; one dtype;
//! exactly that many bits on each side, which the caller promises to be contiguous and aligned. `cache="nc"`,
//! `l1_evict`, `l2_evict` and `prefetch_size` say how a load from global memory treats the caches. 256 bits need sm_100.
//!
//! **Cost.** One load and one store of PTX; none of them where the other side is the thread's own memory.

use super::super::build::{CacheHints, address, elements, load, local, space, store};
use super::super::call::Call;
use super::super::context::Context;
use super::super::variant::{Decline, OptionKind, Plan, Predicate, TileOption, Variant, ready};
use super::operands;
use crate::ir::{AttrValue, ExecScope, Stmt, TileCall, TileOp};

pub(super) const fn variant(
    name: &'static str,
    plan: fn(&Call<'_>, &mut Context<'_>) -> Result<Plan, Decline>,
) -> Variant {
    Variant {
        ops: &[TileOp::Copy],
        name,
        aliases: &[],
        priority: 20,
        only_forced: true,
        options: HINTS,
        predicates: PREDICATES,
        plan,
        doc: "one instruction of that width, by the calling thread",
        ..Variant::DEFAULT
    }
}

/// The options that say how a load from global memory treats the caches.
pub(super) const HINTS: &[TileOption] = &[
    TileOption {
        name: "cache",
        kind: OptionKind::Word(&["", "nc"]),
        default: "None",
        doc: "\"nc\" loads through the read-only path (ld.global.nc)",
    },
    TileOption {
        name: "l1_evict",
        kind: OptionKind::Text,
        default: "None",
        doc: "how a load from global memory leaves its line in L1, such as \"L1::no_allocate\"",
    },
    TileOption {
        name: "l2_evict",
        kind: OptionKind::Text,
        default: "None",
        doc: "the same in L2, such as \"L2::evict_first\"",
    },
    TileOption {
        name: "prefetch_size",
        kind: OptionKind::Text,
        default: "None",
        doc: "how much around a load is prefetched to L2, such as \"L2::128B\"",
    },
];

const PREDICATES: &[Predicate] = &[
    Predicate {
        name: "scope thread",
        holds: |_, cx| match cx.scope {
            ExecScope::Thread => Ok(()),
            other => Err(format!("expected thread exec_scope, got {}", other.name()).into()),
        },
    },
    Predicate {
        name: "between global, shared and local memory",
        holds: |call, _| {
            let (dst, src) = operands(call.tile)?;
            let (to, from) = (space(dst.buffer.scope()), space(src.buffer.scope()));
            let known = |s: &str| ["global", "shared", "local"].contains(&s);
            if known(to) && known(from) && to != from {
                return Ok(());
            }
            Err(format!(
                "unsupported memory scopes src={} dst={}",
                src.buffer.scope(),
                dst.buffer.scope()
            )
            .into())
        },
    },
];

/// The cache hints of a call's configuration.
pub(super) fn hints(call: &TileCall) -> Result<CacheHints, String> {
    let text = |key: &str| {
        call.config
            .get(key)
            .and_then(AttrValue::as_str)
            .unwrap_or("")
            .to_string()
    };
    let read_only = match text("cache").as_str() {
        "" => false,
        "nc" => true,
        other => {
            return Err(format!(
                "unsupported cache config \"{other}\"; expected None or \"nc\""
            ));
        }
    };
    let hints = CacheHints {
        read_only,
        l1_evict: text("l1_evict"),
        l2_evict: text("l2_evict"),
        prefetch_size: text("prefetch_size"),
    };
    let (_, src) = operands(call)?;
    let any = read_only
        || [&hints.l1_evict, &hints.l2_evict, &hints.prefetch_size]
            .iter()
            .any(|s| !s.is_empty());
    if any && src.buffer.scope() != "global" {
        return Err(format!(
            "cache hints apply to global loads, but src is in {}",
            src.buffer.scope()
        ));
    }
    Ok(hints)
}

pub(super) fn lower<const BYTES: i128>(call: &TileCall, cx: &mut Context<'_>) -> Result<Stmt, String> {
    let (dst, src) = operands(call)?;
    let dtype = src.buffer.dtype;
    if dst.buffer.dtype != dtype {
        return Err(format!("dtype mismatch: src={dtype}, dst={}", dst.buffer.dtype));
    }
    let bits = dtype.bits as i128 * dtype.lanes as i128;
    if BYTES == 32 && !cx.has_capability(100) {
        return Err("loads and stores of 256 bits need sm_100".to_string());
    }
    let expected = BYTES * 8 / bits;
    if expected * bits != BYTES * 8 {
        return Err(format!(
            "{} bits are no integral number of {dtype} elements",
            BYTES * 8
        ));
    }
    for (name, region) in [("src", src), ("dst", dst)] {
        if elements(region) != Some(expected) {
            return Err(format!(
                "{name} region does not contain exactly {expected} elements"
            ));
        }
    }
    let hints = hints(call)?;
    let span = cx.span;
    let from = address(&src.buffer, src.starts(), span);
    let to = address(&dst.buffer, dst.starts(), span);
    let (from_space, to_space) = (space(src.buffer.scope()), space(dst.buffer.scope()));
    if from_space == "local" {
        return Ok(store(to, from, to_space, BYTES, span));
    }
    if to_space == "local" {
        return Ok(load(to, from, from_space, BYTES, &hints, span));
    }
    let (tmp, allocate) = local("tmp", expected, dtype, span);
    let register = || address(&tmp, vec![crate::ir::Expr::int32(0)], span);
    Ok(Stmt::seq([
        allocate,
        load(register(), from, from_space, BYTES, &hints, span),
        store(to, register(), to_space, BYTES, span),
    ]))
}

pub(super) fn plan<const BYTES: i128>(call: &Call<'_>, cx: &mut Context<'_>) -> Result<Plan, Decline> {
    ready(call, cx, lower::<BYTES>)
}
