# test: compile sm_90a
# Bulk copies in all directions, cp.async in all its forms, and waits for them.
from tvm.script import tirx as T


def by_thread(a, i, j):
    if i < 20 or j < 6:
        return a[i][j]
    return -1 if j == 6 else 0


# Global to shared (of the block, of the cluster) and back.
# sim: there_and_back
#   A: float32[64] = i + 1
#   B: float32[64] = 0 -> A[i]
@T.prim_func
def there_and_back(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((64,), "float32", align=128)
    bar = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.mbarrier.arrive.expect_tx(bar.ptr_to([0]), 256)
        T.ptx.cp_async_bulk_g2s_cta(S.ptr_to([0]), A.ptr_to([0]), 128, bar.ptr_to([0]), cache_hint="evict_first")
        T.ptx.cp_async_bulk_g2s_cluster(S.ptr_to([32]), A.ptr_to([32]), 128, bar.ptr_to([0]))
        T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
        T.ptx.cp_async_bulk_s2g(B.ptr_to([0]), S.ptr_to([0]), 256)
        T.ptx.cp_async.bulk.commit_group()
        T.ptx.cp_async.bulk.wait_group(0, False)


# The sources of a group may be overwritten once it has read them.
# sim: reads_first
#   A: float32[2x32] = i * 32 + j
#   B: float32[2x32] = 0 -> A[i][j]
@T.prim_func
def reads_first(A: T.Buffer((2, 32), "float32"), B: T.Buffer((2, 32), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((32,), "float32", align=128)
    for i in T.serial(2):
        S[tx] = A[i, tx]
        T.ptx.fence.proxy_async("shared::cta")
        T.cuda.cta_sync()
        if tx == 0:
            T.ptx.cp_async_bulk_s2g(B.ptr_to([i, 0]), S.ptr_to([0]), 128)
            T.ptx.cp_async.bulk.commit_group()
            T.ptx.cp_async.bulk.wait_group(0, True)
        T.cuda.cta_sync()
    if tx == 0:
        T.ptx.cp_async.bulk.wait_group(0, False)


# A load that signals an mbarrier belongs to no group.
# sim: in_no_group
#   A: float32[32] = i
#   B: float32[32] = 0
#   fault: race
@T.prim_func
def in_no_group(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((32,), "float32", align=128)
    bar = T.alloc_shared((1,), "uint64")
    S[tx] = T.float32(0)
    T.ptx.fence.proxy_async("shared::cta")
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.mbarrier.arrive.expect_tx(bar.ptr_to([0]), 128)
        T.ptx.cp_async_bulk_g2s_cta(S.ptr_to([0]), A.ptr_to([0]), 128, bar.ptr_to([0]))
        T.ptx.cp_async.bulk.commit_group()
        T.ptx.cp_async.bulk.wait_group(0, False)
        B[0] = S[0]


# To both blocks of a cluster at once, and from one block's shared memory to the other's.
# sim: of_a_cluster
#   A: float32[64] = i + 1
#   B: float32[2x64] = 0 -> A[j] if j < 32 else A[j % 32]
@T.prim_func
def of_a_cluster(A: T.Buffer((64,), "float32"), B: T.Buffer((2, 64), "float32")):
    T.device_entry()
    bx = T.cta_id([2])
    cx = T.cta_id_in_cluster([2])
    tx = T.thread_id([32])
    S = T.alloc_shared((64,), "float32", align=128)
    bar = T.alloc_shared((2,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
        T.ptx.mbarrier.init(bar.ptr_to([1]), 1)
        T.ptx.fence.mbarrier_init()
        T.ptx.mbarrier.arrive.expect_tx(bar.ptr_to([0]), 128)
        T.ptx.mbarrier.arrive.expect_tx(bar.ptr_to([1]), 128)
    T.cuda.cluster_sync()
    if cx == 0:
        if tx == 0:
            T.ptx.cp_async_bulk_g2s_cluster(S.ptr_to([0]), A.ptr_to([0]), 128, bar.ptr_to([0]), multicast=True, cta_mask=3)
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    if tx == 0:
        T.ptx.cp_async_bulk_s2s_cluster(T.ptx.map_shared_rank(S.ptr_to([32]), 1 - cx), S.ptr_to([0]), 64,
                                        T.ptx.map_shared_rank(bar.ptr_to([1]), 1 - cx))
        T.ptx.cp_async.bulk.s2c(T.ptx.map_shared_rank(S.ptr_to([48]), 1 - cx), S.ptr_to([16]), 64,
                                T.ptx.map_shared_rank(bar.ptr_to([1]), 1 - cx))
    T.ptx.mbarrier.try_wait(bar.ptr_to([1]), 0)
    B[cx, tx] = S[tx]
    B[cx, tx + 32] = S[tx + 32]
    T.cuda.cluster_sync()


# A tensor copy to both blocks: each one's mbarrier counts the bytes.
# sim: tensor_multicast
#   A: float32[4x8] = i * 8 + j
#   B: float32[2x32] = 0 -> A[j // 8][j % 8]
@T.prim_func
def tensor_multicast(A: T.Buffer((4, 8), "float32"), B: T.Buffer((2, 32), "float32")):
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float32", 2, A.data, 8, 4, 32, 8, 2, 1, 1, 0, 0, 0, 0)
    T.device_entry()
    bx = T.cta_id([2])
    cx = T.cta_id_in_cluster([2])
    tx = T.thread_id([32])
    S = T.alloc_shared((2, 64), "float32", align=128)
    bar = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
        T.ptx.mbarrier.arrive.expect_tx(bar.ptr_to([0]), 128)
    T.cuda.cluster_sync()
    if tx == 0:
        T.ptx.cp_async.bulk.tensor.g2s_cluster(2, S.ptr_to([cx, 0]), bar.ptr_to([0]), T.address_of(A_map), 3, 1, "", 0, cx * 2)
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    B[cx, tx] = S[tx // 16, tx % 16]
    T.cuda.cluster_sync()


# cp.async of 4, 8 and 16 bytes, with a predicate, with zeros; groups; arrivals at an mbarrier.
# sim: by_threads
#   A: float32[32x8] = i * 8 + j + 1
#   B: float32[32x8] = 0 -> by_thread(A, i, j)
@T.prim_func
def by_threads(A: T.Buffer((32, 8), "float32"), B: T.Buffer((32, 8), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((32, 8), "float32", align=128)
    S[tx, 6] = T.float32(-1)
    T.ptx.cp_async(S.ptr_to([tx, 0]), A.ptr_to([tx, 0]), 16)
    T.ptx.cp_async(S.ptr_to([tx, 4]), A.ptr_to([tx, 4]), 8, cache_hint="evict_last", prefetch_size=128)
    T.ptx.cp_async.commit_group()
    T.ptx.cp_async(S.ptr_to([tx, 6]), A.ptr_to([tx, 6]), 4, predicate=tx < 20)
    T.ptx.cp_async(S.ptr_to([tx, 7]), A.ptr_to([tx, 7]), 4, predicate=tx < 20, fill_mode="zero")
    T.ptx.cp_async.commit_group()
    T.ptx.cp_async.wait_group(1)
    for k in T.serial(6):
        B[tx, k] = S[tx, k]
    T.ptx.cp_async.wait_group(0)
    B[tx, 6] = S[tx, 6]
    B[tx, 7] = S[tx, 7]


# The arrival of a thread's copies: one of those that the mbarrier counts (noinc), or one more.
# sim: arrives
#   A: float32[64] = i
#   B: float32[64] = 0 -> A[63 - i]
@T.prim_func
def arrives(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((64,), "float32", align=128)
    bar = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 64)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    T.ptx.cp_async(S.ptr_to([tx]), A.ptr_to([tx]), 4)
    if tx < 32:
        T.ptx.cp_async.mbarrier.arrive.noinc(bar.ptr_to([0]))
    else:
        T.ptx.cp_async.mbarrier.arrive(bar.ptr_to([0]))
        T.ptx.mbarrier.arrive(bar.ptr_to([0]))
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    B[tx] = S[63 - tx]


# One role releases registers, the other acquires them.
# sim: registers_of_roles
#   A: float32[256] = i
#   B: float32[256] = 0 -> A[i] * 2
@T.prim_func
def registers_of_roles(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    warpgroup = T.warpgroup_id([2])
    if warpgroup == 0:
        T.ptx.setmaxnreg(False, 40)
        B[tx] = A[tx] * T.float32(2)
    else:
        T.ptx.setmaxnreg(True, 232)
        B[tx] = A[tx] * T.float32(2)


# The previous grid has written A: nothing is read before griddepcontrol.wait.
# sim: after_the_grid_before
#   A: float32[32] = i
#   B: float32[32] = 0 -> A[i] + 1
@T.prim_func
def after_the_grid_before(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    T.ptx.griddepcontrol.launch_dependents()
    T.ptx.griddepcontrol.wait()
    B[tx] = A[tx] + T.float32(1)
