# test: parse
# test: compile sm_90a
# An attribute may mention parameters of the signature; it is unchanged when the host function reads its arguments itself.
from tvm.script import ir as I
from tvm.script import tirx as T


@T.prim_func
def launched(A_h: T.handle, n: T.int32):
    T.func_attr({"x": n + 1})
    m = T.int32()
    A = T.match_buffer(A_h, (m,), "float32")
    T.device_entry()
    tx = T.thread_id([32])
    if tx < n:
        A[tx] = T.float32(1)


@I.ir_module
class OnTheHost:
    @T.prim_func(private=True)
    def twice(n: T.int32) -> T.int32:
        T.func_attr({"x": n + 1})
        return n * 2

    @T.prim_func
    def main(A: T.Buffer((32,), "int32"), n: T.int32):
        T.func_attr({"twice": n * 2})
        T.device_entry()
        tx = T.thread_id([32])
        A[tx] = OnTheHost.twice(n)
