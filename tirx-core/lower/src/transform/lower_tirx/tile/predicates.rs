//! Predicates that several variants ask of a call, each with one message.

use super::build::space;
use super::call::PrimitiveCall;
use super::context::Context;
use super::decline::Decline;
use super::operands::{elements, layout};
use super::variant::Predicate;
use crate::ir::{BufferRegion, ExecScope, Expr};

/// The scope can be partitioned.
pub(super) const SCOPE: Predicate = Predicate {
    name: "scope thread, warp, warpgroup or cta",
    holds: |_, cx| Ok(cx.thread_count().map(drop)?),
};

/// One thread by itself.
pub(super) const ONE_THREAD: Predicate = Predicate {
    name: "scope thread",
    holds: |_, cx| scope_among(cx, &[ExecScope::Thread]),
};

/// The scope is one of these.
pub(super) fn scope_among(cx: &Context<'_>, scopes: &[ExecScope]) -> Result<(), Decline> {
    if scopes.contains(&cx.scope) {
        return Ok(());
    }
    let names: Vec<&str> = scopes.iter().map(|s| s.name()).collect();
    Err(format!(
        "the scope is {}, expected {}",
        cx.scope.name(),
        names.join(" or ")
    )
    .into())
}

/// Every thread of the scope is active.
pub(super) const FULL_SCOPE: Predicate = Predicate {
    name: "all threads of the scope are active",
    holds: |_, cx| Ok(full_scope(cx)?),
};

/// Whether every thread of the scope is active.
pub(super) fn full_scope(cx: &Context<'_>) -> Result<(), String> {
    match cx.scope {
        ExecScope::Thread => Ok(()),
        scope => cx.is_full(scope),
    }
}

/// Both sides have a layout, one dtype and, apart from dimensions of one element, the same extents.
pub(super) const SAME_ELEMENTS: Predicate = Predicate {
    name: "one dtype, layouts, the same extents",
    holds: same_elements,
};

/// The threads of the scope divide the elements.
pub(super) const DIVIDES: Predicate = Predicate {
    name: "the elements divide among the threads",
    holds: |call, cx| {
        let threads = cx.thread_count()?;
        match elements(call.region("src")?) {
            None => Err("non-constant region extent".into()),
            Some(0) => Err("the region is empty".into()),
            Some(n) if n % threads == 0 => Ok(()),
            Some(n) => Err(format!("region size {n} not divisible by thread_cnt={threads}").into()),
        }
    },
};

/// A copy from the first memory of a pair to the second.
pub(super) fn memories(call: &PrimitiveCall<'_>, allowed: &[(&str, &str)]) -> Result<(), Decline> {
    let (dst, src) = call.moved()?;
    let (from, to) = (src.buffer.scope(), dst.buffer.scope());
    if allowed.contains(&(space(from), space(to))) {
        return Ok(());
    }
    let star = |s: &str| {
        if s == "shared" {
            "shared*".to_string()
        } else {
            s.to_string()
        }
    };
    let pairs = allowed
        .iter()
        .map(|(from, to)| format!("{}->{}", star(from), star(to)));
    let pairs: Vec<String> = pairs.collect();
    let pairs = pairs.join(", ");
    Err(format!("unsupported memory scopes src={from} dst={to}; allowed: {pairs}").into())
}

/// Regions that lie in a memory and have a layout.
pub(super) fn all_in<'a>(
    memory: &str,
    mut regions: impl Iterator<Item = &'a BufferRegion>,
) -> Result<(), Decline> {
    regions.try_for_each(|region| {
        let buffer = &region.buffer;
        if space(buffer.scope()) != memory {
            return Err(format!("{} is in {}, not in {memory} memory", buffer.name, buffer.scope()).into());
        }
        layout(region).map(drop).map_err(Decline::from)
    })
}

/// The dimensions of more than one element.
pub(super) fn wide(region: &BufferRegion) -> Vec<usize> {
    let dims = 0..region.ranges.len();
    dims.filter(|d| !region.ranges[*d].1.is_int(1)).collect()
}

fn same_elements(call: &PrimitiveCall<'_>, cx: &mut Context<'_>) -> Result<(), Decline> {
    let (dst, src) = call.moved()?;
    for region in [dst, src] {
        layout(region)?;
    }
    same_dtypes(dst, src)?;
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

/// Both sides of a copy have the same elements.
pub(super) fn same_dtypes(dst: &BufferRegion, src: &BufferRegion) -> Result<(), String> {
    let (to, from) = (dst.buffer.dtype, src.buffer.dtype);
    match to == from {
        true => Ok(()),
        false => Err(format!("dtypes differ: dst is {to}, src is {from}")),
    }
}
