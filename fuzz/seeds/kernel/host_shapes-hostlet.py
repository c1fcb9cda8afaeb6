@T.prim_func
def hostlet(a: T.handle, b: T.handle, k: T.int32):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    blocks: T.let = T.min(T.ceildiv(n, 128), k)
    T.device_entry()
    bx = T.cta_id([blocks]); tx = T.thread_id([128])
    for it in range(T.ceildiv(n, blocks * 128)):
        i: T.let = (it * blocks + bx) * 128 + tx
        if i < n:
            B[i] = T.max(A[i], T.float32(0))
