# A product for Blackwell: operands in shared memory, accumulators in tensor memory, one thread starts the tensor core.
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx


# sim: product on sm_100a
#   A: float16[128x128] = 2 * (j == i) + (j == (i * 5 + 17) % 128)
#   B: float16[64x128] = (i * 2 + j) % 5 - 2
#   C: float32[128x64] = 0 -> 2 * B[j][i] + B[j][(i * 5 + 17) % 128]
@T.prim_func
def product(A: T.Buffer((128, 128), "float16"), B: T.Buffer((64, 128), "float16"), C: T.Buffer((128, 64), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    warp = T.warp_id([4])
    pool = T.SMEMPool()
    tensor_memory = T.TMEMPool(pool, total_cols=64)
    bar = pool.alloc((1,), "uint64", align=8)
    As = pool.alloc_tcgen05_mma_AB((128, 128), "float16")
    Bs = pool.alloc_tcgen05_mma_AB((64, 128), "float16")
    pool.commit()
    accumulators = tensor_memory.alloc((128, 64), "float32")
    tensor_memory.commit()
    Tx.cta.copy(As, A, vec_len=8)
    Tx.cta.copy(Bs, B)
    if warp == 0:
        if T.ptx.elect_sync():
            T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
            T.ptx.fence.mbarrier_init()
    # Threads wrote the operands; the tensor core reads them through another proxy.
    T.ptx.fence.proxy_async("shared::cta")
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cta_sync()
    T.ptx.tcgen05.fence.after_thread_sync()
    if warp == 0:
        if T.ptx.elect_sync():
            Tx.gemm_async(accumulators, As, Bs)
            T.ptx.tcgen05.commit(bar.ptr_to([0]))
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    T.ptx.tcgen05.fence.after_thread_sync()
    registers = T.wg_reg_tile(64)
    Tx.wg.copy_async(registers, accumulators)
    T.ptx.tcgen05.wait.ld()
    Tx.wg.copy(C, registers)
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cta_sync()
    tensor_memory.dealloc()
