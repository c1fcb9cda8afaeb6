@T.prim_func
def softm(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 256), "float32")
    B = T.match_buffer(b, (n, 256), "float32")
    T.device_entry()
    row = T.cta_id([n]); w = T.warp_id([1]); lane = T.lane_id([32])
    v = T.alloc_local((8,), "float32")
    m: T.float32 = T.min_value("float32")
    for i in T.unroll(8):
        v[i] = A[row, lane + i * 32]
        m = T.max(m, v[i])
    off: T.int32 = 16
    while off >= 1:
        m = T.max(m, T.tvm_warp_shuffle_xor(0xFFFFFFFF, m, off, 32, 32))
        off = off // 2
    s: T.float32 = 0.0
    for i in T.unroll(8):
        v[i] = T.exp(v[i] - m)
        s += v[i]
    for o in T.unroll(5):
        s += T.tvm_warp_shuffle_xor(0xFFFFFFFF, s, 1 << o, 32, 32)
    for i in T.unroll(8):
        B[row, lane + i * 32] = v[i] / s
