from tvm.tirx.layout import TileLayout, S, laneid
@T.prim_func
def lets(a: T.handle, b: T.handle, m: T.int32):
    k = T.int32()
    A = T.match_buffer(a, (k,), "int32")
    B = T.match_buffer(b, (k,), "int32")
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    n: T.let = m * k
    half: T.let[T.int32] = n // 2
    if tx < k:
        B[tx] = A[tx] + half * 3 + half
