# test: parse
# test: cuda sm_90a
# Constants at the ends of their dtypes, as IR prints them.
from tvm.script import tirx as T

@T.prim_func
def floats(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float64"), C: T.Buffer((16,), "float16"), D: T.Buffer((16,), "bfloat16")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([1])
    A[0] = T.float32("nan")
    A[1] = T.float32("inf")
    A[2] = T.float32("-inf")
    A[3] = T.float32(1e-45)
    A[4] = T.float32(3.4028234663852886e38)
    A[5] = T.float32(-0.0)
    A[6] = T.float32(float("inf"))
    A[7] = T.infinity("float32")
    A[8] = T.max_value("float32")
    B[0] = T.float64("nan")
    B[1] = T.float64("-inf")
    B[2] = T.float64(1.7976931348623157e308)
    B[3] = T.float64(5e-324)
    B[4] = T.float64(0.1)
    C[0] = T.float16("nan")
    C[1] = T.float16("-inf")
    C[2] = T.float16(65504.0)
    C[3] = T.float16(6e-8)
    D[0] = T.bfloat16("inf")
    D[1] = T.bfloat16("nan")
    D[2] = T.bfloat16(3.3895313892515355e38)

@T.prim_func
def integers(A: T.Buffer((16,), "int64"), B: T.Buffer((16,), "uint64"), C: T.Buffer((16,), "int8"), D: T.Buffer((16,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([1])
    A[0] = T.int64(9223372036854775807)
    A[1] = T.int64(-9223372036854775808)
    A[2] = T.min_value("int64")
    B[0] = T.uint64(18446744073709551615)
    B[1] = T.uint64(9223372036854775808)
    B[2] = T.large_uint_imm("uint64", T.uint32(4294967295), T.uint32(4294967295))
    C[0] = T.int8(-128)
    C[1] = T.int8(127)
    D[0] = 2147483647
    D[1] = T.min_value("int32")
