# test: parse
# test: sim
# Functions of numbers that the host computes for a launch.
from tvm.script import tirx as T


@T.prim_func
def extents(A: T.Buffer((16,), "int32"), k: T.int32, x: T.float64):
    up: T.let = T.cast(T.ceil(T.cast(k, "float32") / T.float32(3.0)), "int32")
    down: T.let = T.cast(T.floor(x), "int32")
    even: T.let = T.cast(T.round(x), "int32")
    root: T.let = T.cast(T.sqrt(T.cast(k, "float64")), "int32")
    power: T.let = T.cast(T.pow(T.float64(2.0), T.floor(T.log2(T.cast(k, "float64")))), "int32")
    T.device_entry()
    bx = T.cta_id([T.cast(T.ceil(T.cast(k, "float32") / T.float32(3.0)), "int32")])
    tx = T.thread_id([1])
    A[bx] = bx + 1
    if bx == 0:
        A[8] = up
        A[9] = down
        A[10] = even
        A[11] = root
        A[12] = power
        A[13] = T.popcount(k)
        A[14] = T.cast(T.fabs(x) + T.trunc(x), "int32")
