# test: compile sm_90a
# test: compile sm_100a
# Registers that every lane holds a copy of (`R[…]`): results of reductions over lanes with several elements a lane, stored in
# any order and with gaps, and operations on them together with registers that are spread over the lanes.
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx
from tvm.tirx.layout import R, S, TileLayout, laneid


# sim: less_the_largest
#   X: float32[1x128] = (j * 37) % 101
#   Y: float32[1x128] = 0 -> X[0][j] - 100
@T.prim_func
def less_the_largest(X: T.Buffer((1, 128), "float32"), Y: T.Buffer((1, 128), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([32])
    v = T.alloc_local((1, 128), "float32", layout=TileLayout(S[(1, 32, 4) : (4, 1 @ laneid, 1)]))
    r = T.alloc_local((1, 1), "float32", layout=TileLayout(S[(1, 1)] + R[32 : 1 @ laneid]))
    Tx.warp.copy(v, X)
    Tx.warp.max(r, v, thread_reduce=True)
    Tx.warp.sub(v, v, r)
    Tx.warp.copy(Y, v)


# A row of scales that every lane holds, and a column that each four lanes share: the reciprocals are computed in all copies.
# sim: rows_and_columns
#   X: float32[8x16] = i * 16 + j
#   C: float32[1x16] = j + 1
#   Y: float32[8x16] = 0 -> X[i][j] * (j + 1) - (i * 16 + 15) +- 1e-3
@T.prim_func
def rows_and_columns(
    X: T.Buffer((8, 16), "float32"), C: T.Buffer((1, 16), "float32"), Y: T.Buffer((8, 16), "float32")
):
    T.device_entry()
    T.cta_id([1])
    T.warp_id([1])
    T.lane_id([32])
    v = T.alloc_local((8, 16), "float32", layout=TileLayout(S[(8, 4, 4) : (4 @ laneid, 1 @ laneid, 1)]))
    c = T.alloc_local((1, 16), "float32", layout=TileLayout(S[(1, 16) : (16, 1)] + R[32 : 1 @ laneid]))
    m = T.alloc_local((8, 1), "float32", layout=TileLayout(S[(8, 1) : (4 @ laneid, 1)] + R[4 : 1 @ laneid]))
    Tx.warp.copy(v, X)
    Tx.warp.copy(c, C)
    Tx.warp.max(m, v, axes=[1], thread_reduce=True)
    Tx.warp.reciprocal(c, c)
    Tx.warp.reciprocal(c, c)
    Tx.warp.mul(v, v, c)
    Tx.warp.sub(v, v, m)
    Tx.warp.copy(Y, v)


# Each lane has four elements, of which every one is reduced over the lanes.
# sim: over_the_lanes
#   X: float32[4x32] = i * 32 + j
#   Y: float32[4x1] = 0 -> i * 1024 + 496
@T.prim_func
def over_the_lanes(X: T.Buffer((4, 32), "float32"), Y: T.Buffer((4, 1), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.warp_id([1])
    T.lane_id([32])
    v = T.alloc_local((4, 32), "float32", layout=TileLayout(S[(4, 32) : (1, 1 @ laneid)]))
    r = T.alloc_local((4, 1), "float32", layout=TileLayout(S[(4, 1) : (1, 1)] + R[32 : 1 @ laneid]))
    Tx.warp.copy(v, X)
    Tx.warp.sum(r, v, axes=[1], thread_reduce=True)
    Tx.warp.copy(Y, r)


# The elements of a lane in another order than the coordinates, and with gaps; the two sides differ.
# sim: in_another_order
#   X: int32[2x3x32] = (i * 96 + j * 32 + k) * 7 % 97
#   Y: int32[2x3x1] = 0 -> max(X[i][j][l] for l in range(32))
#   Z: int32[2x1x1] = 0 -> min(X[i][m][l] for m in range(3) for l in range(32))
@T.prim_func
def in_another_order(
    X: T.Buffer((2, 3, 32), "int32"), Y: T.Buffer((2, 3, 1), "int32"), Z: T.Buffer((2, 1, 1), "int32")
):
    T.device_entry()
    T.cta_id([1])
    T.warp_id([1])
    T.lane_id([32])
    v = T.alloc_local((2, 3, 32), "int32", layout=TileLayout(S[(2, 3, 4, 8) : (1, 4, 1 @ laneid, 4 @ laneid)]))
    r = T.alloc_local((2, 3, 1), "int32", layout=TileLayout(S[(2, 3, 1) : (5, 1, 1)] + R[32 : 1 @ laneid]))
    q = T.alloc_local((2, 1, 1), "int32", layout=TileLayout(S[(2, 1, 1) : (3, 1, 1)] + R[32 : 1 @ laneid]))
    Tx.warp.copy(v, X)
    Tx.warp.max(r, v, axes=[2], thread_reduce=True)
    Tx.warp.min(q, v, axes=[1, 2], thread_reduce=True)
    Tx.warp.copy(Y, r)
    Tx.warp.copy(Z, q)


# Groups of eight lanes; what an output held before is counted once.
# sim: added_to_what_was
#   X: float32[4x4x8] = i * 32 + j * 8 + k
#   Y: float32[4x4x1] = 1000 -> 1000 + i * 256 + j * 64 + 28
@T.prim_func
def added_to_what_was(X: T.Buffer((4, 4, 8), "float32"), Y: T.Buffer((4, 4, 1), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.warp_id([1])
    T.lane_id([32])
    v = T.alloc_local((4, 4, 8), "float32", layout=TileLayout(S[(4, 4, 8) : (8 @ laneid, 1, 1 @ laneid)]))
    r = T.alloc_local((4, 4, 1), "float32", layout=TileLayout(S[(4, 4, 1) : (8 @ laneid, 2, 1)] + R[8 : 1 @ laneid]))
    Tx.warp.copy(v, X)
    Tx.warp.copy(r, Y)
    Tx.warp.sum(r, v, axes=[2], accum=True, thread_reduce=True)
    T.cuda.warp_sync()
    Tx.warp.copy(Y, r)
