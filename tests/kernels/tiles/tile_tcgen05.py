# test: target sm_100a
# test: compile sm_100a
# Products by tensor cores as tile primitives: operands in shared memory by several layouts, the sums in tensor memory.
from tvm.backend.cuda.tile_primitive.tma_utils import SwizzleMode
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx
from tvm.tirx.layout import S, TCol, TLane, TileLayout, tid_in_wg, tmem_datapath_layout




@T.inline
def begin(warp, bar):
    """The barrier is there, shared memory is visible to the tensor cores, tensor memory is allocated."""
    if warp == 0:
        if T.ptx.elect_sync():
            T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
            T.ptx.fence.mbarrier_init()
    T.ptx.fence.proxy_async("shared::cta")
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cta_sync()
    T.ptx.tcgen05.fence.after_thread_sync()


@T.inline
def wait(bar, phase):
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), phase)
    T.ptx.tcgen05.fence.after_thread_sync()


@T.inline
def end(tmem_pool):
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cta_sync()
    tmem_pool.dealloc()


# sim: plain
#   A: float16[128x128] = 2 * (j == i % 128) + (j == (i * 5 + 17) % 128)
#   B: float16[64x128] = (i * 2 + j) % 5 - 2
#   C: float32[128x64] = 0 -> 2 * B[j][i % 128] + B[j][(i * 5 + 17) % 128]
@T.prim_func
def plain(A: T.Buffer((128, 128), "float16"), B: T.Buffer((64, 128), "float16"), C: T.Buffer((128, 64), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    warp = T.warp_id([4])
    pool = T.SMEMPool()
    tmem_pool = T.TMEMPool(pool, total_cols=64)
    bar = pool.alloc((1,), "uint64", align=8)
    As = pool.alloc_tcgen05_mma_AB((128, 128), "float16")
    Bs = pool.alloc_tcgen05_mma_AB((64, 128), "float16")
    pool.commit()
    sums = tmem_pool.alloc((128, 64), "float32")
    tmem_pool.commit()
    Tx.cta.copy(As, A, vec_len=8)
    Tx.cta.copy(Bs, B)
    begin(warp, bar)
    if warp == 0:
        if T.ptx.elect_sync():
            Tx.gemm_async(sums, As, Bs)
            T.ptx.tcgen05.commit(bar.ptr_to([0]))
    wait(bar, 0)
    r = T.wg_reg_tile(64)
    Tx.wg.copy_async(r, sums)
    T.ptx.tcgen05.wait.ld()
    Tx.wg.copy(C, r)
    end(tmem_pool)


# Numbers of 32 bits as tf32; where TVM forms the descriptors makes no difference here.
# variant: tf32 of plain
#   replace all: "float16" -> "float32"
#   replace: "vec_len=8" -> "vec_len=4"
#   replace: "As, Bs)\n            T.ptx" -> "As, Bs, is_AB_tf32=True, smem_desc=\"recompute\")\n            T.ptx"
#   A: float32[128x128] = 2 * (j == i % 128) + (j == (i * 5 + 17) % 128)
#   B: float32[64x128] = (i * 2 + j) % 5 - 2


# Integers of 8 bits.
# variant: integers of plain
#   replace all: "float16" -> "int8"
#   replace all: "float32" -> "int32"
#   replace: "T.wg_reg_tile(64)" -> "T.wg_reg_tile(64, dtype=\"int32\")"
#   replace: "vec_len=8" -> "vec_len=16"
#   A: int8[128x128] = 2 * (j == i % 128) + (j == (i * 5 + 17) % 128)
#   B: int8[64x128] = (i * 2 + j) % 5 - 2
#   C: int32[128x64] = 0 -> 2 * B[j][i % 128] + B[j][(i * 5 + 17) % 128]


# Two products into parts of one buffer, of which the second is added to a first one; stages of operands; a whole warp calls.
# sim: accumulated
#   A: bfloat16[128x64] = 2 * (j == i % 64) + (j == (i * 5 + 17) % 64)
#   B: bfloat16[96x64] = (i * 2 + j) % 5 - 2
#   C: float32[128x96] = 0 -> 2 * B[j][i % 64] + B[j][(i * 5 + 17) % 64]
@T.prim_func
def accumulated(A: T.Buffer((128, 64), "bfloat16"), B: T.Buffer((96, 64), "bfloat16"), C: T.Buffer((128, 96), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    warp = T.warp_id([4])
    pool = T.SMEMPool()
    tmem_pool = T.TMEMPool(pool, total_cols=128)
    bar = pool.alloc((1,), "uint64", align=8)
    As = pool.alloc_tcgen05_mma_AB((2, 128, 32), "bfloat16", swizzle_mode=SwizzleMode.SWIZZLE_64B_ATOM)
    Bs = pool.alloc_tcgen05_mma_AB((2, 96, 32), "bfloat16", swizzle_mode=SwizzleMode.SWIZZLE_32B_ATOM)
    pool.commit()
    sums = tmem_pool.alloc((128, 128), "float32")
    tmem_pool.commit()
    for s in range(2):
        Tx.cta.copy(As[s, :, :], A[:, s * 32 : s * 32 + 32])
        Tx.cta.copy(Bs[s, :, :], B[:, s * 32 : s * 32 + 32])
    begin(warp, bar)
    if warp == 0:
        accumulates: T.int32
        accumulates = 0
        for s in T.serial(2):
            Tx.warp.gemm_async(sums[:, 16:112], As[s, :, :], Bs[s, :, :], accum=accumulates)
            accumulates = 1
        if T.ptx.elect_sync():
            T.ptx.tcgen05.commit(bar.ptr_to([0]))
    wait(bar, 0)
    for part in range(3):
        r = T.wg_reg_tile(32)
        Tx.wg.copy_async(r, sums[:, 16 + part * 32 : 48 + part * 32])
        T.ptx.tcgen05.wait.ld()
        Tx.wg.copy(C[:, part * 32 : part * 32 + 32], r)
    end(tmem_pool)


# Both operands with k as their first dimension: MN-major by the swizzle of 128 bytes, and without a swizzle.
# sim: transposed
#   A: float16[32x128] = 2 * (i == j % 32) + (i == (j * 5 + 17) % 32)
#   B: float16[32x64] = (i * 2 + j) % 5 - 2
#   C: float32[128x64] = 0 -> 2 * B[i % 32][j] + B[(i * 5 + 17) % 32][j]
@T.prim_func
def transposed(A: T.Buffer((32, 128), "float16"), B: T.Buffer((32, 64), "float16"), C: T.Buffer((128, 64), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    warp = T.warp_id([4])
    pool = T.SMEMPool()
    tmem_pool = T.TMEMPool(pool, total_cols=64)
    bar = pool.alloc((1,), "uint64", align=8)
    As = pool.alloc_tcgen05_mma_AB((32, 128), "float16")
    Bs = pool.alloc_tcgen05_mma_AB((32, 64), "float16", swizzle_mode="none")
    pool.commit()
    sums = tmem_pool.alloc((128, 64), "float32")
    tmem_pool.commit()
    Tx.cta.copy(As, A)
    Tx.cta.copy(Bs, B)
    begin(warp, bar)
    if warp == 0:
        if T.ptx.elect_sync():
            Tx.gemm_async(sums, As, Bs, transA=True, transB=True)
            T.ptx.tcgen05.commit(bar.ptr_to([0]))
    wait(bar, 0)
    r = T.alloc_tcgen05_ldst_frag("16x256b", (128, 64), "float32")
    Tx.wg.copy_async(r, sums)
    T.ptx.tcgen05.wait.ld()
    Tx.wg.copy(C, r)
    end(tmem_pool)


# 64 rows, 16 in each warp's lanes, read by the shapes for 16 lanes; eight bits, without a swizzle; parts of rows.
# sim: spread
#   A: float8_e4m3fn[64x64] = 2 * (j == i % 64) + (j == (i * 5 + 17) % 64)
#   B: float8_e4m3fn[32x64] = (i * 2 + j) % 5 - 2
#   C: float32[64x32] = 0 -> 2 * B[j][i % 64] + B[j][(i * 5 + 17) % 64]
@T.prim_func
def spread(A: T.Buffer((64, 64), "float8_e4m3fn"), B: T.Buffer((32, 64), "float8_e4m3fn"), C: T.Buffer((64, 32), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    warp = T.warp_id([4])
    pool = T.SMEMPool()
    tmem_pool = T.TMEMPool(pool, total_cols=32)
    bar = pool.alloc((1,), "uint64", align=8)
    As = pool.alloc_tcgen05_mma_AB((64, 64), "float8_e4m3fn", swizzle_mode="none")
    Bs = pool.alloc_tcgen05_mma_AB((32, 64), "float8_e4m3fn", swizzle_mode=SwizzleMode.SWIZZLE_64B_ATOM)
    pool.commit()
    sums = tmem_pool.alloc((64, 32), "float32", layout=tmem_datapath_layout("F", 64, 32), cols=32)
    tmem_pool.commit()
    Tx.cta.copy(As, A)
    Tx.cta.copy(Bs, B)
    begin(warp, bar)
    if warp == 0:
        if T.ptx.elect_sync():
            Tx.gemm_async(sums, As[:, 0:32], Bs[:, 0:32])
            Tx.gemm_async(sums, As[:, 32:64], Bs[:, 32:64], accum=True)
            T.ptx.tcgen05.commit(bar.ptr_to([0]))
    wait(bar, 0)
    r = T.alloc_tcgen05_ldst_frag("16x64b", (64, 32), "float32")
    Tx.wg.copy_async(r, sums)
    T.ptx.tcgen05.wait.ld()
    Tx.wg.copy(C, r)
    end(tmem_pool)


# 64 rows whose right half of columns is in the upper 64 lanes: the weight stationary form, by C's layout. More columns than an instruction.
# sim: folded
#   A: float16[64x32] = 2 * (j == i % 32) + (j == (i * 5 + 17) % 32)
#   B: float16[128x32] = (i * 2 + j) % 5 - 2
#   C: float32[64x128] = 0 -> 2 * B[j][i % 32] + B[j][(i * 5 + 17) % 32]
@T.prim_func
def folded(A: T.Buffer((64, 32), "float16"), B: T.Buffer((128, 32), "float16"), C: T.Buffer((64, 128), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    warp = T.warp_id([4])
    pool = T.SMEMPool()
    tmem_pool = T.TMEMPool(pool, total_cols=64)
    bar = pool.alloc((1,), "uint64", align=8)
    As = pool.alloc_tcgen05_mma_AB((64, 32), "float16", swizzle_mode=SwizzleMode.SWIZZLE_64B_ATOM)
    Bs = pool.alloc_tcgen05_mma_AB((128, 32), "float16", swizzle_mode=SwizzleMode.SWIZZLE_64B_ATOM)
    pool.commit()
    sums = tmem_pool.alloc_tcgen05_mma_D((64, 128), "float32", M=64, cta_group=1, ws=True)
    tmem_pool.commit()
    Tx.cta.copy(As, A)
    Tx.cta.copy(Bs, B)
    begin(warp, bar)
    if warp == 0:
        if T.ptx.elect_sync():
            Tx.gemm_async(sums, As, Bs)
            T.ptx.tcgen05.commit(bar.ptr_to([0]))
    wait(bar, 0)
    r = T.alloc_tcgen05_ldst_frag("32x32b", (64, 128), "float32")
    Tx.wg.copy_async(r, sums)
    T.ptx.tcgen05.wait.ld()
    Tx.wg.copy(C, r)
    end(tmem_pool)


# 32 rows, whose quarters of columns are in 32 lanes each: weight stationary too.
# sim: quartered
#   A: bfloat16[32x64] = 2 * (j == i % 64) + (j == (i * 5 + 17) % 64)
#   B: bfloat16[64x64] = (i * 2 + j) % 5 - 2
#   C: float32[32x64] = 0 -> 2 * B[j][i % 64] + B[j][(i * 5 + 17) % 64]
@T.prim_func
def quartered(A: T.Buffer((32, 64), "bfloat16"), B: T.Buffer((64, 64), "bfloat16"), C: T.Buffer((32, 64), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    warp = T.warp_id([4])
    pool = T.SMEMPool()
    tmem_pool = T.TMEMPool(pool, total_cols=32)
    bar = pool.alloc((1,), "uint64", align=8)
    As = pool.alloc_tcgen05_mma_AB((32, 64), "bfloat16")
    Bs = pool.alloc_tcgen05_mma_AB((64, 64), "bfloat16")
    pool.commit()
    sums = tmem_pool.alloc((32, 64), "float32", layout=TileLayout(S[(32, 4, 16) : (1 @ TLane, 32 @ TLane, 1 @ TCol)]), cols=16)
    tmem_pool.commit()
    Tx.cta.copy(As, A)
    Tx.cta.copy(Bs, B)
    begin(warp, bar)
    if warp == 0:
        if T.ptx.elect_sync():
            Tx.gemm_async(sums, As, Bs)
            T.ptx.tcgen05.commit(bar.ptr_to([0]))
    wait(bar, 0)
    r = T.alloc_buffer((32, 64), "float32", scope="local", layout=TileLayout(S[(32, 4, 16) : (1 @ tid_in_wg, 32 @ tid_in_wg, 1)]))
    Tx.wg.copy_async(r, sums)
    T.ptx.tcgen05.wait.ld()
    Tx.wg.copy(C, r)
    end(tmem_pool)


# A of a product is what the warpgroup stores to tensor memory; 288 columns are two instructions of 144.
# sim: from_registers
#   A: bfloat16[128x32] = 2 * (j == i % 32) + (j == (i * 5 + 17) % 32)
#   B: bfloat16[288x32] = (i * 2 + j) % 5 - 2
#   C: float32[128x288] = 0 -> 2 * B[j][i % 32] + B[j][(i * 5 + 17) % 32]
@T.prim_func
def from_registers(A: T.Buffer((128, 32), "bfloat16"), B: T.Buffer((288, 32), "bfloat16"), C: T.Buffer((128, 288), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    warp = T.warp_id([4])
    pool = T.SMEMPool()
    tmem_pool = T.TMEMPool(pool, total_cols=512)
    bar = pool.alloc((1,), "uint64", align=8)
    Bs = pool.alloc_tcgen05_mma_AB((288, 32), "bfloat16", swizzle_mode=SwizzleMode.SWIZZLE_64B_ATOM)
    pool.commit()
    sums = tmem_pool.alloc((128, 288), "float32")
    At = tmem_pool.alloc_tcgen05_mma_A((128, 32), "bfloat16", M=128, cta_group=1)
    tmem_pool.commit()
    Tx.cta.copy(Bs, B)
    begin(warp, bar)
    a = T.wg_reg_tile(32, dtype="bfloat16")
    Tx.wg.copy(a, A)
    Tx.wg.copy_async(At, a)
    T.ptx.tcgen05.wait.st()
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cta_sync()
    T.ptx.tcgen05.fence.after_thread_sync()
    if warp == 0:
        if T.ptx.elect_sync():
            Tx.gemm_async(sums, At, Bs)
            T.ptx.tcgen05.commit(bar.ptr_to([0]))
    wait(bar, 0)
    for part in T.serial(3):
        r = T.wg_reg_tile(96)
        Tx.wg.copy_async(r, sums[:, part * 96 : part * 96 + 96])
        T.ptx.tcgen05.wait.ld()
        Tx.wg.copy(C[:, part * 96 : part * 96 + 96], r)
    end(tmem_pool)
