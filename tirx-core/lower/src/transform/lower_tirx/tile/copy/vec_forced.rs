//! `copy` → `vec_256b`, `vec_128b`, `vec_64b`, `vec_32b`, `vec_16b`: one instruction of that many bits.
//!
//! **Idea.** The calling thread loads, stores, or loads and stores the whole region by one instruction each.
//!
//! **Conditions.** `dispatch=` names the variant; scope thread; between global, shared and local memory; one dtype;
//! exactly that many bits on each side, which the caller promises to be contiguous and aligned. `cache="nc"`,
//! `l1_evict`, `l2_evict` and `prefetch_size` say how a load from global memory treats the caches. 256 bits need sm_100.
//!
//! **Cost.** One load and one store of PTX; none of them where the other side is the thread's own memory.

use super::super::build::{CacheHints, address, load, local, space, store};
use super::super::call::PrimitiveCall;
use super::super::context::Context;
use super::super::decline::Decline;
use super::super::emit::Emit;
use super::super::operands::{bits, elements};
use super::super::option::{OptionKind, TileOption};
use super::super::predicates::{ONE_THREAD, same_dtypes};
use super::super::variant::{Emits, Explanation, Plan, Predicate, Variant};
use crate::intrin::GpuSet;
use crate::ir::{BufferRegion, Expr, TileOp};

pub(super) const fn variant(
    name: &'static str,
    arch: GpuSet,
    plan: fn(&PrimitiveCall<'_>, &mut Context<'_>) -> Result<Plan, Decline>,
) -> Variant {
    Variant {
        ops: &[TileOp::Copy],
        name,
        priority: 20,
        only_forced: true,
        arch,
        options: HINTS,
        predicates: PREDICATES,
        plan,
        doc: "one instruction of that width, by the calling thread",
        ..Variant::DEFAULT
    }
}

/// An option that every variant of a copy accepts.
pub(super) const VECTOR_LENGTH: TileOption = TileOption {
    name: "vec_len",
    kind: OptionKind::Int,
    default: "by the layouts",
    doc: "no effect, as in TVM: vectors are as long as both layouts allow",
};

/// The options that say how a load from global memory treats the caches.
pub(super) const HINTS: &[TileOption] = &[
    VECTOR_LENGTH,
    TileOption {
        name: "cache",
        kind: OptionKind::Word(&["", "nc"]),
        default: "None",
        doc: "\"nc\" loads through the read-only path (ld.global.nc)",
    },
    TileOption {
        name: "l1_evict",
        kind: OptionKind::Word(&[
            "",
            "L1::evict_normal",
            "L1::evict_unchanged",
            "L1::evict_first",
            "L1::evict_last",
            "L1::no_allocate",
        ]),
        default: "None",
        doc: "the eviction priority of a load from global memory in L1, such as \"L1::no_allocate\"",
    },
    TileOption {
        name: "l2_evict",
        kind: OptionKind::Word(&["", "L2::evict_normal", "L2::evict_first", "L2::evict_last"]),
        default: "None",
        doc: "the eviction priority in L2, such as \"L2::evict_first\"",
    },
    TileOption {
        name: "prefetch_size",
        kind: OptionKind::Word(&["", "L2::64B", "L2::128B", "L2::256B"]),
        default: "None",
        doc: "the size of the prefetch to L2 around a load, such as \"L2::128B\"",
    },
];

const PREDICATES: &[Predicate] = &[
    ONE_THREAD,
    Predicate {
        name: "between global, shared and local memory",
        holds: |call, _| {
            let (dst, src) = call.moved()?;
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

/// The cache hints of a call's options.
pub(super) fn hints(call: &PrimitiveCall<'_>) -> Result<CacheHints, Decline> {
    let hints = CacheHints {
        read_only: call.option_text("cache") == "nc",
        l1_evict: call.option_text("l1_evict").to_string(),
        l2_evict: call.option_text("l2_evict").to_string(),
        prefetch_size: call.option_text("prefetch_size").to_string(),
    };
    let (_, src) = call.moved()?;
    let texts = [&hints.l1_evict, &hints.l2_evict, &hints.prefetch_size];
    let any = hints.read_only || texts.iter().any(|s| !s.is_empty());
    if any && src.buffer.scope() != "global" {
        return Err(Decline::mistake(
            format!(
                "cache hints apply to global loads, but src is in {}",
                src.buffer.scope()
            ),
            "leave out cache, l1_evict, l2_evict and prefetch_size",
        ));
    }
    Ok(hints)
}

/// One instruction a side.
struct Vector {
    src: BufferRegion,
    dst: BufferRegion,
    elements: i128,
    bytes: i128,
    hints: CacheHints,
}

pub(super) fn plan<const BYTES: i128>(
    call: &PrimitiveCall<'_>,
    _: &mut Context<'_>,
) -> Result<Plan, Decline> {
    let (dst, src) = call.moved()?;
    let dtype = src.buffer.dtype;
    same_dtypes(dst, src)?;
    let bits = bits(dtype);
    let expected = BYTES * 8 / bits;
    if expected * bits != BYTES * 8 {
        return Err(format!("{} bits are no integral number of {dtype} elements", BYTES * 8).into());
    }
    for (name, region) in [("src", src), ("dst", dst)] {
        if elements(region) != Some(expected) {
            return Err(format!("{name} region does not contain exactly {expected} elements").into());
        }
    }
    Ok(Box::new(Vector {
        src: src.clone(),
        dst: dst.clone(),
        elements: expected,
        bytes: BYTES,
        hints: hints(call)?,
    }))
}

impl Emits for Vector {
    fn explain(&self) -> Explanation {
        Explanation::partition(1, 1, self.elements)
    }

    fn emit(self: Box<Self>, out: &mut Emit<'_, '_>) {
        let span = out.span();
        let (src, dst) = (&self.src, &self.dst);
        let from = address(&src.buffer, src.starts(), span);
        let to = address(&dst.buffer, dst.starts(), span);
        let (from_space, to_space) = (space(src.buffer.scope()), space(dst.buffer.scope()));
        if from_space == "local" {
            out.push(store(to, from, to_space, self.bytes, span));
            return;
        }
        if to_space == "local" {
            out.push(load(to, from, from_space, self.bytes, &self.hints, span));
            return;
        }
        let (tmp, allocate) = local("tmp", self.elements, src.buffer.dtype, span);
        let register = || address(&tmp, vec![Expr::int32(0)], span);
        out.push(allocate);
        out.push(load(register(), from, from_space, self.bytes, &self.hints, span));
        out.push(store(to, register(), to_space, self.bytes, span));
    }
}
