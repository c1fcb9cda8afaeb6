# test: compile sm_90a
# Products of a warpgroup as tile primitives: operands in shared memory by several layouts or in registers, the sums in registers.
from _fragments import left, sums
from tvm.backend.cuda.tile_primitive.tma_utils import SwizzleMode
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx
from tvm.tirx.layout import R, S, TileLayout, laneid, tid_in_wg, wid_in_wg


@T.inline
def visible():
    T.ptx.fence.proxy_async("shared::cta")
    T.cuda.cta_sync()


@T.inline
def done():
    T.ptx.wgmma.commit_group()
    T.ptx.wgmma.wait_group(0)


# sim: plain
#   A: float16[64x64] = 2 * (j == i % 64) + (j == (i * 5 + 17) % 64)
#   B: float16[64x64] = (i * 2 + j) % 5 - 2
#   C: float32[64x64] = 0 -> 2 * B[j][i % 64] + B[j][(i * 5 + 17) % 64]
@T.prim_func
def plain(A: T.Buffer((64, 64), "float16"), B: T.Buffer((64, 64), "float16"), C: T.Buffer((64, 64), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    pool = T.SMEMPool()
    As = pool.alloc_tcgen05_mma_AB((64, 64), "float16")
    Bs = pool.alloc_tcgen05_mma_AB((64, 64), "float16")
    pool.commit()
    Tx.cta.copy(As, A)
    Tx.cta.copy(Bs, B)
    visible()
    c = T.alloc_buffer((64, 64), "float32", scope="local", layout=sums(64, 64))
    Tx.wg.gemm_async(c, As, Bs)
    done()
    Tx.wg.copy(C, c)


# Two tiles of rows, three instructions of columns at most 96 wide; stages of operands by smaller swizzles; the second product is
# added to the first. A loop variable says whether.
# sim: accumulated
#   A: bfloat16[128x64] = 2 * (j == i % 64) + (j == (i * 5 + 17) % 64)
#   B: bfloat16[96x64] = (i * 2 + j) % 5 - 2
#   C: float32[128x96] = 0 -> 2 * B[j][i % 64] + B[j][(i * 5 + 17) % 64]
@T.prim_func
def accumulated(A: T.Buffer((128, 64), "bfloat16"), B: T.Buffer((96, 64), "bfloat16"), C: T.Buffer((128, 96), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    pool = T.SMEMPool()
    As = pool.alloc_tcgen05_mma_AB((2, 128, 32), "bfloat16", swizzle_mode=SwizzleMode.SWIZZLE_64B_ATOM)
    Bs = pool.alloc_tcgen05_mma_AB((2, 96, 32), "bfloat16", swizzle_mode=SwizzleMode.SWIZZLE_32B_ATOM)
    pool.commit()
    for s in range(2):
        Tx.cta.copy(As[s, :, :], A[:, s * 32 : s * 32 + 32])
        Tx.cta.copy(Bs[s, :, :], B[:, s * 32 : s * 32 + 32])
    visible()
    c = T.alloc_buffer((128, 96), "float32", scope="local", layout=sums(128, 96, tid_in_wg, 32 @ tid_in_wg))
    for s in T.serial(2):
        Tx.wg.gemm_async(c, As[s, :, :], Bs[s, :, :], accum=s)
        done()
    Tx.wg.copy(C, c)


# Both operands with k as their first dimension, contiguous along rows.
# sim: transposed
#   A: float16[32x64] = 2 * (i == j % 32) + (i == (j * 5 + 17) % 32)
#   B: float16[32x128] = (i * 2 + j) % 5 - 2
#   C: float32[64x128] = 0 -> 2 * B[i % 32][j] + B[(i * 5 + 17) % 32][j]
@T.prim_func
def transposed(A: T.Buffer((32, 64), "float16"), B: T.Buffer((32, 128), "float16"), C: T.Buffer((64, 128), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    pool = T.SMEMPool()
    As = pool.alloc_tcgen05_mma_AB((32, 64), "float16")
    Bs = pool.alloc_tcgen05_mma_AB((32, 128), "float16")
    pool.commit()
    Tx.cta.copy(As, A)
    Tx.cta.copy(Bs, B)
    visible()
    c = T.alloc_buffer((64, 128), "float32", scope="local", layout=sums(64, 128))
    Tx.wg.gemm_async(c, As, Bs, transA=True, transB=True)
    done()
    Tx.wg.copy(C, c)


# sim: tf32
#   A: float32[64x32] = 2 * (j == i % 32) + (j == (i * 5 + 17) % 32)
#   B: float32[24x32] = (i * 2 + j) % 5 - 2
#   C: float32[64x24] = 0 -> 2 * B[j][i % 32] + B[j][(i * 5 + 17) % 32]
@T.prim_func
def tf32(A: T.Buffer((64, 32), "float32"), B: T.Buffer((24, 32), "float32"), C: T.Buffer((64, 24), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    pool = T.SMEMPool()
    As = pool.alloc_tcgen05_mma_AB((64, 32), "float32")
    Bs = pool.alloc_tcgen05_mma_AB((24, 32), "float32")
    pool.commit()
    Tx.cta.copy(As, A)
    Tx.cta.copy(Bs, B)
    visible()
    c = T.alloc_buffer((64, 24), "float32", scope="local", layout=sums(64, 24))
    Tx.wg.gemm_async(c, As, Bs)
    done()
    Tx.wg.copy(C, c)


# The second warpgroup multiplies; pieces of 16 bytes without a swizzle, eight rows of a piece after one another.
# sim: bytes
#   A: int8[64x64] = 2 * (j == i % 64) + (j == (i * 5 + 17) % 64)
#   B: int8[32x64] = (i * 2 + j) % 5 - 2
#   C: int32[64x32] = 0 -> 2 * B[j][i % 64] + B[j][(i * 5 + 17) % 64]
@T.prim_func
def bytes(A: T.Buffer((64, 64), "int8"), B: T.Buffer((32, 64), "int8"), C: T.Buffer((64, 32), "int32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([256])
    wg = T.warpgroup_id([2])
    As = T.alloc_buffer((64, 64), "int8", scope="shared", align=1024, layout=TileLayout(S[(8, 8, 4, 16) : (512, 16, 128, 1)]))
    Bs = T.alloc_buffer((32, 64), "int8", scope="shared", align=1024, layout=TileLayout(S[(4, 8, 4, 16) : (512, 16, 128, 1)]))
    Tx.cta.copy(As, A)
    Tx.cta.copy(Bs, B)
    visible()
    if wg == 1:
        c = T.alloc_buffer((64, 32), "int32", scope="local", layout=sums(64, 32))
        Tx.wg.gemm_async(c, As, Bs)
        done()
        Tx.wg.copy(C, c)


# A in registers.
# sim: from_registers
#   A: bfloat16[64x32] = 2 * (j == i % 32) + (j == (i * 5 + 17) % 32)
#   B: bfloat16[16x32] = (i * 2 + j) % 5 - 2
#   C: float32[64x16] = 0 -> 2 * B[j][i % 32] + B[j][(i * 5 + 17) % 32]
@T.prim_func
def from_registers(A: T.Buffer((64, 32), "bfloat16"), B: T.Buffer((16, 32), "bfloat16"), C: T.Buffer((64, 16), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    pool = T.SMEMPool()
    Bs = pool.alloc_tcgen05_mma_AB((16, 32), "bfloat16", swizzle_mode=SwizzleMode.SWIZZLE_64B_ATOM)
    pool.commit()
    a = T.alloc_buffer((64, 32), "bfloat16", scope="local", layout=left(32, 2))
    Tx.wg.copy(a, A)
    Tx.cta.copy(Bs, B)
    visible()
    c = T.alloc_buffer((64, 16), "float32", scope="local", layout=sums(64, 16))
    Tx.wg.gemm_async(c, a, Bs)
    done()
    Tx.wg.copy(C, c)


# Sums of float16, two to a register, which a second product is added to.
# sim: halves
#   A: float16[64x64] = 2 * (j == i) + (j == (i * 5 + 17) % 64)
#   B: float16[32x64] = (i * 2 + j) % 5 - 2
#   C: float16[64x32] = 0 -> 4 * B[j][i] + 2 * B[j][(i * 5 + 17) % 64]
@T.prim_func
def halves(A: T.Buffer((64, 64), "float16"), B: T.Buffer((32, 64), "float16"), C: T.Buffer((64, 32), "float16")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    pool = T.SMEMPool()
    As = pool.alloc_tcgen05_mma_AB((64, 64), "float16")
    Bs = pool.alloc_tcgen05_mma_AB((32, 64), "float16")
    pool.commit()
    Tx.cta.copy(As, A)
    Tx.cta.copy(Bs, B)
    visible()
    c = T.alloc_buffer((64, 32), "float16", scope="local", layout=sums(64, 32))
    Tx.wg.gemm_async(c, As, Bs)
    done()
    Tx.wg.gemm_async(c, As, Bs, accum=True)
    done()
    Tx.wg.copy(C, c)
