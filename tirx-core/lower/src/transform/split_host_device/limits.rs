//! Launches that no GPU can make.
//!
//! Constants are checked here, with an error at their line; values that are known only at run time are checked by the
//! launcher. The limits are those of the CUDA C++ Programming Guide, "Technical Specifications per Compute Capability",
//! and of the driver API's `CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION`. TVM 0.26 compiles such kernels: their
//! launches fail.

use super::super::Target;
use super::launch::{LaunchParameters, bytes};
use crate::diagnostic::{Diagnostic, Result};
use crate::ir::{Expr, Stmt, uses_var};
use crate::source::Span;

/// Blocks of a grid along x, y, z.
const GRID: [i128; 3] = [(1 << 31) - 1, 65_535, 65_535];
/// Threads of a block along x, y, z.
const BLOCK: [i128; 3] = [1024, 1024, 64];
/// Threads of a block.
const THREADS: i128 = 1024;
/// Blocks of a cluster, where the launcher allows more than the portable eight.
const CLUSTER: i128 = 16;
/// Bytes of static shared memory.
const STATIC_SHARED: i128 = 48 * 1024;

/// Bytes of local memory of a thread.
const LOCAL: i128 = 512 * 1024;

const DIMENSIONS: [&str; 3] = ["x", "y", "z"];
const FEWER_BLOCKS: &str = "use x for the longest dimension, or let each block do more";
const FEWER_THREADS: &str =
    "give each thread several elements, or launch more blocks (T.cta_id) of fewer threads";

/// Rejects a launch that is impossible on one of its targets. `body` is the kernel's.
pub(super) fn check(launch: &LaunchParameters, body: &Stmt, targets: &[Target]) -> Result<()> {
    dimensions(launch, "blockIdx", "a grid", "blocks", GRID, FEWER_BLOCKS)?;
    dimensions(launch, "threadIdx", "a block", "threads", BLOCK, FEWER_THREADS)?;
    if let Some((threads, span)) = total(launch, "threadIdx")
        && threads > THREADS
    {
        let message = format!("a block has at most {THREADS} threads, not {threads}");
        return refuse(span, message, FEWER_THREADS);
    }
    if let Some((blocks, span)) = total(launch, "clusterCtaIdx") {
        if blocks > CLUSTER {
            let message = format!("a cluster has at most {CLUSTER} blocks, not {blocks}");
            return refuse(
                span,
                message,
                "all GPUs with clusters run 8 blocks, some up to 16",
            );
        }
        let without = |target: &&Target| target.gpu.limits().cluster_blocks == 1;
        if let Some(target) = targets.iter().find(without)
            && blocks > 1
        {
            let message = format!("{} has no clusters of blocks", target.gpu);
            let help = "compile for sm_90 or newer, or launch blocks without T.cta_id_in_cluster";
            return refuse(span, message, help);
        }
    }
    let (grid, cluster, preferred) = ("blockIdx", "clusterCtaIdx", "preferredClusterCtaIdx");
    multiple(launch, (grid, "the grid"), (cluster, "clusters"))?;
    multiple(launch, (grid, "the grid"), (preferred, "preferred clusters"))?;
    multiple(
        launch,
        (preferred, "the preferred cluster"),
        (cluster, "clusters"),
    )?;
    local(launch, body)?;
    targets.iter().try_for_each(|target| shared(launch, body, target))
}

fn refuse(span: Span, message: String, help: impl Into<String>) -> Result<()> {
    Err(Box::new(Diagnostic::new(span, message).help(help)))
}

/// The constant extent of an axis along a dimension and its place; `None` where it is symbolic or missing.
fn extent(launch: &LaunchParameters, axis: &str, dimension: usize) -> Option<(i128, Span)> {
    let is_it = |tag: &str| tag.split_once('.') == Some((axis, DIMENSIONS[dimension]));
    let (_, extent, span) = launch.extents.iter().find(|(tag, ..)| is_it(tag))?;
    Some((extent.as_int()?, *span))
}

/// The product of an axis' constant extents, with the place of the last.
fn total(launch: &LaunchParameters, axis: &str) -> Option<(i128, Span)> {
    let known = (0..3).filter_map(|dimension| extent(launch, axis, dimension));
    known.reduce(|(product, _), (extent, span)| (product.saturating_mul(extent), span))
}

