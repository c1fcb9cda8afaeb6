# error: syntax error: expected `:`, found the name `A`
# error: --> error_syntax.py:10:15
# What Python cannot parse: the parser's words and the place.

@T.prim_func
def kernel(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float16")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    if tx < 3 A[tx] = 1.0
