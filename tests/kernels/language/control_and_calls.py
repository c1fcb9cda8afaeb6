# test: cuda sm_90a
# Loops with steps, break and continue; warps, atomics, assertions, printing.
from tvm.script import tirx as T

@T.prim_func
def loops(A: T.Buffer((128,), "float32"), n: T.int32):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    for i in T.serial(2, n, step=3):
        A[tx] += T.cast(i, "float32")
    for i in range(0, n, 2):
        if i == 10:
            break
        if i % 3 == 0:
            continue
        A[tx + 32] += 1.0
    for i, j in T.grid(2, n):
        A[tx + i * 32] *= 2.0
    while True:
        A[tx] -= 1.0
        if A[tx] < 0.0:
            break

@T.prim_func
def nested(A: T.Buffer((1024,), "float32"), B: T.Buffer((1024,), "float32"), n: T.int32):
    T.device_entry(); bx = T.cta_id([4]); tx = T.thread_id([256])
    i: T.let = bx * 256 + tx
    x: T.float32 = A[i]
    cnt: T.int32 = 0
    while x > 1.0 and cnt < n:
        if cnt % 2 == 0:
            x = x * 0.5
        else:
            x = x - 0.25
        cnt += 1
    B[i] = x + T.cast(cnt, "float32")

@T.prim_func
def shflfam(A: T.Buffer((32,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); w = T.warp_id([1]); l = T.lane_id([32])
    A[l] = T.tvm_warp_shuffle(0xFFFFFFFF, A[l], 0, 32, 32) + T.tvm_warp_shuffle_up(0xFFFFFFFF, A[l], 1, 32, 32) + T.tvm_warp_shuffle_down(0xFFFFFFFF, A[l], 1, 32, 32) + T.tvm_warp_shuffle_xor(T.tvm_warp_activemask(), A[l], 1, 32, 32)

@T.prim_func
def atomics(A: T.Buffer((128,), "float32"), B: T.Buffer((4,), "int32"), C: T.Buffer((4,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([128])
    T.cuda.atomic_add(C.ptr_to([tx % 4]), A[tx])
    o: T.let = T.cuda.atomic_add(B.ptr_to([tx % 4]), 1)
    T.cuda.atomic_cas(B.ptr_to([0]), o, 3)

@T.prim_func
def memops(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([128])
    T.cuda.thread_fence()
    T.cuda.warp_sync()
    T.tvm_storage_sync("shared")
    T.cuda.syncthreads_and(1)
    B[tx] = T.cuda.ldg(A.ptr_to([tx]), "float32")

@T.prim_func
def ternary(A: T.Buffer((128,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([128])
    A[tx] = A[tx] if tx < 64 else 0.0
    A[tx] = T.max(A[tx], 0) + T.min(A[tx], T.float32(6))
    if 0 < tx < 5:
        A[tx] = -A[tx]
    elif tx == 7 or tx == 9:
        A[tx] = A[tx]
    else:
        pass

@T.prim_func
def assertst(A: T.Buffer((128,), "float32"), n: T.int32):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([128])
    assert n > 0, "positive"
    A[tx] = 1.0

@T.prim_func
def printbuf(A: T.Buffer((64,), "int32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    T.print_buffer(A.data, "int32", False, False, 1, (64,))

@T.prim_func
def pb2(A: T.Buffer((2, 3), "float16"), B: T.Buffer((4,), "float32"), C: T.Buffer((4,), "uint8"), D: T.Buffer((4,), "int64")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    T.print_buffer(A.data, "float16", False, False, 2, (2, 3))
    T.print_buffer(B.data, "float32", False, True, 1, (1,))
    T.print_buffer(C.data, "uint8", False, False, 1, (4,))
    T.print_buffer(D.data, "int64", False, False, 1, (4,))

@T.prim_func
def hist(A: T.Buffer((4096,), "uint8"), H: T.Buffer((256,), "int32")):
    T.device_entry(); bx = T.cta_id([4]); tx = T.thread_id([256])
    s = T.alloc_shared((256,), "int32")
    s[tx] = 0
    T.cuda.cta_sync()
    for i in range(4):
        T.cuda.atomic_add(s.ptr_to([T.cast(A[bx * 1024 + i * 256 + tx], "int32")]), 1)
    T.cuda.cta_sync()
    T.cuda.atomic_add(H.ptr_to([tx]), s[tx])

@T.prim_func
def matmulf(A: T.Buffer((128, 64), "float16"), B: T.Buffer((64, 128), "float16"), C: T.Buffer((128, 128), "float32")):
    T.device_entry()
    by, bx = T.cta_id([8, 8]); tx = T.thread_id([256])
    As = T.alloc_shared((16, 16), "float16")
    Bs = T.alloc_shared((16, 16), "float16")
    acc: T.float32 = 0.0
    ty: T.let = tx // 16
    tc: T.let = tx % 16
    for k in range(4):
        As[ty, tc] = A[by * 16 + ty, k * 16 + tc]
        Bs[ty, tc] = B[k * 16 + ty, bx * 16 + tc]
        T.cuda.cta_sync()
        for kk in T.unroll(16):
            acc += T.cast(As[ty, kk], "float32") * T.cast(Bs[kk, tc], "float32")
        T.cuda.cta_sync()
    C[by * 16 + ty, bx * 16 + tc] = acc

@T.prim_func
def funcvoid(A: T.Buffer((128,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([128])
    T.cuda.func_call("put", A.data, tx, source_code="__device__ void put(float* p, int i) { p[i] = i; }")
