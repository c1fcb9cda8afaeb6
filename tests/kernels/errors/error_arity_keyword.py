# error: T.Cast() has no parameter "wdth"
# error: --> error_arity_keyword.py:10:
# An unknown keyword.

@T.prim_func
def kernel(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float16")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    A[tx] = T.Cast("float32", value=B[tx], wdth=3)
