# Instructions on the parts of words: pairs of 16-bit integers, dot products of bytes, 24-bit products, masks of bits.
from tvm.script import tirx as T


# The pairs (-1, i) and (i, -2).
# sim: pairs
#   A: uint32[32] = 0xffff + i * 65536
#   B: uint32[32] = i + 0xfffe * 65536
#   C: uint32[5x32] = 0 -> [0xffff + 0xfffe * 65536, j + j * 65536, max(j, 0) + j * 65536, 0xffff + 0xfffe * 65536, (j + 65535) % 65536 + (j + 65534) % 65536 * 65536][i]
@T.prim_func
def pairs(A: T.Buffer((32,), "uint32"), B: T.Buffer((32,), "uint32"), C: T.Buffer((5, 32), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    T.ptx.min.s16x2(C[0, tx], A[tx], B[tx])
    T.ptx.max.s16x2(C[1, tx], A[tx], B[tx])
    T.ptx.max.relu.s16x2(C[2, tx], A[tx], B[tx])
    T.ptx.max.u16x2(C[3, tx], A[tx], B[tx])
    T.ptx.add.u16x2(C[4, tx], A[tx], B[tx])


# The bytes (1, 2, 3, i) by (4, 3, 2, -1 or 255).
# sim: dot_products
#   A: uint32[32] = 1 + 2 * 256 + 3 * 65536 + i * 16777216
#   B: uint32[32] = 4 + 3 * 256 + 2 * 65536 + 255 * 16777216
#   C: int32[2x32] = 0 -> [116 - j, 100 + 513 * 2 + (3 + 256 * j) * -1][i]
#   D: uint32[32] = 0 -> 16 + 255 * i
@T.prim_func
def dot_products(A: T.Buffer((32,), "uint32"), B: T.Buffer((32,), "uint32"), C: T.Buffer((2, 32), "int32"),
                 D: T.Buffer((32,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    T.ptx.dp4a.s32.s32(C[0, tx], T.cast(A[tx], "int32"), T.cast(B[tx], "int32"), T.int32(100))
    T.ptx.dp2a.hi.u32.s32(C[1, tx], A[tx], T.cast(B[tx], "int32"), T.int32(100))
    T.ptx.dp4a.u32.u32(D[tx], A[tx], B[tx], T.uint32(0))


# sim: short_products
#   A: uint32[32] = i + 2 * 16777216
#   C: uint32[3x32] = 0 -> [3 * j, 3 * j + 7, j * 3 * 65536 // 65536][i]
@T.prim_func
def short_products(A: T.Buffer((32,), "uint32"), C: T.Buffer((3, 32), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    T.ptx.mul24.lo.u32(C[0, tx], A[tx], T.uint32(3))
    T.ptx.mad24.lo.u32(C[1, tx], A[tx], T.uint32(3), T.uint32(7))
    T.ptx.mul24.hi.u32(C[2, tx], A[tx], T.uint32(3 * 65536))


# Ones from bit i on, at most up to bit 31.
# sim: masks
#   C: uint32[3x40] = 0 -> [(255 << j) % 2**32, (2**32 - 1) << j & (2**32 - 1) if j < 32 else 0, (255 << j % 32) % 2**32][i]
@T.prim_func
def masks(C: T.Buffer((3, 40), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([40])
    T.ptx.bmsk.clamp.b32(C[0, tx], T.uint32(tx), T.uint32(8))
    T.ptx.bmsk.clamp.b32(C[1, tx], T.uint32(tx), T.uint32(99))
    T.ptx.bmsk.wrap.b32(C[2, tx], T.uint32(tx), T.uint32(8))
