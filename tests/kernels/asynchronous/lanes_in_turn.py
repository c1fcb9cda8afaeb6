# test: compile sm_90a
# Lanes of a warp wait for each other at mbarriers: a lane whose phase is complete goes on, and does what the others wait for.
from tvm.script import tirx as T


# Each lane waits for the one behind it.
# sim: in_turn
#   B: int32[32] = 0 -> 31 - i
#   seeds: 3
@T.prim_func
def in_turn(B: T.Buffer((32,), "int32")):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([32])
    bar = T.alloc_shared((32,), "uint64")
    count = T.alloc_shared((1,), "int32")
    T.ptx.mbarrier.init(bar.ptr_to([tx]), 1)
    if tx == 0:
        count[0] = 0
    T.cuda.cta_sync()
    if tx != 31:
        T.ptx.mbarrier.try_wait(bar.ptr_to([tx + 1]), 0)
    B[tx] = count[0]
    count[0] = count[0] + 1
    T.ptx.mbarrier.arrive(bar.ptr_to([tx]))


# Lane 0 waits for the phase before the first, which is complete, and the others for its arrival.
# sim: one_lane_goes_on
#   B: int32[32] = 0 -> 7
#   seeds: 3
@T.prim_func
def one_lane_goes_on(B: T.Buffer((32,), "int32")):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([32])
    bar = T.alloc_shared((1,), "uint64")
    value = T.alloc_shared((1,), "int32")
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
    T.cuda.cta_sync()
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), T.if_then_else(tx == 0, 1, 0))
    if tx == 0:
        value[0] = 7
        T.ptx.mbarrier.arrive(bar.ptr_to([0]))
    B[tx] = value[0] if tx != 0 else 7


# variant: nobody_arrives of one_lane_goes_on
#   without: "T.ptx.mbarrier.arrive(bar.ptr_to([0]))"
#   fault: 31 threads wait for parity 0 of the mbarrier `bar[0]`
