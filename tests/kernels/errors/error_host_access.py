# error: --> error_host_access.py:7:5
# Host code that accesses device memory is found by a late pass, which still knows the line.

@T.prim_func
def kernel(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    n: T.let = 3
    A[n] = 1.0
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    B[tx] = 2.0
