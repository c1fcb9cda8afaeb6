# Several devices run one kernel: symmetric memory, peer addresses, signals, barriers of all ranks.
from tvm.script import tirx as T


# sim: numbers
#   ranks: 3
#   B: int32[2] = 7 -> [rank, 3][i]
@T.prim_func
def numbers(B: T.Buffer((2,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    if tx == 0:
        B[0] = T.nvshmem.my_pe()
        B[1] = T.nvshmem.n_pes()


# Each rank puts its row to the next one with a signal, and waits for the signal of the one before.
# sim: ring
#   ranks: 4
#   seeds: 6
#   A: float32[64] = 100 * rank + i
#   B: float32[64] = 0 -> A[(rank + 3) % 4][i]
#   S: uint64[1] = 0 -> 1
#   C: float32[64] = 0 -> A[(rank + 3) % 4][i] + 1
@T.prim_func
def ring(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32"), S: T.Buffer((1,), "uint64"), C: T.Buffer((64,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    pe = T.nvshmem.my_pe()
    n = T.nvshmem.n_pes()
    T.nvshmem.putmem_signal_nbi.block(B.ptr_to([0]), A.ptr_to([0]), 256, S.ptr_to([0]), 1, "set", (pe + 1) % n)
    T.nvshmem.wait_until(S.ptr_to([0]), "eq", 1)
    C[tx] = B[tx] + T.float32(1)


# Without the wait nothing orders the put of another rank before the reads.
# sim: no_wait
#   ranks: 2
#   A: float32[64] = i
#   B: float32[64] = 0
#   S: uint64[1] = 0
#   C: float32[64] = 0
#   fault: data race
@T.prim_func
def no_wait(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32"), S: T.Buffer((1,), "uint64"), C: T.Buffer((64,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    pe = T.nvshmem.my_pe()
    T.nvshmem.putmem_signal_nbi.block(B.ptr_to([0]), A.ptr_to([0]), 256, S.ptr_to([0]), 1, "set", 1 - pe)
    C[tx] = B[tx] + T.float32(1)


# The put has no signal: the rank that waits for one waits for ever.
# sim: no_signal
#   ranks: 2
#   A: float32[64] = i
#   B: float32[64] = 0
#   S: uint64[1] = 0
#   fault: in rank 1, block (0, 0, 0), thread (0, 0, 0)
@T.prim_func
def no_signal(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32"), S: T.Buffer((1,), "uint64")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    if T.nvshmem.my_pe() == 0:
        T.nvshmem.putmem_nbi.warp(B.ptr_to([0]), A.ptr_to([0]), 256, 1)
        T.nvshmem.quiet()
    else:
        T.nvshmem.wait_until(S.ptr_to([0]), "eq", 1)


# A get reads the other rank's memory; the barrier comes before it, and another one before that memory changes.
# sim: gets
#   ranks: 2
#   seeds: 4
#   A: float32[32] = 10 * rank + i -> -1
#   B: float32[32] = 0 -> A[1 - rank][i] * 2
@T.prim_func
def gets(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    A[tx] = A[tx] * T.float32(2)
    T.cuda.cta_sync()
    if tx == 0:
        T.nvshmem.barrier_all()
    T.cuda.cta_sync()
    if tx == 0:
        T.nvshmem.getmem_nbi(B.ptr_to([0]), A.ptr_to([0]), 128, 1 - T.nvshmem.my_pe())
        T.nvshmem.barrier_all()
    T.cuda.cta_sync()
    A[tx] = T.float32(-1)


# sim: gets_without_second_barrier
#   ranks: 2
#   seeds: 4
#   A: float32[32] = 0
#   B: float32[32] = 0
#   fault: data race
@T.prim_func
def gets_without_second_barrier(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    A[tx] = T.float32(1)
    T.cuda.cta_sync()
    if tx == 0:
        T.nvshmem.barrier_all()
        T.nvshmem.getmem_nbi(B.ptr_to([0]), A.ptr_to([0]), 128, 1 - T.nvshmem.my_pe())
        T.nvshmem.quiet()
    T.cuda.cta_sync()
    A[tx] = T.float32(-1)


# sim: skipped_barrier
#   ranks: 3
#   B: int32[1] = 0
#   fault: rank 1 has ended after 0 barriers of all ranks (nvshmem.barrier_all), and others wait for it at number 1
@T.prim_func
def skipped_barrier(B: T.Buffer((1,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    if tx == 0:
        if T.nvshmem.my_pe() != 1:
            T.nvshmem.barrier_all()


# Each of two ranks waits for the other's signal before it sends its own.
# sim: both_wait
#   ranks: 2
#   S: uint64[1] = 0
#   fault: note: rank 1, block (0, 0, 0): 1 thread spins in a loop
@T.prim_func
def both_wait(S: T.Buffer((1,), "uint64")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    if tx == 0:
        T.nvshmem.wait_until(S.ptr_to([0]), "ne", 0)
        T.nvshmem.signal_op(S.ptr_to([0]), 1, "set", 1 - T.nvshmem.my_pe())


# Peer addresses from a table, as a program without NVSHMEM passes them: plain stores, then a flag of scope `sys`.
# sim: peers
#   ranks: 2
#   seeds: 6
#   A: float32[32] = 10 * rank + i
#   B: float32[32] = 0 -> A[1 - rank][i]
#   F: uint32[1] = 0 -> 1
#   C: float32[32] = 0 -> A[1 - rank][i] * 2
#   P: uint64[2] = "B@" + str(i)
#   Q: uint64[2] = "F@" + str(i)
#   me = rank
@T.prim_func
def peers(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32"), F: T.Buffer((1,), "uint32"), C: T.Buffer((32,), "float32"),
          P: T.Buffer((2,), "uint64"), Q: T.Buffer((2,), "uint64"), me: T.int32):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    there = T.decl_buffer((32,), "float32", data=T.reinterpret("handle", P[1 - me]))
    there[tx] = A[tx]
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.st_release(T.reinterpret("handle", Q[1 - me]), T.uint32(1), ptx_type="u32", scope="sys")
        while T.ptx.ld_acquire(F.ptr_to([0]), "uint32", "u32", scope="sys") == T.uint32(0):
            T.cuda.nano_sleep(T.uint64(20))
    T.cuda.cta_sync()
    C[tx] = B[tx] * T.float32(2)


# The same with a flag that reaches only one device.
# sim: narrow_flag
#   ranks: 2
#   A: float32[32] = i
#   B: float32[32] = 0
#   F: uint32[1] = 0
#   C: float32[32] = 0
#   me = rank
#   fault: each must reach the other's
@T.prim_func
def narrow_flag(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32"), F: T.Buffer((1,), "uint32"), C: T.Buffer((32,), "float32"), me: T.int32):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    there = T.decl_buffer((32,), "float32", data=T.nvshmem.ptr(B.ptr_to([0]), 1 - me))
    there[tx] = A[tx]
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.st_release(T.nvshmem.ptr(F.ptr_to([0]), 1 - me), T.uint32(1), ptx_type="u32", scope="gpu")
        while T.ptx.ld_acquire(F.ptr_to([0]), "uint32", "u32", scope="gpu") == T.uint32(0):
            T.cuda.nano_sleep(T.uint64(20))
    T.cuda.cta_sync()
    C[tx] = B[tx] * T.float32(2)


# A fence of the device alone releases to no other rank, even beside a flag of scope `sys`.
# sim: narrow_fence
#   ranks: 2
#   A: float32[32] = i
#   F: uint32[1] = 0
#   C: float32[32] = 0
#   fault: nothing orders the two ranks
@T.prim_func
def narrow_fence(A: T.Buffer((32,), "float32"), F: T.Buffer((1,), "uint32"), C: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    if T.nvshmem.my_pe() == 0:
        there = T.decl_buffer((32,), "float32", data=T.nvshmem.ptr(C.ptr_to([0]), 1))
        if tx == 0:
            there[0] = A[1]
            T.ptx.fence("acq_rel", "gpu")
            T.ptx.st_relaxed(T.nvshmem.ptr(F.ptr_to([0]), 1), T.uint32(1), ptx_type="u32", scope="sys")
    else:
        if tx == 0:
            while T.ptx.ld_acquire(F.ptr_to([0]), "uint32", "u32", scope="sys") == T.uint32(0):
                T.cuda.nano_sleep(T.uint64(20))
            C[0] = C[0] + T.float32(1)


# All blocks of all ranks take tickets from one counter on rank 0.
# sim: tickets
#   ranks: 3
#   seeds: 4
#   T0: int32[1] = 0 -> 6 if rank == 0 else 0
@T.prim_func
def tickets(T0: T.Buffer((1,), "int32")):
    T.device_entry()
    bx = T.cta_id([2])
    tx = T.thread_id([32])
    if tx == 0:
        T.ptx.red_scalar(T.nvshmem.ptr(T0.ptr_to([0]), 0), 1, sem="relaxed", scope="sys", op="add", ptx_type="s32")


# sim: no_such_rank
#   ranks: 2
#   B: float32[4] = 0
#   fault: names processing element 2: the world has 2, from 0 on
@T.prim_func
def no_such_rank(B: T.Buffer((4,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    if tx == 0:
        T.nvshmem.putmem_nbi(B.ptr_to([0]), B.ptr_to([2]), 8, T.nvshmem.my_pe() + 1)
        T.nvshmem.quiet()


# No rank sets the flag for which one lane of each of many warps waits.
# sim: many_warps_wait
#   ranks: 2
#   F: uint32[1] = 0
#   fault: deadlock
@T.prim_func
def many_warps_wait(F: T.Buffer((1,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    warp = T.warp_id([8])
    lane = T.lane_id([32])
    turn: T.int32 = 0
    while turn < 3:
        if lane == 0:
            while T.ptx.ld_acquire(F.ptr_to([0]), "uint32", "u32", scope="sys") == T.uint32(0):
                T.cuda.nano_sleep(T.uint64(20))
        T.cuda.warp_sync()
        turn += 1
