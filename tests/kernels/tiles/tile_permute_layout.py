# test: cuda sm_90a
# A warp moves the elements of a tile to another layout, in the same memory and in another.
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx


# sim: transposed_in_place
#   A: uint32[2x128] = i * 1000 + j
#   B: uint32[2x128] = 0 -> i * 1000 + j % 4 * 32 + j // 4
@T.prim_func
def transposed_in_place(A: T.Buffer((2, 128), "uint32"), B: T.Buffer((2, 128), "uint32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([64])
    warp = T.warp_id([2])
    pool = T.SMEMPool()
    before = pool.alloc((2, 128), "uint32", align=128)
    pool.commit()
    after = before.view(2, 128, layout=T.TileLayout(T.S[(2, 4, 32) : (128, 1, 4)]))
    Tx.cta.copy(before, A)
    T.cuda.cta_sync()
    Tx.warp.permute_layout(after[warp, :], before[warp, :])
    T.cuda.cta_sync()
    Tx.cta.copy(B, before)


# sim: halves
#   A: float16[16x24] = i * 24 + j
#   B: float16[16x24] = 0 -> i * 24 + j
@T.prim_func
def halves(A: T.Buffer((16, 24), "float16"), B: T.Buffer((16, 24), "float16")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([32])
    rows = T.alloc_buffer((16, 24), "float16", scope="shared")
    columns = T.alloc_buffer((16, 24), "float16", scope="shared", layout=T.TileLayout(T.S[(16, 24) : (1, 16)]))
    Tx.warp.copy(rows, A)
    T.cuda.warp_sync()
    Tx.warp.permute_layout(columns, rows)
    Tx.warp.permute_layout(rows, columns)
    Tx.warp.copy(B, rows)
