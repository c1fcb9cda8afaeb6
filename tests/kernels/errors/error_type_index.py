# error: index 0 of A must be an integer, found float32
# error: --> error_type_index.py:10:5
# An index must be an integer.

@T.prim_func
def kernel(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float16")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    A[A[tx]] = 1.0
