# test: target sm_100a
# test: messages
# Products that `gemm_async` does not lower for Blackwell.
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx


@T.prim_func
def float32_as_it_is():
    T.device_entry(); T.cta_id([1]); T.thread_id([128]); warp = T.warp_id([4])
    pool = T.SMEMPool()
    tmem_pool = T.TMEMPool(pool, total_cols=32)
    a = pool.alloc_tcgen05_mma_AB((128, 32), "float32")
    b = pool.alloc_tcgen05_mma_AB((32, 32), "float32")
    pool.commit()
    c = tmem_pool.alloc((128, 32), "float32")
    tmem_pool.commit()
    if warp == 0:
        if T.ptx.elect_sync():
            Tx.gemm_async(c, a, b)


@T.prim_func
def columns_of_no_instruction():
    T.device_entry(); T.cta_id([1]); T.thread_id([128]); warp = T.warp_id([4])
    pool = T.SMEMPool()
    tmem_pool = T.TMEMPool(pool, total_cols=32)
    a = pool.alloc_tcgen05_mma_AB((128, 64), "float16")
    b = pool.alloc_tcgen05_mma_AB((24, 64), "float16")
    pool.commit()
    c = tmem_pool.alloc((128, 24), "float32")
    tmem_pool.commit()
    if warp == 0:
        if T.ptx.elect_sync():
            Tx.gemm_async(c, a, b)
