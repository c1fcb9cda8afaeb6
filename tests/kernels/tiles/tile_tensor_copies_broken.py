# Tensor copies as tile primitives, each with one mistake that the simulator reports.
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx


@T.inline
def begin(bar, tx):
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()


# Nobody waits for the tile.
# sim: without_a_wait
#   A: float32[8x32] = i + j
#   B: float32[8x32] = 0
#   fault: which an asynchronous operation writes, and this thread has not waited for its completion
@T.prim_func
def without_a_wait(A: T.Buffer((8, 32), "float32"), B: T.Buffer((8, 32), "float32")):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([32])
    s = T.alloc_shared((8, 32), "float32", align=128)
    bar = T.alloc_shared((1,), "uint64")
    begin(bar, tx)
    if tx == 0:
        T.ptx.mbarrier.arrive.expect_tx(bar.ptr_to([0]), 1024)
        Tx.copy_async(s, A, mbar=bar.ptr_to([0]))
    T.cuda.cta_sync()
    for i in T.serial(8):
        B[i, tx] = s[i, tx]

# More bytes are expected than the copy brings.
# variant: too_many_bytes of without_a_wait
#   replace: "bar.ptr_to([0]), 1024)" -> "bar.ptr_to([0]), 2048)"
#   replace: "T.cuda.cta_sync(" -> "T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0"
#   fault: no thread can run any more


# Two copies, and the bytes of one are expected.
# sim: too_few_bytes
#   A: float32[8x32] = i + j
#   B: float32[8x32] = 0
#   fault: which an asynchronous operation writes, and this thread has not waited for its completion
@T.prim_func
def too_few_bytes(A: T.Buffer((8, 32), "float32"), B: T.Buffer((8, 32), "float32")):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([32])
    s = T.alloc_shared((8, 32), "float32", align=128)
    bar = T.alloc_shared((1,), "uint64")
    begin(bar, tx)
    if tx == 0:
        T.ptx.mbarrier.arrive.expect_tx(bar.ptr_to([0]), 512)
        Tx.copy_async(s[0:4, :], A[0:4, :], mbar=bar.ptr_to([0]))
        Tx.copy_async(s[4:8, :], A[4:8, :], mbar=bar.ptr_to([0]))
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    for i in T.serial(8):
        B[i, tx] = s[i, tx]


# Every thread issues the copy.
# sim: by_every_thread
#   A: float32[8x32] = i + j
#   B: float32[8x32] = 0
#   fault: the tensor copy writes shared `s[0, 0]`, which another asynchronous operation wrote
@T.prim_func
def by_every_thread(A: T.Buffer((8, 32), "float32"), B: T.Buffer((8, 32), "float32")):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([32])
    s = T.alloc_shared((8, 32), "float32", align=128)
    bar = T.alloc_shared((1,), "uint64")
    begin(bar, tx)
    if tx == 0:
        T.ptx.mbarrier.arrive.expect_tx(bar.ptr_to([0]), 1024)
    Tx.copy_async(s, A, mbar=bar.ptr_to([0]))
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    for i in T.serial(8):
        B[i, tx] = s[i, tx]


# The engine may not see what threads wrote.
# sim: without_a_proxy_fence
#   A: float32[8x32] = 0
#   fault: fence.proxy
@T.prim_func
def without_a_proxy_fence(A: T.Buffer((8, 32), "float32")):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([32])
    s = T.alloc_shared((8, 32), "float32", align=128)
    for i in T.serial(8):
        s[i, tx] = T.cast(i, "float32")
    T.cuda.cta_sync()
    if tx == 0:
        Tx.copy_async(A, s)
        T.ptx.cp_async.bulk.commit_group()
        T.ptx.cp_async.bulk.wait_group(0, False)


# The tile is written again while the engine may still read it.
# sim: without_a_group
#   A: float32[2x8x32] = 0
#   fault: writes `s[0]`, which an asynchronous operation reads
@T.prim_func
def without_a_group(A: T.Buffer((2, 8, 32), "float32")):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([32])
    s = T.alloc_shared((8, 32), "float32", align=128)
    for k in T.serial(2):
        for i in T.serial(8):
            s[i, tx] = T.cast(i + k, "float32")
        T.ptx.fence.proxy_async("shared::cta")
        T.cuda.cta_sync()
        if tx == 0:
            Tx.copy_async(A[k], s)
            T.ptx.cp_async.bulk.commit_group()
        T.cuda.cta_sync()
    T.ptx.cp_async.bulk.wait_group(0, False)


# A copy to another block that the other block does not wait for.
# sim: unread_by_the_other_block
#   A: float32[2x32] = 0
#   fault: reads `d[0]`, which an asynchronous operation writes
@T.prim_func
def unread_by_the_other_block(A: T.Buffer((2, 32), "float32")):
    T.device_entry()
    bx = T.cta_id([2])
    rank = T.cta_id_in_cluster([2])
    tx = T.thread_id([32])
    s = T.alloc_shared((32,), "float32", align=128)
    d = T.alloc_shared((32,), "float32", align=128)
    bar = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cluster_sync()
    s[tx] = 1.0
    T.ptx.fence.proxy_async("shared::cta")
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.mbarrier.arrive.expect_tx(bar.ptr_to([0]), 128)
        Tx.copy_async(d, s, mbar=bar.ptr_to([0]), remote_cta_id=1 - rank)
    T.cuda.cluster_sync()
    A[bx, tx] = d[tx]
