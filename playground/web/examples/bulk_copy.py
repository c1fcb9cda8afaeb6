# A bulk copy brings 1 KB to shared memory; an mbarrier counts its bytes, and all threads wait for them.
# Delete the line with `try_wait`: the report names the copy, the mbarrier and the read.
from tvm.script import tirx as T


# sim: doubled
#   A: float32[256] = i
#   B: float32[256] = 0 -> 2 * A[i]
@T.prim_func
def doubled(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32")):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([256])
    S = T.alloc_shared((256,), "float32", align=128)
    bar = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.mbarrier.arrive.expect_tx(bar.ptr_to([0]), 1024)
        T.ptx.cp_async_bulk_g2s_cta(S.ptr_to([0]), A.ptr_to([0]), 1024, bar.ptr_to([0]))
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    B[tx] = 2.0 * S[tx]
