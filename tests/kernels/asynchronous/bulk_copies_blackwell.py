# Bulk copies of some bytes only.
from tvm.script import tirx as T


# Of each 16 bytes the first eight.
# sim: masked
#   A: float32[32] = i + 1
#   B: float32[32] = -1 -> A[i] if i % 4 < 2 else -1
@T.prim_func
def masked(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((32,), "float32", align=128)
    S[tx] = A[tx]
    T.ptx.fence.proxy_async("shared::cta")
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.cp_async_bulk_s2g(B.ptr_to([0]), S.ptr_to([0]), 128, cache_hint="evict_first", cp_mask=True, byte_mask=0x00FF)
        T.ptx.cp_async.bulk.commit_group()
        T.ptx.cp_async.bulk.wait_group(0, False)


# Without some bytes at both ends, which may lie beyond the tensor (PTX of a later toolkit).
# sim: without_ends
#   A: float32[32] = i + 1
#   B: float32[32] = -1 -> A[i] if i >= 1 and i < 30 else -1
@T.prim_func
def without_ends(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((32,), "float32", align=128)
    bar = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.mbarrier.arrive.expect_tx(bar.ptr_to([0]), 128)
        T.ptx.cp_async_bulk_g2s_cta(S.ptr_to([0]), A.ptr_to([0]), 128, bar.ptr_to([0]), ignore_oob=True, ignore_bytes_left=4,
                                    ignore_bytes_right=8)
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    if tx >= 1 and tx < 30:
        B[tx] = S[tx]
