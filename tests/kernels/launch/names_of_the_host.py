# test: parse only
# Names of T that belong to host code and to printed IR: packed calls, types, handles of error.
from tvm.script import tirx as T


@T.prim_func
def packed(A: T.Buffer((32,), "float32"), p: T.handle) -> T.void:
    if T.isnullptr(p):
        T.tvm_throw_last_error()
    T.evaluate(T.tvm_call_packed("some.function", A.data, 1))
    T.evaluate(T.tvm_call_packed_lowered("some.function", p, 0, 1))
    T.evaluate(T.call_packed_lowered("some.function", p, 0, 1))
    T.evaluate(T.StringImm("a text"))
    T.evaluate(T.tvm_tuple(A[0], 1.0))


@T.prim_func
def declared(A: T.Buffer((32,), "float32")):
    B = T.buffer_decl((32,), "float32")
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    B[tx] = A[tx]
