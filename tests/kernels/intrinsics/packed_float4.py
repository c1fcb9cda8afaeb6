# test: cuda sm_100a
# Eight float32 in one word of float4_e2m1fn: as the conversion of each pair, rounded and saturated.
from tvm.script import tirx as T


INPUTS = (0, 0.5, 1, -1.5, 2, 3, -4, 100, 0.3, 2.5, -0.7, 5.1, -6, 1.2, 0.2, -100)
WORDS = (0x7E54B210, 0xF02F7941)


# 0, 0.5, 1, 1.5, 2, 3, 4 and 6 are the values; 2.5 is rounded to the even 2.
# sim: words
#   A: float32[16] = INPUTS[i]
#   B: uint32[2] = 0 -> WORDS[i]
#   C: uint32[2] = 0 -> WORDS[i]
@T.prim_func
def words(A: T.Buffer((16,), "float32"), B: T.Buffer((2,), "uint32"), C: T.Buffer((2,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([2])
    B[tx] = T.cuda.cvt_e2m1x8_f32(
        A[tx * 8], A[tx * 8 + 1], A[tx * 8 + 2], A[tx * 8 + 3],
        A[tx * 8 + 4], A[tx * 8 + 5], A[tx * 8 + 6], A[tx * 8 + 7],
    )
    byte: T.uint8
    word: T.uint32
    word = T.uint32(0)
    for i in T.unroll(4):
        T.ptx.cvt.rn.satfinite.e2m1x2.f32(byte, A[tx * 8 + i * 2 + 1], A[tx * 8 + i * 2])
        word = word | (T.cast(byte, "uint32") << T.uint32(8 * i))
    C[tx] = word
