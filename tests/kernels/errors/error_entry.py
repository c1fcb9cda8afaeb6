# entry: scal
# error: no entry "scal"
# error: did you mean "scale"?
# A kernel that the file does not define.

@T.prim_func
def scale(A: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    A[tx] = A[tx] * 2.0
