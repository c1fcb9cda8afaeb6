# A transposition through shared memory. The counters show 32-way bank conflicts where lanes read a column:
# declare the tile as (32, 33), and they are gone.
from tvm.script import tirx as T


# sim: transpose
#   A: float32[64x64] = i * 64 + j
#   B: float32[64x64] = 0 -> A[j][i]
@T.prim_func
def transpose(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32")):
    T.device_entry()
    bx, by = T.cta_id([2, 2])
    tid = T.thread_id([256])
    column: T.let = tid % 32
    row: T.let = tid // 32
    tile = T.alloc_shared((32, 32), "float32")
    for k in T.unroll(4):
        tile[row + k * 8, column] = A[by * 32 + row + k * 8, bx * 32 + column]
    T.cuda.cta_sync()
    for k in T.unroll(4):
        B[bx * 32 + row + k * 8, by * 32 + column] = tile[column, row + k * 8]
