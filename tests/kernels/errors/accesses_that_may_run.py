# test: messages
# Constant indices beyond a buffer, beside branches and loops that never run.
from tvm.script import tirx as T


@T.prim_func
def otherwise(A: T.Buffer((32,), "float32")):
    T.device_entry()
    T.thread_id([32])
    if T.bool(False):
        A[40] = 1.0
    else:
        A[41] = 1.0


@T.prim_func
def behind_it(A: T.Buffer((32,), "float32")):
    T.device_entry()
    T.thread_id([32])
    for i in range(0):
        A[40] = 1.0
    A[41] = 1.0


@T.prim_func
def one_of_two(A: T.Buffer((32,), "float32")):
    T.device_entry()
    tx = T.thread_id([32])
    if T.Or(tx < 0, T.bool(False)):
        A[tx] = A[41]


@T.prim_func
def always(A: T.Buffer((32,), "float32")):
    T.device_entry()
    T.thread_id([32])
    with T.If(T.bool(True)):
        with T.Then():
            A[41] = 1.0
        with T.Else():
            A[40] = 1.0


@T.prim_func
def a_part(A: T.Buffer((32,), "float32")):
    T.device_entry()
    tx = T.thread_id([32])
    words = T.alloc_buffer((4,), "float32", scope="local")
    while T.bool(True):
        words[1:5] = T.broadcast(A[tx], 4)
