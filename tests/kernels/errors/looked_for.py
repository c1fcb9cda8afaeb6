# test: messages
# Messages that say where the compiler has looked, and what would work.
import mylib.constants as constants
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx
from tvm.tirx.layout import S, TileLayout, tid_in_wg


@T.prim_func
def missing_module(B: T.Buffer((32,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    B[tx] = constants.SIZE


@T.prim_func
def one_destination_of_four(B: T.Buffer((32,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    tile = T.alloc_shared((1024,), "float16", align=16)
    r = T.alloc_local((4,), "uint32")
    T.ptx.ldmatrix(False, 4, ".b16", tile.ptr_to([tx * 8]), r.ptr_to([0]))
    B[tx] = r[0]


@T.prim_func
def spread_over_warps(A: T.Buffer((128, 128), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([128])
    rows = T.alloc_buffer((128, 128), "float32", scope="local", layout=TileLayout(S[(128, 128) : (1@tid_in_wg, 1)]))
    sums = T.alloc_buffer((128,), "float32", scope="local", layout=TileLayout(S[(128,) : (1,)]))
    Tx.wg.copy(rows, A)
    Tx.wg.sum(sums, rows, axes=[0])


@T.prim_func
def number_as_a_pointer(A: T.Buffer((4,), "uint64")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([4])
    T.ptx.st(T.cast(A[tx], "handle"), T.uint32(1), space="global", ptx_type="u32")


@T.prim_func
def number_as_a_pointer_by_a_node(A: T.Buffer((4,), "int64")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([4])
    T.ptx.st(T.Cast("handle", A[tx]), T.uint32(1), space="global", ptx_type="u32")


@T.prim_func
def name_behind_a_function(A: T.Buffer((4,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([4])
    T.ptx.cp_async.wait_grp(0)
