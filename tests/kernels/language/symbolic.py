# test: parse
# test: lower LowerTIRx
# Symbolic extents, strides and offsets; scalars; control flow.

@T.prim_func
def scale_dyn(a: T.handle, b: T.handle, c: T.handle, s: T.float32, k: T.int32):
    n = T.int32()
    m = T.int64()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,m), "float16", align=16, elem_offset=64)
    C = T.match_buffer(c, (4,8), "float32", strides=(16,1), offset_factor=4)
    half: T.let = n // 2
    T.device_entry()
    bx = T.cta_id([T.ceildiv(n,128)]); tx = T.thread_id([128])
    i: T.int32 = bx*128+tx
    acc: T.float32 = 0.0
    if i < n:
        for j in range(n):
            acc += A[i] * s
        for j in T.serial(2, 5):
            acc += T.float32(1)
        for j, kk in T.grid(4, 8):
            C[j, kk] = acc
        B[i, 0] = T.cast(acc, "float16")
    elif i < 3:
        A[i] = acc
    else:
        while i > 0:
            i = i // 2
            if i == 4:
                break
            else:
                continue
