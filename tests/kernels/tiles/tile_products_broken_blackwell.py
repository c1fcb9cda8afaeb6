# test: target sm_100a
# Products into tensor memory as tile primitives, each with one mistake that the simulator reports.
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx


# sim: right
#   A: float16[128x64] = (i == j) + (i == j + 64) * 2
#   B: float16[64x64] = i - j
#   C: float32[128x64] = 0 -> (B[j][i] if i < 64 else 2 * B[j][i - 64])
@T.prim_func
def right(A: T.Buffer((128, 64), "float16"), B: T.Buffer((64, 64), "float16"), C: T.Buffer((128, 64), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    warp = T.warp_id([4])
    pool = T.SMEMPool()
    tmem_pool = T.TMEMPool(pool, total_cols=64)
    bar = pool.alloc((1,), "uint64", align=8)
    As = pool.alloc_tcgen05_mma_AB((128, 64), "float16")
    Bs = pool.alloc_tcgen05_mma_AB((64, 64), "float16")
    pool.commit()
    sums = tmem_pool.alloc((128, 64), "float32")
    tmem_pool.commit()
    if warp == 0:
        if T.ptx.elect_sync():
            T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
            T.ptx.fence.mbarrier_init()
    Tx.cta.copy(As, A)
    Tx.cta.copy(Bs, B)
    T.ptx.fence.proxy_async("shared::cta")
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cta_sync()
    T.ptx.tcgen05.fence.after_thread_sync()
    if warp == 0:
        if T.ptx.elect_sync():
            Tx.gemm_async(sums, As, Bs)
            T.ptx.tcgen05.commit(bar.ptr_to([0]))
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    T.ptx.tcgen05.fence.after_thread_sync()
    row = T.wg_reg_tile(64)
    Tx.wg.copy_async(row, sums)
    T.ptx.tcgen05.wait.ld()
    Tx.wg.copy(C, row)
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cta_sync()
    tmem_pool.dealloc()

# Nobody arrives at the barrier.
# variant: without_a_commit of right
#   replace: "T.ptx.tcgen05.commit(bar.ptr_to([0]))" -> "pass"
#   fault: no thread can run any more

# The sums are read while the product is under way.
# variant: without_a_wait_for_the_product of right
#   without: 'T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)'
#   fault: race

# The registers are read before the sums are there.
# variant: without_a_wait_for_the_registers of right
#   without: 'T.ptx.tcgen05.wait.ld()'
#   fault: wait::ld

# What the threads stored is not visible to the tensor cores.
# variant: without_a_proxy_fence of right
#   without: 'T.ptx.fence.proxy_async("shared::cta")'
#   fault: fence.proxy
