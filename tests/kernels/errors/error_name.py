# error: alloc_shared
# error: --> error_name.py:9:11
# A misspelt function: the message shows the line and the name that was meant.

@T.prim_func
def kernel(A: T.Buffer((32,), "float32")):
    T.device_entry()
    tx = T.thread_id([32])
    S = T.aloc_shared((32,), "float32")
    A[tx] = S[tx]
