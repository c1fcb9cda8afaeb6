# test: messages
# Mistakes of users who know CUDA and are new to TIRx.
from tvm.script import ir as I
from tvm.script import tirx as T

N = 256

@T.prim_func
def cuda_names(A: T.Buffer((256,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    A[threadIdx.x] = 1.0

@T.prim_func
def no_device_entry(A: T.Buffer((256,), "float32")):
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    A[tx] = 1.0

@T.prim_func
def host_store(A: T.Buffer((256,), "float32")):
    A[0] = 1.0
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    A[tx] = 1.0

@T.prim_func
def no_threads(A: T.Buffer((256,), "float32")):
    T.device_entry()
    for i in range(256):
        A[i] = 1.0

@T.prim_func
def extent_without_list(A: T.Buffer((256,), "float32")):
    T.device_entry()
    bx = T.cta_id(1)
    tx = T.thread_id([256])
    A[tx] = 1.0

@T.prim_func
def extent_from_memory(A: T.Buffer((256,), "float32"), L: T.Buffer((1,), "int32")):
    T.device_entry()
    bx = T.cta_id([L[0]])
    tx = T.thread_id([256])
    A[tx] = 1.0

@T.prim_func
def syncthreads(A: T.Buffer((256,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    T.syncthreads()
    A[tx] = 1.0

@T.prim_func
def cuda_syncthreads(A: T.Buffer((256,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    T.cuda.syncthreads()
    A[tx] = 1.0

@T.prim_func
def shared_without_shape(A: T.Buffer((256,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    S = T.alloc_shared("float32", 256)
    A[tx] = S[tx]

@T.prim_func
def shared_of_symbolic_size(A: T.Buffer((256,), "float32"), n: T.int32):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    S = T.alloc_shared((n,), "float32")
    S[tx] = A[tx]
    A[tx] = S[tx]

@T.prim_func
def float_index(A: T.Buffer((256,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    A[tx / 2] = 1.0

@T.prim_func
def c_logic(A: T.Buffer((256,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    A[tx] = not A[tx]

@T.prim_func
def plus_equals(A: T.Buffer((256,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    total += A[tx]
    A[tx] = total

@T.prim_func
def integer_scalar_of_floats(A: T.Buffer((256,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    total: T.float32 = 0.0
    total = total + tx % "x"
    A[tx] = total

@T.prim_func
def one_index_of_two(A: T.Buffer((16, 16), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    A[tx] = 1.0

@T.prim_func
def break_outside(A: T.Buffer((256,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    if tx > 128:
        break
    A[tx] = 1.0

@T.prim_func
def returned_value(A: T.Buffer((256,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    return A[tx]

@T.prim_func
def print_from_python(A: T.Buffer((256,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    printf("%d", tx)

@T.prim_func
def numpy_dtype(A: T.Buffer((256,), "fp32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    A[tx] = 1.0

@T.prim_func
def missing_dtype_of_cast(A: T.Buffer((256,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    A[tx] = float(tx)

@T.prim_func
def vectorized_runtime_extent(A: T.Buffer((256,), "float32"), n: T.int32):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    for i in T.vectorized(n):
        A[i] = 1.0

@T.prim_func
def python_list_at_run_time(A: T.Buffer((256,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    values = [1.0, 2.0, 3.0]
    A[tx] = values[tx]

@T.prim_func
def unknown_scope(A: T.Buffer((256,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    S = T.alloc_buffer((256,), "float32", scope="smem")
    S[tx] = A[tx]

@T.prim_func
def misspelled_function(A: T.Buffer((256,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    A[tx] = T.sqr(A[tx])

@T.prim_func
def warps_that_do_not_fit(A: T.Buffer((256,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    warp = T.warp_id([4])
    lane = T.lane_id([32])
    tx = T.thread_id([256])
    A[tx] = 1.0

@T.prim_func
def constant_out_of_bounds(A: T.Buffer((256,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    A[256] = 1.0

@T.prim_func
def two_dynamic_arrays(A: T.Buffer((256,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    S = T.alloc_buffer((256,), "float32", scope="shared.dyn")
    R = T.alloc_buffer((256,), "float32", scope="shared.dyn")
    S[tx] = A[tx]
    R[tx] = S[tx]
    A[tx] = R[tx]

@T.prim_func
def free_shape(A: T.Buffer((256,), "float32")):
    m = T.int32()
    T.device_entry()
    bx = T.cta_id([m])
    tx = T.thread_id([256])
    A[tx] = 1.0


@T.prim_func
def cuda_math(A: T.Buffer((256,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    A[tx] = __expf(A[tx])


@T.prim_func
def cuda_atomic(A: T.Buffer((256,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    T.cuda.atomicAdd(A[0], 1.0)


@T.prim_func
def local_of_symbolic_size(A: T.Buffer((256,), "float32"), n: T.int32):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    r = T.alloc_local((n,), "float32")
    r[0] = A[tx]
    A[tx] = r[0]


@T.prim_func
def read_on_host(A: T.Buffer((256,), "int32")):
    n: T.let = A[0]
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    A[tx] = n


@T.prim_func
def inline_cuda_without_source(A: T.Buffer((256,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    A[tx] = T.cuda.func_call("relu", A[tx], return_type="float32")


@T.prim_func
def block_of_a_block(A: T.Buffer((256,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    T.device_entry()
    A[tx] = 1.0


@T.prim_func
def name_of_a_branch(A: T.Buffer((256,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    if tx < 128:
        value = A[tx]
    A[tx] = value


@T.prim_func
def thread_allreduce(A: T.Buffer((256,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    r = T.alloc_local((1,), "float32")
    T.evaluate(T.tvm_thread_allreduce(T.uint32(1), A[tx], T.bool(True), r.data, tx))
    A[tx] = r[0]


@T.prim_func
def comm_reducer(A: T.Buffer((256,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    with T.attr(T.comm_reducer(lambda x, y: x + y, [T.float32(0)]), "reduce_scope", 0):
        A[tx] = 1.0


@T.prim_func
def text_in_metadata(A: T.Buffer((256,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    T.cuda.printf(metadata["tirx.StringImm"][0], tx)


@T.prim_func
def other_metadata(A: T.Buffer((256,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    A[tx] = metadata["ir.IntImm"][0]


@I.ir_module
class BufferToFunction:
    @T.prim_func(private=True)
    def g(A_ptr: T.handle("float32", "global")):
        A = T.decl_buffer((256,), data=A_ptr)
        A[0] = 1.0

    @T.prim_func
    def main(A: T.Buffer((256,), "float32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([1])
        BufferToFunction.g(A)


@I.ir_module
class ArgumentMissing:
    @T.prim_func(private=True)
    def g(A_ptr: T.handle("float32", "global"), i: T.int32):
        A = T.decl_buffer((256,), data=A_ptr)
        A[i] = 1.0

    @T.prim_func
    def main(A: T.Buffer((256,), "float32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([1])
        ArgumentMissing.g(A.data)


@I.ir_module
class ValueForHost:
    @T.prim_func
    def g(n: T.int32) -> T.int32:
        return n * 2

    @T.prim_func
    def main(A: T.Buffer((256,), "float32"), n: T.int32):
        m: T.let = ValueForHost.g(n)
        T.device_entry()
        bx = T.cta_id([m])
        tx = T.thread_id([1])
        A[tx] = 1.0


@I.ir_module
class ReservedName:
    @T.prim_func(private=True)
    def double(x: T.float32) -> T.float32:
        return x * T.float32(2)

    @T.prim_func
    def main(A: T.Buffer((256,), "float32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([1])
        A[tx] = ReservedName.double(A[tx])


@T.prim_func
def division_of_the_first_turn(B: T.Buffer((8,), "int32")):
    T.device_entry()
    tx = T.thread_id([8])
    for i in T.unroll(4):
        B[tx] = tx % i


@T.prim_func
def division_by_the_only_block(B: T.Buffer((8,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([8])
    B[tx] = tx // bx


@T.prim_func
def more_than_indices_reach(A: T.Buffer((65536, 65536), "float32")):
    T.device_entry()
    bx = T.cta_id([65536])
    A[bx, 0] = 1.0


@T.prim_func
def view_beyond_indices(A: T.Buffer((T.int64(65536), 65536), "float32")):
    T.device_entry()
    bx = T.cta_id([65536])
    B = A.view(4, 16384, 65536)
    B[0, bx % 16384, 0] = 1.0


@T.prim_func
def strides_beyond_indices(A_h: T.handle):
    A = T.match_buffer(A_h, (16, 65536), "float32", strides=(1 << 28, 1))
    T.device_entry()
    bx = T.cta_id([65536])
    A[0, bx] = 1.0


@T.prim_func
def blocks_counted_by_threads(B: T.Buffer((8,), "int32")):
    T.device_entry()
    tx = T.thread_id([8])
    rows: T.let = tx + 1
    bx = T.cta_id([rows])
    B[tx] = bx


@T.prim_func
def target_without_a_kind(A: T.Buffer((8,), "float32")):
    T.func_attr({"target": T.target({"arch": "sm_90a"})})
    T.device_entry()
    tx = T.thread_id([8])
    A[tx] = 1.0


@T.prim_func
def target_of_another_kind(A: T.Buffer((8,), "float32")):
    T.func_attr({"target": T.target({"kind": "cuda", "arch": "sm_90a", "host": "vulkan"})})
    T.device_entry()
    tx = T.thread_id([8])
    A[tx] = 1.0


@T.prim_func
def target_of_no_architecture(A: T.Buffer((8,), "float32")):
    T.func_attr({"target": T.target({"kind": "cuda", "arch": "90a"}, host="llvm")})
    T.device_entry()
    tx = T.thread_id([8])
    A[tx] = 1.0


@T.prim_func
def extent_in_memory(A: T.Buffer((16,), "int32"), B: T.Buffer((A[0],), "float32")):
    T.device_entry()
    tx = T.thread_id([8])
    B[tx] = 1.0


@T.prim_func
def attribute_in_memory(A: T.Buffer((16,), "int32")):
    T.func_attr({"first": A[0] + 1})
    T.device_entry()
    tx = T.thread_id([8])
    A[tx] = 1


@T.prim_func
def shared_memory_of_a_thread(B: T.Buffer((8,), "int32")):
    T.device_entry()
    tx = T.thread_id([8])
    size: T.let = tx + 1
    S = T.alloc_buffer((size,), "int32", scope="shared.dyn")
    S[0] = 1
    B[tx] = S[0]


@T.prim_func
def shared_memory_of_a_value_in_memory(B: T.Buffer((8,), "int32")):
    T.device_entry()
    tx = T.thread_id([8])
    S = T.alloc_buffer((B[0],), "int32", scope="shared.dyn")
    S[0] = 1
    B[tx] = S[0]


@T.prim_func
def negative_registers(A: T.Buffer((8,), "float32")):
    T.device_entry()
    tx = T.thread_id([8])
    x: T.float32[2 - 4]
    x[0] = A[tx]


@T.prim_func
def extent_that_is_no_number(A: T.Buffer((8,), "float32")):
    T.device_entry()
    tx = T.thread_id([8])
    T.print_buffer(A.data, "float32", False, False, 1, (tx < 4,))


@T.prim_func
def extent_too_large_written_out(B: T.Buffer((8,), "int32"), n: T.int32):
    T.device_entry()
    m0: T.let = n + 1
    m1: T.let = m0 * m0 + n
    m2: T.let = m1 * m1 + n
    m3: T.let = m2 * m2 + n
    m4: T.let = m3 * m3 + n
    m5: T.let = m4 * m4 + n
    m6: T.let = m5 * m5 + n
    m7: T.let = m6 * m6 + n
    m8: T.let = m7 * m7 + n
    m9: T.let = m8 * m8 + n
    m10: T.let = m9 * m9 + n
    m11: T.let = m10 * m10 + n
    m12: T.let = m11 * m11 + n
    bx = T.cta_id([m12])
    tx = T.thread_id([8])
    if bx == 0:
        B[tx] = 1


@T.prim_func
def shared_memory_too_large_written_out(B: T.Buffer((8,), "int32"), n: T.int32):
    T.device_entry()
    tx = T.thread_id([8])
    m0: T.let = n + 1
    m1: T.let = m0 * m0 + n
    m2: T.let = m1 * m1 + n
    m3: T.let = m2 * m2 + n
    m4: T.let = m3 * m3 + n
    m5: T.let = m4 * m4 + n
    m6: T.let = m5 * m5 + n
    m7: T.let = m6 * m6 + n
    m8: T.let = m7 * m7 + n
    m9: T.let = m8 * m8 + n
    m10: T.let = m9 * m9 + n
    m11: T.let = m10 * m10 + n
    m12: T.let = m11 * m11 + n
    S = T.alloc_buffer((m12,), "int32", scope="shared.dyn")
    S[tx] = 1
    B[tx] = S[tx]


@T.prim_func
def pool_without_commit(A: T.Buffer((32,), "int32")):
    T.device_entry()
    tx = T.thread_id([32])
    pool = T.SMEMPool()
    a = pool.alloc((32,), "int32")
    a[tx] = tx
    A[tx] = a[tx]


@T.prim_func
def virtual_thread_around_the_launch(A: T.Buffer((64,), "int32")):
    vt = T.launch_thread("vthread.x", 2)
    tx = T.launch_thread("threadIdx.x", 32)
    A[vt * 32 + tx] = vt


@T.prim_func
def elements_stored_at_once(A: T.Buffer((2, 4), "float32")):
    T.device_entry()
    tx = T.thread_id([1])
    A[0, tx], A[1, tx] = A[1, tx], A[0, tx]


@T.prim_func
def scalar_with_an_index(A: T.Buffer((32,), "int32")):
    T.device_entry()
    tx = T.thread_id([32])
    x = 3
    x[tx] = 1
    A[tx] = x


@T.prim_func
def scalar_read_with_an_index(A: T.Buffer((32,), "int32")):
    T.device_entry()
    tx = T.thread_id([32])
    x = 3
    A[tx] = x[tx]


@T.prim_func
def number_for_a_buffer(A: T.Buffer((32,), "int32")):
    T.device_entry()
    tx = T.thread_id([32])
    A = 3
    A[tx] = 1


@T.inline
def clear(x):
    x = 0


@T.prim_func
def element_assigned_in_a_function(A: T.Buffer((32,), "int32")):
    T.device_entry()
    tx = T.thread_id([32])
    clear(A[tx])


@T.prim_func
def likely_number(A: T.Buffer((4,), "float32")):
    T.device_entry()
    tx = T.thread_id([4])
    A[tx] = T.likely(A[tx])


@T.prim_func
def assertion_that_never_holds(A: T.Buffer((4,), "float32")):
    T.device_entry()
    tx = T.thread_id([4])
    assert False, "never"
    A[tx] = 1.0


@T.prim_func
def symbol_that_is_no_name(A: T.Buffer((4,), "float32")):
    T.func_attr({"global_symbol": 7})
    T.device_entry()
    tx = T.thread_id([4])
    A[tx] = 1.0


@T.prim_func
def sum_of_small_floats(A: T.Buffer((32,), "float8_e4m3fn")):
    T.device_entry()
    tx = T.thread_id([32])
    A[tx] = T.cuda.warp_sum(A[tx])


@T.prim_func
def fixed_point_of_floats(A: T.Buffer((4,), "int32")):
    T.device_entry()
    tx = T.thread_id([4])
    A[tx] = T.q_multiply_shift(T.float32(1.5), A[tx], 31, 1)


@T.prim_func
def offset_that_is_no_integer(A: T.Buffer((4,), "float32")):
    T.device_entry()
    tx = T.thread_id([4])
    T.call_extern("int32", "fn", T.tvm_access_ptr(T.type_annotation("float32"), A.data, A[tx], 1, 1))


@T.prim_func
def binding_that_changes(A: T.Buffer((4,), "int32")):
    T.device_entry()
    tx = T.thread_id([4])
    x: T.let = A[tx] + 1
    x += 1
    A[tx] = x


@T.prim_func
def scalar_started_twice(A: T.Buffer((4,), "int32")):
    T.device_entry()
    tx = T.thread_id([4])
    x: T.int32 = 1
    x: T.int32 = A[tx]
    A[tx] = x


@T.prim_func
def buffer_taken_twice(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    T.device_entry()
    tx = T.thread_id([4])
    view = A.view(2, 2)
    view = B.view(2, 2)
    view[tx // 2, tx % 2] = 1


@T.prim_func
def binding_to_nothing(A: T.Buffer((4,), "int32")):
    T.device_entry()
    tx = T.thread_id([4])
    x: T.let[T.void] = 3
    A[tx] = x


@T.prim_func
def index_without_launch(A: T.Buffer((4,), "int32")):
    tx = T.env_thread("threadIdx.x")
    A[tx] = 1


@T.prim_func
def signed_with_unsigned(A: T.Buffer((4,), "int8"), B: T.Buffer((4,), "uint8")):
    T.device_entry()
    tx = T.thread_id([4])
    if A[tx] < B[tx]:
        A[tx] = T.int8(1)


@T.prim_func
def negated_without_sign(A: T.Buffer((4,), "uint64")):
    T.device_entry()
    tx = T.thread_id([4])
    A[tx] = -A[tx]

@T.prim_func
def namespace_left_out(A: T.Buffer((256,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    T.cta_sync()
    A[tx] = 1.0

@T.prim_func
def shuffle_by_another_name(A: T.Buffer((256,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    A[tx] = T.cuda.shfl_xor(0xffffffff, A[tx], 1)

@T.prim_func
def largest_by_atomic(A: T.Buffer((256,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    T.cuda.atomic_max(A.ptr_to([0]), A[tx])

@T.prim_func
def pointer_with_an_index(a: T.handle):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    a[tx] = 1.0

@T.prim_func
def reshaped(A: T.Buffer((256,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    B = A.reshape(16, 16)
    B[tx // 16, tx % 16] = 1.0

@T.prim_func
def product_of_buffers(A: T.Buffer((256,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    A[tx] = A @ A

@T.prim_func
def rounded_by_python(A: T.Buffer((256,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    A[tx] = round(A[tx])

@T.prim_func
def function_without_type(A: T.Buffer((256,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    A[tx] = T.cuda.func_call("f", A[tx], source_code="__device__ float f(float x) { return x; }")

@T.prim_func
def extent_of_no_name(A: T.Buffer((length,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    A[tx] = 1.0

@T.prim_func
def barrier_in_a_tensor(A: T.Buffer((4,), "uint64")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    if tx == 0:
        T.ptx.mbarrier.init(A.ptr_to([0]), 1)

@T.prim_func
def copy_to_registers(A: T.Buffer((128,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    r = T.alloc_local((4,), "float32")
    T.ptx.cp_async(r.ptr_to([0]), A.ptr_to([tx * 4]), 16)

@T.prim_func
def ends_of_a_copy_exchanged(A: T.Buffer((128,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    s = T.alloc_shared((128,), "float32")
    T.ptx.cp_async(A.ptr_to([tx * 4]), s.ptr_to([tx * 4]), 16)

@T.prim_func
def store_to_a_tensor_as_if_shared(A: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    T.ptx.st(A.ptr_to([tx]), T.float32(1), ptx_type="f32")

@T.prim_func
def word_of_triton(A: T.Buffer((256,), "float32"), n: T.int32):
    T.device_entry()
    bx = T.cta_id([T.cdiv(n, 256)])
    tx = T.thread_id([256])

@T.prim_func
def dtype_of_torch(A: T.Buffer((256,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    r = T.alloc_local((4,), "fp8_e4m3")

@T.prim_func
def name_of_another_release(A: T.Buffer((256,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    s = T.alloc_shared((256,), "float32")
    bar = T.alloc_shared((1,), "uint64")
    T.ptx.cp_async_bulk_g2s(s.ptr_to([0]), A.ptr_to([0]), 1024, bar.ptr_to([0]))

@T.prim_func
def counts_down(A: T.Buffer((256,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([1])
    for i in range(255, -1, -1):
        A[i] = 1.0

@T.prim_func
def all_of_older_tvm(A: T.Buffer((256,), "float32"), n: T.int32):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    if T.all(tx >= 1, tx < n):
        A[tx] = 1.0

# A column of tensor memory holds two of these.
@T.prim_func
def half_a_column_of_tensor_memory():
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    pool = T.SMEMPool()
    tmem_pool = T.TMEMPool(pool, total_cols=32)
    pool.commit()
    cells = tmem_pool.alloc((128, 16), "float16")
    part = cells.sub[:, 3:16]

@T.prim_func
def eviction_from_l2(A: T.Buffer((256,), "uint32")):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([32])
    x: T.uint32 = T.ptx.ld(A.ptr_to([tx]), "uint32", "u32", l2_evict="L2::evict_first")

@T.prim_func
def others_do_not_see_it(A: T.Buffer((256,), "uint32")):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([32])
    r = T.alloc_local((4,), "uint32")
    T.ptx.red_scalar(r.ptr_to([0]), T.uint32(1), space="local", op="add", ptx_type="u32")
    T.ptx.st_release(r.ptr_to([1]), T.uint32(1), space="local", ptx_type="u32")


@T.prim_func
def calls_with_parentheses(A: T.Buffer((256,), "float32")):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([256])
    A[tx] = T.cuda.func_call("relu(x)", A[tx], source_code="__device__ float relu(float x) { return x; }", return_type="float32")


@T.prim_func
def registers_of_a_variable(A: T.Buffer((64,), "float32"), n: T.int32):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    per = 64 // 8
    values = T.alloc_local((per,), "float32")
    values[n] = 1.0
    A[tx] = values[0]


@T.prim_func
def größe(A: T.Buffer((64,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    A[tx] = 1.0


@T.prim_func
def value_of_a_tile_primitive(A: T.Buffer((64,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    A[tx] = Tx.max(A[tx], A[tx + 1])
