# test: parse
# test: cuda sm_90a
# test: sim
# Conversions between formats round once, whatever lies between them.
from tvm.script import tirx as T


@T.prim_func
def converted(
    A: T.Buffer((4,), "float64"), W: T.Buffer((2,), "int32"), L: T.Buffer((2,), "int64"), O: T.Buffer((9,), "float32")
):
    T.device_entry()
    tx = T.thread_id([1])
    O[0] = T.cast(T.cast(A[0], "float8_e5m2"), "float32")
    O[1] = T.cast(T.cast(A[1], "float8_e4m3fn"), "float32")
    O[2] = T.cast(T.cast(A[2], "bfloat16"), "float32")
    O[3] = T.cast(T.cast(A[3], "float16"), "float32")
    O[4] = T.cast(T.cast(W[0], "bfloat16"), "float32")
    O[5] = T.cast(T.int64(1152921573326323713), "float32")
    O[6] = T.cast(T.cast(T.float64(1.000488281250909), "float16"), "float32")
    O[7] = T.cast(T.float16(1.000488281250909), "float32")
    O[8] = T.cast(L[0], "float32")
