//! The expression of each scope id in hardware indices, and the extents of the launch.
//!
//! The extents of the launch are those that the declarations give, dimension by dimension, or else what follows from
//! them ([`hierarchy`](super::hierarchy)). Each scope id is then an expression of hardware indices: blocks, threads and
//! CTAs of a cluster have their own; lanes and positions in a warpgroup follow from the thread's linear number; warps
//! are numbered by a shuffle from the first lane, so that the compiler sees a value that is uniform in the warp.

use super::hierarchy::{CTA, Declared, Hierarchy, LEVELS, THREAD, int32, levels, same};
use crate::arith::fold;
use crate::diagnostic::{Diagnostic, Result, error};
use crate::intrin::Op;
use crate::ir::{DType, Expr, ScopeIdKind, Var};
use crate::source::Span;

/// A hardware index of the launch.
pub(super) struct LaunchAxis {
    /// `blockIdx.x`.
    pub(super) tag: &'static str,
    /// Its variable: `blockIdx_x`.
    pub(super) var: Var,
    /// How many.
    pub(super) extent: Expr,
    /// The declaration that it follows from.
    pub(super) span: Span,
}

/// The launch of one device region.
pub(super) struct Resolved {
    /// The hardware indices, outermost first.
    pub(super) axes: Vec<LaunchAxis>,
    /// `warp_id_in_cta` and its value.
    pub(super) warp_id: (Var, Expr),
    /// What each scope id is, in order of declaration, and whether that reads `warp_id_in_cta`.
    pub(super) values: Vec<(Var, Expr, Span, bool)>,
    /// The number of the calling thread in its CTA.
    pub(super) thread: Expr,
    /// How many threads a CTA has, where that is known.
    pub(super) threads: Option<i128>,
}

const DIMENSIONS: [char; 3] = ['x', 'y', 'z'];

/// Launch dimensions: one extent per dimension, with the declaration they come from.
struct Dimensions {
    extents: Vec<Expr>,
    span: Span,
}

/// The declaration of a kind with the most explicit dimensions; the first of equals.
fn widest(declared: &[Declared], kind: ScopeIdKind) -> Option<Dimensions> {
    let mut best: Option<Dimensions> = None;
    for one in declared.iter().filter(|d| d.def.kind == kind) {
        if let Some(extents) = &one.def.extents
            && best.as_ref().is_none_or(|b| b.extents.len() < extents.len())
        {
            best = Some(Dimensions {
                extents: extents.iter().map(int32).collect(),
                span: one.span,
            });
        }
    }
    best
}

