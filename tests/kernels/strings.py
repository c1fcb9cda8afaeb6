# test: parse
# test: lower StmtSimplify
# test: cuda sm_90a
# What a T.let of a string is called where it is printed: TVM's word for its type.
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
