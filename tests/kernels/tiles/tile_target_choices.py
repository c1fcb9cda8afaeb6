# test: compile sm_90a
# test: compile sm_100a
# One product for two GPUs: sums are in registers on Hopper and in tensor memory on Blackwell, and the kernel asks which it is.
import _fragments as fragments
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx


# sim: product on sm_90a, sm_100a
#   A: float16[128x64] = 2 * (j == i % 64) + (j == (i * 5 + 17) % 64)
#   B: float16[64x64] = (i + j * 5) % 5 - 2
#   C: float32[128x64] = 0 -> 2 * B[j][i % 64] + B[j][(i * 5 + 17) % 64]
@T.prim_func
def product(A: T.Buffer((128, 64), "float16"), B: T.Buffer((64, 64), "float16"), C: T.Buffer((128, 64), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    warp = T.warp_id([4])
    pool = T.SMEMPool()
    bar = pool.alloc((1,), "uint64", align=8)
    As = pool.alloc_tcgen05_mma_AB((128, 64), "float16")
    Bs = pool.alloc_tcgen05_mma_AB((64, 64), "float16")
    if T.cuda.target_is("sm_100f"):
        tmem_pool = T.TMEMPool(pool, total_cols=64)
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
    else:
        pool.commit()
        fragment = T.alloc_buffer((64, 64), "float32", scope="local", layout=fragments.sums(64, 64))
        Tx.cta.copy(As, A)
        Tx.cta.copy(Bs, B)
        T.ptx.fence.proxy_async("shared::cta")
        T.cuda.cta_sync()
        for half in T.unroll(2):
            Tx.wg.gemm_async(fragment, As[half * 64 : half * 64 + 64, :], Bs)
            T.ptx.wgmma.commit_group()
            T.ptx.wgmma.wait_group(0)
            Tx.wg.copy(C[half * 64 : half * 64 + 64, :], fragment)


# What is asked may be part of a condition, a value, and any of the names that a target has.
# sim: answers on sm_90a
#   A: int32[6] = 0 -> [1, 1, 0, 1, 2, 3][i]
# sim: answers on sm_100a
#   A: int32[6] = 0 -> [0, 1, 1, 0, 1, 4][i]
@T.prim_func
def answers(A: T.Buffer((6,), "int32")):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([1])
    if T.cuda.target_is("sm_90a"):
        A[0] = 1
    if T.cuda.target_is("sm_90"):
        A[1] = 1
    if not T.cuda.target_is("sm_90a") and T.cuda.target_is("sm_100f") and tx == 0:
        A[2] = 1
    A[3] = T.if_then_else(T.cuda.target_is("sm_90a"), 1, 0)
    A[4] = T.Select(T.cuda.target_is("sm_100"), 1, 2)
    if T.cuda.target_is("sm_90a") or tx > 0:
        A[5] = 3
    else:
        A[5] = 4
