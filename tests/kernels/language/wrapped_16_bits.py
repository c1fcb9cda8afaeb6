# test: parse
# test: cuda sm_90a
# test: sim
# Negations and sums of 16 bits wrap where they are compared, converted, shifted and divided: nvcc 13.0 takes the negation
# of -32768 for 32768.
from tvm.script import tirx as T


@T.prim_func
def negated(A: T.Buffer((8,), "int16"), B: T.Buffer((8,), "int16"), C: T.Buffer((8, 6), "int32")):
    T.device_entry()
    tx = T.thread_id([8])
    x: T.let = -A[tx]
    C[tx, 0] = T.cast(x, "int32")
    C[tx, 1] = T.cast(T.max(x, B[tx]), "int32")
    C[tx, 2] = T.Select(x < B[tx], 1, 2)
    C[tx, 3] = T.cast(x >> T.int16(3), "int32")
    C[tx, 4] = T.cast(T.truncdiv(x, T.int16(2)), "int32")
    C[tx, 5] = T.Select(A[tx] * T.int16(-1) == B[tx], 1, 2)


@T.prim_func
def negated_unsigned(A: T.Buffer((8,), "uint16"), B: T.Buffer((8,), "uint16"), C: T.Buffer((8, 3), "int32")):
    T.device_entry()
    tx = T.thread_id([8])
    x: T.let = T.uint16(0) - A[tx]
    C[tx, 0] = T.cast(x, "int32")
    C[tx, 1] = T.Select(x < B[tx], 1, 2)
    C[tx, 2] = T.Select(x == B[tx], 1, 2)


@T.prim_func
def sums(A: T.Buffer((8,), "int16"), B: T.Buffer((8,), "int16"), C: T.Buffer((8, 4), "int32")):
    T.device_entry()
    tx = T.thread_id([8])
    C[tx, 0] = T.Select(A[tx] + B[tx] == T.int16(0), 1, 2)
    C[tx, 1] = T.cast(T.cast(A[tx] + B[tx], "bool"), "int32")
    s: T.uint16 = T.cast(A[tx], "uint16") + T.cast(B[tx], "uint16")
    C[tx, 2] = T.Select(T.uint16(0) < s, 1, 2)
    if s < T.uint16(1):
        C[tx, 3] = 1


@T.prim_func
def lanes(A: T.Buffer((8,), "int16"), B: T.Buffer((8,), "int16"), C: T.Buffer((2, 8), "int32")):
    T.device_entry()
    tx = T.thread_id([2])
    for i in T.vectorized(4):
        C[0, tx * 4 + i] = T.cast(-A[tx * 4 + i], "int32")
        C[1, tx * 4 + i] = T.Select(A[tx * 4 + i] + B[tx * 4 + i] != T.int16(0), 1, 2)
