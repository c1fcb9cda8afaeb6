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
