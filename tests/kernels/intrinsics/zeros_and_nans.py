# Signs of values that are flushed to zero, and the NaN that the smaller and the greater one give, by their bits.
from tvm.script import tirx as T


# The smallest subnormal values of both signs, and 1.5 and -2.
# sim: flushed
#   A: uint32[4] = [1, 0x80000001, 0x3fc00000, 0xc0000000][i]
#   B: uint32[3x4] = 0 -> [[0x80000000, 0, 0xbfc00000, 0x40000000], [0, 0, 0x3fc00000, 0x40000000], [0x80000001, 1, 0xbfc00000, 0x40000000]][i][j]
@T.prim_func
def flushed(A: T.Buffer((4,), "uint32"), B: T.Buffer((3, 4), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([4])
    out = T.alloc_local((3,), "float32")
    a = T.reinterpret("float32", A[tx])
    T.ptx.neg.ftz.f32(out[0], a)
    T.ptx.abs.ftz.f32(out[1], a)
    T.ptx.neg.f32(out[2], a)
    for k in range(3):
        B[k, tx] = T.reinterpret("uint32", out[k])


# A number and NaN, twice NaN, the two zeros.
# sim: extremes
#   A: uint32[3] = [0x7fc00001, 0x7fc00001, 0][i]
#   C: uint32[3] = [0x3f800000, 0xffc12345, 0x80000000][i]
#   B: uint32[3x3] = 0 -> [[0x7fffffff, 0x7fffffff, 0x80000000], [0x3f800000, 0x7fffffff, 0x80000000], [0x3f800000, 0x7fffffff, 0]][i][j]
@T.prim_func
def extremes(A: T.Buffer((3,), "uint32"), C: T.Buffer((3,), "uint32"), B: T.Buffer((3, 3), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([3])
    out = T.alloc_local((3,), "float32")
    a = T.reinterpret("float32", A[tx])
    c = T.reinterpret("float32", C[tx])
    T.ptx.min.NaN.f32(out[0], a, c)
    T.ptx.min.f32(out[1], a, c)
    T.ptx.max.f32(out[2], a, c)
    for k in range(3):
        B[k, tx] = T.reinterpret("uint32", out[k])
