//! Asynchronous copies: `cp.async`, bulk copies, and tensor copies by the tensor memory accelerator (TMA).
//!
//! A copy completes after the instruction. `cp.async` is waited for by groups (`commit_group`, `wait_group`) or by an
//! mbarrier. Copies into shared memory by the copy engine count their bytes at an mbarrier (`complete_tx`); those out of
//! shared memory are waited for by bulk groups. The engine works in the async proxy: data that threads wrote to shared memory
//! before needs `T.ptx.fence.proxy_async`.

use super::kinds::*;
use crate::intrin::gpu_set::GpuSet;
use crate::intrin::operands::Operands;
use crate::intrin::row::*;
use crate::ir::{DType, Expr};

/// Names of cache policies that `cache_hint` accepts.
const HINTS: ArgKind = ArgKind::Text(&["", "evict_last", "evict_first", "evict_normal", "evict_last_use"]);
const HINT: &[Arg] = &[arg("cache_hint", HINTS)];
const LOAD_MODE: ArgKind = ArgKind::Text(&["tile", "tile_gather4"]);
const DIM: ArgKind = ArgKind::Immediate(1, 5);
const SM_90: GpuSet = GpuSet::least(90);
const BLACKWELL: GpuSet = GpuSet::families(&[100, 110]);

/// The cache policy of a name.
pub fn cache_policy(name: &str) -> Option<u64> {
    match name {
        "evict_normal" => Some(0x1000_0000_0000_0000),
        "evict_first" => Some(0x12f0_0000_0000_0000),
        "evict_last" => Some(0x14f0_0000_0000_0000),
        _ => None,
    }
}

/// A cache policy: the one that is given, or the one of a name.
fn policy(given: &mut Given) -> Result<(), String> {
    let mut has = true;
    if given.get("cache_policy").is_empty() {
        let bits = match given.text("cache_hint") {
            "" => 0,
            name => cache_policy(name).ok_or_else(|| {
                format!("cache_hint \"{name}\" has no policy of its own: give cache_policy=")
            })?,
        };
        has = bits != 0;
        given.set("cache_policy", Expr::constant(DType::UINT64, bits.into()));
    }
    given.set("has_cache_policy", Expr::int32(has.into()));
    Ok(())
}

/// The same for a tensor copy that may go to several blocks: it does unless its mask names at most one.
fn multicast(given: &mut Given) -> Result<(), String> {
    policy(given)?;
    if given.get("multicast").is_empty() {
        let one = given.int("cta_mask").is_some_and(|mask| mask.count_ones() <= 1);
        given.set("multicast", Expr::int32((!one).into()));
    }
    Ok(())
}

/// Coordinates: one per dimension; a gather has the column and four rows.
fn coordinates(call: &Operands) -> usize {
    match call.text("load_mode") {
        "tile_gather4" => 5,
        _ => usize::try_from(call.int("dim").unwrap_or(0)).unwrap_or(0),
    }
}

fn group(call: &Operands) -> Result<(), String> {
    if call.text("load_mode") == "tile_gather4" && call.int("dim") != Some(2) {
        return Err("a gather of four rows is of a tensor of 2 dimensions: dim=2".into());
    }
    match call.int("cta_group") {
        Some(-1 | 1 | 2) => Ok(()),
        _ => Err("cta_group must be 1 or 2".into()),
    }
}

/// `.cta_group::n` of a tensor copy, on GPUs with CTA pairs.
fn tensor_words(call: &Operands, machine: Machine) -> Result<Words, String> {
    let group = match call.int("cta_group") {
        Some(2) => ".cta_group::2",
        Some(1) if machine.capability >= 100 && machine.capability < 120 => ".cta_group::1",
        _ => "",
    };
    let mode = match call.text("load_mode") {
        "tile_gather4" => ".tile::gather4",
        _ => "",
    };
    Ok(Words {
        texts: vec![("group", group.into()), ("mode", mode.into())],
        ..Words::default()
    })
}

