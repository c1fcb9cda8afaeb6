# error: "tz" is not defined
# error: --> error_unknown_name.py:11:15
# error: declare it after T.device_entry(): `tz = T.thread_id([128])`
# A name that nothing defines.

@T.prim_func
def kernel(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float16")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    A[tx] = A[tz] + 1.0
