# test: target sm_100a
# A tensor core of Blackwell reads a tile with the swizzle and as the type with which a tensor copy has filled it.
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx


# sim: filled
#   A: float16[128x64] = (i == j) + (i == j + 64) * 2
#   B: float16[64x64] = i - j
#   C: float32[128x64] = 0 -> (B[j][i] if i < 64 else 2 * B[j][i - 64])
@T.prim_func
def filled(A: T.Buffer((128, 64), "float16"), B: T.Buffer((64, 64), "float16"), C: T.Buffer((128, 64), "float32")):
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float16", 2, A.data, 64, 128, 128, 64, 128, 1, 1, 0, 3, 0, 0)
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([128])
    warp = T.warp_id([4])
    pool = T.SMEMPool()
    tmem_pool = T.TMEMPool(pool, total_cols=64)
    bar = pool.alloc((1,), "uint64", align=8)
    full = pool.alloc((1,), "uint64", align=8)
    As = pool.alloc_tcgen05_mma_AB((128, 64), "float16")
    Bs = pool.alloc_tcgen05_mma_AB((64, 64), "float16")
    pool.commit()
    sums = tmem_pool.alloc((128, 64), "float32")
    tmem_pool.commit()
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
        T.ptx.mbarrier.init(full.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.mbarrier.arrive.expect_tx(full.ptr_to([0]), 128 * 128)
        T.ptx.cp_async.bulk.tensor.g2s_cluster(2, As.ptr_to([0, 0]), full.ptr_to([0]), T.address_of(A_map), 0, 1, "", 0, 0)
    Tx.cta.copy(Bs, B)
    T.ptx.fence.proxy_async("shared::cta")
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cta_sync()
    T.ptx.tcgen05.fence.after_thread_sync()
    if warp == 0:
        T.ptx.mbarrier.try_wait(full.ptr_to([0]), 0)
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

# The tensor map has no swizzle.
# variant: filled_without_swizzle of filled
#   replace: "1, 0, 3, 0, 0" -> "1, 0, 0, 0, 0"
#   fault: by a descriptor with a swizzle of 128 bytes, and the tensor copy has filled the tile with no swizzle

# The tensor map is of another type than the product.
# variant: filled_other_type of filled
#   replace: 'A_map, "float16"' -> 'A_map, "bfloat16"'
#   fault: the tensor copy has filled the tile with elements of bfloat16

# The proxy fence of the threads comes behind the copy, which must find its mbarrier initialized.
# variant: filled_before_the_fence of filled
#   without: "T.ptx.fence.mbarrier_init()"
#   fault: whose initialization no fence has made visible to the async proxy
