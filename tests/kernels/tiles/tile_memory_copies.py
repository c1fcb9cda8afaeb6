# test: compile sm_90a
# Copies through registers by all threads of a scope: within one memory, and of regions that the threads do not divide.
from tvm.backend.cuda.tile_primitive.tma_utils import SwizzleMode, mma_shared_layout
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx


# Shared to shared: from rows to a swizzled tile, then its halves exchanged, by a warp, and back.
# sim: through_a_swizzle
#   A: float16[64x64] = i * 64 + j
#   B: float16[64x64] = 0 -> ((i + 32) % 64) * 64 + j
@T.prim_func
def through_a_swizzle(A: T.Buffer((64, 64), "float16"), B: T.Buffer((64, 64), "float16")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    warp = T.warp_id([4])
    rows = T.alloc_shared((64, 64), "float16")
    tile = T.alloc_buffer(
        (64, 64), "float16", scope="shared", layout=mma_shared_layout("float16", SwizzleMode.SWIZZLE_128B_ATOM, (64, 64))
    )
    other = T.alloc_buffer(
        (64, 64), "float16", scope="shared", layout=mma_shared_layout("float16", SwizzleMode.SWIZZLE_64B_ATOM, (64, 64))
    )
    Tx.cta.copy(rows, A)
    T.cuda.cta_sync()
    Tx.cta.copy(tile, rows)
    T.cuda.cta_sync()
    if warp == 2:
        Tx.warp.copy(other[0:32, :], tile[32:64, :])
        Tx.warp.copy(other[32:64, :], tile[0:32, :])
    T.cuda.cta_sync()
    Tx.cta.copy(B, other)


# Parts of one buffer that have no element in common.
# sim: rows_moved_down
#   A: int32[8x32] = i * 32 + j
#   B: int32[8x32] = 0 -> (i % 4) * 32 + j
@T.prim_func
def rows_moved_down(A: T.Buffer((8, 32), "int32"), B: T.Buffer((8, 32), "int32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([64])
    rows = T.alloc_shared((8, 32), "int32")
    Tx.cta.copy(rows[0:4, :], A[0:4, :])
    T.cuda.cta_sync()
    Tx.cta.copy(rows[4:8, :], rows[0:4, :], dispatch="same_memory")
    T.cuda.cta_sync()
    Tx.cta.copy(B, rows)


# Without the barrier in between.
# sim: rows_moved_too_early
#   A: int32[8x32] = i * 32 + j
#   B: int32[8x32] = 0 -> (i % 4) * 32 + j
#   fault: race
@T.prim_func
def rows_moved_too_early(A: T.Buffer((8, 32), "int32"), B: T.Buffer((8, 32), "int32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([64])
    rows = T.alloc_shared((8, 32), "int32")
    Tx.cta.copy(rows[0:4, :], A[0:4, :])
    Tx.cta.copy(rows[4:8, 16:32], rows[0:4, 0:16])
    T.cuda.cta_sync()
    Tx.cta.copy(B, rows)


# Global to global.
# sim: in_global_memory
#   A: float32[16x24] = i * 24 + j
#   B: float32[24x40] = -1 -> ((i - 4) * 24 + j - 8 if i >= 4 and i < 20 and j >= 8 and j < 32 else -1)
@T.prim_func
def in_global_memory(A: T.Buffer((16, 24), "float32"), B: T.Buffer((24, 40), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([96])
    Tx.cta.copy(B[4:20, 8:32], A, dispatch="same_memory")


# Extents that the threads do not divide: vectors of 8 bytes, and of one element.
# sim: ragged
#   A: float16[7x20] = i * 20 + j
#   B: float16[7x20] = -1 -> (i * 20 + j if j < 13 else -1)
#   C: float16[7x20] = 0 -> i * 20 + j
@T.prim_func
def ragged(A: T.Buffer((7, 20), "float16"), B: T.Buffer((7, 20), "float16"), C: T.Buffer((7, 20), "float16")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([64])
    rows = T.alloc_shared((7, 20), "float16")
    Tx.cta.copy(rows, A)
    T.cuda.cta_sync()
    Tx.cta.copy(B[:, 0:13], rows[:, 0:13], dispatch="ragged")
    Tx.cta.copy(C, rows)


# The same in a swizzled tile, by a warpgroup of two.
# sim: ragged_tile
#   A: float32[33x32] = i * 32 + j
#   B: float32[33x32] = 0 -> (i * 32 + j if i < 33 else 0)
@T.prim_func
def ragged_tile(A: T.Buffer((33, 32), "float32"), B: T.Buffer((33, 32), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([256])
    group = T.warpgroup_id([2])
    tile = T.alloc_buffer(
        (40, 32), "float32", scope="shared", layout=mma_shared_layout("float32", SwizzleMode.SWIZZLE_128B_ATOM, (40, 32))
    )
    if group == 1:
        Tx.wg.copy(tile[0:33, :], A)
    T.cuda.cta_sync()
    if group == 0:
        Tx.wg.copy(B, tile[0:33, :])
