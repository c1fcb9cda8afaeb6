# test: parse
# test: lower LowerTIRx
# test: cuda sm_90a
# Shared, local and dynamic memory; views; shuffles; vectors; raw functions.

@T.prim_func
def mem(A: T.Buffer((256,4), "float32"), B: T.Buffer((1024,), "float16")):
    T.device_entry(); bx, by = T.cta_id([2, 3]); wg = T.warp_id([4]); l = T.lane_id([32]); tx = T.thread_id([128])
    S = T.alloc_shared((32, 33), "float32")
    r = T.alloc_local((4,), "float32")
    D = T.alloc_buffer((64,), "float32", scope="shared.dyn", align=128)
    V = T.decl_buffer((16, 64), "float32", data=S.data)
    p: T.let = S.ptr_to([1, 2])
    ph = T.alloc_local((1,), "int32")
    ph[0] = 0
    q = T.local_scalar("int32")
    q = 4
    x: T.let = tx * 4
    y: T.let[T.int32] = tx + 4
    sh = T.shared_scalar("float32")
    sh = 1.0
    for k in T.unroll(4):
        r[k] = A[tx, k]
    for k in T.vectorized(4):
        A[tx, k] = r[k]
    B.vstore([tx * 4], B.vload([tx * 4 + 8], dtype="float16x4"))
    A2 = A.view(64, 16)
    At = A.permute(1, 0)
    A2[tx // 4, 0] = At[1, 2]
    T.cuda.cta_sync()
    T.cuda.warp_sync()
    T.evaluate(T.cuda.func_call("ld", A.ptr_to([tx, 0]), p, source_code="""
__device__ float ld(float* a, float* b) { return *a + *b; }
""", return_type="float32"))
    S[tx % 32, 1] = T.if_then_else(tx < 3, T.exp(A[tx, 1]), T.float32(0))
    S[tx % 32, 2] = T.Select(tx < 3 and not (tx == 2) or tx != 7, T.max(A[tx, 1], 0.0), T.float32(1e-6))
    S[tx % 32, 3] = T.tvm_warp_shuffle_xor(0xFFFFFFFF, A[tx, 1], 4, 32, 32)
    B[tx] = T.float16(1.5) + B[tx] * T.cast(x, "float16") - B[T.truncdiv(tx, 2)] / B[T.truncmod(tx, 3)]
    D[tx % 64] = T.reinterpret("float32", y)
    D[0] = T.cast(T.int64(tx) * 5 + T.int64(3), "float32")
    A[0, 0] = T.cuda.__shfl_xor_sync(T.uint32(0xFFFFFFFF), A[0, 1], 4, 32)
    T.cuda.atomic_add(A.ptr_to([0, 0]), 1.0)
    A[1, 0] = T.call_extern("float32", "hypotf", A[0, 0], A[0, 1])
    A[1, 1] = T.sqrt(T.min(T.fabs(A[1, 1]), T.infinity("float32")))
    B[3] = (B[tx] + B[tx]) * B[tx] - (B[1] - B[2]) - T.max(B[1], B[2])
    A[1, 2] = T.cast((tx & 3) | (tx << 2) ^ (~tx) >> 1, "float32")
