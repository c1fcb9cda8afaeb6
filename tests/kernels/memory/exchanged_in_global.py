# test: cuda sm_90a
# Values pass between the threads of a block through global memory. A `__restrict__` pointer would let nvcc keep a loaded value
# over the barrier, or drop the first of two stores.
from tvm.script import tirx as T


# sim: loaded_twice
#   P: float32[1] = 3 -> 10
#   B: float32[64] = 0 -> 13
@T.prim_func
def loaded_twice(P: T.Buffer((1,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry()
    T.cta_id([1])
    t = T.thread_id([64])
    before: T.let = P[0]
    T.cuda.cta_sync()
    if t == 0:
        P[0] = T.float32(10)
    T.cuda.cta_sync()
    B[t] = before + P[0]


# sim: stored_twice
#   P: int32[64] = 0 -> 100 + i
#   B: int32[64] = 0 -> (i + 1) % 64
@T.prim_func
def stored_twice(P: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
    T.device_entry()
    T.cta_id([1])
    t = T.thread_id([64])
    P[t] = t
    T.cuda.cta_sync()
    B[t] = P[(t + 1) % 64]
    T.cuda.cta_sync()
    P[t] = 100 + t


# One step of a prefix sum per iteration: the accesses of one iteration are separated from those of the next.
# sim: in_a_loop
#   P: int32[64] = 1 -> i + 1
@T.prim_func
def in_a_loop(P: T.Buffer((64,), "int32")):
    T.device_entry()
    T.cta_id([1])
    t = T.thread_id([64])
    for step in range(6):
        own = P[t]
        if t >= T.shift_left(1, step):
            own += P[t - T.shift_left(1, step)]
        T.cuda.cta_sync()
        P[t] = own
        T.cuda.cta_sync()


# An atomic operation writes through an address; the plain loads before and after it differ.
# sim: counted
#   P: int32[1] = 0 -> 64
#   B: int32[64] = 0 -> 64
@T.prim_func
def counted(P: T.Buffer((1,), "int32"), B: T.Buffer((64,), "int32")):
    T.device_entry()
    T.cta_id([1])
    t = T.thread_id([64])
    before: T.let = P[0]
    T.cuda.cta_sync()
    T.cuda.atomic_add(T.address_of(P[0]), 1)
    T.cuda.cta_sync()
    B[t] = before + P[0]


# Each thread keeps to elements that no synchronization separates: both pointers stay `__restrict__`.
# sim: updated_in_place
#   P: float32[64] = i -> 2 * i
#   B: float32[64] = 0 -> 2 * (i ^ 1)
@T.prim_func
def updated_in_place(P: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry()
    T.cta_id([1])
    t = T.thread_id([64])
    shared = T.alloc_shared((64,), "float32")
    P[t] = P[t] * T.float32(2)
    shared[t] = P[t]
    T.cuda.cta_sync()
    B[t] = shared[t ^ 1]
