# test: sim
# Kernels with faults at run time: each message gives the cause.
from tvm.script import tirx as T

@T.prim_func
def oob_negative(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    B[tx - 1] = A[tx]

@T.prim_func
def oob_shared(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    S = T.alloc_buffer((32,), "float32", scope="shared")
    S[tx] = A[tx]
    B[tx] = S[tx]

@T.prim_func
def oob_local(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    L = T.alloc_buffer((4,), "float32", scope="local")
    L[tx] = A[tx]
    B[tx] = L[tx]

@T.prim_func
def oob_view(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    S = T.alloc_buffer((32,), "float32", scope="shared")
    V = T.decl_buffer((64,), "float32", data=S.data, scope="shared")
    V[tx] = A[tx]
    B[tx] = V[tx]

@T.prim_func
def oob_view_offset(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    S = T.alloc_buffer((64,), "float32", scope="shared")
    V = T.decl_buffer((32,), "float32", data=S.data, elem_offset=48, scope="shared")
    V[tx] = A[tx]
    B[tx] = V[tx]

@T.prim_func
def oob_vector(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([16])
    B[T.ramp(tx * 4 + 4, 1, 4)] = A[T.ramp(tx * 4, 1, 4)]

@T.prim_func
def oob_pointer(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    T.cuda.atomic_add(B.ptr_to([tx + 64]), A[tx])

@T.prim_func
def oob_pointer_far(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    T.cuda.atomic_add(B.ptr_to([tx * 100000000]), A[tx])

@T.prim_func
def uninit_local(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    L = T.alloc_buffer((4,), "float32", scope="local")
    B[tx] = L[tx % 4]

@T.prim_func
def uninit_scalar(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    s: T.f32
    if tx > 3:
        s = 1.0
    B[tx] = s

@T.prim_func
def uninit_shared(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    S = T.alloc_buffer((64,), "float32", scope="shared")
    B[tx] = S[tx]

@T.prim_func
def race_shared(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    S = T.alloc_buffer((64,), "float32", scope="shared")
    S[tx] = A[tx]
    T.cuda.cta_sync()
    S[63 - tx] = A[tx]
    B[tx] = S[tx]

@T.prim_func
def race_with_many_readers(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry()
    tx = T.thread_id([64])
    S = T.alloc_shared((64,), "float32")
    S[tx] = A[tx]
    T.cuda.cta_sync()
    B[tx] = S[0]
    if tx == 31:
        S[0] = 2.0


@T.prim_func
def race_write_write(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    S = T.alloc_buffer((1,), "float32", scope="shared")
    S[0] = T.cast(tx, "float32")
    T.cuda.cta_sync()
    B[tx] = S[0]

@T.prim_func
def race_global_blocks(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry(); bx = T.cta_id([4]); tx = T.thread_id([32])
    B[tx] = T.cast(bx, "float32")

@T.prim_func
def divzero(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    B[tx] = A[tx] // (A[tx] - 1)

@T.prim_func
def modzero(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    B[tx] = A[tx] % (tx - 5)

@T.prim_func
def truncdivzero(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    B[tx] = T.truncdiv(A[tx], A[tx] - 1)

@T.prim_func
def divergent_barrier(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    if tx < 32:
        T.cuda.cta_sync()
    B[tx] = A[tx]

@T.prim_func
def divergent_barrier_lanes(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    if tx % 2 == 0:
        T.cuda.cta_sync()
    B[tx] = A[tx]

@T.prim_func
def barrier_in_loop(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    for i in T.serial(tx):
        T.cuda.cta_sync()
    B[tx] = A[tx]

@T.prim_func
def named_deadlock(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    if tx < 32:
        T.ptx.bar.sync(1, 64)
    else:
        T.ptx.bar.sync(2, 64)
    B[tx] = A[tx]

@T.prim_func
def named_wrong_count(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    T.ptx.bar.sync(1, 48)
    B[tx] = A[tx]

@T.prim_func
def named_id(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    T.ptx.bar.sync(99, 64)
    B[tx] = A[tx]

@T.prim_func
def named_zero(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    T.ptx.bar.sync(1, 0)
    B[tx] = A[tx]

@T.prim_func
def shuffle_inactive(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    s: T.f32 = 0.0
    if tx < 16:
        s = T.tvm_warp_shuffle(T.uint32(4294967295), A[tx], 20, 32, 32)
    B[tx] = s

@T.prim_func
def huge_grid(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry(); bx = T.cta_id([2000000000]); tx = T.thread_id([32])
    if bx == 0:
        B[tx] = A[tx]

@T.prim_func
def wild_pointer(p: T.int64, A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    P = T.decl_buffer((32,), "float32", data=T.reinterpret("handle", p))
    B[tx] = P[tx]

@T.prim_func
def misaligned_reinterpret(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([16])
    T.cuda.atomic_add(T.handle_add_byte_offset(B.data, tx * 4 + 2), A[tx])

@T.prim_func
def assume_false(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    T.evaluate(T.assume(A[tx] > 5))
    B[tx] = A[tx]

@T.prim_func
def sync_in_while(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    i: T.i32 = 0
    while i < tx:
        i = i + 1
        T.cuda.cta_sync()
    B[tx] = A[tx]

@T.prim_func
def const_oob_reg(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    L = T.alloc_buffer((4,), "float32", scope="local")
    L[0] = 1.0
    B[tx] = L[T.min(tx, 9)]

@T.prim_func
def int_overflow_index(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    B[(tx + 1) * 1000000000 * 3] = A[tx]
