@T.prim_func
def copy(a: T.handle, b: T.handle):
    A = T.match_buffer(a, (256, 128), "bfloat16")
    B = T.match_buffer(b, (256, 128), "bfloat16")
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "bfloat16", 2, A.data, 128, 256, 256, 64, 64, 1, 1, 0, 3, 2, 0)
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([128])
    tile = T.alloc_shared((64, 64), "bfloat16", align=1024)
    bar = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(bar.data, 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.mbarrier.arrive.expect_tx(bar.data, 64 * 64 * 2)
        T.ptx.cp_async.bulk.tensor.g2s_cluster(2, tile.data, bar.data, T.address_of(A_map), 0, 1, "", 0, bx * 64)
    T.ptx.mbarrier.try_wait(bar.data, 0)
    for i in range(32):
        B[bx * 64 + i * 2 + tx // 64, tx % 64] = tile[i * 2 + tx // 64, tx % 64]
