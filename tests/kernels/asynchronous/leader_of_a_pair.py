# Both blocks of a pair copy, and the copies complete at the mbarrier of the first: its address as that of 32 bits.
from tvm.script import tirx as T


# sim: pair on sm_100a
#   A: uint8[256x128] = (i * 7 + j) % 256
#   O: uint8[2x128] = 0 -> ((i * 128 + j) * 7 + j) % 256
#   L: uint32[2] = 0 -> i * 0 + 1
#   seeds: 4
@T.prim_func
def pair(A: T.Buffer((256, 128), "uint8"), O: T.Buffer((2, 128), "uint8"), L: T.Buffer((2,), "uint32")):
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "uint8", 2, A.data, 128, 256, 128, 128, 128, 1, 1, 0, 0, 0, 0)
    T.device_entry()
    T.cluster_id([1])
    rank = T.cta_id_in_cluster([2])
    tx = T.thread_id([128])
    S = T.alloc_shared((128, 128), "uint8", align=1024)
    full = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(full.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cluster_sync()
    if tx == 0:
        if rank == 0:
            T.ptx.mbarrier.arrive.expect_tx(full.ptr_to([0]), 32768)
        lead: T.let = T.cuda.sm100_2sm_leader_smem_addr(full.ptr_to([0]))
        own: T.let = T.cuda.cvta_generic_to_shared(full.ptr_to([0]))
        L[rank] = T.cast(lead == (own & T.uint32(0x00FFFFFF)), "uint32")
        T.ptx.cp_async.bulk.tensor.g2s_cluster(2, S.ptr_to([0, 0]), lead, T.address_of(A_map), 0, 2, "", 0, rank * 128,
                                               mbar_is_shared_addr=True)
    if rank == 0:
        T.ptx.mbarrier.try_wait(full.ptr_to([0]), 0)
    T.cuda.cluster_sync()
    O[rank, tx] = S[tx, tx]
    T.cuda.cluster_sync()
