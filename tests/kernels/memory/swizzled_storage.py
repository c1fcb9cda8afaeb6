# test: cuda sm_90a
# A swizzle of one period over a buffer of several: the buffer has room for all its elements.
from tvm.script import tirx as T


# sim: four_periods
#   A: float16[2048] = i
#   B: float16[2048] = 0 -> A[i]
@T.prim_func
def four_periods(A: T.Buffer((2048,), "float16"), B: T.Buffer((2048,), "float16")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((4, 8, 2, 4, 4, 2), "float16", layout=T.ComposeLayout(3, 3, 3, T.TileLayout(T.S[512:1])))
    S1 = S.view(2048)
    for i in T.serial(32):
        e: T.let = i * 64 + tx
        S[e // 512, e // 64 % 8, e // 32 % 2, e // 8 % 4, e // 2 % 4, e % 2] = A[e]
    T.cuda.cta_sync()
    for i in T.serial(32):
        B[2047 - i * 64 - tx] = S1[2047 - i * 64 - tx]
