# test: parse
# test: cuda sm_90a
# test: compile sm_100a

@T.prim_func
def tensor_maps(M_ptr: T.handle):
    M = T.match_buffer(M_ptr, (128,), "uint8", align=64)
    T.device_entry()
    bx = T.cta_id([2])
    cx = T.cta_id_in_cluster([2])
    tx = T.thread_id([32])
    S = T.alloc_shared((1024,), "float32")
    bar = T.alloc_shared((1,), "uint64")
    tm = M.ptr_to([0])
    if tx == 0:
        T.ptx.prefetch_tensormap(tm)
        T.ptx.cp_async.bulk.tensor.g2s_cluster(1, S.ptr_to([0]), bar.ptr_to([0]), tm, 0, 1, "", tx)
        T.ptx.cp_async.bulk.tensor.g2s_cluster(2, S.ptr_to([0]), bar.ptr_to([0]), tm, 0, 1, "evict_first", 0, 64)
        T.ptx.cp_async.bulk.tensor.g2s_cluster(3, S.ptr_to([0]), bar.ptr_to([0]), tm, 3, 1, "", 0, 64, bx)
        T.ptx.cp_async.bulk.tensor.g2s_cluster(4, S.ptr_to([0]), bar.ptr_to([0]), tm, cx, 1, "evict_last", 0, 64, bx, 1)
        T.ptx.cp_async.bulk.tensor.g2s_cluster(5, S.ptr_to([0]), bar.ptr_to([0]), tm, 1, -1, "", 0, 64, bx, 1, 2)
        T.ptx.cp_async.bulk.tensor.g2s_cluster(2, S.ptr_to([0]), T.cuda.cvta_generic_to_shared(bar.ptr_to([0])), tm, 0, 1, "", 0, 64, mbar_is_shared_addr=True)
        T.ptx.cp_async.bulk.tensor.g2s_cta(2, S.ptr_to([0]), bar.ptr_to([0]), tm, -1, "", 0, 64)
        T.ptx.cp_async.bulk.tensor.s2g(2, S.ptr_to([0]), tm, "", 0, 64)
        T.ptx.cp_async.bulk.tensor.s2g(3, S.ptr_to([0]), tm, "evict_normal", 0, 64, 1)
        T.ptx.cp_async.bulk.tensor.s2g_reduce(2, S.ptr_to([0]), tm, "", "add", 0, 64)
        T.ptx.cp_async.bulk.tensor.s2g_reduce(1, S.ptr_to([0]), tm, "evict_first", "max", 0)
        T.ptx.cp_async.bulk.tensor.prefetch(2, tm, "", 0, 64)
        T.ptx.cp_async.bulk.commit_group()
        T.ptx.cp_async.bulk.wait_group(0)
