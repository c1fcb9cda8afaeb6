# test: cuda sm_90a
# Copies between fragments in registers and shared memory by `ldmatrix` and `stmatrix`.
from tvm.backend.cuda.tile_primitive.tma_utils import mma_shared_layout
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx
from tvm.tirx.layout import S, TileLayout, laneid, tid_in_wg


# 16 rows of 64 columns, in four fragments of 16 columns each: one ldmatrix of four matrices for each.
# sim: loads_of_swizzled_tiles
#   A: float16[16x64] = i * 64 + j
#   B: float16[16x64] = 0 -> A[i][j]
@T.prim_func
def loads_of_swizzled_tiles(A: T.Buffer((16, 64), "float16"), B: T.Buffer((16, 64), "float16")):
    T.device_entry()
    T.cta_id([1])
    T.lane_id([32])
    T.thread_id([32])
    s = T.alloc_buffer((16, 64), "float16", scope="shared", align=1024, layout=mma_shared_layout("float16", 3, (16, 64)))
    r = T.alloc_buffer((16, 16), "float16", scope="local", layout=TileLayout(S[(2, 8, 2, 4, 2) : (2, 4 @ laneid, 4, 1 @ laneid, 1)]))
    Tx.warp.copy(s, A)
    T.cuda.warp_sync()
    for k in T.unroll(4):
        Tx.warp.copy(r, s[:, k * 16 : k * 16 + 16], dispatch="ldstmatrix")
        Tx.warp.copy(B[:, k * 16 : k * 16 + 16], r)


# A fragment whose rows are columns of shared memory; a part of it; and two matrices at a time.
# sim: transposed
#   A: bfloat16[32x16] = i * 16 + j
#   B: bfloat16[32x16] = 0 -> A[i][j] if i < 16 or j >= 8 else 0
@T.prim_func
def transposed(A: T.Buffer((32, 16), "bfloat16"), B: T.Buffer((32, 16), "bfloat16")):
    T.device_entry()
    T.cta_id([1])
    T.lane_id([32])
    T.thread_id([32])
    s = T.alloc_buffer((32, 16), "bfloat16", scope="shared", align=128)
    r = T.alloc_buffer((16, 16), "bfloat16", scope="local", layout=TileLayout(S[(2, 4, 2, 2, 8) : (2, 1 @ laneid, 1, 4, 4 @ laneid)]))
    Tx.warp.copy(s, A)
    T.cuda.warp_sync()
    Tx.warp.copy(r, s[0:16, :], dispatch="ldstmatrix")
    Tx.warp.copy(B[0:16, :], r)
    Tx.warp.copy(r[:, 8:16], s[16:32, 8:16], dispatch="ldstmatrix")
    Tx.warp.copy(B[16:32, 8:16], r[:, 8:16])


# The accumulators of four warps to a swizzled tile, which a tensor copy stores.
# sim: stores_of_a_warpgroup
#   A: float16[64x32] = i * 16 + j
#   B: float16[64x32] = 0 -> A[i][j]
@T.prim_func
def stores_of_a_warpgroup(A: T.Buffer((64, 32), "float16"), B: T.Buffer((64, 32), "float16")):
    T.device_entry()
    T.cta_id([1])
    T.warpgroup_id([1])
    tx = T.thread_id([128])
    s = T.alloc_buffer((64, 32), "float16", scope="shared", align=1024, layout=mma_shared_layout("float16", 2, (64, 32)))
    r = T.alloc_buffer((64, 32), "float16", scope="local",
                       layout=TileLayout(S[(4, 2, 8, 4, 4, 2) : (32 @ tid_in_wg, 2, 4 @ tid_in_wg, 4, 1 @ tid_in_wg, 1)]))
    Tx.wg.copy(r, A)
    Tx.wg.copy(s, r, dispatch="ldstmatrix")
    T.ptx.fence.proxy_async("shared::cta")
    T.cuda.cta_sync()
    if tx == 0:
        Tx.copy_async(B, s)
        T.ptx.cp_async.bulk.commit_group()
        T.ptx.cp_async.bulk.wait_group(0, False)


# Matrices of words of 32 bits, and of bytes, without asking for them.
# sim: words_and_bytes
#   A: float32[8x16] = i * 16 + j
#   B: float32[8x16] = 0 -> A[i][j]
#   C: int8[16x32] = i * 8 + j
#   D: int8[16x32] = 0 -> C[i][j]
@T.prim_func
def words_and_bytes(A: T.Buffer((8, 16), "float32"), B: T.Buffer((8, 16), "float32"), C: T.Buffer((16, 32), "int8"), D: T.Buffer((16, 32), "int8")):
    T.device_entry()
    T.cta_id([1])
    T.lane_id([32])
    T.thread_id([32])
    s = T.alloc_buffer((8, 16), "float32", scope="shared", align=128)
    t = T.alloc_buffer((16, 32), "int8", scope="shared", align=128)
    r = T.alloc_buffer((8, 16), "float32", scope="local", layout=TileLayout(S[(8, 4, 4) : (4 @ laneid, 1, 1 @ laneid)]))
    q = T.alloc_buffer((16, 32), "int8", scope="local", layout=TileLayout(S[(2, 8, 2, 4, 4) : (4, 4 @ laneid, 8, 1 @ laneid, 1)]))
    Tx.warp.copy(r, A)
    Tx.warp.copy(s, r)
    Tx.warp.copy(t, C)
    T.cuda.warp_sync()
    Tx.warp.copy(B, s)
    Tx.warp.copy(q, t)
    Tx.warp.copy(D, q)
