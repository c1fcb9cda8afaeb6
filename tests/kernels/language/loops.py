# test: parse only
# Every form of loop, region, assertion and scalar.

@T.prim_func
def every_form(A: T.Buffer((256,4), "float32"), n: T.int32, m: T.int32, p: T.handle, q: T.handle("float32"), r: T.handle("int8", "shared"), u: T.uint8, b: T.bool, h: T.float16, bf: T.bfloat16, f8: T.float8_e4m3fn):
    T.device_entry(); bx = T.cta_id([2]); tx = T.thread_id([32])
    for i in range(n, m):
        A[i, 0] = 1.0
    for i in range(n, n+4):
        A[i, 0] = 1.0
    for i in range(0, 10, 2):
        A[i, 0] = 1.0
    for i in T.serial(0, 10, step=3):
        A[i, 0] = 1.0
    for i in range(n, m, 2):
        A[i, 0] = 1.0
    for i in T.serial(4, annotations={"k": 1, "z": "s", "f": 1.5, "b": True, "l": [1,2]}):
        A[i, 0] = 1.0
    for i in T.serial(T.int64(4)):
        A[i, 0] = 1.0
    for i in T.serial(T.int64(1), T.int64(4)):
        A[i, 0] = 1.0
    for i in T.unroll(2, 6):
        A[i, 0] = 1.0
    for i in T.parallel(6):
        A[i, 0] = 1.0
    for i in T.vectorized(6):
        A[i, 0] = 1.0
    for i in T.thread_binding(6, "threadIdx.y"):
        A[i, 0] = 1.0
    for i in T.thread_binding(1, 6, "threadIdx.z"):
        A[i, 0] = 1.0
    for i, j in T.grid(4, 5):
        A[i, j] = 1.0
    for i in range(4):
        for j in range(i):
            A[i, j] = 1.0
    for i in range(4):
        for j in range(4):
            for k in range(j):
                for l in range(3):
                    A[i, j] = 1.0
    for i in range(4):
        for j in range(1, 4):
            A[i, j] = 1.0
    for i in range(4):
        for j in T.unroll(4):
            A[i, j] = 1.0
    for i in range(T.int64(4)):
        for j in range(4):
            A[i, j] = 1.0
    for i in range(4):
        x: T.int32 = i
        A[i, x] = 1.0
    for i in range(4):
        y: T.int32
        if i == 1:
            y = 3
        A[i, y] = T.Cast("float32", u) + T.Cast("float32", h)
    z = T.alloc_local((1,), "float32")
    for i in range(4):
        z[0] = z[0] + 1.0
    w = T.alloc_local((1,), "float32", align=16)
    w[0] = 1.0
    T.evaluate(n + 1)
    if n == 3:
        pass
    with T.attr({"pragma": 1}):
        A[0,0] = 1.0
    T.attr({"pragma2": 1, "p3": "str"})
    with T.attr(A, "pragma_x", n+1):
        A[0,0] = 2.0
    with T.attr("default", "zz", 3):
        A[0,0] = 2.0
    with T.attr(n, "zz", 3):
        A[0,0] = 2.0
    assert n > 3, "oops"
    assert n > 4, ("ValueError", ["a", "b"])
    T.thread_return()
