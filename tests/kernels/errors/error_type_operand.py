# error: unsupported operands for `+`: an expression of dtype float32 and the string "text"
# error: --> error_type_operand.py:10:13
# Operands that no operator takes.

@T.prim_func
def kernel(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float16")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    A[tx] = A[tx] + "text"
