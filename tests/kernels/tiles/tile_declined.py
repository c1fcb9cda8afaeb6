# test: messages
# Tile primitives that no variant accepts: each message has one row per variant, with its reason.
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx
from tvm.tirx.layout import ComposeLayout, S, TileLayout, laneid, tx


# The rows of the page on elementwise operations in shared memory: scope, all threads, operands, dtypes.
@T.prim_func
def scope_of_a_cluster():
    T.device_entry(); T.cta_id([1]); T.thread_id([64])
    s = T.alloc_buffer((8, 8), "float32", scope="shared")
    Tx.cluster.sqrt(s, s)


@T.prim_func
def some_warps():
    T.device_entry(); T.cta_id([1]); w = T.warp_id([8]); T.thread_id([256])
    s = T.alloc_buffer((32, 32), "float32", scope="shared")
    if w == 0:
        Tx.cta.sqrt(s, s)


@T.prim_func
def some_lanes():
    T.device_entry(); T.cta_id([1]); l = T.lane_id([32]); T.thread_id([64])
    s = T.alloc_buffer((8, 8), "float32", scope="shared")
    if l < 16:
        Tx.warp.add(s, s, s)


@T.prim_func
def half_a_warpgroup():
    T.device_entry(); T.cta_id([1]); t = T.thread_id([128])
    s = T.alloc_buffer((8, 16), "float32", scope="shared")
    if t < 64:
        Tx.wg.mul(s, s, 2.0)


@T.prim_func
def one_elected():
    T.device_entry(); T.cta_id([1]); T.thread_id([32])
    s = T.alloc_buffer((8, 8), "float32", scope="shared")
    if T.ptx.elect_sync():
        Tx.warp.exp(s, s)


@T.prim_func
def threads_below_a_number(A: T.Buffer((8, 8), "float32")):
    T.device_entry(); T.cta_id([1]); t = T.thread_id([64])
    s = T.alloc_buffer((8, 8), "float32", scope="shared")
    if t < 40:
        Tx.cta.copy(s, A)


@T.prim_func
def every_second_warp(A: T.Buffer((8, 8), "float32")):
    T.device_entry(); T.cta_id([1]); w = T.warp_id([4]); T.thread_id([128])
    s = T.alloc_buffer((8, 8), "float32", scope="shared")
    if w % 2 == 0:
        Tx.cta.copy(s, A)


@T.prim_func
def one_elected_copies(A: T.Buffer((8, 8), "float32")):
    T.device_entry(); T.cta_id([1]); T.lane_id([32]); T.thread_id([32])
    s = T.alloc_buffer((8, 8), "float32", scope="shared")
    if T.ptx.elect_sync():
        Tx.warp.copy(s, A)


@T.prim_func
def one_warp_of_a_filter(A: T.Buffer((8, 8), "int32")):
    T.device_entry(); T.cta_id([1]); w = T.warp_id([4]); T.thread_id([128])
    s = T.alloc_buffer((8, 8), "int32", scope="shared")
    if T.filter(w, w == A[0, 0]):
        Tx.cta.copy(s, A)


@T.prim_func
def a_global_operand(A: T.Buffer((8, 8), "float32")):
    T.device_entry(); T.cta_id([1]); T.thread_id([64])
    s = T.alloc_buffer((8, 8), "float32", scope="shared")
    Tx.cta.sqrt(s, A)


@T.prim_func
def shared_and_local():
    T.device_entry(); T.cta_id([1]); T.thread_id([64])
    s = T.alloc_buffer((64, 4), "float32", scope="shared")
    r = T.alloc_buffer((64, 4), "float32", scope="local", layout=TileLayout(S[(64, 4) : (1 @ tx, 1)]))
    Tx.cta.add(s, s, r)


@T.prim_func
def scale_of_another_dtype():
    T.device_entry(); T.cta_id([1]); T.thread_id([64])
    s = T.alloc_buffer((8, 8), "float16", scope="shared")
    Tx.cta.exp(s, s, None, T.float32(2.0))


@T.prim_func
def bias_of_another_dtype():
    T.device_entry(); T.cta_id([1]); T.thread_id([64])
    s = T.alloc_buffer((8, 8), "float32", scope="shared")
    Tx.cta.sqrt(s, s, T.float16(1.0))


