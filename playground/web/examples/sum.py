# A sum over a block: each warp adds its values by shuffles, the first warp adds the sums of the warps.
from tvm.script import tirx as T


# sim: total
#   A: float32[256] = i % 7
#   B: float32[1] = 0 -> sum([A[k] for k in range(256)])
@T.prim_func
def total(A: T.Buffer((256,), "float32"), B: T.Buffer((1,), "float32")):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([256])
    warps = T.alloc_shared((8,), "float32")
    value: T.float32 = A[tx]
    for step in T.unroll(5):
        value = value + T.tvm_warp_shuffle_down(0xFFFFFFFF, value, 16 >> step, 32, 32)
    if tx % 32 == 0:
        warps[tx // 32] = value
    T.cuda.cta_sync()
    if tx == 0:
        sum: T.float32 = 0.0
        for w in T.serial(8):
            sum = sum + warps[w]
        B[0] = sum
