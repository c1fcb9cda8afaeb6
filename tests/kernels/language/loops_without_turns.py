# test: parse
# test: compile sm_90a
# test: sim
# A loop may have no iterations: after it, nothing follows from its bounds.
from tvm.script import tirx as T


@T.prim_func
def divisor(A: T.Buffer((64,), "int32"), B: T.Buffer((16,), "int32")):
    T.device_entry()
    tx = T.thread_id([4])
    for i in range(tx):
        B[tx * 4 + i] = i
    B[tx * 4 + 3] = A[A[63] // T.max(T.min(tx, 114), 1)]


@T.prim_func
def clamped(A_h: T.handle, B: T.Buffer((8,), "int32")):
    n = T.int32()
    A = T.match_buffer(A_h, (n,), "int32")
    T.device_entry()
    tx = T.thread_id([8])
    total = T.local_scalar("int32")
    total = 0
    for i in range(n - tx):
        total = total + A[i]
    B[tx] = total * 100 + A[T.min(tx, n - 1)]


@T.prim_func
def from_a_start(A_h: T.handle, B: T.Buffer((8,), "int32")):
    n = T.int32()
    A = T.match_buffer(A_h, (n,), "int32")
    T.device_entry()
    tx = T.thread_id([8])
    total = T.local_scalar("int32")
    total = 0
    for i in range(tx, n):
        total = total + A[i]
    B[tx] = total * 100 + A[T.max(T.min(tx, n - 1), 0)]
