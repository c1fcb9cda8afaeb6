# test: parse
# test: cuda sm_90a
# test: sim
# Shared memory of other blocks of the cluster: mapped pointers and addresses, split barriers, named barriers.
from tvm.script import tirx as T


@T.prim_func
def reduces(A: T.Buffer((256,), "float32"), B: T.Buffer((8,), "float32")):
    T.device_entry()
    bx = T.cta_id([8])
    rank = T.cta_id_in_cluster([4])
    tx = T.thread_id([32])
    S = T.alloc_shared((1,), "float32")
    total = T.cuda.warp_sum(A[bx * 32 + tx])
    if tx == 0:
        S[0] = total
    T.cuda.cluster_sync()
    if tx == 0:
        sum: T.float32
        sum = T.float32(0)
        for other in range(4):
            address: T.let = T.ptx.mapa(S.ptr_to([0]), other, "shared::cluster", "u32", "uint32")
            sum = sum + T.ptx.ld(address, "float32", "f32", space="shared::cluster")
        B[bx] = sum
    T.cuda.cluster_sync()


@T.prim_func
def shifts(A: T.Buffer((128,), "int32"), B: T.Buffer((128,), "int32")):
    T.device_entry()
    bx = T.cta_id([4])
    rank = T.cta_id_in_cluster([2])
    tx = T.thread_id([32])
    S = T.alloc_shared((32,), "int32")
    S[tx] = A[bx * 32 + tx]
    T.ptx.barrier.cluster.arrive("release", aligned=True)
    mapped: T.let = T.reinterpret("handle", T.ptx.map_shared_rank(S.ptr_to([0]), 1 - rank))
    far = T.decl_buffer((32,), "int32", data=mapped)
    T.ptx.barrier.cluster.wait(acquire=True)
    B[bx * 32 + tx] = far[31 - tx] * 10 + S[tx]
    T.ptx.barrier.cluster.arrive("relaxed")
    T.ptx.barrier.cluster.wait()


@T.prim_func
def counts(A: T.Buffer((256,), "uint32"), B: T.Buffer((16,), "uint32")):
    T.device_entry()
    bx = T.cta_id([4])
    rank = T.cta_id_in_cluster([4])
    tx = T.thread_id([64])
    S = T.alloc_shared((16,), "uint32")
    if tx < 16:
        S[tx] = T.uint32(0)
    T.cuda.cluster_sync()
    first: T.let = T.reinterpret("handle", T.ptx.mapa(S.ptr_to([0]), 0))
    H = T.decl_buffer((16,), "uint32", data=first)
    old: T.let = T.cuda.atomic_add(H.ptr_to([A[bx * 64 + tx] % T.uint32(16)]), T.uint32(1))
    T.cuda.cluster_sync()
    if rank == 0:
        if tx < 16:
            B[tx] = S[tx]


@T.prim_func
def writes(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
    T.device_entry()
    bx = T.cta_id([2])
    rank = T.cta_id_in_cluster([2])
    tx = T.thread_id([32])
    S = T.alloc_shared((32,), "int32")
    F = T.alloc_shared((1,), "int32")
    if tx == 0:
        F[0] = 0
    T.cuda.cluster_sync()
    if rank == 1:
        there: T.let = T.ptx.mapa(S.ptr_to([tx]), 0, "shared::cluster", "u32", "uint32")
        T.ptx.st(there, A[tx] + 7, ptx_type="s32", space="shared::cluster")
        T.cuda.warp_sync()
        T.ptx.fence("acq_rel", "cluster")
        if tx == 0:
            flag: T.let = T.ptx.mapa(F.ptr_to([0]), 0, "shared::cluster", "u32", "uint32")
            T.ptx.st_release(flag, 1, ptx_type="s32", scope="cluster", space="shared::cluster")
    else:
        while T.ptx.ld_acquire(F.ptr_to([0]), "int32", "s32", scope="cluster", space="shared::cta") == 0:
            T.evaluate(0)
        B[tx] = S[tx]
    T.cuda.cluster_sync()


@T.prim_func
def pipelines(A: T.Buffer((8, 32), "int32"), B: T.Buffer((8, 32), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((32,), "int32")
    if tx < 32:
        for i in range(8):
            if i > 0:
                T.ptx.bar.sync(2, 64)
            S[tx] = A[i, tx] * 3
            T.ptx.bar.arrive(1, 64)
    else:
        for i in range(8):
            T.ptx.bar.sync(1, 64)
            B[i, tx - 32] = S[63 - tx]
            if i < 7:
                T.ptx.bar.arrive(2, 64)


@T.prim_func
def early(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
    T.device_entry()
    bx = T.cta_id([2])
    rank = T.cta_id_in_cluster([2])
    tx = T.thread_id([32])
    S = T.alloc_shared((32,), "int32")
    S[tx] = A[bx * 32 + tx]
    T.cuda.cta_sync()
    there: T.let = T.ptx.mapa(S.ptr_to([tx]), 1 - rank, "shared::cluster", "u32", "uint32")
    B[bx * 32 + tx] = T.ptx.ld(there, "int32", "s32", space="shared::cluster")


@T.prim_func
def leaves(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
    T.device_entry()
    bx = T.cta_id([2])
    rank = T.cta_id_in_cluster([2])
    tx = T.thread_id([32])
    S = T.alloc_shared((32,), "int32")
    S[tx] = A[bx * 32 + tx]
    T.cuda.cluster_sync()
    there: T.let = T.ptx.mapa(S.ptr_to([tx]), 1 - rank, "shared::cluster", "u32", "uint32")
    B[bx * 32 + tx] = T.ptx.ld(there, "int32", "s32", space="shared::cluster")


@T.prim_func
def ends(A: T.Buffer((64,), "int32"), B: T.Buffer((32,), "int32")):
    T.device_entry()
    bx = T.cta_id([2])
    rank = T.cta_id_in_cluster([2])
    tx = T.thread_id([32])
    S = T.alloc_shared((32,), "int32")
    S[tx] = A[bx * 32 + tx]
    T.cuda.cluster_sync()
    if rank == 0:
        there: T.let = T.ptx.mapa(S.ptr_to([tx]), 1, "shared::cluster", "u32", "uint32")
        B[tx] = T.ptx.ld(there, "int32", "s32", space="shared::cluster")


@T.prim_func
def twice(A: T.Buffer((32,), "int32")):
    T.device_entry()
    bx = T.cta_id([2])
    rank = T.cta_id_in_cluster([2])
    tx = T.thread_id([32])
    A[tx] = tx
    T.ptx.barrier.cluster.arrive()
    T.ptx.barrier.cluster.arrive()
    T.ptx.barrier.cluster.wait()
