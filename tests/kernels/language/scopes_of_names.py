# test: parse
# test: cuda sm_90a
# test: sim
# Names of blocks: one assigned alone is stored where it is a scalar; several at once are new in a block.
from tvm.script import tirx as T


@T.prim_func
def several_in_a_branch(B: T.Buffer((8,), "int32")):
    T.device_entry()
    tx = T.thread_id([8])
    x = tx
    if tx > 3:
        x, y = tx * 2, tx * 3
        B[tx] = x + y
    else:
        B[tx] = x
    B[tx] += x * 1000


@T.prim_func
def several_in_a_loop(B: T.Buffer((8,), "int32")):
    T.device_entry()
    tx = T.thread_id([8])
    p: T.int32 = 1
    q: T.int32 = 2
    B[tx] = 0
    for i in range(3):
        q, p = p, q
        B[tx] += q * 10 + p
    B[tx] += p * 1000 + q * 10000


@T.prim_func
def one_in_a_branch(B: T.Buffer((8,), "int32")):
    T.device_entry()
    tx = T.thread_id([8])
    x = tx
    if tx > 3:
        x = tx * 2
    B[tx] = x


@T.prim_func
def assertion_in_a_branch(B: T.Buffer((8,), "int32")):
    T.device_entry()
    tx = T.thread_id([8])
    if tx > 40:
        assert False, "never"
    B[tx] = 1


@T.prim_func
def loops_said_parallel(B: T.Buffer((8,), "int32")):
    T.device_entry()
    tx = T.thread_id([8])
    B[tx] = 0
    for i in T.parallel(4):
        B[tx] += i
