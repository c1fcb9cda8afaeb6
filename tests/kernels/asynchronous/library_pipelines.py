# test: parse
# test: cuda sm_90a
# Barriers, states of a ring and roles of warps, of the kernel language's library.
from tvm.backend.cuda.lang import MBarrier, Pipeline, PipelineState, TMABar
from tvm.backend.cuda.lang.warp_role import WarpgroupRole, WarpRole
from tvm.script import tirx as T


@T.prim_func
def ring(A: T.Buffer((8, 32), "float32"), B: T.Buffer((8, 32), "float32")):
    T.device_entry()
    warp = T.warp_id([2])
    lane = T.lane_id([32])
    pool = T.SMEMPool()
    tiles = pool.alloc((2, 32), "float32")
    pipe = Pipeline(pool, 2, full="mbar", empty="mbar", init_full=32, init_empty=32)
    pool.commit()
    T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    producer = WarpRole(warp, 0)
    consumer = WarpRole(warp, 1)
    with producer:
        state = PipelineState(2, 1)
        for i in T.serial(8):
            pipe.empty.wait(state.stage, state.phase)
            tiles[state.stage, lane] = A[i, lane]
            pipe.full.arrive(state.stage)
            state.advance()
    with consumer:
        state_1 = PipelineState(2, 0)
        for i in T.serial(8):
            pipe.full.wait(state_1.stage, state_1.phase)
            B[i, lane] = tiles[state_1.stage, lane] * T.float32(2)
            pipe.empty.arrive(state_1.stage)
            state_1.advance()


@T.prim_func
def in_a_cluster(A: T.Buffer((2, 128), "float32")):
    T.device_entry()
    cx, cy = T.cta_id([2, 1])
    rank = T.cta_id_in_cluster([2])
    wg = T.warpgroup_id([2])
    tid = T.thread_id_in_wg([128])
    pool = T.SMEMPool()
    tile = pool.alloc((128,), "float32")
    bar = MBarrier(pool, 1, leader=(wg == 0) & (tid == 0))
    full = TMABar(pool, 2, phase_offset=1)
    pool.commit()
    bar.init(2)
    full.init(1)
    T.ptx.fence.mbarrier_init()
    T.ptx.barrier.cluster.arrive()
    T.ptx.barrier.cluster.wait()
    other = bar.remote_view(1 - rank)
    with WarpgroupRole(wg, (0, 1), regs=40):
        if tid == 0:
            bar.arrive(0)
            other.arrive(0)
            full.arrive(1, 512)
            full.arrive(0, 512, remote=0, pred=rank == 0)
    with WarpgroupRole(wg, 1, regs=232, increase=True):
        bar.wait(0, 0)
        A[rank, tid] = tile[tid]
