# test: parse
# test: compile sm_90a
# What Apache TVM 0.26 and 0.27 printed: `.buffer` and `.source` are the buffers of scalars, brackets behind them are regions, and a
# bare name is an element, among the arguments of calls too.
# from typing import TypeVar
# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis


# sim: of_26
#   A: float32[1] = 4
#   B: float32[32] = 0 -> 4 + 4 + 1082130432
@T.prim_func
def of_26(A: T.Buffer((1,), "float32"), B: T.Buffer((32,), "float32")):
    T.attr({"tirx.device_entry": T.bool(True)})
    v = T.cta_id([1])
    tx = T.thread_id([32])
    x = T.local_scalar(T.float32)
    T.tile.copy(x.buffer[0], A.buffer[0])
    w: T.float32 = A
    T.tile.add(x.buffer[0], w.buffer[0], x.buffer[0])
    y = T.decl_buffer((1,), "int32", data=A.buffer.data)
    B[tx] = x + T.Cast("float32", y)


# sim: of_27
#   A: float32[1] = 4 -> 6
#   n: int32[1] = 3
#   B: float32[32] = 0 -> (4 + 6 + 7 + 2)
@T.prim_func
def of_27(A: T.Buffer((1,), "float32"), n: T.Buffer((1,), "int32"), B: T.Buffer((32,), "float32")):
    T.attr({"tirx.device_entry": T.bool(True)})
    v = T.cta_id([1])
    tx = T.thread_id([32])
    B_local = T.local_scalar(T.float32)
    x = T.local_scalar(T.float32)
    y = T.decl_scalar(T.float32, data=x.source.data, elem_offset=0, scope="local")
    x = A
    B_local = A
    T.cuda.cta_sync()
    if tx == 0:
        A = x + T.float32(2.0)
    T.cuda.cta_sync()
    for i in range(n):
        y = T.Cast("float32", i) * T.float32(0.5) + A
    z = T.local_scalar(T.float32)
    T.tile.fill(z.source[0], T.float32(2.0))
    B[tx] = B_local + A + x + z


# The bare name is the value; `.source` is the pointer.
@T.prim_func
def outside(A: T.Buffer((1,), "float32"), n: T.Buffer((1,), "int32"), B: T.Buffer((32,), "float32")):
    T.attr({"tirx.device_entry": T.bool(True)})
    v = T.cta_id([1])
    tx = T.thread_id([32])
    x: T.float32 = A
    B[tx] = T.cuda.func_call("g", x, A, A.source, source_code="__device__ float g(float a, float b, float* c) { return a + b + *c; }", return_type="float32")
