# test: cuda sm_90a
# test: compile sm_100a
# Concurrent warpgroups wait at barriers of their own.
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx


# Each warpgroup is complete on its side.
# sim: a_warpgroup_on_each_side
#   A: float32[256] = i
#   B: float32[256] = 0 -> A[i] * 2 if i < 128 else A[i] + 1
@T.prim_func
def a_warpgroup_on_each_side(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32")):
    T.device_entry(); T.cta_id([1]); wg = T.warpgroup_id([2]); T.warp_id_in_wg([4]); T.lane_id([32]); T.thread_id([256])
    s = T.alloc_buffer((256,), "float32", scope="shared")
    Tx.cta.copy(s, A)
    if wg == 0:
        Tx.wg.mul(s[0:128], s[0:128], 2.0)
    else:
        Tx.wg.add(s[128:256], s[128:256], 1.0)
    Tx.cta.copy(B, s)


# An operation has a barrier of its own warpgroup, after which the writes of its other threads are visible.
# sim: warpgroups_side_by_side
#   A: float32[2x128] = i * 128 + j
#   B: float32[2x128] = 0 -> A[i][127 - j] * 2
@T.prim_func
def warpgroups_side_by_side(A: T.Buffer((2, 128), "float32"), B: T.Buffer((2, 128), "float32")):
    T.device_entry(); T.cta_id([1]); wg = T.warpgroup_id([2]); t = T.thread_id_in_wg([128]); T.thread_id([256])
    s = T.alloc_buffer((2, 128), "float32", scope="shared")
    Tx.cta.copy(s, A)
    Tx.wg.mul(s[wg, 0:128], s[wg, 0:128], 2.0)
    B[wg, t] = s[wg, 127 - t]
