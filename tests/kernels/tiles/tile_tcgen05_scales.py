# test: target sm_100a
# test: compile sm_100a
# Block-scaled products: factors from shared to tensor memory by `copy_async`, in the layouts of the library.
from tvm.backend.cuda.tile_primitive.gemm_async.tcgen05 import sf_smem_layout
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx



def scaled(b, sa, sb, block, i, j, k):
    """One term of a sum, whose element of A is one."""
    return sa[i][k // block] * b[j][k] * sb[j][k // block]


@T.inline
def begin(warp, bar):
    if warp == 0:
        if T.ptx.elect_sync():
            T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
            T.ptx.fence.mbarrier_init()
    T.ptx.fence.proxy_async("shared::cta")
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cta_sync()
    T.ptx.tcgen05.fence.after_thread_sync()


@T.inline
def end(tmem_pool, sums, C, bar, width):
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    T.ptx.tcgen05.fence.after_thread_sync()
    r = T.wg_reg_tile(width)
    Tx.wg.copy_async(r, sums)
    T.ptx.tcgen05.wait.ld()
    Tx.wg.copy(C, r)
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cta_sync()
    tmem_pool.dealloc()


# One factor for 32 elements: each of four instructions along k takes another byte of the factors' columns.
# sim: blocks_of_32
#   A: float8_e4m3fn[128x128] = 2 * (j == i % 128) + (j == (i * 5 + 17) % 128)
#   B: float8_e4m3fn[64x128] = (i * 2 + j) % 5 - 2
#   SA: float8_e8m0fnu[128x4] = [0.5, 1, 2, 4][(i + j) % 4]
#   SB: float8_e8m0fnu[128x4] = [1, 2, 0.25, 1][(i * 3 + j) % 4]
#   C: float32[128x64] = 0 -> scaled(B, SA, SB, 32, i, j, i % 128) * 2 + scaled(B, SA, SB, 32, i, j, (i * 5 + 17) % 128)
@T.prim_func
def blocks_of_32(A: T.Buffer((128, 128), "float8_e4m3fn"), B: T.Buffer((64, 128), "float8_e4m3fn"),
                 SA: T.Buffer((128, 4), "float8_e8m0fnu"), SB: T.Buffer((128, 4), "float8_e8m0fnu"),
                 C: T.Buffer((128, 64), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    warp = T.warp_id([4])
    pool = T.SMEMPool()
    tmem_pool = T.TMEMPool(pool, total_cols=128)
    bar = pool.alloc((1,), "uint64", align=8)
    As = pool.alloc_tcgen05_mma_AB((128, 128), "float8_e4m3fn")
    Bs = pool.alloc_tcgen05_mma_AB((64, 128), "float8_e4m3fn")
    FA = pool.alloc((128, 4), "float8_e8m0fnu", layout=sf_smem_layout(128, 4, 1), align=128)
    FB = pool.alloc((128, 4), "float8_e8m0fnu", layout=sf_smem_layout(128, 4, 1), align=128)
    pool.commit()
    sums = tmem_pool.alloc((128, 64), "float32")
    TA = tmem_pool.alloc_sf((128, 4), "float8_e8m0fnu", sf_per_mma=1)
    TB = tmem_pool.alloc_sf((128, 4), "float8_e8m0fnu", sf_per_mma=1)
    tmem_pool.commit()
    Tx.cta.copy(As, A)
    Tx.cta.copy(Bs, B)
    Tx.cta.copy(FA, SA)
    Tx.cta.copy(FB, SB)
    begin(warp, bar)
    if warp == 0:
        if T.ptx.elect_sync():
            Tx.copy_async(TA, FA)
            Tx.copy_async(TB, FB)
            Tx.gemm_async(sums, As, Bs, SFA=TA, SFB=TB)
            T.ptx.tcgen05.commit(bar.ptr_to([0]))
    end(tmem_pool, sums, C, bar, 64)


# A factor for 128 elements, which four instructions use: repeated in the layouts. The step, known at run time, says which byte.
# sim: reused
#   A: float8_e4m3fn[128x256] = 2 * (j == i % 256) + (j == (i * 5 + 17) % 256)
#   B: float8_e4m3fn[64x256] = (i * 2 + j) % 5 - 2
#   SA: float8_e8m0fnu[128x4] = [0.5, 1, 2, 4][(i + j) % 4]
#   SB: float8_e8m0fnu[128x4] = [1, 2, 0.25, 1][(i * 3 + j) % 4]
#   C: float32[128x64] = 0 -> scaled(B, SA, SB, 128, i, j, i % 256) * 2 + scaled(B, SA, SB, 128, i, j, (i * 5 + 17) % 256)
@T.prim_func
def reused(A: T.Buffer((128, 256), "float8_e4m3fn"), B: T.Buffer((64, 256), "float8_e4m3fn"),
           SA: T.Buffer((128, 4), "float8_e8m0fnu"), SB: T.Buffer((128, 4), "float8_e8m0fnu"),
           C: T.Buffer((128, 64), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    warp = T.warp_id([4])
    pool = T.SMEMPool()
    tmem_pool = T.TMEMPool(pool, total_cols=128)
    bar = pool.alloc((1,), "uint64", align=8)
    As = pool.alloc_tcgen05_mma_AB((2, 128, 128), "float8_e4m3fn")
    Bs = pool.alloc_tcgen05_mma_AB((2, 64, 128), "float8_e4m3fn")
    FA = pool.alloc((128, 4), "float8_e8m0fnu", layout=sf_smem_layout(128, 4, 1), align=128)
    FB = pool.alloc((128, 4), "float8_e8m0fnu", layout=sf_smem_layout(128, 4, 1), align=128)
    pool.commit()
    FA4 = FA.view(128, 16, layout=sf_smem_layout(128, 4, 1, sf_reuse=4))
    FB4 = FB.view(128, 16, layout=sf_smem_layout(128, 4, 1, sf_reuse=4))
    sums = tmem_pool.alloc((128, 64), "float32")
    TA = tmem_pool.alloc_sf((128, 16), "float8_e8m0fnu", sf_per_mma=1, sf_reuse=4)
    TB = tmem_pool.alloc_sf((128, 16), "float8_e8m0fnu", sf_per_mma=1, sf_reuse=4)
    tmem_pool.commit()
    for s in range(2):
        Tx.cta.copy(As[s, :, :], A[:, s * 128 : s * 128 + 128])
        Tx.cta.copy(Bs[s, :, :], B[:, s * 128 : s * 128 + 128])
    Tx.cta.copy(FA, SA)
    Tx.cta.copy(FB, SB)
    begin(warp, bar)
    if warp == 0:
        if T.ptx.elect_sync():
            Tx.copy_async(TA, FA4)
            Tx.copy_async(TB, FB4)
            for s in T.serial(2):
                Tx.gemm_async(sums, As[s, :, :], Bs[s, :, :], SFA=TA[:, s * 4 : s * 4 + 4], SFB=TB[:, s * 4 : s * 4 + 4],
                              accum=s > 0)
            T.ptx.tcgen05.commit(bar.ptr_to([0]))
    end(tmem_pool, sums, C, bar, 64)


# Elements of four bits; 16 share a factor of four significant bits, 32 an exponent.
# sim: four_bits
#   A: float4_e2m1fn[128x64] = 2 * (j == i % 64) + (j == (i * 5 + 17) % 64)
#   B: float4_e2m1fn[32x64] = (i * 2 + j) % 5 - 2
#   SA: float8_e4m3fn[128x4] = [0.5, 1, 1.5, 4][(i + j) % 4]
#   SB: float8_e4m3fn[128x4] = [1, 3, 0.25, 1][(i * 3 + j) % 4]
#   C: float32[128x32] = 0 -> scaled(B, SA, SB, 16, i, j, i % 64) * 2 + scaled(B, SA, SB, 16, i, j, (i * 5 + 17) % 64)
@T.prim_func
def four_bits(A: T.Buffer((128, 64), "float4_e2m1fn"), B: T.Buffer((32, 64), "float4_e2m1fn"),
              SA: T.Buffer((128, 4), "float8_e4m3fn"), SB: T.Buffer((128, 4), "float8_e4m3fn"),
              C: T.Buffer((128, 32), "float32")):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([128])
    warp = T.warp_id([4])
    pool = T.SMEMPool()
    tmem_pool = T.TMEMPool(pool, total_cols=64)
    bar = pool.alloc((1,), "uint64", align=8)
    from tvm.backend.cuda.tile_primitive.tma_utils import SwizzleMode

    As = pool.alloc_tcgen05_mma_AB((128, 64), "float4_e2m1fn", swizzle_mode=SwizzleMode.SWIZZLE_32B_ATOM)
    Bs = pool.alloc_tcgen05_mma_AB((32, 64), "float4_e2m1fn", swizzle_mode="none")
    FA = pool.alloc((128, 4), "float8_e4m3fn", layout=sf_smem_layout(128, 4, 4), align=128)
    FB = pool.alloc((128, 4), "float8_e4m3fn", layout=sf_smem_layout(128, 4, 4), align=128)
    pool.commit()
    sums = tmem_pool.alloc((128, 32), "float32")
    TA = tmem_pool.alloc_sf((128, 4), "float8_e4m3fn", sf_per_mma=4)
    TB = tmem_pool.alloc_sf((128, 4), "float8_e4m3fn", sf_per_mma=4)
    tmem_pool.commit()
    Tx.cta.copy(As, A)
    if tx < 32:
        for c in range(2):
            Tx.copy(Bs[tx, c * 32 : c * 32 + 32], B[tx, c * 32 : c * 32 + 32])
    Tx.cta.copy(FA, SA)
    Tx.cta.copy(FB, SB)
    begin(warp, bar)
    if warp == 0:
        if T.ptx.elect_sync():
            Tx.copy_async(TA, FA)
            Tx.copy_async(TB, FB)
            Tx.gemm_async(sums, As, Bs, SFA=TA, SFB=TB)
            T.ptx.tcgen05.commit(bar.ptr_to([0]))
    end(tmem_pool, sums, C, bar, 32)
