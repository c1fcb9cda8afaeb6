# error: unknown name "tz"
# error: --> error_unknown_name.py:11:15
# error: did you mean "tx"?
# A name that nothing defines.

@T.prim_func
def kernel(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float16")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    A[tx] = A[tz] + 1.0
