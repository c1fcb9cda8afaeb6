# test: parse
# test: cuda sm_100a
# Registers of a warpgroup, as tiles; modules where older releases of the library have them.
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx
from tvm.tirx.cuda.operator.tile_primitive.tma_utils import SwizzleMode
from tvm.tirx.lang.pipeline import PipelineState


# sim: rows
#   A: float32[128x8] = i * 8 + j
#   B: float16[128x8] = 0 -> i * 8 + j
@T.prim_func
def rows(A: T.Buffer((128, 8), "float32"), B: T.Buffer((128, 8), "float16")):
    T.device_entry()
    wg = T.warpgroup_id([1])
    tid = T.thread_id_in_wg([128])
    tile = T.wg_reg_tile(8)
    half = T.alloc_cast_frag(tile, "float16")
    Tx.wg.copy(tile, A)
    Tx.wg.cast(half, tile)
    Tx.wg.copy(B, half)


# What each thread has after a load of 16 lanes and 64 bits.
# sim: lanes
#   A: float32[64x8] = i * 8 + j
#   B: float32[128x4] = 0 -> (i // 32 * 16 + i % 2 * 8 + i % 32 // 4) * 8 + i % 4 // 2 + j * 2
@T.prim_func
def lanes(A: T.Buffer((64, 8), "float32"), B: T.Buffer((128, 4), "float32")):
    T.device_entry()
    wg = T.warpgroup_id([1])
    tid = T.thread_id_in_wg([128])
    tile = T.alloc_tcgen05_ldst_frag("16x64b", (64, 8), "float32")
    Tx.wg.copy(tile, A)
    own = tile.local(4)
    for i in range(4):
        B[tid, i] = own[i]


# sim: turns
#   A: int32[4] = 0 -> i % 2
@T.prim_func
def turns(A: T.Buffer((4,), "int32")):
    T.device_entry()
    tx = T.thread_id([32])
    state = PipelineState(2, 0)
    if tx == 0:
        for i in range(4):
            A[i] = state.stage * SwizzleMode.SWIZZLE_32B_ATOM.value
            state.advance()
