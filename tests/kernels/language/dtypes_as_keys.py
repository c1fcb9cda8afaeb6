"""An element type is equal to its name, also as the key of a dictionary or an element of a set."""
from tvm.script import tirx as T

BYTES = {"float16": 2, "float32": 4}


# sim: sizes
#   a: float16[4] = i
#   b: int32[4] = 0 -> 2 * i + 2
@T.prim_func
def sizes(a: T.handle, b: T.handle):
    A = T.match_buffer(a, (4,), "float16")
    B = T.match_buffer(b, (4,), "int32")
    T.device_entry()
    tx = T.thread_id([4])
    T.static_assert(A.dtype in {"float16", "bfloat16"}, "a set of names has the type")
    B[tx] = T.cast(A[tx], "int32") * BYTES[A.dtype] + BYTES[A.dtype]
