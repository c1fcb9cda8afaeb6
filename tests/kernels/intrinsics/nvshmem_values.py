# NVSHMEM on one GPU, which is number 0 and puts to itself.
from tvm.backend.cuda.lang.tile_scheduler import RankAwareGroupMajorTileScheduler
from tvm.script import tirx as T


# sim: ranks
#   B: int32[2] = 7 -> i
@T.prim_func
def ranks(B: T.Buffer((2,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    if tx == 0:
        B[0] = T.nvshmem.my_pe()
        B[1] = T.nvshmem.n_pes()


# Each thread puts an element and gets another; after `quiet` both are complete.
# sim: threads
#   A: float32[64] = i * 0.5
#   B: float32[64] = 0 -> A[i]
#   C: float32[32] = 0 -> A[i] + A[i + 32]
@T.prim_func
def threads(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32"), C: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    T.nvshmem.putmem_nbi(B.ptr_to([tx]), A.ptr_to([tx]), 4, T.nvshmem.my_pe())
    T.nvshmem.getmem_nbi(B.ptr_to([tx + 32]), A.ptr_to([tx + 32]), 4, 0)
    T.nvshmem.quiet()
    C[tx] = B[tx] + B[tx + 32]


# The same without `quiet`: the copies may still be in flight.
# sim: too_early
#   A: float32[32] = i
#   B: float32[32] = 0
#   C: float32[32] = 0
#   fault: race
@T.prim_func
def too_early(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32"), C: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    T.nvshmem.putmem_nbi(B.ptr_to([tx]), A.ptr_to([tx]), 4, 0)
    C[tx] = B[tx]


# A warp and a block copy together.
# sim: groups
#   A: float32[128] = i
#   B: float32[128] = 0 -> A[i] if i < 64 else A[i]
#   C: float32[64] = 0 -> A[i] + A[127 - i]
@T.prim_func
def groups(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32"), C: T.Buffer((64,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    warp = T.warp_id([2])
    T.nvshmem.putmem_nbi.warp(B.ptr_to([warp * 32]), A.ptr_to([warp * 32]), 128, 0)
    T.nvshmem.getmem_nbi.block(B.ptr_to([64]), A.ptr_to([64]), 256, 0)
    T.nvshmem.barrier_all()
    T.cuda.cta_sync()
    C[tx] = B[tx] + B[127 - tx]


# One block puts a tile and signals; the other waits for the signal and reads it.
# sim: signals
#   A: float32[64] = i * 2
#   B: float32[64] = 0 -> A[i]
#   S: uint64[3] = 0 -> [1, 3, 5][i]
#   C: float32[64] = 0 -> A[i] + 1
@T.prim_func
def signals(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32"), S: T.Buffer((3,), "uint64"), C: T.Buffer((64,), "float32")):
    T.device_entry()
    bx = T.cta_id([2])
    tx = T.thread_id([32])
    if bx == 0:
        T.nvshmem.putmem_signal_nbi.warp(B.ptr_to([0]), A.ptr_to([0]), 128, S.ptr_to([0]), 1, "set", 0)
        T.nvshmem.putmem_signal_nbi.block(B.ptr_to([32]), A.ptr_to([32]), 64, S.ptr_to([1]), 3, "add", 0)
        if tx == 0:
            T.nvshmem.putmem_nbi(B.ptr_to([48]), A.ptr_to([48]), 64, 0)
            T.nvshmem.fence()
            T.nvshmem.signal_op(S.ptr_to([2]), 5, "set", 0)
            T.nvshmem.quiet()
    else:
        T.nvshmem.wait_until(S.ptr_to([0]), "eq", 1)
        T.nvshmem.wait_until(S.ptr_to([1]), "ge", 3)
        T.nvshmem.wait_until(S.ptr_to([2]), "gt", 4)
        C[tx] = B[tx] + T.float32(1)
        C[tx + 32] = B[tx + 32] + T.float32(1)


# Without the fence the signal does not order the put before it.
# sim: signal_without_fence
#   A: float32[32] = i * 2
#   B: float32[32] = 0
#   S: uint64[1] = 0
#   C: float32[32] = 0
#   fault: race
@T.prim_func
def signal_without_fence(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32"), S: T.Buffer((1,), "uint64"), C: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([2])
    tx = T.thread_id([32])
    if bx == 0:
        if tx == 0:
            T.nvshmem.putmem_nbi(B.ptr_to([0]), A.ptr_to([0]), 128, 0)
            T.nvshmem.signal_op(S.ptr_to([0]), 1, "set", 0)
    else:
        T.nvshmem.wait_until(S.ptr_to([0]), "ne", 0)
        C[tx] = B[tx]


# sim: another_element
#   A: float32[32] = i
#   B: float32[32] = 0
#   fault: names processing element 1: the launch is on one device, number 0
@T.prim_func
def another_element(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    if tx == 0:
        T.nvshmem.putmem_nbi(B.ptr_to([0]), A.ptr_to([0]), 128, 1)


# The first of two processes begins with the rows of the other: two groups of two rows, one row that fills no group, its own rows.
# sim: rank_aware
#   O: int32[12x2] = 9 -> [[3, 4, 3, 4, 5, 5, 0, 1, 2, 0, 1, 2][i], [0, 0, 1, 1, 0, 1, 0, 0, 0, 1, 1, 1][i]][j]
@T.prim_func
def rank_aware(O: T.Buffer((12, 2), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    sched = RankAwareGroupMajorTileScheduler("sched", 6, 2, 2, 2)
    if tx == 0:
        sched.init(0)
        while sched.valid():
            O[sched.linear_idx, 0] = sched.m_idx
            O[sched.linear_idx, 1] = sched.n_idx
            sched.next_tile(1)
