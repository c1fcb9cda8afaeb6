@T.prim_func
def symm(a: T.handle, b: T.handle, c: T.handle):
    m = T.int32(); n = T.int32(); k = T.int32()
    A = T.match_buffer(a, (m, k), "float32")
    B = T.match_buffer(b, (k, n), "float32")
    C = T.match_buffer(c, (m, n), "float32")
    T.device_entry()
    by, bx = T.cta_id([T.ceildiv(m, 16), T.ceildiv(n, 16)])
    tx = T.thread_id([256])
    r: T.let = by * 16 + tx // 16
    s: T.let = bx * 16 + tx % 16
    if r < m and s < n:
        acc: T.float32 = 0.0
        for i in range(k):
            acc += A[r, i] * B[i, s]
        C[r, s] = acc
