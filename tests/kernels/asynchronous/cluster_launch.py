# test: compile sm_100a
# Cluster launch control: blocks that run take over the work of blocks that have not started.
from tvm.script import tirx as T


# Each tile is computed once, by any block.
# sim: takes_over
#   A: float32[8x32] = i * 32 + j
#   B: float32[8x32] = 0 -> A[i][j] * 2
#   N: uint32[1] = 0 -> 8
@T.prim_func
def takes_over(A: T.Buffer((8, 32), "float32"), B: T.Buffer((8, 32), "float32"), N: T.Buffer((1,), "uint32")):
    T.device_entry()
    bx = T.cta_id([8])
    tx = T.thread_id([32])
    handle = T.alloc_shared((4,), "uint32", align=16)
    bar = T.alloc_shared((1,), "uint64")
    tile: T.uint32 = T.cast(bx, "uint32")
    phase: T.int32 = 0
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    while tile != T.uint32(0xFFFFFFFF):
        if tx == 0:
            T.ptx.mbarrier.arrive.expect_tx(bar.ptr_to([0]), 16)
            T.ptx.clc_try_cancel(handle.ptr_to([0]), bar.ptr_to([0]))
            T.cuda.atomic_add(N.ptr_to([0]), T.uint32(1))
        B[tile, tx] = A[tile, tx] * T.float32(2)
        T.ptx.mbarrier.try_wait(bar.ptr_to([0]), phase)
        phase = 1 - phase
        tile = T.ptx.clc_query_cancel(handle.ptr_to([0]))
        T.cuda.cta_sync()


# Both blocks of a cluster receive the response.
# sim: pairs
#   B: uint32[8] = 0 -> i + 1
@T.prim_func
def pairs(B: T.Buffer((8,), "uint32")):
    T.device_entry()
    bx = T.cta_id([8])
    cx = T.cta_id_in_cluster([2])
    tx = T.thread_id([32])
    handle = T.alloc_shared((4,), "uint32", align=16)
    bar = T.alloc_shared((1,), "uint64")
    first: T.uint32 = T.cast(bx - cx, "uint32")
    phase: T.int32 = 0
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cluster_sync()
    while first != T.uint32(0xFFFFFFFF):
        if tx == 0:
            T.ptx.mbarrier.arrive.expect_tx(bar.ptr_to([0]), 16)
        T.cuda.cluster_sync()
        if tx == 0:
            if cx == 0:
                T.ptx.clc_try_cancel(handle.ptr_to([0]), bar.ptr_to([0]))
            B[first + T.cast(cx, "uint32")] = first + T.cast(cx, "uint32") + T.uint32(1)
        T.ptx.mbarrier.try_wait(bar.ptr_to([0]), phase)
        phase = 1 - phase
        first = T.ptx.clc_query_cancel(handle.ptr_to([0]), use_ld_acquire=False)
        T.cuda.cluster_sync()


# Without the wait the response is not there.
# sim: too_early
#   B: uint32[1] = 0
#   fault: before any thread has written it
@T.prim_func
def too_early(B: T.Buffer((1,), "uint32")):
    T.device_entry()
    bx = T.cta_id([2])
    tx = T.thread_id([32])
    handle = T.alloc_shared((4,), "uint32", align=16)
    bar = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
        T.ptx.mbarrier.arrive.expect_tx(bar.ptr_to([0]), 16)
        T.ptx.clc_try_cancel(handle.ptr_to([0]), bar.ptr_to([0]))
        B[0] = T.ptx.clc_query_cancel(handle.ptr_to([0]))


# After a refused request no further request is allowed.
# sim: asks_again
#   B: uint32[1] = 0
#   fault: after a request that was refused has been seen
@T.prim_func
def asks_again(B: T.Buffer((1,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    handle = T.alloc_shared((4,), "uint32", align=16)
    bar = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
        for i in T.serial(2):
            T.ptx.mbarrier.arrive.expect_tx(bar.ptr_to([0]), 16)
            T.ptx.clc_try_cancel(handle.ptr_to([0]), bar.ptr_to([0]))
            T.ptx.mbarrier.try_wait(bar.ptr_to([0]), i)
            B[0] = T.ptx.clc_query_cancel(handle.ptr_to([0]))