fn cp_async_words(call: &Operands, _: Machine) -> Result<Words, String> {
    let guarded = call.int("predicate") != Some(-1);
    let zeros = guarded && call.text("fill_mode") == "zero";
    let on = |set: bool| if set { "1" } else { "" }.to_string();
    let prefetch = match call.int("prefetch_size") {
        Some(n) if n > 0 => format!(".L2::{n}B"),
        _ => String::new(),
    };
    let level = if call.int("cp_size") == Some(16) {
        "cg"
    } else {
        "ca"
    };
    Ok(Words {
        texts: vec![
            ("guarded", on(guarded && !zeros)),
            ("zeros", on(zeros)),
            ("prefetch", prefetch),
            ("level", level.into()),
        ],
        ..Words::default()
    })
}

fn cp_async_check(call: &Operands) -> Result<(), String> {
    if !matches!(call.int("cp_size"), Some(4 | 8 | 16)) {
        return Err("cp_size must be 4, 8 or 16 bytes".into());
    }
    match call.int("prefetch_size") {
        Some(-1 | 64 | 128 | 256) => Ok(()),
        _ => Err("prefetch_size must be 64, 128 or 256".into()),
    }
}

fn masked(call: &Operands) -> Result<(), String> {
    if call.flag("cp_mask") && !call.flag("has_cache_policy") {
        return Err("cp_mask needs a cache policy: cache_hint= or cache_policy=".into());
    }
    Ok(())
}

/// Both ends of a copy of `cp_size` bytes are aligned to as many.
fn copied_at_once(call: &Operands, _: &str) -> u32 {
    call.int("cp_size").and_then(|n| n.try_into().ok()).unwrap_or(1)
}

/// Both ends of a bulk copy are aligned to 16 bytes, and the mbarrier to 8.
fn bulk_ends(_: &Operands, argument: &str) -> u32 {
    match argument {
        "dst_ptr" | "src_ptr" => 16,
        "mbarrier_ptr" | "mbarrier" | "mbar" => 8,
        _ => 1,
    }
}

const BULK: Traits = Traits::PLAIN.by(Engine::BulkCopy);

