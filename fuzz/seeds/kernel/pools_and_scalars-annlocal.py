@T.prim_func
def annlocal(A: T.Buffer((128,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    x: T.f32[4]
    y: T.float32[2, 2]
    z: T.i32
    z = 3
    for i in T.unroll(4):
        x[i] = A[tx * 4 + i]
        y[i // 2, i % 2] = x[i]
    for i in T.unroll(4):
        A[tx * 4 + i] = x[i] + y[i % 2, i // 2] + z
