# test: compile sm_90a
# test: compile sm_100a
# test: sim
# cp.async into a swizzled tile, waited for by the caller; reductions over rows and columns.
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx
from tvm.tirx.layout import ComposeLayout, S, TileLayout, tx


@T.prim_func
def row_sums(A: T.Buffer((32, 32), "float32"), B: T.Buffer((32, 1), "float32"), C: T.Buffer((1, 32), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([64])
    s = T.alloc_buffer((32, 32), "float32", scope="shared", layout=ComposeLayout(2, 3, 3, TileLayout(S[(32, 32)])))
    r = T.alloc_buffer((32, 1), "float32", scope="shared")
    c = T.alloc_buffer((1, 32), "float32", scope="shared")
    Tx.cta.copy_async(s, A)
    T.ptx.cp_async.commit_group()
    T.ptx.cp_async.wait_group(0)
    T.cuda.cta_sync()
    Tx.cta.sum(r, s, axes=-1)
    Tx.cta.max(c, s, axes=0)
    Tx.cta.sum(r, s, axes=[1], accum=True)
    Tx.warp.copy(B, r)
    Tx.warp.copy(C, c)


@T.prim_func
def in_registers(A: T.Buffer((64, 16), "float16"), B: T.Buffer((64, 16), "float16")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([64])
    x = T.alloc_buffer((64, 16), "float16", scope="local", layout=TileLayout(S[(64, 16) : (1 @ tx, 1)]))
    Tx.cta.copy(x, A)
    Tx.cta.add(x, x, T.float16(1.0))
    Tx.cta.mul(x[0:64, 0:8], x[0:64, 0:8], T.float16(2.0))
    Tx.cta.copy(B, x)
