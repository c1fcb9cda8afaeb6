@T.prim_func
def transp(a: T.handle, b: T.handle):
    m = T.int32(); n = T.int32()
    A = T.match_buffer(a, (m, n), "float32")
    B = T.match_buffer(b, (n, m), "float32")
    T.device_entry()
    bx, by = T.cta_id([T.ceildiv(n, 32), T.ceildiv(m, 32)]); tx, ty = T.thread_id([32, 8])
    t = T.alloc_shared((32, 33), "float32")
    for i in T.unroll(4):
        if by * 32 + ty + i * 8 < m and bx * 32 + tx < n:
            t[ty + i * 8, tx] = A[by * 32 + ty + i * 8, bx * 32 + tx]
    T.cuda.cta_sync()
    for i in T.unroll(4):
        if bx * 32 + ty + i * 8 < n and by * 32 + tx < m:
            B[bx * 32 + ty + i * 8, by * 32 + tx] = t[tx, ty + i * 8]
