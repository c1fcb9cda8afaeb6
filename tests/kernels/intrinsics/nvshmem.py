# test: parse

@T.prim_func
def exchange(A_ptr: T.handle, S_ptr: T.handle):
    A = T.match_buffer(A_ptr, (64,), "float32")
    S = T.match_buffer(S_ptr, (2,), "uint64")
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    peer: T.int32 = (T.nvshmem.my_pe() + 1) % T.nvshmem.n_pes()
    T.nvshmem.getmem_nbi(A.ptr_to([0]), A.ptr_to([32]), 128, peer)
    T.nvshmem.getmem_nbi.warp(A.ptr_to([0]), A.ptr_to([32]), 128, peer)
    T.nvshmem.getmem_nbi.block(A.ptr_to([0]), A.ptr_to([32]), 128, peer)
    T.nvshmem.putmem_nbi(A.ptr_to([0]), A.ptr_to([32]), 128, peer)
    T.nvshmem.putmem_nbi.warp(A.ptr_to([0]), A.ptr_to([32]), 128, peer)
    T.nvshmem.putmem_nbi.block(A.ptr_to([0]), A.ptr_to([32]), 128, peer)
    T.nvshmem.putmem_signal_nbi(A.ptr_to([0]), A.ptr_to([32]), 128, S.ptr_to([0]), 1, "add", peer)
    T.nvshmem.putmem_signal_nbi.warp(A.ptr_to([0]), A.ptr_to([32]), 128, S.ptr_to([0]), 1, "set", peer)
    T.nvshmem.putmem_signal_nbi.block(A.ptr_to([0]), A.ptr_to([32]), 128, S.ptr_to([0]), 1, "set", peer)
    T.nvshmem.signal_op(S.ptr_to([1]), 1, "add", peer)
    T.nvshmem.wait_until(S.ptr_to([0]), "ge", 1)
    T.nvshmem.fence()
    T.nvshmem.quiet()
    T.nvshmem.barrier_all()
