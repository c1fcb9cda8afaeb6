@T.prim_func
def dynshared(a: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([n])
    s = T.alloc_buffer((n,), "float32", scope="shared.dyn")
    s[tx] = A[tx]
    T.cuda.cta_sync()
    A[tx] = s[n - 1 - tx]
