//! Synchronization of a block, a cluster and a grid: barriers and fences.

use super::kinds::*;
use crate::intrin::ResultRule;
use crate::intrin::row::*;
use crate::ir::DType;

const BLOCK: Traits = Traits::WAIT
    .collective(Collective::Block)
    .synchronizes(Synchronizes::Block);
const CLUSTER: Traits = Traits::WAIT.synchronizes(Synchronizes::Cluster);
const GRIDS: Traits = Traits::WAIT.synchronizes(Synchronizes::Grids);

use super::warp::{OPERATION, reduced};

rows! { $ sync {
    /// Barrier over a scope (a string).
    TvmStorageSync = Row::new("tirx.tvm_storage_sync", "tvm_storage_sync", special())
        .args(&[arg("storage_scope", NAME), rest("rest", NODE)]).traits(BLOCK);
    /// Barrier of the block.
    CudaCtaSync = Row::new("tirx.cuda.cta_sync", "cuda.cta_sync", function("__syncthreads")).traits(BLOCK)
        .section("Synchronization Functions");
    /// Barrier of the warp.
    CudaWarpSync = Row::new("tirx.cuda.warp_sync", "cuda.warp_sync", function("__syncwarp"))
        .traits(Traits::WAIT.collective(Collective::Warp).synchronizes(Synchronizes::Warp))
        .section("Synchronization Functions");
    /// Barrier of the four warps of a warpgroup: the named barrier `bar_no` with 128 threads.
    CudaWarpgroupSync = Row::new("tirx.cuda.warpgroup_sync", "cuda.warpgroup_sync", expression("tirx_named_barrier($bar_no$, 128)").helpers(&["tirx_named_barrier"]))
        .args(&[arg("bar_no", I32)])
        .traits(Traits::WAIT.collective(Collective::Warpgroup).synchronizes(Synchronizes::Warpgroup)).section("barrier");
    /// Barrier of the cluster.
    CudaClusterSync = Row::new("tirx.cuda.cluster_sync", "cuda.cluster_sync", function("tirx_cluster_sync").helpers(&["tirx_cluster_sync"]))
        .traits(CLUSTER.collective(Collective::Block)).arch(SM_90).section("barrier.cluster");
    /// Barrier of the grid (cooperative launch).
    CudaGridSync = Row::new("tirx.cuda.grid_sync", "cuda.grid_sync", expression("cooperative_groups::this_grid().sync()").headers(&["cooperative_groups.h"]))
        .traits(Traits::WAIT.collective(Collective::Block).synchronizes(Synchronizes::Grid)).section("Cooperative Groups");
    /// Block barrier; gives whether the predicate holds in all threads.
    CudaSyncthreadsAnd = Row::new("tirx.cuda.syncthreads_and", "cuda.syncthreads_and", function("__syncthreads_and"))
        .args(&[arg("cond", CONDITION)]).gives(DType::INT64).traits(BLOCK).section("Synchronization Functions");
    /// Block barrier; gives whether the predicate holds in any thread.
    CudaSyncthreadsOr = Row::new("tirx.cuda.syncthreads_or", "cuda.syncthreads_or", function("__syncthreads_or"))
        .args(&[arg("cond", CONDITION)]).gives(DType::INT64).traits(BLOCK).section("Synchronization Functions");
    /// Reduces `value` over the block's threads; `scratch` points to shared memory for `num_warps` values. Each thread gets the result.
    CudaCtaReduce = Row::new("tirx.cuda.cta_reduce", "cuda.cta_reduce", special())
        .args(&[arg("value", ANY), arg("op", OPERATION), arg("num_warps", ArgKind::Immediate(1, 32)), arg("scratch", GENERIC)])
        .value(ResultRule::Arg(0)).traits(BLOCK).checked(reduced);
    /// Device-wide memory fence.
    CudaThreadFence = Row::new("tirx.cuda.thread_fence", "cuda.thread_fence", function("__threadfence"))
        .traits(Traits::SYNC.synchronizes(Synchronizes::Memory)).section("Memory Fence Functions");
    /// Orders this thread's memory accesses before it with those after it, as threads of `scope` observe them.
    PtxFence = Row::new("tirx.ptx.fence", "ptx.fence", ptx("fence.{sem}.{scope};"))
        .args(&[arg("sem", ArgKind::Text(&["sc", "acq_rel"])), arg("scope", ArgKind::Text(&["cta", "cluster", "gpu", "sys"]))])
        .traits(Traits::SYNC.synchronizes(Synchronizes::Memory)).needs(&[("scope", "cluster", SM_90)])
        .section("membar / fence");
    /// Makes the initialization of mbarriers visible to the cluster.
    PtxFenceMbarrierInit = Row::new("tirx.ptx.fence_mbarrier_init", "ptx.fence.mbarrier_init", ptx("fence.mbarrier_init.release.cluster;"))
        .traits(Traits::SYNC.synchronizes(Synchronizes::Cluster)).section("membar / fence");
    /// Orders accesses of threads and of asynchronous engines to a state space; `""`: to all.
    PtxFenceProxyAsync = Row::new("tirx.ptx.fence_proxy_async", "ptx.fence.proxy_async", ptx("fence.proxy.async{.space};"))
        .args(&[arg("space", ArgKind::Text(&["", "global", "shared::cta", "shared::cluster"]))])
        .traits(Traits::SYNC.synchronizes(Synchronizes::Memory)).signature("(space='')")
        .section("membar / fence");
    /// Arrives at the barrier of the cluster. With `aligned` all lanes of the warp execute it together.
    PtxBarrierClusterArrive = Row::new("tirx.ptx.barrier_cluster_arrive", "ptx.barrier.cluster.arrive", ptx("barrier.cluster.arrive{.sem}{?aligned:.aligned};"))
        .args(&[arg("sem", ArgKind::Text(&["", "release", "relaxed"])), arg("aligned", ArgKind::Bool)])
        .traits(Traits::SYNC.synchronizes(Synchronizes::Cluster)).signature("(sem='', aligned=True)")
        .section("barrier.cluster");
    /// Waits until all threads of the cluster have arrived. With `aligned` all lanes of the warp execute it together.
    PtxBarrierClusterWait = Row::new("tirx.ptx.barrier_cluster_wait", "ptx.barrier.cluster.wait", ptx("barrier.cluster.wait{?acquire:.acquire}{?aligned:.aligned};"))
        .args(&[arg("acquire", ArgKind::Bool), arg("aligned", ArgKind::Bool)]).traits(CLUSTER)
        .signature("(acquire=False, aligned=True)").section("barrier.cluster");
    /// Waits for the grids that this one depends on (programmatic dependent launch).
    PtxGriddepcontrolWait = Row::new("tirx.ptx.griddepcontrol_wait", "ptx.griddepcontrol.wait", ptx("griddepcontrol.wait;"))
        .traits(GRIDS).section("griddepcontrol");
    /// Allows dependent grids to start (programmatic dependent launch).
    PtxGriddepcontrolLaunchDependents = Row::new("tirx.ptx.griddepcontrol_launch_dependents", "ptx.griddepcontrol.launch_dependents", ptx("griddepcontrol.launch_dependents;"))
        .traits(Traits::SYNC.synchronizes(Synchronizes::Grids)).section("griddepcontrol");
} }
