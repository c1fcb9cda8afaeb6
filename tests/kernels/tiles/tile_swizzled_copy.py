# test: lower LowerTIRx
# test: cuda sm_90a
# test: compile sm_100a
# test: sim
# Copies through swizzled and padded shared memory, of parts of tensors, by every scope.
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx
from tvm.tirx.layout import TileLayout, S, ComposeLayout


@T.prim_func
def swizzled(A: T.Buffer((64, 64), "float16"), B: T.Buffer((64, 64), "float16")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    s = T.alloc_buffer((64, 64), "float16", scope="shared", layout=ComposeLayout(3, 3, 3, TileLayout(S[(64, 64)])))
    Tx.cta.copy(s, A)
    T.cuda.cta_sync()
    Tx.cta.copy(B, s)


@T.prim_func
def padded_part(A: T.Buffer((128, 96), "float32"), B: T.Buffer((32, 32), "float32"), row: T.int32):
    T.device_entry()
    T.cta_id([1])
    wid = T.warp_id([4])
    T.lane_id([32])
    s = T.alloc_buffer((32, 32), "float32", scope="shared", layout=TileLayout(S[(32, 32) : (36, 1)]))
    if wid == 1:
        Tx.warp.copy(s, A[row * 4 : row * 4 + 32, 32:64])
    T.cuda.cta_sync()
    Tx.wg.copy(B, s)


@T.prim_func
def by_one_thread(A: T.Buffer((8, 16), "int8"), B: T.Buffer((8, 16), "int8")):
    T.device_entry()
    T.cta_id([1])
    tid = T.thread_id([32])
    s = T.alloc_buffer((8, 16), "int8", scope="shared")
    if tid == 0:
        Tx.copy(s, A)
        Tx.copy(B, s)


@T.prim_func
def by_hand(A: T.Buffer((4, 16), "float32"), B: T.Buffer((4, 16), "float32")):
    T.device_entry()
    T.cta_id([1])
    tid = T.thread_id([16])
    r = T.alloc_buffer((4,), "float32", scope="local")
    s = T.alloc_buffer((16, 4), "float32", scope="shared")
    Tx.copy(r, A[tid // 4, tid % 4 * 4 : tid % 4 * 4 + 4], dispatch="vec_128b", cache="nc", l1_evict="L1::no_allocate")
    Tx.copy(s[tid, 0:4], r, dispatch="vec_128b")
    Tx.copy(B[tid // 4, tid % 4 * 4 : tid % 4 * 4 + 4], s[tid, 0:4], dispatch="vec_128b")
