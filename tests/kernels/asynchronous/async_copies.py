# test: parse
# test: cuda sm_90a
# test: compile sm_100a

@T.prim_func
def cp_async(A_ptr: T.handle, B_ptr: T.handle):
    A = T.match_buffer(A_ptr, (128, 8), "float32")
    B = T.match_buffer(B_ptr, (128, 8), "float32")
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([128])
    S = T.alloc_shared((128, 8), "float32")
    bar = T.alloc_shared((1,), "uint64")
    T.ptx.cp_async(S.ptr_to([tx, 0]), A.ptr_to([tx, 0]), 16)
    T.ptx.cp_async(S.ptr_to([tx, 4]), A.ptr_to([tx, 4]), 8, cache_hint="evict_last", prefetch_size=128)
    T.ptx.cp_async(S.ptr_to([tx, 6]), A.ptr_to([tx, 6]), 4, predicate=tx < 100)
    T.ptx.cp_async(S.ptr_to([tx, 7]), A.ptr_to([tx, 7]), 4, predicate=tx < 100, fill_mode="zero")
    T.ptx.cp_async.commit_group()
    T.ptx.cp_async.wait_group(0)
    T.ptx.cp_async.wait_group()
    T.ptx.cp_async.mbarrier.arrive(bar.ptr_to([0]))
    T.ptx.cp_async.mbarrier.arrive.noinc(bar.ptr_to([0]))
    T.cuda.cta_sync()
    for i in T.serial(8):
        B[tx, i] = S[tx, i]


@T.prim_func
def bulk(A_ptr: T.handle, B_ptr: T.handle):
    A = T.match_buffer(A_ptr, (1024,), "float32")
    B = T.match_buffer(B_ptr, (1024,), "float32")
    T.device_entry()
    bx = T.cta_id([2])
    cx = T.cta_id_in_cluster([2])
    tx = T.thread_id([32])
    S = T.alloc_shared((1024,), "float32")
    bar = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
        T.ptx.mbarrier.arrive.expect_tx(bar.ptr_to([0]), 4096)
        T.ptx.cp_async_bulk_g2s_cta(S.ptr_to([0]), A.ptr_to([0]), 1024, bar.ptr_to([0]))
        T.ptx.cp_async_bulk_g2s_cluster(S.ptr_to([256]), A.ptr_to([256]), 1024, bar.ptr_to([0]))
        T.ptx.cp_async_bulk_g2s_cluster(S.ptr_to([512]), A.ptr_to([512]), 1024, bar.ptr_to([0]), multicast=True, cta_mask=3, cache_hint="evict_first")
        T.ptx.cp_async_bulk_s2s_cluster(T.ptx.map_shared_rank(S.ptr_to([768]), 1 - cx), S.ptr_to([0]), 1024, T.ptx.map_shared_rank(bar.ptr_to([0]), 1 - cx))
        T.ptx.cp_async.bulk.s2c(T.ptx.map_shared_rank(S.ptr_to([768]), 1 - cx), S.ptr_to([0]), 1024, T.ptx.map_shared_rank(bar.ptr_to([0]), 1 - cx))
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    if tx == 0:
        T.ptx.fence.proxy_async("shared::cta")
        T.ptx.cp_async_bulk_s2g(B.ptr_to([0]), S.ptr_to([0]), 2048)
        T.ptx.cp_async_bulk_s2g(B.ptr_to([512]), S.ptr_to([512]), 2048, cache_policy=T.uint64(0x14F0000000000000))
        T.ptx.cp_async.bulk.commit_group()
        T.ptx.cp_async.bulk.wait_group(0)
        T.ptx.cp_async.bulk.wait_group(0, read=False)
