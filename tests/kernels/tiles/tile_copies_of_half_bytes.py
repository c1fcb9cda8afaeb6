# test: cuda sm_90a
# Copies of float4, two in a byte, between global and shared memory: in vectors of whole bytes where offsets and extents allow it.
from tvm.backend.cuda.tile_primitive.tma_utils import SwizzleMode, mma_shared_layout
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx


# Each thread moves 16 bytes a round.
# sim: whole
#   A: float4_e2m1fn[64x128] = (i + j) % 4
#   B: float4_e2m1fn[64x128] = 0 -> (i + j) % 4
@T.prim_func
def whole(A: T.Buffer((64, 128), "float4_e2m1fn"), B: T.Buffer((64, 128), "float4_e2m1fn")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    S = T.alloc_shared((64, 128), "float4_e2m1fn", align=128)
    U = T.alloc_shared((64, 128), "float4_e2m1fn", align=128)
    Tx.cta.copy(S, A)
    T.cuda.cta_sync()
    Tx.cta.copy(U, S)
    T.cuda.cta_sync()
    Tx.cta.copy(B, U)


# Columns 6 to 26 are bytes 3 to 13 of a row: single bytes, and the threads do not divide them.
# sim: parts
#   A: float4_e2m1fn[16x32] = (i + j) % 4
#   B: float4_e2m1fn[16x32] = 1 -> ((i + j) % 4 if j >= 6 and j < 26 else 1)
@T.prim_func
def parts(A: T.Buffer((16, 32), "float4_e2m1fn"), B: T.Buffer((16, 32), "float4_e2m1fn")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([32])
    S = T.alloc_shared((16, 32), "float4_e2m1fn", align=128)
    Tx.cta.copy(S[:, 6:26], A[:, 6:26])
    T.cuda.cta_sync()
    Tx.cta.copy(B[:, 6:26], S[:, 6:26])


# A tile of each block, from a place that is known at run time.
# sim: tiles
#   A: float4_e2m1fn[64x64] = (i * 3 + j) % 6 - 2
#   B: float4_e2m1fn[64x64] = 0 -> (i * 3 + j) % 6 - 2
@T.prim_func
def tiles(A: T.Buffer((64, 64), "float4_e2m1fn"), B: T.Buffer((64, 64), "float4_e2m1fn")):
    T.device_entry()
    bx, by = T.cta_id([2, 2])
    T.thread_id([64])
    S = T.alloc_shared((32, 32), "float4_e2m1fn", align=128)
    Tx.cta.copy(S, A[bx * 32:bx * 32 + 32, by * 32:by * 32 + 32])
    T.cuda.cta_sync()
    Tx.cta.copy(B[bx * 32:bx * 32 + 32, by * 32:by * 32 + 32], S)


# 30 bytes, fewer than there are threads, to a swizzled tile and back.
# sim: fewer
#   A: float4_e2m1fn[8x128] = (i * 5 + j * 3) % 7
#   B: float4_e2m1fn[8x128] = 1 -> ((i * 5 + j * 3) % 7 if i < 5 and j >= 2 and j < 14 else 1)
@T.prim_func
def fewer(A: T.Buffer((8, 128), "float4_e2m1fn"), B: T.Buffer((8, 128), "float4_e2m1fn")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([64])
    S = T.alloc_buffer(
        (8, 128), "float4_e2m1fn", scope="shared", layout=mma_shared_layout("float4_e2m1fn", SwizzleMode.SWIZZLE_64B_ATOM, (8, 128))
    )
    Tx.cta.copy(S, A)
    T.cuda.cta_sync()
    Tx.cta.copy(B[0:5, 2:14], S[0:5, 2:14])


# By cp.async, and back by the threads of a warp.
# sim: asynchronous
#   A: float4_e2m1fn[32x64] = (i + j) % 4
#   B: float4_e2m1fn[32x64] = 0 -> (i + j) % 4
@T.prim_func
def asynchronous(A: T.Buffer((32, 64), "float4_e2m1fn"), B: T.Buffer((32, 64), "float4_e2m1fn")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([32])
    S = T.alloc_shared((32, 64), "float4_e2m1fn", align=128)
    Tx.warp.copy_async(S, A)
    T.ptx.cp_async.commit_group()
    T.ptx.cp_async.wait_group(0)
    T.cuda.warp_sync()
    Tx.warp.copy(B, S)


# From an odd column, and of an odd number of columns: half bytes, by one thread, which keep their neighbours.
# sim: odd
#   A: float4_e2m1fn[8x16] = (i + j) % 4
#   B: float4_e2m1fn[8x16] = 1 -> ((i + j) % 4 if j >= 3 and j < 10 else 1)
@T.prim_func
def odd(A: T.Buffer((8, 16), "float4_e2m1fn"), B: T.Buffer((8, 16), "float4_e2m1fn")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([32])
    S = T.alloc_shared((8, 16), "float4_e2m1fn", align=128)
    Tx.cta.copy(S[:, 3:10], A[:, 3:10], dispatch="fallback")
    T.cuda.cta_sync()
    Tx.cta.copy(B[:, 3:10], S[:, 3:10], dispatch="fallback")
