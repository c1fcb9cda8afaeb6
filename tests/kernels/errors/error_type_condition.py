# error: T.if_then_else needs a bool condition, got float32
# error: --> error_type_condition.py:11:13
# error: compare it: x != 0
# A condition must be bool.

@T.prim_func
def kernel(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float16")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    A[tx] = T.if_then_else(A[tx], B[tx], A[tx])
