# Tile primitives: a block copies, casts and stores a tile together. "Tiles" shows which implementation each call
# takes and why the others decline; "Layouts" shows which thread has which element.
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx


# sim: halves
#   A: float32[32x64] = i - j
#   B: float16[32x64] = 0 -> 2 * A[i][j]
@T.prim_func
def halves(A: T.Buffer((32, 64), "float32"), B: T.Buffer((32, 64), "float16")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    S = T.alloc_shared((32, 64), "float32")
    H = T.alloc_shared((32, 64), "float16")
    Tx.cta.copy(S, A)
    T.cuda.cta_sync()
    Tx.cta.add(S, S, S)
    T.cuda.cta_sync()
    Tx.cta.cast(H, S)
    T.cuda.cta_sync()
    Tx.cta.copy(B, H)