@T.prim_func
def integers_have_no_root():
    T.device_entry(); T.cta_id([1]); T.thread_id([64])
    s = T.alloc_buffer((8, 8), "int32", scope="shared")
    Tx.cta.sqrt(s, s)


@T.prim_func
def shapes_that_do_not_broadcast():
    T.device_entry(); T.cta_id([1]); T.thread_id([64])
    s = T.alloc_buffer((8, 8), "float32", scope="shared")
    r = T.alloc_buffer((8, 4), "float32", scope="shared")
    Tx.cta.add(s, s, r)


@T.prim_func
def more_dimensions_than_the_output():
    T.device_entry(); T.cta_id([1]); T.thread_id([64])
    s = T.alloc_buffer((8, 8), "float32", scope="shared")
    r = T.alloc_buffer((2, 8, 8), "float32", scope="shared")
    Tx.cta.sqrt(s, r)


@T.prim_func
def no_operation_of_one_operand():
    T.device_entry(); T.cta_id([1]); T.thread_id([64])
    s = T.alloc_buffer((8, 8), "float32", scope="shared")
    r = T.alloc_buffer((8,), "float32", scope="shared")
    Tx.cta.unary_reduce(s, r, s, "add", "sum")


@T.prim_func
def two_constants():
    T.device_entry(); T.cta_id([1]); T.thread_id([64])
    s = T.alloc_buffer((8, 8), "float32", scope="shared")
    Tx.cta.add(s, 1.0, 2.0)


@T.prim_func
def rounding_of_halves():
    T.device_entry(); T.cta_id([1]); T.thread_id([64])
    s = T.alloc_buffer((8, 8), "float16", scope="shared")
    Tx.cta.add(s, s, s, rounding_mode="rz")


@T.prim_func
def a_rounding_that_there_is_not():
    T.device_entry(); T.cta_id([1]); T.thread_id([64])
    s = T.alloc_buffer((8, 8), "float32", scope="shared")
    Tx.cta.add(s, s, s, rounding_mode="up")


@T.prim_func
def registers_of_some_threads():
    T.device_entry(); T.cta_id([1]); T.thread_id([64])
    r = T.alloc_buffer((32, 4), "float32", scope="local", layout=TileLayout(S[(32, 4) : (1 @ tx, 1)]))
    Tx.cta.add(r, r, 1.0)


@T.prim_func
def registers_of_one_thread():
    T.device_entry(); T.cta_id([1]); T.lane_id([32]); T.thread_id([64])
    r = T.alloc_local((4,), "float32")
    Tx.warp.add(r, r, 1.0)


# Forced variants.
@T.prim_func
def no_such_variant():
    T.device_entry(); T.cta_id([1]); T.thread_id([64])
    s = T.alloc_buffer((8, 8), "float32", scope="shared")
    Tx.cta.add(s, s, s, dispatch="tensor_cores")


@T.prim_func
def a_vector_by_a_warp(A: T.Buffer((4,), "float32")):
    T.device_entry(); T.cta_id([1]); T.lane_id([32]); T.thread_id([32])
    r = T.alloc_local((4,), "float32")
    Tx.warp.copy(r, A, dispatch="vec_128b")


@T.prim_func
def a_vector_of_other_size(A: T.Buffer((8,), "float32")):
    T.device_entry(); T.cta_id([1]); T.thread_id([32])
    r = T.alloc_local((8,), "float32")
    Tx.copy(r, A, dispatch="vec_128b")


@T.prim_func
def a_vector_of_32_bytes(A: T.Buffer((8,), "float32")):
    T.device_entry(); T.cta_id([1]); T.thread_id([32])
    r = T.alloc_local((8,), "float32")
    Tx.copy(r, A, dispatch="vec_256b")


@T.prim_func
def hints_on_a_store(A: T.Buffer((4,), "float32")):
    T.device_entry(); T.cta_id([1]); T.thread_id([32])
    r = T.alloc_local((4,), "float32")
    Tx.copy(A, r, dispatch="vec_128b", cache="nc")


@T.prim_func
def an_unknown_cache(A: T.Buffer((4,), "float32")):
    T.device_entry(); T.cta_id([1]); T.thread_id([32])
    r = T.alloc_local((4,), "float32")
    Tx.copy(r, A, dispatch="vec_128b", cache="l3")


