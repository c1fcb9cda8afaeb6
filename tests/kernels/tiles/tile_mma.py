# test: compile sm_90a
# test: compile sm_100a
# Products of matrices in the registers of warps as tile primitives.
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx
from tvm.tirx.layout import S, TileLayout, laneid, warpid


def sums(rows, columns, warps=1):
    """Fragments of D: eight rows over lanes, two registers, further ones; eight columns over lanes and two registers, further ones."""
    shape = (warps, rows // (16 * warps), 2, 8, columns // 8, 4, 2)
    per = columns // 4
    return TileLayout(S[shape : (1 @ warpid, 2 * per, per, 4 @ laneid, 2, 1 @ laneid, 1)])


def left(rows, k, per_word, warps=1):
    shape = (warps, rows // (16 * warps), 2, 8, k // (4 * per_word), 4, per_word)
    per = k // 4
    return TileLayout(S[shape : (1 @ warpid, 2 * per, per, 4 @ laneid, per_word, 1 @ laneid, 1)])


def right(k, columns, per_word):
    """Fragments of B, K x N: columns over lane groups."""
    shape = (k // (4 * per_word), 4, per_word, columns // 8, 8)
    return TileLayout(S[shape : (per_word, 1 @ laneid, 1, k // 4, 4 @ laneid)])


# sim: plain
#   A: float16[32x48] = 2 * (j == i % 48) + (j == (i * 5 + 17) % 48)
#   B: float16[48x16] = (i * 2 + j) % 5 - 2
#   C: float32[32x16] = i * 16 + j
#   D: float32[32x16] = 0 -> 2 * B[i % 48][j] + B[(i * 5 + 17) % 48][j] + C[i][j]
@T.prim_func
def plain(A: T.Buffer((32, 48), "float16"), B: T.Buffer((48, 16), "float16"), C: T.Buffer((32, 16), "float32"),
          D: T.Buffer((32, 16), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([32])
    a = T.alloc_buffer((32, 48), "float16", scope="local", layout=left(32, 48, 2))
    b = T.alloc_buffer((48, 16), "float16", scope="local", layout=right(48, 16, 2))
    c = T.alloc_buffer((32, 16), "float32", scope="local", layout=sums(32, 16))
    Tx.warp.copy(a, A)
    Tx.warp.copy(b, B)
    Tx.warp.copy(c, C)
    Tx.warp.gemm(c, a, b, c, alpha=1.0, beta=1.0)
    Tx.warp.copy(D, c)


# k of 24 is one instruction of 16 and one of 8; both operands with their dimensions exchanged; C is not read; four warps with 16
# rows each.
# sim: turned
#   A: bfloat16[24x64] = 2 * (i == j % 24) + (i == (j * 5 + 17) % 24)
#   B: bfloat16[8x24] = (i * 2 + j) % 5 - 2
#   D: float32[64x8] = 0 -> 2 * B[j][i % 24] + B[j][(i * 5 + 17) % 24]
@T.prim_func
def turned(A: T.Buffer((24, 64), "bfloat16"), B: T.Buffer((8, 24), "bfloat16"), D: T.Buffer((64, 8), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.warp_id([4])
    T.lane_id([32])
    T.thread_id([128])
    a = T.alloc_buffer((24, 64), "bfloat16", scope="local",
                       layout=TileLayout(S[(3, 4, 2, 4, 2, 8) : (2, 1 @ laneid, 1, 1 @ warpid, 6, 4 @ laneid)]))
    b = T.alloc_buffer((8, 24), "bfloat16", scope="local", layout=TileLayout(S[(8, 3, 4, 2) : (4 @ laneid, 2, 1 @ laneid, 1)]))
    d = T.alloc_buffer((64, 8), "float32", scope="local", layout=sums(64, 8, 4))
    Tx.cta.copy(a, A)
    Tx.warp.copy(b, B)
    Tx.cta.zero(d, d)
    Tx.cta.gemm(d, a, b, d, transpose_A=True, transpose_B=True)
    Tx.cta.copy(D, d)


# Without a scope the warps that come to the call compute, each with all its lanes.
# sim: tf32
#   A: float32[16x8] = 2 * (j == i % 8) + (j == (i * 5 + 3) % 8)
#   B: float32[8x8] = (i * 2 + j) % 5 - 2
#   D: float32[16x8] = 0 -> 2 * B[i % 8][j] + B[(i * 5 + 3) % 8][j]
@T.prim_func
def tf32(A: T.Buffer((16, 8), "float32"), B: T.Buffer((8, 8), "float32"), D: T.Buffer((16, 8), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([32])
    a = T.alloc_buffer((16, 8), "float32", scope="local", layout=left(16, 8, 1))
    b = T.alloc_buffer((8, 8), "float32", scope="local", layout=right(8, 8, 1))
    d = T.alloc_buffer((16, 8), "float32", scope="local", layout=sums(16, 8))
    Tx.warp.copy(a, A)
    Tx.warp.copy(b, B)
    Tx.gemm(d, a, b, d)
    Tx.warp.copy(D, d)


# sim: bytes
#   A: int8[16x32] = 2 * (j == i % 32) + (j == (i * 5 + 17) % 32)
#   B: int8[32x8] = (i * 2 + j) % 5 - 2
#   D: int32[16x8] = 0 -> 2 * B[i % 32][j] + B[(i * 5 + 17) % 32][j]
@T.prim_func
def bytes(A: T.Buffer((16, 32), "int8"), B: T.Buffer((32, 8), "int8"), D: T.Buffer((16, 8), "int32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([32])
    a = T.alloc_buffer((16, 32), "int8", scope="local", layout=left(16, 32, 4))
    b = T.alloc_buffer((32, 8), "int8", scope="local", layout=right(32, 8, 4))
    d = T.alloc_buffer((16, 8), "int32", scope="local", layout=sums(16, 8))
    Tx.warp.copy(a, A)
    Tx.warp.copy(b, B)
    Tx.warp.gemm(d, a, b, d)
    Tx.warp.copy(D, d)


# float16 sums, two of which share a register.
# sim: half_sums
#   A: float16[16x16] = 2 * (j == i % 16) + (j == (i * 5 + 3) % 16)
#   B: float16[16x8] = (i * 2 + j) % 5 - 2
#   D: float16[16x8] = 0 -> 2 * B[i % 16][j] + B[(i * 5 + 3) % 16][j]
@T.prim_func
def half_sums(A: T.Buffer((16, 16), "float16"), B: T.Buffer((16, 8), "float16"), D: T.Buffer((16, 8), "float16")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([32])
    a = T.alloc_buffer((16, 16), "float16", scope="local", layout=left(16, 16, 2))
    b = T.alloc_buffer((16, 8), "float16", scope="local", layout=right(16, 8, 2))
    d = T.alloc_buffer((16, 8), "float16", scope="local", layout=sums(16, 8))
    Tx.warp.copy(a, A)
    Tx.warp.copy(b, B)
    Tx.warp.gemm(d, a, b, d)
    Tx.warp.copy(D, d)
