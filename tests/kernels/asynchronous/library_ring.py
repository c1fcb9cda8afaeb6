# test: sim
# A ring of tiles between two warps, by the barriers and roles of the kernel language's library.
from tvm.backend.cuda.lang import Pipeline, PipelineState, WarpRole
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
