# test: parse
# test: compile sm_90a
# test: compile sm_100a
# The namespaces of tile primitives, and conditions on scope ids around them: all threads of the scope take part.
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx


# sim: namespaces
#   A: float32[8x128] = (i + j) % 9
#   B: float32[8x128] = 0 -> A[i][j] + i + 1
@T.prim_func
def namespaces(A: T.Buffer((8, 128), "float32"), B: T.Buffer((8, 128), "float32")):
    T.device_entry()
    T.cta_id([1])
    wid = T.warp_id([4])
    T.lane_id([32])
    tid = T.thread_id([128])
    s = T.alloc_buffer((8, 128), "float32", scope="shared")
    T.cta.copy(s, A)
    T.cuda.cta_sync()
    if tid == 7:
        Tx.add(s[0, 0:128], s[0, 0:128], 1.0)
        Tx.thread.add(s[1, 0:128], s[1, 0:128], 2.0)
        T.tile.add(s[2, 0:128], s[2, 0:128], 3.0)
    if wid == 3:
        Tx.warp.add(s[3, 0:128], s[3, 0:128], 4.0)
        T.warp.add(s[4, 0:128], s[4, 0:128], 5.0)
    Tx.wg.add(s[5, 0:128], s[5, 0:128], 6.0)
    T.warpgroup.add(s[6, 0:128], s[6, 0:128], 7.0)
    T.wg.add(s[7, 0:128], s[7, 0:128], 8.0)
    T.cuda.cta_sync()
    Tx.cta.copy(B, s)


# sim: narrowed
#   A: float32[8x32] = i * 32 + j
#   B: float32[8x32] = 0 -> A[i][j] * (i % 4 + 1)
@T.prim_func
def narrowed(A: T.Buffer((8, 32), "float32"), B: T.Buffer((8, 32), "float32")):
    T.device_entry()
    T.cta_id([1])
    wg = T.warpgroup_id([2])
    wi = T.warp_id_in_wg([4])
    wid = T.warp_id([8])
    T.lane_id([32])
    tid = T.thread_id([256])
    s = T.alloc_buffer((8, 32), "float32", scope="shared")
    Tx.cta.copy(s, A)
    T.cuda.cta_sync()
    if wid + 1 == 2:
        Tx.warp.mul(s[1, 0:32], s[1, 0:32], 2.0)
    if wg == 0 and wi == 2:
        Tx.warp.mul(s[2, 0:32], s[2, 0:32], 3.0)
    if tid >= 96 and tid < 128:
        Tx.warp.mul(s[3, 0:32], s[3, 0:32], 4.0)
    if wg == 1:
        Tx.wg.mul(s[5, 0:32], s[5, 0:32], 2.0)
        if wi >= 2:
            if wi < 3:
                Tx.warp.mul(s[6, 0:32], s[6, 0:32], 3.0)
    if 7 == wid:
        Tx.warp.mul(s[7, 0:32], s[7, 0:32], 4.0)
    T.cuda.cta_sync()
    Tx.cta.copy(B, s)