fn dimensions(
    launch: &LaunchParameters,
    axis: &str,
    whole: &str,
    parts: &str,
    limits: [i128; 3],
    help: &str,
) -> Result<()> {
    for (dimension, limit) in limits.into_iter().enumerate() {
        if let Some((extent, span)) = extent(launch, axis, dimension)
            && extent > limit
        {
            let along = DIMENSIONS[dimension];
            let message = format!("{whole} has at most {limit} {parts} along {along}, not {extent}");
            return refuse(span, message, help);
        }
    }
    Ok(())
}

/// Whether the extents of the one axis are multiples of those of the other.
fn multiple(launch: &LaunchParameters, whole: (&str, &str), part: (&str, &str)) -> Result<()> {
    for (dimension, along) in DIMENSIONS.into_iter().enumerate() {
        let Some((wanted, span)) = extent(launch, part.0, dimension) else {
            continue;
        };
        let given = match extent(launch, whole.0, dimension) {
            Some(given) => given,
            // A grid without the dimension has one block along it; a launch without a preferred cluster is accepted.
            None if launch.extents.iter().any(|(tag, ..)| tag.starts_with(whole.0)) => {
                let symbolic = |tag: &str| tag.split_once('.') == Some((whole.0, along));
                if launch.extents.iter().any(|(tag, ..)| symbolic(tag)) {
                    continue;
                }
                (1, span)
            }
            None => continue,
        };
        if wanted > 1 && given.0 % wanted != 0 {
            let message = format!(
                "{} has {} blocks along {along}, which are not whole {} of {wanted}",
                whole.1, given.0, part.1
            );
            let mut error = Diagnostic::new(span, message);
            if given.1 != span {
                error = error.note(given.1, format!("{} blocks along {along}", given.0));
            }
            return Err(Box::new(
                error.help(format!("make the {} a multiple of {wanted}", given.0)),
            ));
        }
    }
    Ok(())
}

fn local(launch: &LaunchParameters, body: &Stmt) -> Result<()> {
    for (array, span) in &launch.local {
        if let Some(size) = bytes(array).as_int().filter(|size| *size > LOCAL)
            && uses_var(body, |var| *var == array.data)
        {
            let message = format!("a thread has at most {LOCAL} bytes of local memory, not {size}");
            let help = "keep large arrays in a tensor of the caller, or divide the work among more threads";
            return refuse(*span, message, help);
        }
    }
    Ok(())
}

fn shared(launch: &LaunchParameters, body: &Stmt, target: &Target) -> Result<()> {
    let constant = |bytes: &Expr| bytes.as_int().unwrap_or(0);
    let arrays = launch.static_shared.iter();
    let mut arrays: Vec<_> = arrays
        .map(|(array, span)| (constant(&bytes(array)), &array.data, *span))
        .collect();
    let (dynamic, place) = match launch.dynamic_bytes() {
        Some((bytes, span)) => (constant(bytes), *span),
        None => (0, Span::NONE),
    };
    let most = i128::from(target.gpu.limits().block_shared_memory);
    let too_much = |fixed: i128| fixed > STATIC_SHARED || fixed + dynamic > most;
    if too_much(arrays.iter().map(|(bytes, ..)| bytes).sum()) {
        // Arrays that nothing accesses take no memory.
        arrays.retain(|(_, data, _)| uses_var(body, |var| var == *data));
    }
    let fixed = arrays.iter().map(|(bytes, ..)| bytes).sum();
    if !too_much(fixed) {
        return Ok(());
    }
    let gpu = target.gpu;
    if fixed <= STATIC_SHARED {
        let asked = match fixed {
            0 => dynamic.to_string(),
            _ => format!("{dynamic} and {fixed} static ones"),
        };
        let message = format!("a block has at most {most} bytes of shared memory on {gpu}, not {asked}");
        let help = "make the tiles smaller, or keep a part of them in registers (T.alloc_local)";
        return refuse(place, message, help);
    }
    let message = format!("a block has at most {STATIC_SHARED} bytes of static shared memory, not {fixed}");
    arrays.sort_by_key(|(bytes, ..)| -bytes);
    let mut error = Diagnostic::new(arrays[0].2, message);
    for (bytes, _, span) in &arrays[1..] {
        error = error.note(*span, format!("{bytes} bytes are here"));
    }
    Err(Box::new(error.help(format!(
        "dynamic shared memory may have {most} bytes on {gpu}: take the arrays from a T.SMEMPool(), or allocate one \
         with T.alloc_buffer(…, scope=\"shared.dyn\")"
    ))))
}