rows! { $ copies {
    /// Copies `cp_size` bytes (4, 8 or 16) from global memory `src_ptr` to shared memory `dst_ptr`, asynchronously. If
    /// `predicate` is 0, it copies nothing; with `fill_mode="zero"` it writes zeros instead.
    PtxCpAsync = Row::new("tirx.ptx.cp_async", "ptx.cp_async",
        ptx("{?guarded:.reg .pred p; setp.ne.b32 p, {predicate}, 0; @p }\
             {?zeros:.reg .pred p; .reg .b32 n; setp.ne.b32 p, {predicate}, 0; selp.b32 n, {cp_size}, 0, p; }\
             cp.async.{level}.shared.global{?has_cache_policy:.L2::cache_hint}{prefetch} [{dst_ptr}], [{src_ptr}], \
             {cp_size}{?zeros:, n}{?has_cache_policy:, {cache_policy}};").words(cp_async_words))
        .signature("(dst_ptr, src_ptr, cp_size, *, cache_hint='', cache_policy=None, prefetch_size=-1, predicate=-1, fill_mode='')")
        .args(&[
            arg("dst_ptr", SHARED), arg("src_ptr", GLOBAL), arg("cp_size", ArgKind::Immediate(4, 16)), arg("cache_policy", U64),
            arg("has_cache_policy", ArgKind::Flag), arg("prefetch_size", ArgKind::Immediate(-1, 256)), arg("predicate", I32),
            arg("fill_mode", ArgKind::Text(&["", "zero"])),
        ])
        .completed(HINT, policy).checked(cp_async_check)
        .traits(Traits::PLAIN.by(Engine::AsyncCopy)).section("cp.async")
        .aligned(copied_at_once).sources(&["src_ptr"]).destinations(&["dst_ptr"]);

    /// Makes a group of this thread's `cp.async` copies that are in no group yet.
    PtxCpAsyncCommitGroup = Row::new("tirx.ptx.cp_async_commit_group", "ptx.cp_async.commit_group",
        ptx("cp.async.commit_group;"))
        .section("cp.async.commit_group");

    /// Waits until at most the `num` latest groups of this thread's `cp.async` copies are in flight.
    PtxCpAsyncWaitGroup = Row::new("tirx.ptx.cp_async_wait_group", "ptx.cp_async.wait_group",
        ptx("cp.async.wait_group {num};"))
        .signature("(num=0)").args(&[arg("num", ArgKind::Immediate(0, 64))])
        .traits(Traits::WAIT).section("cp.async.wait_group");

    /// Makes the mbarrier `bar` track this thread's `cp.async` copies: it arrives once they are complete. With
    /// `noinc=True` this is one of the arrivals that `mbarrier.init` counts, so a phase that waits for the copies of 32
    /// threads is initialized with 32. Without it the count of pending arrivals is incremented first, so the arrival
    /// is additional: each thread must also arrive by itself, after this.
    PtxCpAsyncMbarrierArrive = Row::new("tirx.ptx.cp_async_mbarrier_arrive", "ptx.cp_async.mbarrier.arrive",
        ptx("cp.async.mbarrier.arrive{?noinc:.noinc}.{space}.b64 [{bar}];"))
        .signature("(bar, noinc=False, space='shared')")
        .args(&[arg("bar", SHARED), arg("noinc", ArgKind::Bool), arg("space", ArgKind::Text(&["shared", "shared::cta"]))])
        .traits(Traits::SYNC.by(Engine::AsyncCopy)).section("cp.async.mbarrier.arrive");

    /// Copies `num_bytes` (a multiple of 16) from global memory to this block's shared memory, and counts the bytes at
    /// the mbarrier. With `ignore_oob` the first `ignore_bytes_left` and the last `ignore_bytes_right` bytes are not
    /// read, and may lie beyond an allocation.
    PtxCpAsyncBulkG2sCta = Row::new("tirx.ptx.cp_async_bulk_g2s_cta", "ptx.cp_async_bulk_g2s_cta",
        ptx("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes{?has_cache_policy:.L2::cache_hint}\
             {?ignore_oob:.ignore_oob} [{dst_ptr}], [{src_ptr}], {num_bytes}\
             {?ignore_oob:, {ignore_bytes_left}, {ignore_bytes_right}}, [{mbarrier_ptr}]{?has_cache_policy:, {cache_policy}};"))
        .signature("(dst_ptr, src_ptr, num_bytes, mbarrier_ptr, *, cache_hint='', cache_policy=None, ignore_oob=False, \
                    ignore_bytes_left=0, ignore_bytes_right=0)")
        .args(&[
            arg("dst_ptr", SHARED), arg("src_ptr", GLOBAL), arg("num_bytes", U32), arg("ignore_bytes_left", U32),
            arg("ignore_bytes_right", U32), arg("mbarrier_ptr", SHARED), arg("cache_policy", U64),
            arg("has_cache_policy", ArgKind::Flag), arg("ignore_oob", ArgKind::Flag),
        ])
        .completed(HINT, policy)
        .since(&[("ignore_oob", "1", (13, 2))]).traits(BULK).section("cp.async.bulk")
        .aligned(bulk_ends).sources(&["src_ptr"]).destinations(&["dst_ptr"]);

    /// Copies `num_bytes` (a multiple of 16) from global memory to shared memory of the cluster, and counts the bytes
    /// at the mbarrier. With `multicast` the data goes to the same address in each block of `cta_mask`, and counts
    /// at the mbarrier of each block.
    PtxCpAsyncBulkG2sCluster = Row::new("tirx.ptx.cp_async_bulk_g2s_cluster", "ptx.cp_async_bulk_g2s_cluster",
        ptx("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes{?multicast:.multicast::cluster}\
             {?has_cache_policy:.L2::cache_hint} [{dst_ptr}], [{src_ptr}], {num_bytes}, [{mbarrier_ptr}]\
             {?multicast:, {cta_mask}}{?has_cache_policy:, {cache_policy}};"))
        .signature("(dst_ptr, src_ptr, num_bytes, mbarrier_ptr, *, cache_hint='', cache_policy=None, multicast=False, cta_mask=0)")
        .args(&[
            arg("dst_ptr", SHARED), arg("src_ptr", GLOBAL), arg("num_bytes", U32), arg("mbarrier_ptr", SHARED),
            arg("cta_mask", U16), arg("cache_policy", U64), arg("has_cache_policy", ArgKind::Flag), arg("multicast", ArgKind::Flag),
        ])
        .completed(HINT, policy)
        .traits(BULK).section("cp.async.bulk").aligned(bulk_ends).sources(&["src_ptr"]).destinations(&["dst_ptr"]);

    /// Copies `num_bytes` from this block's shared memory to another block's shared memory in the cluster: `dst_ptr` and `mbarrier` are
    /// addresses from `T.ptx.map_shared_rank`.
    PtxCpAsyncBulkS2sCluster = Row::new("tirx.ptx.cp_async_bulk_s2s_cluster", "ptx.cp_async_bulk_s2s_cluster",
        ptx("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [{dst_ptr}], [{src_ptr}], {num_bytes}, \
             [{mbarrier}];"))
        .args(&[arg("dst_ptr", SHARED), arg("src_ptr", SHARED), arg("num_bytes", U32), arg("mbarrier", SHARED)])
        .traits(BULK).section("cp.async.bulk").aligned(bulk_ends).sources(&["src_ptr"]).destinations(&["dst_ptr"]);

    /// As `T.ptx.cp_async_bulk_s2s_cluster`.
    PtxCpAsyncBulkSharedToCluster = Row::new("tirx.ptx.cp_async_bulk_shared_to_cluster", "ptx.cp_async.bulk.s2c",
        ptx("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [{dst_ptr}], [{src_ptr}], {size}, [{mbar}];"))
        .args(&[arg("dst_ptr", SHARED), arg("src_ptr", SHARED), arg("size", U32), arg("mbar", SHARED)])
        .arch(SM_90).traits(BULK).section("cp.async.bulk").aligned(bulk_ends).sources(&["src_ptr"]).destinations(&["dst_ptr"]);

    /// Copies `num_bytes` (a multiple of 16) from shared to global memory; wait for completion with bulk groups. With
    /// `cp_mask` it copies only the bytes of each 16 whose bit of `byte_mask` is set.
    PtxCpAsyncBulkS2g = Row::new("tirx.ptx.cp_async_bulk_s2g", "ptx.cp_async_bulk_s2g",
        ptx("cp.async.bulk.global.shared::cta.bulk_group{?has_cache_policy:.L2::cache_hint}{?cp_mask:.cp_mask} [{dst_ptr}], \
             [{src_ptr}], {num_bytes}{?has_cache_policy:, {cache_policy}}{?cp_mask:, {byte_mask}};"))
        .signature("(dst_ptr, src_ptr, num_bytes, *, cache_hint='', cache_policy=None, cp_mask=False, byte_mask=0)")
        .args(&[
            arg("dst_ptr", GLOBAL), arg("src_ptr", SHARED), arg("num_bytes", U32), arg("byte_mask", U16),
            arg("cache_policy", U64), arg("has_cache_policy", ArgKind::Flag), arg("cp_mask", ArgKind::Flag),
        ])
        .completed(HINT, policy).checked(masked)
        .needs(&[("cp_mask", "1", GpuSet::least(100))]).traits(BULK).section("cp.async.bulk")
        .aligned(bulk_ends).sources(&["src_ptr"]).destinations(&["dst_ptr"]);

    /// Makes a bulk group of this thread's bulk copies that are in no group yet.
    PtxCpAsyncBulkCommitGroup = Row::new("tirx.ptx.cp_async_bulk_commit_group", "ptx.cp_async.bulk.commit_group",
        ptx("cp.async.bulk.commit_group;"))
        .section("cp.async.bulk.commit_group");

    /// Waits until at most the `n` latest bulk groups of this thread are in flight; with `read`, only until they have
    /// read their sources (so that shared memory may be written again).
    PtxCpAsyncBulkWaitGroup = Row::new("tirx.ptx.cp_async_bulk_wait_group", "ptx.cp_async.bulk.wait_group",
        ptx("cp.async.bulk.wait_group{?read:.read} {n};"))
        .signature("(n=0, read=True)").args(&[arg("n", ArgKind::Immediate(0, 64)), arg("read", ArgKind::Bool)])
        .traits(Traits::WAIT).section("cp.async.bulk.wait_group");

    /// Copies a box of the tensor of a tensor map, at `coords` (the innermost dimension first), to this block's shared memory; its
    /// bytes count at the mbarrier.
    PtxCpAsyncBulkTensorG2sCta = Row::new("tirx.ptx.cp_async_bulk_tensor_g2s_cta", "ptx.cp_async.bulk.tensor.g2s_cta",
        ptx("cp.async.bulk.tensor.{dim}d.shared::cta.global{mode}.mbarrier::complete_tx::bytes{group}\
             {?has_cache_policy:.L2::cache_hint} [{dst_ptr}], [{tensormap_addr}, {{{coords}}}], [{mbar}]\
             {?has_cache_policy:, {cache_policy}};").words(tensor_words))
        .signature("(dim, dst_ptr, mbar, tensormap_addr, cta_group, cache_hint, *coords, cache_policy=None, load_mode='tile', \
                    mbar_is_shared_addr=False)")
        .args(&[
            arg("dim", DIM), arg("dst_ptr", SHARED), arg("mbar", SHARED), arg("tensormap_addr", GENERIC),
            arg("cta_group", ArgKind::Immediate(-1, 2)), arg("cache_policy", U64), arg("has_cache_policy", ArgKind::Flag),
            arg("load_mode", LOAD_MODE), arg("mbar_is_shared_addr", ArgKind::Flag), list("coords", I32, coordinates),
        ])
        .completed(HINT, policy).checked(group)
        .needs(&[("cta_group", "2", BLACKWELL), ("load_mode", "tile_gather4", GpuSet::least(100))])
        .traits(BULK).section("cp.async.bulk.tensor").sources(&["tensormap_addr"]).destinations(&["dst_ptr"]);

    /// Copies a box of the tensor of a tensor map, at `coords` (the innermost dimension first), to shared memory; its bytes count at
    /// the mbarrier. With `multicast` it goes to the same address in each block of `cta_mask` of the cluster. `cta_group=2` lets
    /// the mbarrier be of the other block of the pair. `load_mode="tile_gather4"` takes a column and four rows.
    PtxCpAsyncBulkTensorG2sCluster = Row::new("tirx.ptx.cp_async_bulk_tensor_g2s_cluster", "ptx.cp_async.bulk.tensor.g2s_cluster",
        ptx("cp.async.bulk.tensor.{dim}d.shared::cluster.global{mode}.mbarrier::complete_tx::bytes\
             {?multicast:.multicast::cluster}{group}{?has_cache_policy:.L2::cache_hint} [{dst_ptr}], \
             [{tensormap_addr}, {{{coords}}}], [{mbar}]{?multicast:, {cta_mask}}{?has_cache_policy:, {cache_policy}};")
        .words(tensor_words))
        .signature("(dim, dst_ptr, mbar, tensormap_addr, cta_mask, cta_group, cache_hint, *coords, cache_policy=None, \
                    load_mode='tile', mbar_is_shared_addr=False, multicast=None)")
        .args(&[
            arg("dim", DIM), arg("dst_ptr", SHARED), arg("mbar", SHARED), arg("tensormap_addr", GENERIC), arg("cta_mask", U16),
            arg("cta_group", ArgKind::Immediate(-1, 2)), arg("cache_policy", U64), arg("has_cache_policy", ArgKind::Flag),
            arg("load_mode", LOAD_MODE), arg("mbar_is_shared_addr", ArgKind::Flag), arg("multicast", ArgKind::Flag),
            list("coords", I32, coordinates),
        ])
        .completed(HINT, multicast).checked(group)
        .needs(&[("cta_group", "2", BLACKWELL), ("load_mode", "tile_gather4", BLACKWELL)])
        .traits(BULK).section("cp.async.bulk.tensor").sources(&["tensormap_addr"]).destinations(&["dst_ptr"]);

    /// Copies a box from shared memory to the tensor of a tensor map, at `coords`; wait for completion with bulk groups.
    PtxCpAsyncBulkTensorS2g = Row::new("tirx.ptx.cp_async_bulk_tensor_shared_to_global", "ptx.cp_async.bulk.tensor.s2g",
        ptx("cp.async.bulk.tensor.{dim}d.global.shared::cta.tile.bulk_group{?has_cache_policy:.L2::cache_hint} \
             [{tensormap_addr}, {{{coords}}}], [{src_ptr}]{?has_cache_policy:, {cache_policy}};"))
        .signature("(dim, src_ptr, tensormap_addr, cache_hint, *coords, cache_policy=None)")
        .args(&[
            arg("dim", DIM), arg("src_ptr", SHARED), arg("tensormap_addr", GENERIC), arg("cache_policy", U64),
            arg("has_cache_policy", ArgKind::Flag), list("coords", I32, coordinates),
        ])
        .completed(HINT, policy)
        .traits(BULK).section("cp.async.bulk.tensor")
        .sources(&["src_ptr"]).destinations(&["tensormap_addr"]);

    /// Combines a box of shared memory with the tensor of a tensor map, at `coords`, element by element with `red_op`; wait
    /// for completion with bulk groups.
    PtxCpAsyncBulkTensorS2gReduce = Row::new("tirx.ptx.cp_async_bulk_tensor_shared_to_global_reduce",
        "ptx.cp_async.bulk.tensor.s2g_reduce",
        ptx("cp.reduce.async.bulk.tensor.{dim}d.global.shared::cta.{red_op}.tile.bulk_group{?has_cache_policy:.L2::cache_hint} \
             [{tensormap_addr}, {{{coords}}}], [{src_ptr}]{?has_cache_policy:, {cache_policy}};"))
        .signature("(dim, src_ptr, tensormap_addr, cache_hint, red_op, *coords, cache_policy=None)")
        .args(&[
            arg("dim", DIM), arg("src_ptr", SHARED), arg("tensormap_addr", GENERIC), arg("cache_policy", U64),
            arg("has_cache_policy", ArgKind::Flag),
            arg("red_op", ArgKind::Text(&["add", "min", "max", "inc", "dec", "and", "or", "xor"])),
            list("coords", I32, coordinates),
        ])
        .completed(HINT, policy)
        .traits(BULK).section("cp.reduce.async.bulk.tensor").sources(&["src_ptr"]);

    /// Prefetches a box of the tensor of a tensor map, at `coords`, to the L2 cache.
    PtxCpAsyncBulkTensorPrefetch = Row::new("tirx.ptx.cp_async_bulk_tensor_prefetch", "ptx.cp_async.bulk.tensor.prefetch",
        ptx("cp.async.bulk.prefetch.tensor.{dim}d.L2.global.tile{?has_cache_policy:.L2::cache_hint} \
             [{tensormap_addr}, {{{coords}}}]{?has_cache_policy:, {cache_policy}};"))
        .signature("(dim, tensormap_addr, cache_hint, *coords, cache_policy=None)")
        .args(&[
            arg("dim", DIM), arg("tensormap_addr", GENERIC), arg("cache_policy", U64), arg("has_cache_policy", ArgKind::Flag),
            list("coords", I32, coordinates),
        ])
        .completed(HINT, policy)
        .section("cp.async.bulk.prefetch.tensor").sources(&["tensormap_addr"]);

    /// Prefetches a tensor map into the cache of the copy engine.
    PtxPrefetchTensormap = Row::new("tirx.ptx.prefetch_tensormap", "ptx.prefetch_tensormap",
        ptx("prefetch{.space}.tensormap [{tensormap_addr}];"))
        .signature("(tensormap_addr, space='')")
        .args(&[arg("tensormap_addr", GENERIC), arg("space", ArgKind::Text(&["", "const", "param"]))])
        .section("prefetch").sources(&["tensormap_addr"]);

    /// Requests the cancellation of a cluster that has not started: the response, 16 bytes at `handle` in shared memory
    /// of each block of the cluster, names the cluster; its bytes count at the mbarrier.
    PtxClcTryCancel = Row::new("tirx.ptx.clc_try_cancel", "ptx.clc_try_cancel",
        ptx("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 \
             [{handle}], [{mbar}];"))
        .args(&[arg("handle", SHARED), arg("mbar", SHARED)])
        .traits(BULK).section("clusterlaunchcontrol.try_cancel");

    /// The result of a cancellation: the x index of the first block of the cancelled cluster, or 0xffffffff if none
    /// was cancelled. Orders its read before later writes by the async proxy.
    PtxClcQueryCancel = Row::new("tirx.ptx.clc_query_cancel", "ptx.clc_query_cancel",
        ptx(".reg .pred canceled; .reg .b128 response; ld{?use_ld_acquire:.acquire.cta}.shared.b128 response, [{handle}]; \
             clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 canceled, response; mov.u32 {result}, 0xffffffff; \
             @canceled clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 {result}, response; \
             fence.proxy.async.shared::cta;"))
        .signature("(handle, *, use_ld_acquire=True)")
        .args(&[arg("handle", SHARED), arg("use_ld_acquire", ArgKind::Flag)])
        .gives(DType::UINT32)
        .arch(GpuSet::least(100)).traits(Traits::SYNC).section("clusterlaunchcontrol.query_cancel");
} }
