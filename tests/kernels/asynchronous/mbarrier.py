# test: parse
# test: cuda sm_90a
# test: compile sm_100a

@T.prim_func
def mbarriers(A_ptr: T.handle):
    A = T.match_buffer(A_ptr, (64,), "uint32")
    T.device_entry()
    bx = T.cta_id([2])
    cx = T.cta_id_in_cluster([2])
    tx = T.thread_id([64])
    bars = T.alloc_shared((2,), "uint64")
    phase: T.int32 = 0
    if tx == 0:
        T.ptx.mbarrier.init(bars.ptr_to([0]), 64)
        T.ptx.mbarrier.init(bars.ptr_to([1]), 1)
    T.ptx.fence.mbarrier_init()
    T.cuda.cluster_sync()
    T.ptx.mbarrier.arrive(bars.ptr_to([0]))
    T.ptx.mbarrier.try_wait(bars.ptr_to([0]), phase)
    phase = phase ^ 1
    T.ptx.mbarrier.arrive(bars.ptr_to([0]), remote=1 - cx, pred=tx < 32)
    T.ptx.mbarrier.arrive(bars.ptr_to([0]), count=2, sem="release", scope="cluster")
    T.ptx.mbarrier.arrive(bars.ptr_to([0]), count=2, remote=1 - cx)
    T.ptx.mbarrier.arrive.no_complete(bars.ptr_to([0]), 1)
    T.ptx.mbarrier.arrive.expect_tx(bars.ptr_to([1]), 128)
    T.ptx.mbarrier.arrive.expect_tx(bars.ptr_to([1]), 128, remote=0, pred=tx)
    T.ptx.mbarrier.expect_tx(bars.ptr_to([1]), 64)
    T.ptx.mbarrier.complete_tx(bars.ptr_to([1]), 128)
    T.ptx.mbarrier.complete_tx(bars.ptr_to([1]), 64, remote=1 - cx, pred=1)
    T.ptx.mbarrier.try_wait_acquire_cluster(bars.ptr_to([1]), 0)
    A[tx] = T.ptx.mbarrier.try_wait_once(bars.ptr_to([1]), 0, 1000)
    A[tx] = T.ptx.mbarrier_test_wait_parity(bars.ptr_to([1]), 0)
    A[tx] = T.ptx.mbarrier_test_wait_parity(bars.ptr_to([1]), 0, sem="relaxed", scope="cluster")
    T.cuda.cta_sync()
    T.ptx.mbarrier.inval(bars.ptr_to([0]))
