from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx


# Conditions computed before they are tested: an id made of others, one lane elected beforehand, a conjunction of both.
#
# sim: named
#   A: float32[256x8] = i * 8 + j
#   B: float32[256x8] = 0 -> (0 if i < 128 else i * 8 + j)
#   C: float32[64x64] = i + 2 * j
#   D: float32[64x64] = 0 -> i + 2 * j
@T.prim_func
def named(A: T.Buffer((256, 8), "float32"), B: T.Buffer((256, 8), "float32"), C: T.Buffer((64, 64), "float32"),
          D: T.Buffer((64, 64), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    wg = T.warpgroup_id([2])
    wid_in_wg = T.warp_id_in_wg([4])
    lane = T.lane_id([32])
    warp: T.let = wg * 4 + wid_in_wg
    pool = T.SMEMPool()
    bar = pool.alloc((1,), "uint64")
    tile = pool.alloc((64, 64), "float32", align=128)
    pool.commit()
    elected = T.ptx.elect_sync()
    leader = (warp == 0) & (elected != T.uint32(0))
    if leader:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
    T.ptx.fence.mbarrier_init()
    T.ptx.fence.proxy_async("shared::cta")
    T.cuda.cta_sync()
    if T.cast(warp, "uint32") == T.uint32(0):
        issue = T.ptx.elect_sync()
        if issue:
            Tx.copy_async(tile[:, :], C[:, :], dispatch="tma_auto", mbar=bar.ptr_to([0]))
            T.ptx.mbarrier.arrive.expect_tx(bar.ptr_to([0]), 64 * 64 * 4)
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    for i in T.serial(16):
        D[(wg * 128 + wid_in_wg * 32 + lane) // 4, (wg * 128 + wid_in_wg * 32 + lane) % 4 * 16 + i] = tile[
            (wg * 128 + wid_in_wg * 32 + lane) // 4, (wg * 128 + wid_in_wg * 32 + lane) % 4 * 16 + i]
    if warp >= 4:
        Tx.wg.copy(B[128:256, :], A[128:256, :])


# A scalar that is stored twice stands for neither value: which threads issue is not known.
#
# error: one thread issues
@T.prim_func
def stored_twice(C: T.Buffer((64, 64), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([128])
    bar = T.alloc_shared((1,), "uint64")
    tile = T.alloc_shared((64, 64), "float32")
    chosen: T.uint32 = T.ptx.elect_sync()
    if tx < 64:
        chosen = T.uint32(1)
    if tx < 32:
        if chosen != T.uint32(0):
            Tx.copy_async(tile[:, :], C[:, :], dispatch="tma_auto", mbar=bar.ptr_to([0]))
