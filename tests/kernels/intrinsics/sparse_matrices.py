# test: compile sm_90a
# Products of a warp with a sparse A, whose elements are selected by metadata.
from tvm.script import tirx as T


def product(a, b, i, j):
    """Row i keeps the first two of four elements where it is even, the last two where it is odd."""
    total = 0
    for g in range(8):
        for e in range(2):
            total += a[i][2 * g + e] * b[4 * g + 2 * (i % 2) + e][j]
    return total


# sim: two_of_four
#   A: float16[16x16] = (i * 3 + j * 5) % 7 - 3
#   B: float16[32x8] = (i * 2 + j) % 5 - 2
#   D: float32[16x8] = 0 -> product(A, B, i, j)
@T.prim_func
def two_of_four(A: T.Buffer((16, 16), "float16"), B: T.Buffer((32, 8), "float16"), D: T.Buffer((16, 8), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    a = T.alloc_local((8,), "float16")
    b = T.alloc_local((8,), "float16")
    c = T.alloc_local((4,), "float32")
    m = T.alloc_local((1,), "uint32")
    for k in T.unroll(8):
        a[k] = A[tx // 4 + k // 2 % 2 * 8, tx % 4 * 2 + k % 2 + k // 4 * 8]
        b[k] = B[tx % 4 * 2 + k % 2 + k // 2 * 8, tx // 4]
    for k in T.unroll(4):
        c[k] = T.float32(0)
    # Four bits a group: the places of its two elements, in ascending order.
    m[0] = T.if_then_else(tx // 4 % 2 == 0, T.uint32(0x44444444), T.uint32(0xEEEEEEEE))
    T.ptx.mma.sp("float32", "m16n8k32", "row", "col", "fp16", "fp16", "fp32", a.data, 0, b.data, 0, c.data, 0, m.data, 0, 0, False)
    for k in T.unroll(4):
        D[tx // 4 + k // 2 * 8, tx % 4 * 2 + k % 2] = c[k]


# Metadata that names no two elements in ascending order.
# sim: no_such_elements
#   D: float32[32] = 0
#   fault: the sparsity metadata of row 0, group 0 is 0b0000, which names no two in ascending order
@T.prim_func
def no_such_elements(D: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    a = T.alloc_local((8,), "float16")
    c = T.alloc_local((4,), "float32")
    m = T.alloc_local((1,), "uint32")
    for k in T.unroll(8):
        a[k] = T.float16(0)
    for k in T.unroll(4):
        c[k] = T.float32(0)
    m[0] = T.uint32(0)
    T.ptx.mma.sp("float32", "m16n8k32", "row", "col", "fp16", "fp16", "fp32", a.data, 0, a.data, 0, c.data, 0, m.data, 0, 0, False)
    D[tx] = c[0]
