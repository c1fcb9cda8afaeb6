# test: parse
# test: cuda sm_100a
# test: compile sm_120a

@T.prim_func
def cancel(D_ptr: T.handle):
    D = T.match_buffer(D_ptr, (1,), "uint32")
    T.device_entry()
    bx = T.cta_id([2])
    tx = T.thread_id([32])
    handle = T.alloc_shared((16,), "uint8")
    bar = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.clc_try_cancel(handle.ptr_to([0]), bar.ptr_to([0]))
    D[0] = T.ptx.clc_query_cancel(handle.ptr_to([0])) + T.ptx.clc_query_cancel(handle.ptr_to([0]), use_ld_acquire=False)
