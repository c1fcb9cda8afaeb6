# test: parse only
# Loop bounds, annotations, nests and names.

@T.prim_func
def l2(a: T.handle, A: T.Buffer((256,4), "float32"), p: T.handle, n: T.int32, b2: T.handle):
    k = T.int32()
    j2 = T.int64()
    uu = T.int32()
    m = T.match_buffer(a, (k, j2, n), "float32")
    B2 = T.match_buffer(b2, (uu, n), "float32")
    T.device_entry(); bx = T.cta_id([2]); ci = T.cta_id_in_cluster([2], preferred=[3]); tx = T.thread_id([32]); w = T.warp_id(); l = T.lane_id([32]); pr = T.cta_id_in_pair()
    for i in range(1, n):
        A[i, 0] = 1.0
    for i in range(1, 1 + n):
        A[i, 0] = 1.0
    for i in range(n - 1, n + 7):
        A[i, 0] = 1.0
    for i in range(-3, 7):
        A[i, 0] = 1.0
    for i in T.unroll(4, annotations={"k": 1}):
        A[i, 0] = 1.0
    for i in T.unroll(0, 4, annotations={"k": 1}, step=2):
        A[i, 0] = 1.0
    for i in T.serial(1, 4, annotations={"k": T.int64(3), "s": n + 1, "n": None, "d": {"x": 1}}, step=2):
        A[i, 0] = 1.0
    for i in T.thread_binding(6, thread="threadIdx.y", annotations={"k": 1}):
        A[i, 0] = 1.0
    for i in T.thread_binding(6, thread="vthread"):
        A[i, 0] = 1.0
    for i, j, q in T.grid(4, T.int64(5), n):
        A[i, j] = 1.0
    for i in T.serial(4):
        for j in T.serial(5, annotations={"x": 1}):
            A[i, j] = 1.0
    for i in T.serial(4):
        for j in T.serial(0, 5, step=2):
            A[i, j] = 1.0
    for i in T.serial(4):
        for j in range(4):
            T.evaluate(0)
            A[i, j] = 1.0
    for i in T.serial(n):
        for j in range(4):
            pass
    A.vstore([n, T.Ramp(0, 1, 4)], A.vload([n, T.Ramp(0, 1, 4)], predicate=T.Broadcast(T.bool(True), 4)), predicate=T.Broadcast(T.bool(True), 4))
    A[n, 0:4] = T.exp(A[n, 0:4])
    T.evaluate(A[n, 0])
    T.evaluate(A[n, T.Ramp(0,1,4)])
    T.cuda.func_call("foo", n, source_code="abc\n\"x\" \t \\", return_type="void")
    T.cuda.func_call("foo", n, source_code="abc")
    if n == 1:
        with T.attr({"z": 1}):
            A[0,0] = 1.0
    if n == 1:
        A[0,0] = 1.0
        with T.attr({"z": 1}):
            with T.attr(A, "y", 2):
                with T.attr({"q": 3}):
                    with T.attr({"q": 5}):
                        A[0,0] = 1.0
    if n == 2:
        t1 = T.env_thread("threadIdx.x")
        with T.launch_thread(t1, 4):
            A[t1, 0] = 1.0
        with T.launch_thread(t1, 4):
            A[t1, 0] = 1.0
    x: T.let = n + 1
    if n == 3:
        x2: T.let = n + 2
        T.evaluate(x2)
    if n == 3:
        x2: T.let = n + 2
        T.evaluate(x2)
    x2: T.let = n + 2
    T.evaluate(x2)
    s1: T.int32 = 0
    s1 = s1 + A[s1, 0].astype("int32")
    A[s1, s1] = 1.0
    T.thread_return()

@T.prim_func
def l3(A: T.Buffer((256,4), "float32"), n: T.int32):
    T.device_entry(); bx = T.cta_id([2]);
    if n == 2:
        t1 = T.env_thread("threadIdx.x")
        if n == 4:
            with T.launch_thread(t1, 4):
                A[t1, 0] = 1.0
        else:
            with T.launch_thread(t1, 4):
                A[t1, 0] = 1.0
    if n == 3:
        with T.attr({"z": 1}):
            with T.launch_thread("threadIdx.y", 4) as ty:
                A[ty, 0] = 1.0
        A[0,0] = 1.0
    if n == 3:
        x: T.let = n * 2
        for i in range(4):
            A[i, x] = 2.0
        x9 = T.alloc_local((4,), "int32")
        x9[0] = 3
    for i in range(3):
        T.attr({"z": 1})
        A[i,0]=1.0
    T.evaluate(T.call_extern("handle", "x", 1))
    y: T.let = T.call_extern("handle", "x", 1)
    T.tvm_stack_alloca("shape", 4)
    T.evaluate(T.tvm_struct_set(y, 0, 1, n))
