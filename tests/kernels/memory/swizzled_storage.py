# test: cuda sm_90a
# A swizzle of one period over a buffer of several, and layouts that are shorter than their buffer: the buffer has room for all
# its elements.
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


# The first iterator goes on: elements 16 to 63 lie behind the four by four that the layout names.
# sim: shorter_than_its_buffer
#   A: float32[64] = i
#   B: float32[128] = 0 -> A[i % 64]
@T.prim_func
def shorter_than_its_buffer(A: T.Buffer((64,), "float32"), B: T.Buffer((128,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    L = T.alloc_local((64,), "float32", layout=T.TileLayout(T.S[(4, 4):(1, 16)]))
    S = T.alloc_shared((4, 16), "float32", layout=T.TileLayout(T.S[16:2]))
    for i in range(64):
        L[i] = A[i]
    for i in range(2):
        S[i * 2 + tx // 16, tx % 16] = L[i * 32 + tx]
    T.cuda.cta_sync()
    if tx == 0:
        for i in range(64):
            B[i] = L[i]
            B[64 + i] = S[i // 16, i % 16]
