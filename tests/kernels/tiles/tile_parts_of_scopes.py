# test: compile sm_90a
# Copies that not all threads of their scope reach: the first of those that do copies all elements.
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx


# sim: second_warp_of_a_block
#   A: float32[8x8] = i * 8 + j
#   B: float32[8x8] = 0 -> A[i][j]
@T.prim_func
def second_warp_of_a_block(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
    T.device_entry(); T.cta_id([1]); wid = T.warp_id([2]); T.lane_id([32]); T.thread_id([64])
    s = T.alloc_buffer((8, 8), "float32", scope="shared")
    if wid == 1:
        Tx.cta.copy(s, A)
    T.cuda.cta_sync()
    Tx.cta.copy(B, s)


# sim: upper_lanes_of_each_warp
#   A: float32[2x32] = i * 32 + j
#   B: float32[2x32] = 0 -> A[i][j]
@T.prim_func
def upper_lanes_of_each_warp(A: T.Buffer((2, 32), "float32"), B: T.Buffer((2, 32), "float32")):
    T.device_entry(); T.cta_id([1]); wid = T.warp_id([2]); lane = T.lane_id([32]); T.thread_id([64])
    s = T.alloc_buffer((2, 32), "float32", scope="shared")
    if lane >= 16:
        Tx.warp.copy(s[wid, 0:32], A[wid, 0:32])
    T.cuda.cta_sync()
    Tx.cta.copy(B, s)


# An `else` is under the negation: seven warps are left.
# sim: all_but_the_first_warp
#   A: float32[8x8] = i * 8 + j
#   B: float32[8x8] = 0 -> A[i][j]
#   C: float32[1] = 0 -> 1
@T.prim_func
def all_but_the_first_warp(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32"), C: T.Buffer((1,), "float32")):
    T.device_entry(); T.cta_id([1]); wid = T.warp_id([8]); T.lane_id([32]); T.thread_id([256])
    s = T.alloc_buffer((8, 8), "float32", scope="shared")
    if wid == 0:
        C[0] = 1.0
    else:
        Tx.cta.copy(s, A)
    T.cuda.cta_sync()
    if wid == 0:
        Tx.warp.copy(B, s)


# Warps are complete under a condition that selects whole warps.
# sim: every_second_warp
#   A: float32[4x32] = i * 32 + j
#   B: float32[4x32] = 0 -> A[i][j] if i % 2 == 0 else 0
@T.prim_func
def every_second_warp(A: T.Buffer((4, 32), "float32"), B: T.Buffer((4, 32), "float32")):
    T.device_entry(); T.cta_id([1]); wid = T.warp_id([4]); T.lane_id([32]); T.thread_id([128])
    s = T.alloc_buffer((4, 32), "float32", scope="shared")
    if wid % 2 == 0:
        Tx.warp.copy(s[wid, 0:32], A[wid, 0:32])
        Tx.warp.copy(B[wid, 0:32], s[wid, 0:32])


# A condition that is not analyzed, declared to hold for one warp, or for one lane.
# sim: one_warp_by_its_number
#   A: int32[4x32] = i * 32 + j + 2
#   B: int32[4x32] = 0 -> A[i][j] if i == 2 else 0
#   C: int32[1] = 0 -> A[2][31] + 1
@T.prim_func
def one_warp_by_its_number(A: T.Buffer((4, 32), "int32"), B: T.Buffer((4, 32), "int32"), C: T.Buffer((1,), "int32")):
    T.device_entry(); T.cta_id([1]); wid = T.warp_id([4]); lane = T.lane_id([32]); T.thread_id([128])
    s = T.alloc_buffer((4, 32), "int32", scope="shared")
    if T.filter(wid, wid == A[0, 0]):
        Tx.warp.copy(s[wid, 0:32], A[wid, 0:32])
        Tx.warp.add(s[wid, 0:32], s[wid, 0:32], 1)
        if T.filter(lane, lane == A[0, 29]):
            Tx.copy(C, s[wid, 31:32])
        Tx.warp.sub(s[wid, 0:32], s[wid, 0:32], 1)
        Tx.warp.copy(B[wid, 0:32], s[wid, 0:32])
