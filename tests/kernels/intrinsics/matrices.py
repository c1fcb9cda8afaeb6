# test: parse
# test: cuda sm_90a
# test: compile sm_80

@T.prim_func
def ldmatrix_mma(A_ptr: T.handle, D_ptr: T.handle):
    A = T.match_buffer(A_ptr, (32, 16), "float16")
    D = T.match_buffer(D_ptr, (32, 4), "float32")
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((32, 16), "float16")
    a = T.alloc_local((4,), "uint32")
    b = T.alloc_local((2,), "uint32")
    acc = T.alloc_local((4,), "float32")
    for i in T.serial(16):
        S[tx, i] = A[tx, i]
    T.cuda.cta_sync()
    T.ptx.ldmatrix(False, 4, ".b16", S.ptr_to([tx % 16, tx // 16 * 8]), a.ptr_to([0]), a.ptr_to([1]), a.ptr_to([2]), a.ptr_to([3]))
    T.ptx.ldmatrix(True, 2, ".b16", S.ptr_to([16 + tx % 16, 0]), b.ptr_to([0]), b.ptr_to([1]))
    T.ptx.mma("m16n8k16", "row", "col", "float32", "float16", "float16", "float32",
              [acc.ptr_to([0]), acc.ptr_to([1]), acc.ptr_to([2]), acc.ptr_to([3])],
              [a.ptr_to([0]), a.ptr_to([1]), a.ptr_to([2]), a.ptr_to([3])], [b.ptr_to([0]), b.ptr_to([1])])
    T.ptx.mma("m16n8k8", "row", "col", "fp32", "bf16", "bf16", "fp32",
              [acc.ptr_to([i]) for i in range(4)], [a.ptr_to([i]) for i in range(2)], [b.ptr_to([0])],
              [acc.ptr_to([i]) for i in range(4)])
    T.ptx.mma("m16n8k8", "row", "col", "float32", "tf32", "tf32", "float32",
              [acc.ptr_to([i]) for i in range(4)], [a.ptr_to([i]) for i in range(4)], [b.ptr_to([i]) for i in range(2)],
              [acc.ptr_to([i]) for i in range(4)])
    for i in T.serial(4):
        D[tx, i] = acc[i]


@T.prim_func
def mma_integers(A_ptr: T.handle, D_ptr: T.handle):
    A = T.match_buffer(A_ptr, (32, 6), "uint32")
    D = T.match_buffer(D_ptr, (32, 4), "int32")
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    a = T.alloc_local((6,), "uint32")
    acc = T.alloc_local((4,), "int32")
    f = T.alloc_local((3,), "float64")
    for i in T.serial(6):
        a[i] = A[tx, i]
    d = [acc.ptr_to([i]) for i in range(4)]
    T.ptx.mma("m16n8k32", "row", "col", "int32", "int8", "uint8", "int32", d, [a.ptr_to([i]) for i in range(4)], [a.ptr_to([4]), a.ptr_to([5])], saturate=True)
    T.ptx.mma("m16n8k64", "row", "col", "int32", "int4", "int4", "int32", d, [a.ptr_to([i]) for i in range(4)], [a.ptr_to([4]), a.ptr_to([5])], d)
    T.ptx.mma("m16n8k256", "row", "col", "int32", "b1", "b1", "int32", d, [a.ptr_to([i]) for i in range(4)], [a.ptr_to([4]), a.ptr_to([5])], d, bit_op="and")
    T.ptx.mma("m8n8k4", "row", "col", "float64", "float64", "float64", "float64", [f.ptr_to([0]), f.ptr_to([1])], [f.ptr_to([2])], [f.ptr_to([2])])
    for i in T.serial(4):
        D[tx, i] = acc[i] + T.cast(f[0], "int32")
