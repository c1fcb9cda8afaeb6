# error: T.if_then_else() misses "f"
# error: --> error_arity_less.py:11:13
# error: the signature is T.if_then_else(cond, t, f)
# An argument that is missing is named.

@T.prim_func
def kernel(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float16")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    A[tx] = T.if_then_else(tx < 3, A[tx])
