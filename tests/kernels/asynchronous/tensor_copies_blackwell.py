# test: parse
# test: cuda sm_100a

@T.prim_func
def pairs(M_ptr: T.handle):
    M = T.match_buffer(M_ptr, (128,), "uint8", align=64)
    T.device_entry()
    bx = T.cta_id([2])
    cx = T.cta_id_in_cluster([2])
    tx = T.thread_id([32])
    S = T.alloc_shared((1024,), "float32")
    bar = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.cp_async.bulk.tensor.g2s_cluster(2, S.ptr_to([0]), bar.ptr_to([0]), M.ptr_to([0]), 0, 2, "", 0, 64)
        T.ptx.cp_async.bulk.tensor.g2s_cluster(2, S.ptr_to([0]), bar.ptr_to([0]), M.ptr_to([0]), 3, 2, "evict_first", 0, 64, multicast=True)
        T.ptx.cp_async.bulk.tensor.g2s_cluster(2, S.ptr_to([0]), T.cuda.sm100_2sm_leader_smem_addr(bar.ptr_to([0])), M.ptr_to([0]), 0, 2, "", 0, 64, mbar_is_shared_addr=True)
        T.ptx.cp_async.bulk.tensor.g2s_cluster(2, S.ptr_to([0]), bar.ptr_to([0]), M.ptr_to([0]), 0, 1, "", 0, 1, 2, 3, 4, load_mode="tile_gather4")
