# test: cuda sm_100a
# Cancelled launches by mnemonics: the response in a register of 128 bits, as TVM 0.27 writes it.
from tvm.script import tirx as T
from tvm.backend.cuda.lang.clc import query_cancel_first_ctaid_x


# sim: takes_over
#   A: float32[8x32] = i * 32 + j
#   B: float32[8x32] = 0 -> A[i][j] * 2
@T.prim_func
def takes_over(A: T.Buffer((8, 32), "float32"), B: T.Buffer((8, 32), "float32")):
    T.device_entry()
    bx = T.cta_id([8])
    tx = T.thread_id([32])
    handle = T.alloc_shared((4,), "uint32", align=16)
    bar = T.alloc_shared((1,), "uint64")
    response = T.local_scalar("uint128")
    canceled = T.local_scalar("uint32")
    tile: T.uint32 = T.cast(bx, "uint32")
    phase: T.int32 = 0
    if tx == 0:
        T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), T.uint32(1))
        T.ptx.fence.mbarrier_init.release.cluster()
    T.cuda.cta_sync()
    while tile != T.uint32(0xFFFFFFFF):
        if tx == 0:
            T.ptx.mbarrier.arrive.expect_tx.shared.b64(bar.ptr_to([0]), T.uint32(16))
            T.ptx["clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128"](
                handle.ptr_to([0]), bar.ptr_to([0])
            )
        B[tile, tx] = A[tile, tx] * T.float32(2)
        T.cuda.mbarrier_wait(bar.ptr_to([0]), phase)
        phase = 1 - phase
        T.ptx["ld.acquire.cta.shared.b128"](response, handle.ptr_to([0]))
        T.ptx.clusterlaunchcontrol.query_cancel.is_canceled.pred.b128(canceled, response)
        tile = T.uint32(0xFFFFFFFF)
        T.ptx.clusterlaunchcontrol.query_cancel.get_first_ctaid__x.b32.b128(tile, response, pred=canceled)
        T.ptx.fence.proxy.async_.shared__cta()
        T.cuda.cta_sync()


# sim: by_library
#   B: uint32[8] = 0 -> i + 1
@T.prim_func
def by_library(B: T.Buffer((8,), "uint32")):
    T.device_entry()
    bx = T.cta_id([8])
    tx = T.thread_id([32])
    handle = T.alloc_shared((4,), "uint32", align=16)
    bar = T.alloc_shared((1,), "uint64")
    tile: T.uint32 = T.cast(bx, "uint32")
    phase: T.int32 = 0
    if tx == 0:
        T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), T.uint32(1))
        T.ptx.fence.mbarrier_init.release.cluster()
    T.cuda.cta_sync()
    while tile != T.uint32(0xFFFFFFFF):
        if tx == 0:
            T.ptx.mbarrier.arrive.expect_tx.shared.b64(bar.ptr_to([0]), T.uint32(16))
            T.ptx["clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128"](
                handle.ptr_to([0]), bar.ptr_to([0])
            )
            B[tile] = tile + T.uint32(1)
        T.cuda.mbarrier_wait(bar.ptr_to([0]), phase)
        phase = 1 - phase
        query_cancel_first_ctaid_x(tile, handle.ptr_to([0]))
        T.cuda.cta_sync()
