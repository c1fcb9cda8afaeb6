# test: parse
# test: cuda sm_100a

@T.prim_func
def buffers_as_arguments(A: T.Buffer((32,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    bar = T.alloc_shared((1,), "uint64")
    addr = T.alloc_shared((1,), "uint32")
    T.ptx.mbarrier.init(bar.data, 1)
    T.ptx.mbarrier.init(bar, 1)
    T.ptx.tcgen05.alloc(T.address_of(addr), n_cols=512, cta_group=1)
    T.ptx.tcgen05.relinquish_alloc_permit(cta_group=1)
    T.ptx.tcgen05.dealloc(addr, n_cols=512, cta_group=1)
    A[tx] = T.uint32(0)
