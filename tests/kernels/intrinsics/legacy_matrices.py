# test: parse
# test: cuda sm_90a

@T.prim_func
def pointers_and_offsets(A_ptr: T.handle, D_ptr: T.handle):
    A = T.match_buffer(A_ptr, (64, 16), "float16")
    D = T.match_buffer(D_ptr, (32, 4), "float32")
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((64, 16), "float16")
    a = T.alloc_local((8,), "float16")
    b = T.alloc_local((8,), "float16")
    c = T.alloc_local((4,), "float32")
    m = T.alloc_local((1,), "uint32")
    for i in T.serial(4):
        c[i] = 0.0
    T.ptx.cp_async.legacy("float16", S.data, tx * 16, A.data, tx * 16, 16)
    T.ptx.cp_async.legacy(S.data, tx * 16 + 8, A.data, tx * 16 + 8, 16)
    T.ptx.cp_async.commit_group()
    T.ptx.cp_async.wait_group(0)
    T.cuda.cta_sync()
    T.ptx.ldmatrix_legacy(False, 4, ".b16", a.data, 0, S.data, tx * 16)
    T.ptx.ldmatrix_legacy(True, 4, ".b16", b.data, 0, S.data, tx * 16)
    T.ptx.mma.legacy("m16n8k16", "row", "col", "fp16", "fp16", "fp32", a.data, 0, b.data, 4, c.data, 0, False)
    m[0] = T.uint32(0x44444444)
    T.ptx.mma.sp("float32", "m16n8k32", "row", "col", "fp16", "fp16", "fp32", a.data, 0, b.data, 0, c.data, 0, m.data, 0, 0, False)
    for i in T.serial(4):
        D[tx, i] = c[i]