/// Resolves the scope ids of one device region, declared in this order.
pub(super) fn resolve(declared: &[Declared]) -> Result<Resolved> {
    for one in declared {
        check_shape(one)?;
    }
    let hierarchy = Hierarchy::new(declared)?;
    let inferred = |parent: usize, child: usize| {
        hierarchy.known[parent][child].as_ref().map(|e| Dimensions {
            extents: vec![e.value.clone()],
            span: hierarchy.place(&e.from),
        })
    };
    for one in declared {
        if let (None, Some((parent, child))) = (&one.def.extents, levels(one.def.kind))
            && hierarchy.known[parent][child].is_none()
        {
            let name = one.def.kind.name();
            return Err(Box::new(
                Diagnostic::new(one.span, format!("cannot infer the extent of T.{name}()"))
                    .label("no extent given")
                    .help(format!(
                        "give it, as in T.{name}([4]), or declare scope ids that fix the number of {}s in a {}",
                        LEVELS[child], LEVELS[parent]
                    )),
            ));
        }
    }

    let first = declared.first().map_or(Span::NONE, |d| d.span);
    let block = widest(declared, ScopeIdKind::ThreadId)
        .or_else(|| inferred(CTA, THREAD))
        .ok_or_else(|| {
            Box::new(
                Diagnostic::new(
                    first,
                    "the kernel does not declare the number of threads of a CTA",
                )
                .help("declare the threads, as in tx = T.thread_id([128])"),
            )
        })?;
    check_whole_warps(declared, &block)?;
    let cluster = widest(declared, ScopeIdKind::CtaIdInCluster).or_else(|| inferred(1, CTA));
    let grid = widest(declared, ScopeIdKind::CtaId)
        .or_else(|| {
            // Clusters of CTAs, dimension by dimension.
            let clusters = widest(declared, ScopeIdKind::ClusterId)?;
            let inside = cluster.as_ref()?;
            let count = clusters.extents.len().max(inside.extents.len());
            let at = |d: &Dimensions, i: usize| d.extents.get(i).cloned().unwrap_or_else(|| Expr::int32(1));
            Some(Dimensions {
                extents: (0..count)
                    .map(|i| fold::mul(at(&clusters, i), at(inside, i)))
                    .collect(),
                span: clusters.span,
            })
        })
        .or_else(|| inferred(0, CTA));
    let preferred = declared.iter().find_map(|d| {
        d.def.preferred.as_ref().map(|p| Dimensions {
            extents: p.iter().map(int32).collect(),
            span: d.span,
        })
    });

    // TVM's order: clusters first, then x of blocks and threads, then the other dimensions.
    let mut axes = Vec::new();
    let cluster_vars = push_axes(&mut axes, cluster.as_ref(), CLUSTER_TAGS, 0..3);
    push_axes(&mut axes, preferred.as_ref(), PREFERRED_TAGS, 0..3);
    let mut block_vars = push_axes(&mut axes, grid.as_ref(), BLOCK_TAGS, 0..1);
    let mut thread_vars = push_axes(&mut axes, Some(&block), THREAD_TAGS, 0..1);
    block_vars.extend(push_axes(&mut axes, grid.as_ref(), BLOCK_TAGS, 1..3));
    thread_vars.extend(push_axes(&mut axes, Some(&block), THREAD_TAGS, 1..3));

    let thread = linear(&thread_vars, &block.extents);
    let warp_id = Var::new("warp_id_in_cta", DType::INT32);
    let warp = Expr::var(&warp_id);
    let shuffle = Op::TvmWarpShuffle
        .call()
        .set("mask", Expr::constant(DType::UINT32, 0xffff_ffff))
        .set("value", fold::floordiv(thread.clone(), Expr::int32(32)))
        .set("warp_id", 0)
        .set("width", 32)
        .set("warp_size", 32)
        .build();

    let mut values = Vec::new();
    for one in declared {
        let vars = &one.def.vars;
        let named = |name: &str, dimension: usize| {
            let register = format!("{name}.{}", DIMENSIONS[dimension]);
            Expr::call(
                Op::PtxFetchRegister,
                DType::INT32,
                vec![Expr::int32(32), Expr::string(register)],
            )
        };
        let (all, reads_warp) = match one.def.kind {
            ScopeIdKind::ClusterId => ((0..vars.len()).map(|d| named("clusterid", d)).collect(), false),
            ScopeIdKind::CtaId => (places(one, &block_vars, grid.as_ref())?, false),
            ScopeIdKind::CtaIdInCluster => (places(one, &cluster_vars, cluster.as_ref())?, false),
            ScopeIdKind::CtaIdInPair => {
                let Some(x) = cluster_vars.first() else {
                    return Err(Box::new(
                        Diagnostic::new(one.span, "T.cta_id_in_pair() needs a cluster of CTAs")
                            .help("declare the cluster, as in rank = T.cta_id_in_cluster([2])"),
                    ));
                };
                (vec![fold::floormod(Expr::var(x), Expr::int32(2))], false)
            }
            ScopeIdKind::ThreadId => (places(one, &thread_vars, Some(&block))?, false),
            ScopeIdKind::WarpId => (vec![warp.clone()], true),
            ScopeIdKind::WarpgroupId => (vec![fold::floordiv(warp.clone(), Expr::int32(4))], true),
            ScopeIdKind::WarpIdInWg => (vec![fold::floormod(warp.clone(), Expr::int32(4))], true),
            ScopeIdKind::LaneId => (vec![fold::floormod(thread.clone(), Expr::int32(32))], false),
            ScopeIdKind::ThreadIdInWg => (vec![fold::floormod(thread.clone(), Expr::int32(128))], false),
        };
        for (var, value) in vars.iter().zip(all) {
            let value = fold::cast(value, var.dtype());
            values.push((var.clone(), value.at(one.span), one.span, reads_warp));
        }
    }
    Ok(Resolved {
        axes,
        warp_id: (warp_id, shuffle),
        values,
        thread,
        threads: block.extents.iter().map(Expr::as_int).product(),
    })
}

const BLOCK_TAGS: [&str; 3] = ["blockIdx.x", "blockIdx.y", "blockIdx.z"];
const THREAD_TAGS: [&str; 3] = ["threadIdx.x", "threadIdx.y", "threadIdx.z"];
const CLUSTER_TAGS: [&str; 3] = ["clusterCtaIdx.x", "clusterCtaIdx.y", "clusterCtaIdx.z"];
const PREFERRED_TAGS: [&str; 3] = [
    "preferredClusterCtaIdx.x",
    "preferredClusterCtaIdx.y",
    "preferredClusterCtaIdx.z",
];

