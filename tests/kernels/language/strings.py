# test: parse
# test: lower StmtSimplify
# test: cuda sm_90a
# The printed type of a T.let of a string: TVM's name.
from tvm.script import tirx as T


@T.prim_func
def named(A: T.Buffer((64,), "int32")):
    T.device_entry()
    tx = T.thread_id([64])
    first: T.let = "hello"
    second: T.let[T.void] = "there"
    A[tx] = tx
    T.evaluate(first)
    T.evaluate(second)
