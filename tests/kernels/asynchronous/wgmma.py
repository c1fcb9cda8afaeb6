# test: parse
# test: cuda sm_90a

@T.prim_func
def products(D_ptr: T.handle):
    D = T.match_buffer(D_ptr, (128, 8), "float32")
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([128])
    A = T.alloc_shared((64, 64), "float16")
    B = T.alloc_shared((16, 64), "float16")
    a = T.alloc_local((4,), "uint32")
    acc = T.alloc_local((8,), "float32")
    half = T.alloc_local((4,), "uint32")
    ints = T.alloc_local((8,), "int32")
    descA: T.uint64
    descB: T.uint64
    for i in T.unroll(8):
        acc[i] = 0.0
        ints[i] = 0
    for i in T.unroll(4):
        a[i] = T.uint32(0)
        half[i] = T.uint32(0)
    T.ptx.wgmma.encode_matrix_descriptor(T.address_of(descA), A.ptr_to([0, 0]), 1, 64, 3)
    T.ptx.wgmma.encode_matrix_descriptor(T.address_of(descB), B.ptr_to([0, 0]), 1, 64, 3)
    for i in T.unroll(8):
        T.ptx.wgmma.noop_barrier(acc[i])
    T.ptx.wgmma.fence()
    T.ptx.wgmma.mma_async.ss(descA, descB, *[acc[i] for i in range(8)], M=64, N=16, K=16, in_dtype="float16", out_dtype="float32",
                             transA=False, transB=False, scaleA=1.0, scaleB=1.0, scaleD=True)
    T.ptx.wgmma.mma_async.ss(descA, descB, *[half[i] for i in range(4)], M=64, N=16, K=16, in_dtype="float16", out_dtype="float16",
                             transA=True, transB=True, scaleA=1, scaleB=-1, scaleD=1)
    T.ptx.wgmma.mma_async.ss(descA, descB, *[ints[i] for i in range(8)], M=64, N=16, K=32, in_dtype="int8", out_dtype="int32",
                             transA=False, transB=False, scaleA=1, scaleB=1, scaleD=0)
    T.ptx.wgmma.mma_async.rs(descB, *[a[i] for i in range(4)], *[acc[i] for i in range(8)], M=64, N=16, K=16, in_dtype="bfloat16",
                             out_dtype="float32", transA=False, transB=True, scaleA=1.0, scaleB=1.0, scaleD=tx)
    T.ptx.wgmma.mma_async.ss(descA, descB, *[acc[i] for i in range(8)], M=64, N=16, K=8, in_dtype="tf32", out_dtype="float32",
                             transA=False, transB=False, scaleA=1, scaleB=1, scaleD=1)
    T.ptx.wgmma.mma_async.ss(descA, descB, *[acc[i] for i in range(8)], M=64, N=16, K=32, in_dtype="float8_e4m3fn", out_dtype="float32",
                             transA=False, transB=False, scaleA=1, scaleB=1, scaleD=1)
    T.ptx.wgmma.commit_group()
    T.ptx.wgmma.wait_group(0)
    for i in T.unroll(8):
        T.ptx.wgmma.noop_barrier(acc[i])
        D[tx, i] = acc[i] + T.cast(ints[i], "float32") + T.cast(half[i // 2], "float32")
