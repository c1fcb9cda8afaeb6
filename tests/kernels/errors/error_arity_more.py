# error: T.exp() takes 1 positional argument but 2 were given
# error: --> error_arity_more.py:11:26
# error: the signature is T.exp(x)
# An argument too many is marked, and the signature shown.

@T.prim_func
def kernel(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float16")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    A[tx] = T.exp(A[tx], 2.0)
