# test: compile sm_90a
# test: compile sm_100a
# Tiles in registers: copies of all and of parts, from and to global and shared memory; operations; reductions of what a
# thread holds and over lanes.
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx
from tvm.tirx.layout import R, S, TileLayout, laneid, tid_in_wg, tx, wid_in_wg


# Only 16 of the 32 threads hold the part that is stored.
# sim: part_of_the_threads
#   A: float32[32x16] = i * 16 + j
#   B: float32[32x16] = 0 -> A[i][j] if i < 16 and 1 <= j < 9 else 0
@T.prim_func
def part_of_the_threads(A: T.Buffer((32, 16), "float32"), B: T.Buffer((32, 16), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([32])
    r = T.alloc_buffer((32, 16), "float32", scope="local", layout=TileLayout(S[(32, 16) : (1 @ tx, 1)]))
    s = T.alloc_buffer((32, 16), "float32", scope="shared")
    Tx.cta.copy(r, A)
    Tx.cta.zero(s, s)
    Tx.cta.copy(s[0:16, 1:9], r[0:16, 1:9])
    T.cuda.cta_sync()
    Tx.cta.copy(B, s)


# Every second lane holds rows.
# sim: every_second_lane
#   A: float32[16x4] = i * 4 + j
#   B: float32[16x4] = 0 -> A[i][j] * 2
@T.prim_func
def every_second_lane(A: T.Buffer((16, 4), "float32"), B: T.Buffer((16, 4), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.lane_id([32])
    T.thread_id([32])
    r = T.alloc_buffer((16, 4), "float32", scope="local", layout=TileLayout(S[(16, 4) : (2 @ laneid, 1)]))
    s = T.alloc_buffer((16, 4), "float32", scope="shared")
    Tx.warp.copy(r, A)
    Tx.warp.copy(s, r)
    T.cuda.warp_sync()
    Tx.warp.add(s, s, s)
    Tx.warp.copy(B, s)


# sim: gaps_in_registers
#   A: float32[32x2x2] = i * 4 + j * 2 + k
#   B: float32[32x2x2] = 0 -> A[i][j][k]
@T.prim_func
def gaps_in_registers(A: T.Buffer((32, 2, 2), "float32"), B: T.Buffer((32, 2, 2), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.lane_id([32])
    T.thread_id([32])
    r = T.alloc_buffer((32, 2, 2), "float32", scope="local", layout=TileLayout(S[(32, 2, 2) : (1 @ laneid, 2, 4)]))
    Tx.warp.copy(r, A, dispatch="vec_auto")
    Tx.warp.copy(B, r, dispatch="reg")


# The accumulator of a matrix instruction: quads of lanes hold rows.
# sim: quads
#   A: float32[16x64] = (i * 3 + j) % 17
#   B: float32[16x64] = 0 -> A[i][j] * 2 + 1
@T.prim_func
def quads(A: T.Buffer((16, 64), "float32"), B: T.Buffer((16, 64), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.lane_id([32])
    T.thread_id([32])
    layout = T.meta_var(TileLayout(S[(2, 8, 8, 4, 2) : (2, 4 @ laneid, 4, 1 @ laneid, 1)]))
    r = T.alloc_buffer((16, 64), "float32", scope="local", layout=layout)
    Tx.warp.copy(r, A)
    Tx.warp.fma(r, r, 2.0, 1.0)
    Tx.warp.copy(B, r)


# sim: warps_and_lanes
#   A: float16[128x8] = (i + j) % 19
#   B: float16[128x8] = 0 -> A[i][j] - 1
@T.prim_func
def warps_and_lanes(A: T.Buffer((128, 8), "float16"), B: T.Buffer((128, 8), "float16")):
    T.device_entry()
    T.cta_id([1])
    T.warpgroup_id([1])
    T.warp_id_in_wg([4])
    T.lane_id([32])
    T.thread_id([128])
    layout = T.meta_var(TileLayout(S[(4, 32, 8) : (1 @ wid_in_wg, 1 @ laneid, 1)]))
    r = T.alloc_buffer((128, 8), "float16", scope="local", layout=layout)
    Tx.wg.copy(r, A)
    Tx.wg.sub(r, r, T.float16(1.0))
    Tx.wg.copy(B, r)


# sim: sums_of_rows
#   A: float32[32x16] = (i * 5 + j) % 7
#   B: float32[32x1] = 0 -> sum([A[i][k] for k in range(16)])
#   C: float32[32x1] = 100 -> max([A[i][k] for k in range(16)])
@T.prim_func
def sums_of_rows(A: T.Buffer((32, 16), "float32"), B: T.Buffer((32, 1), "float32"), C: T.Buffer((32, 1), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.lane_id([32])
    T.thread_id([32])
    a = T.alloc_buffer((32, 16), "float32", scope="local", layout=TileLayout(S[(32, 16) : (1 @ laneid, 1)]))
    b = T.alloc_buffer((32, 1), "float32", scope="local", layout=TileLayout(S[(32, 1) : (1 @ laneid, 1)]))
    Tx.warp.copy(a, A)
    Tx.warp.sum(b, a, axes=-1)
    Tx.warp.copy(B, b)
    Tx.warp.max(b, a[0:32, 0:8], axes=1)
    Tx.warp.max(b, a[0:32, 8:16], axes=1, accum=True)
    Tx.warp.copy(C, b)


# The part of each lane, and then the whole.
# sim: over_lanes
#   A: float32[8x16] = (i * 5 + j * 3) % 11
#   B: float32[8x4] = 0 -> sum([A[i][k * 4 + j] for k in range(4)])
#   C: float32[8x4] = 0 -> sum([A[i][k] for k in range(16)])
#   D: float32[8x4] = 0 -> sum([A[i][k] for k in range(16)]) + 10
@T.prim_func
def over_lanes(A: T.Buffer((8, 16), "float32"), B: T.Buffer((8, 4), "float32"), C: T.Buffer((8, 4), "float32"), D: T.Buffer((8, 4), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.lane_id([32])
    T.thread_id([32])
    a = T.alloc_buffer((8, 16), "float32", scope="local", layout=TileLayout(S[(8, 4, 4) : (4 @ laneid, 1, 1 @ laneid)]))
    b = T.alloc_buffer((8, 4), "float32", scope="local", layout=TileLayout(S[(8, 4) : (4 @ laneid, 1 @ laneid)]))
    Tx.warp.copy(a, A)
    Tx.warp.sum(b, a, axes=-1)
    Tx.warp.copy(B, b)
    Tx.warp.sum(b, a, axes=-1, thread_reduce=True)
    Tx.warp.copy(C, b)
    Tx.warp.fill(b, 10.0)
    Tx.warp.sum(b, a, axes=-1, accum=True, thread_reduce=True)
    Tx.warp.copy(D, b)


# sim: one_thread
#   A: float32[4x8] = (i * 5 + j) % 9 - 4
#   B: float32[3] = 0 -> sum([A[i][k] for k in range(8)]) if i < 1 else (min([A[1][k] for k in range(8)]) if i < 2 else max([A[2][k] for k in range(8)]))
@T.prim_func
def one_thread(A: T.Buffer((4, 8), "float32"), B: T.Buffer((3,), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([1])
    a = T.alloc_local((4, 8), "float32")
    b = T.alloc_local((3,), "float32")
    Tx.copy(a, A)
    Tx.sum(b[0:1], a[0:1, 0:8], axes=-1)
    Tx.min(b[1:2], a[1:2, 0:8], axes=-1)
    Tx.max(b[2:3], a[2:3, 0:8], axes=[1])
    Tx.copy(B, b)


# sim: every_operation
#   A: float32[64x4] = (i + j) % 6 + 1
#   B: float32[64x4] = 0 -> max(1 / (A[i][j] + 1), 0.25) if j < 2 else -1 +- 1e-6
@T.prim_func
def every_operation(A: T.Buffer((64, 4), "float32"), B: T.Buffer((64, 4), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([64])
    r = T.alloc_buffer((64, 4), "float32", scope="local", layout=TileLayout(S[(64, 4) : (1 @ tx, 1)]))
    m = T.alloc_buffer((64, 1), "float32", scope="local", layout=TileLayout(S[(64, 1) : (1 @ tx, 1)]))
    Tx.cta.copy(r, A)
    Tx.cta.fill(m, 0.25)
    Tx.cta.add(r, r, 1.0)
    Tx.cta.reciprocal(r, r)
    Tx.cta.maximum(r, r, m)
    Tx.cta.select(r, r, -1.0, lambda i, j: j < 2)
    Tx.cta.copy(B, r)