fn push_axes(
    axes: &mut Vec<LaunchAxis>,
    dimensions: Option<&Dimensions>,
    tags: [&'static str; 3],
    range: std::ops::Range<usize>,
) -> Vec<Var> {
    let Some(dimensions) = dimensions else {
        return Vec::new();
    };
    let mut vars = Vec::new();
    for i in range {
        let Some(extent) = dimensions.extents.get(i) else {
            break;
        };
        let var = Var::at(tags[i].replace('.', "_"), DType::INT32, dimensions.span);
        vars.push(var.clone());
        axes.push(LaunchAxis {
            tag: tags[i],
            var,
            extent: extent.clone(),
            span: dimensions.span,
        });
    }
    vars
}

/// As many variables as extents, one to three; below the CTA only one, where the id is a number rather than a
/// coordinate.
fn check_shape(one: &Declared) -> Result<()> {
    let name = one.def.kind.name();
    let count = one.def.vars.len();
    let several = matches!(
        one.def.kind,
        ScopeIdKind::CtaId | ScopeIdKind::ThreadId | ScopeIdKind::ClusterId | ScopeIdKind::CtaIdInCluster
    );
    if count > 3 || count > 1 && !several {
        let most = if several {
            "three dimensions"
        } else {
            "one dimension"
        };
        return error(one.span, format!("T.{name} has at most {most}, not {count}"));
    }
    if let Some(extents) = &one.def.extents {
        if extents.len() != count {
            let message = format!(
                "T.{name} gives {} ids, but {count} names take them",
                extents.len()
            );
            return error(one.span, message);
        }
        if let Some(bad) = extents.iter().find(|e| e.as_int().is_some_and(|v| v <= 0)) {
            let message = format!("an extent of T.{name} must be positive");
            return error(bad.span.or(one.span), message);
        }
    }
    Ok(())
}

/// Ids of warps and warpgroups, and ids within them, are only meaningful where every warp is whole.
fn check_whole_warps(declared: &[Declared], block: &Dimensions) -> Result<()> {
    let by_warps = |kind: ScopeIdKind| {
        matches!(
            kind,
            ScopeIdKind::WarpId
                | ScopeIdKind::LaneId
                | ScopeIdKind::WarpgroupId
                | ScopeIdKind::WarpIdInWg
                | ScopeIdKind::ThreadIdInWg
        )
    };
    let threads = block.extents.iter().map(Expr::as_int).product::<Option<i128>>();
    let (Some(threads), Some(one)) = (threads, declared.iter().find(|d| by_warps(d.def.kind))) else {
        return Ok(());
    };
    if threads % 32 == 0 {
        return Ok(());
    }
    let name = one.def.kind.name();
    let message = format!("T.{name} needs whole warps, but a CTA has {threads} threads");
    let mut diagnostic = Diagnostic::new(one.span, message)
        .label("counts in warps")
        .help("a warp has 32 threads: make the number of threads a multiple of 32");
    if block.span != one.span {
        diagnostic = diagnostic.note(block.span, "the threads are declared here");
    }
    Err(Box::new(diagnostic))
}

/// `x + y * X + z * X * Y`.
fn linear(vars: &[Var], extents: &[Expr]) -> Expr {
    let mut sum: Option<Expr> = None;
    for (i, var) in vars.iter().enumerate() {
        let term = extents[..i]
            .iter()
            .fold(Expr::var(var), |term, extent| fold::mul(term, extent.clone()));
        sum = Some(match sum {
            None => term,
            Some(sum) => fold::add(sum, term),
        });
    }
    sum.unwrap_or_else(|| Expr::int32(0))
}

/// What the ids of a declaration are where the launch has `vars` over `dimensions`: the same dimensions name the
/// hardware indices; one dimension over several is the linear number; other shapes are split from it, x first.
fn places(one: &Declared, vars: &[Var], dimensions: Option<&Dimensions>) -> Result<Vec<Expr>> {
    let wanted = one.def.vars.len();
    let extents = dimensions.map_or(&[][..], |d| &d.extents);
    let same_shape = match &one.def.extents {
        Some(own) => own.len() == extents.len() && own.iter().zip(extents).all(|(a, b)| same(a, b)),
        None => wanted == extents.len(),
    };
    if same_shape {
        return Ok(vars.iter().map(Expr::var).collect());
    }
    let number = linear(vars, extents);
    if wanted == 1 {
        return Ok(vec![number]);
    }
    let Some(own) = &one.def.extents else {
        let name = one.def.kind.name();
        let message = format!("T.{name}() cannot be split into {wanted} dimensions without their extents");
        return error(one.span, message);
    };
    let mut rest = number;
    let mut all = Vec::new();
    for (i, extent) in own.iter().enumerate() {
        if i + 1 == own.len() {
            all.push(rest.clone());
        } else {
            all.push(fold::floormod(rest.clone(), int32(extent)));
            rest = fold::floordiv(rest, int32(extent));
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::ScopeIdDef;

    fn declare(kind: ScopeIdKind, count: usize, extents: Option<&[i32]>) -> Declared {
        Declared {
            def: ScopeIdDef {
                kind,
                vars: (0..count).map(|_| Var::new("v", DType::INT32)).collect(),
                extents: extents.map(|e| e.iter().map(|v| Expr::int32(*v)).collect()),
                preferred: None,
            },
            span: Span::NONE,
        }
    }

    fn axes(resolved: &Resolved) -> Vec<(&str, i128)> {
        resolved
            .axes
            .iter()
            .map(|a| (a.tag, a.extent.as_int().unwrap()))
            .collect()
    }

    #[test]
    fn threads_follow_from_warps_and_lanes() {
        use ScopeIdKind::*;
        let resolved = resolve(&[
            declare(CtaId, 1, Some(&[4])),
            declare(WarpgroupId, 1, Some(&[3])),
            declare(WarpIdInWg, 1, Some(&[4])),
            declare(LaneId, 1, None),
            declare(ThreadId, 1, None),
            declare(WarpId, 1, None),
        ])
        .unwrap();
        assert_eq!(axes(&resolved), [("blockIdx.x", 4), ("threadIdx.x", 384)]);
    }

    #[test]
    fn the_hardware_fills_gaps() {
        use ScopeIdKind::*;
        let resolved = resolve(&[
            declare(ThreadId, 1, Some(&[64])),
            declare(WarpId, 1, None),
            declare(LaneId, 1, None),
        ])
        .unwrap();
        assert_eq!(axes(&resolved), [("threadIdx.x", 64)]);
        assert_eq!(
            axes(&resolve(&[declare(WarpId, 1, Some(&[3]))]).unwrap()),
            [("threadIdx.x", 96)]
        );
    }

    #[test]
    fn clusters_multiply_by_dimension() {
        use ScopeIdKind::*;
        let resolved = resolve(&[
            declare(ClusterId, 2, Some(&[8, 2])),
            declare(CtaIdInCluster, 2, Some(&[2, 2])),
            declare(ThreadId, 1, Some(&[64])),
        ])
        .unwrap();
        assert_eq!(
            axes(&resolved),
            [
                ("clusterCtaIdx.x", 2),
                ("clusterCtaIdx.y", 2),
                ("blockIdx.x", 16),
                ("threadIdx.x", 64),
                ("blockIdx.y", 4)
            ]
        );
    }

    #[test]
    fn contradictions_name_the_numbers() {
        use ScopeIdKind::*;
        let message = |declared: &[Declared]| resolve(declared).err().unwrap().message;
        assert_eq!(
            message(&[
                declare(WarpId, 1, Some(&[2])),
                declare(LaneId, 1, Some(&[32])),
                declare(ThreadId, 1, Some(&[128])),
            ]),
            "contradicting scope ids: 64 threads in a CTA here, 128 there"
        );
        assert_eq!(
            message(&[declare(CtaId, 1, Some(&[2]))]),
            "the kernel does not declare the number of threads of a CTA"
        );
        assert_eq!(
            message(&[declare(LaneId, 1, Some(&[64]))]),
            "T.lane_id cannot have 64 values: a warp has 32 lanes"
        );
        assert_eq!(
            message(&[declare(ThreadId, 1, Some(&[100])), declare(WarpId, 1, Some(&[3]))]),
            "100 is not a multiple of 3: the scope ids of this kernel do not fit together"
        );
        for kind in [WarpId, LaneId, WarpgroupId, WarpIdInWg, ThreadIdInWg] {
            assert_eq!(
                message(&[declare(kind, 1, Some(&[1])), declare(ThreadId, 2, Some(&[3, 16]))]),
                format!("T.{} needs whole warps, but a CTA has 48 threads", kind.name())
            );
        }
        assert_eq!(
            message(&[declare(ThreadId, 1, Some(&[64])), declare(CtaId, 1, None)]),
            "cannot infer the extent of T.cta_id()"
        );
    }
}