@T.prim_func
def threads_that_do_not_divide(A: T.Buffer((5, 7), "float32")):
    T.device_entry(); T.cta_id([1]); T.thread_id([64])
    s = T.alloc_buffer((5, 7), "float32", scope="shared")
    Tx.cta.copy(s, A, dispatch="gmem_smem")


# Asynchronous copies and reductions.
@T.prim_func
def too_narrow_for_cp_async(A: T.Buffer((64, 3), "int8")):
    T.device_entry(); T.cta_id([1]); T.thread_id([64])
    s = T.alloc_buffer((64, 3), "int8", scope="shared")
    Tx.cta.copy_async(s, A)


@T.prim_func
def direct_by_a_cta(A: T.Buffer((128,), "float32")):
    T.device_entry(); T.cta_id([1]); T.thread_id([32])
    s = T.alloc_buffer((128,), "float32", scope="shared")
    Tx.cta.copy_async(s, A, dispatch="ldgsts", direct=True)


@T.prim_func
def a_start_between_16_bytes(A: T.Buffer((16, 32), "float16")):
    T.device_entry(); T.cta_id([1]); t = T.thread_id([32])
    s = T.alloc_buffer((16, 16), "float16", scope="shared", align=128)
    bar = T.alloc_shared((1,), "uint64")
    if t == 0:
        Tx.copy_async(s, A[:, 4:20], mbar=bar.ptr_to([0]))


@T.prim_func
def a_sum_that_the_copy_engine_has_not(A: T.Buffer((16, 16), "int64")):
    T.device_entry(); T.cta_id([1]); t = T.thread_id([32])
    s = T.alloc_buffer((16, 16), "int64", scope="shared", align=128)
    if t == 0:
        Tx.copy_async(A, s, use_tma_reduce="add")


@T.prim_func
def a_maximum_that_the_copy_engine_has_not(A: T.Buffer((16, 16), "float32")):
    T.device_entry(); T.cta_id([1]); t = T.thread_id([32])
    s = T.alloc_buffer((16, 16), "float32", scope="shared", align=128)
    if t == 0:
        Tx.copy_async(A, s, use_tma_reduce="max")


@T.prim_func
def outputs_of_another_number():
    T.device_entry(); T.cta_id([1]); T.thread_id([64])
    s = T.alloc_buffer((8, 8), "float32", scope="shared")
    d = T.alloc_buffer((7,), "float32", scope="shared")
    Tx.cta.sum(d, s, axes=-1)


@T.prim_func
def an_axis_that_there_is_not():
    T.device_entry(); T.cta_id([1]); T.thread_id([64])
    s = T.alloc_buffer((8, 8), "float32", scope="shared")
    d = T.alloc_buffer((8,), "float32", scope="shared")
    Tx.cta.max(d, s, axes=2)


@T.prim_func
def rows_in_other_threads():
    T.device_entry(); T.cta_id([1]); T.lane_id([32]); T.thread_id([32])
    a = T.alloc_buffer((32, 4), "float32", scope="local", layout=TileLayout(S[(32, 4) : (1 @ laneid, 1)]))
    b = T.alloc_buffer((32,), "float32", scope="local", layout=TileLayout(S[(2, 16) : (1 @ laneid, 2 @ laneid)]))
    Tx.warp.sum(b, a, axes=-1)


# Operations without a variant.
@T.prim_func
def no_variant_yet():
    T.device_entry(); T.cta_id([1]); T.thread_id([64])
    s = T.alloc_buffer((8, 8), "float32", scope="shared")
    Tx.cta.permute_layout(s, s)


@T.prim_func
def value_of_no_thread(A: T.Buffer((1, 128), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([32])
    v = T.alloc_local((1, 128), "float32", layout=TileLayout(S[(1, 32, 4) : (4, 1 @ laneid, 1)]))
    r = T.alloc_local((1, 1), "float32", layout=TileLayout(S[(1, 1)]))
    Tx.warp.copy(v, A)
    Tx.warp.max(r, v, thread_reduce=True)
    Tx.warp.sub(v, v, r)


@T.prim_func
def larger_of_two_values(A: T.Buffer((64,), "float32")):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([32])
    Tx.maximum(A[tx], A[tx], A[tx + 1])
