# test: target sm_100a
# test: compile sm_100a
# Products of two blocks of a cluster: each holds its rows of A and C, and half of the rows of B.
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx


@T.inline
def begin(warp, bar):
    if warp == 0:
        if T.ptx.elect_sync():
            T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
            T.ptx.fence.mbarrier_init()
    T.ptx.fence.proxy_async("shared::cta")
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cluster_sync()
    T.ptx.tcgen05.fence.after_thread_sync()


@T.inline
def end(tmem_pool):
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cluster_sync()
    tmem_pool.dealloc()


# 128 rows in each block.
# sim: whole
#   A: bfloat16[256x32] = 2 * (j == i % 32) + (j == (i * 5 + 17) % 32)
#   B: bfloat16[64x32] = (i * 2 + j) % 5 - 2
#   C: float32[256x64] = 0 -> 2 * B[j][i % 32] + B[j][(i * 5 + 17) % 32]
@T.prim_func
def whole(A: T.Buffer((256, 32), "bfloat16"), B: T.Buffer((64, 32), "bfloat16"), C: T.Buffer((256, 64), "float32")):
    T.device_entry()
    T.cluster_id([1])
    rank = T.cta_id_in_cluster([2])
    T.thread_id([128])
    warp = T.warp_id([4])
    pool = T.SMEMPool()
    tmem_pool = T.TMEMPool(pool, total_cols=64, cta_group=2)
    bar = pool.alloc((1,), "uint64", align=8)
    As = pool.alloc_tcgen05_mma_AB((128, 32), "bfloat16", swizzle_mode="none")
    Bs = pool.alloc_tcgen05_mma_AB((32, 32), "bfloat16", swizzle_mode="none")
    pool.commit()
    sums = tmem_pool.alloc_tcgen05_mma_D((128, 64), "float32", M=256, cta_group=2)
    tmem_pool.commit()
    Tx.cta.copy(As, A[rank * 128 : rank * 128 + 128, :])
    Tx.cta.copy(Bs, B[rank * 32 : rank * 32 + 32, :])
    begin(warp, bar)
    if (warp == 0) & (rank == 0):
        if T.ptx.elect_sync():
            Tx.gemm_async(sums, As, Bs, cta_group=2)
            T.ptx.tcgen05.commit(bar.ptr_to([0]), cta_group=2, cta_mask=3)
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    T.ptx.tcgen05.fence.after_thread_sync()
    r = T.wg_reg_tile(64)
    Tx.wg.copy_async(r, sums)
    T.ptx.tcgen05.wait.ld()
    Tx.wg.copy(C[rank * 128 : rank * 128 + 128, :], r)
    end(tmem_pool)


# The blocks of a pair free their columns together: what the other block reads in its own comes before.
# variant: freed_by_blocks of whole
#   replace: "    end(tmem_pool)" -> "    T.ptx.tcgen05.fence.before_thread_sync()\n    T.cuda.cta_sync()\n    tmem_pool.dealloc()"
#   fault: of the tensor memory of the pair's other block
#   seeds: 6

# An mbarrier in each block, at which the threads of the other block arrive, is as good as a barrier of the cluster.
# variant: freed_behind_arrivals of whole
#   replace: 'bar = pool.alloc((1,)' -> 'bar = pool.alloc((2,)'
#   replace: "    begin(warp, bar)" -> "    if warp == 0:\n        if T.ptx.elect_sync():\n            T.ptx.mbarrier.init(bar.ptr_to([1]), 128)\n    begin(warp, bar)"
#   replace: "    end(tmem_pool)" -> "    T.ptx.tcgen05.fence.before_thread_sync()\n    T.ptx.mbarrier.arrive(bar.ptr_to([1]), sem='release', scope='cluster', space='shared::cluster', remote=1 - rank)\n    T.ptx.mbarrier.try_wait(bar.ptr_to([1]), 0)\n    T.cuda.cta_sync()\n    T.ptx.tcgen05.fence.after_thread_sync()\n    tmem_pool.dealloc()"
#   seeds: 6


# 64 rows in each block, with the right half of the columns in the upper lanes; A from tensor memory, copied to both halves of the lanes.
# sim: folded
#   A: bfloat16[128x32] = 2 * (j == i % 32) + (j == (i * 5 + 17) % 32)
#   B: bfloat16[64x32] = (i * 2 + j) % 5 - 2
#   C: float32[128x64] = 0 -> 2 * B[j][i % 32] + B[j][(i * 5 + 17) % 32]
@T.prim_func
def folded(A: T.Buffer((128, 32), "bfloat16"), B: T.Buffer((64, 32), "bfloat16"), C: T.Buffer((128, 64), "float32")):
    T.device_entry()
    T.cluster_id([1])
    rank = T.cta_id_in_cluster([2])
    T.thread_id([128])
    warp = T.warp_id([4])
    pool = T.SMEMPool()
    tmem_pool = T.TMEMPool(pool, total_cols=64, cta_group=2)
    bar = pool.alloc((1,), "uint64", align=8)
    As = pool.alloc_tcgen05_mma_AB((64, 32), "bfloat16", swizzle_mode="none")
    Bs = pool.alloc_tcgen05_mma_AB((32, 32), "bfloat16", swizzle_mode="none")
    pool.commit()
    sums = tmem_pool.alloc_tcgen05_mma_D((64, 64), "float32", M=128, cta_group=2)
    At = tmem_pool.alloc_tcgen05_mma_A((64, 32), "bfloat16", M=128, cta_group=2)
    tmem_pool.commit()
    Tx.cta.copy(As, A[rank * 64 : rank * 64 + 64, :])
    Tx.cta.copy(Bs, B[rank * 32 : rank * 32 + 32, :])
    begin(warp, bar)
    if (warp == 0) & (rank == 0):
        if T.ptx.elect_sync():
            Tx.copy_async(At, As, cta_group=2)
            Tx.gemm_async(sums, At, Bs, cta_group=2)
            T.ptx.tcgen05.commit(bar.ptr_to([0]), cta_group=2, cta_mask=3)
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    T.ptx.tcgen05.fence.after_thread_sync()
    r = T.alloc_tcgen05_ldst_frag("32x32b", (64, 64), "float32")
    Tx.wg.copy_async(r, sums)
    T.ptx.tcgen05.wait.ld()
    Tx.wg.copy(C[rank * 64 : rank * 64 + 64, :], r)
    end(tmem_pool)
