"""A pipeline with a profile of its roles: the library's profiler writes records to a buffer."""

from __future__ import annotations

from enum import Enum

from tvm.backend.cuda.lang import Pipeline, PipelineState
from tvm.script import tirx as T
from tvm.tirx.bench import CudaProfiler


class Event(Enum):
    Wait = 0
    Copy = 1
    Scale = 2


@T.jit
def scale_profiled(X: T.Buffer((M, 32), "float32"), Y: T.Buffer((M, 32), "float32"), P: T.Buffer((WORDS,), "uint64"), *,
                   M: T.constexpr, WORDS: T.constexpr, TILES: T.constexpr = 8, STAGES: T.constexpr = 3):
    """Y = 2 X by tiles of 64 rows: one warp copies tiles to shared memory (group 0 of the records), another scales them (group 1)."""
    T.static_assert(M % (64 * TILES) == 0, "whole blocks of tiles")
    BLOCKS = T.meta_var(M // (64 * TILES))
    X_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", X_map, "float32", 2, X.data, 32, M, 128, 32, 64, 1, 1, 0, 0, 2, 0)
    T.device_entry()
    bx = T.cta_id([BLOCKS])
    warp = T.warp_id([2])
    lane = T.lane_id([32])
    pool = T.SMEMPool()
    tiles = pool.alloc((STAGES, 64, 32), "float32", align=128)
    ring = Pipeline(pool, STAGES, full="tma", empty="mbar", init_empty=32)
    pool.commit()
    T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    profiler = CudaProfiler(P, write_stride=BLOCKS * 2, num_groups=2, default_leader=lane == 0)
    profiler.init(warp)
    if warp == 0:
        free = PipelineState(STAGES, 1)
        for t in range(TILES):
            profiler.start(Event.Wait)
            ring.empty.wait(free.stage, free.phase)
            profiler.end(Event.Wait)
            profiler.start(Event.Copy)
            if lane == 0:
                ring.full.arrive(free.stage, 64 * 32 * 4)
                T.ptx.cp_async.bulk.tensor.g2s_cluster(2, tiles.ptr_to([free.stage, 0, 0]), ring.full.ptr_to([free.stage]),
                                                       T.address_of(X_map), 0, 1, "", 0, (bx * TILES + t) * 64)
            profiler.end(Event.Copy)
            free.advance()
    else:
        slot = PipelineState(STAGES, 0)
        for t in range(TILES):
            profiler.start(Event.Wait)
            ring.full.wait(slot.stage, slot.phase)
            profiler.end(Event.Wait)
            profiler.start(Event.Scale)
            for row in range(64):
                Y[(bx * TILES + t) * 64 + row, lane] = tiles[slot.stage, row, lane] * T.float32(2)
            profiler.end(Event.Scale)
            ring.empty.arrive(slot.stage)
            slot.advance()
    profiler.finalize()
