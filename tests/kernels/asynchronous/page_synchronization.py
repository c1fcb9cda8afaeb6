# test: parse
# test: cuda sm_90a
# test: compile sm_100a
# The blocks of the documentation's page on intrinsics about barriers and reductions of blocks.
from tvm.script import tirx as T

NUM_WARPS = 4

@T.prim_func
def block_sum(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([128])
    scratch = T.alloc_shared((NUM_WARPS,), "float32")
    val = A[tx]
    total = T.cuda.cta_sum(val, NUM_WARPS, scratch.ptr_to([0]))
    B[tx] = total

@T.prim_func
def barriers(A: T.Buffer((256,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    wg_id = T.warpgroup_id([2])
    tx = T.thread_id([256])
    s = T.alloc_shared((256,), "int32")
    t = T.alloc_shared((256,), "int32")
    u = T.alloc_shared((256,), "int32")
    s[tx] = tx
    T.cuda.warp_sync()
    t[tx] = s[tx // 32 * 32 + 31 - tx % 32]
    T.cuda.warpgroup_sync(wg_id + 10)
    u[tx] = t[wg_id * 128 + 127 - tx % 128]
    T.cuda.cta_sync()
    A[tx] = u[255 - tx]
