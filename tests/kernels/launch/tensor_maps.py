# test: parse
# test: lower MakePackedAPI
# test: cuda sm_90a
# test: sim
# Tensor maps that the host encodes before a launch: of a constant shape, and of a shape and an offset that arguments
# say.
from tvm.script import tirx as T


@T.prim_func
def constant_map(A: T.Buffer((256, 128), "float16"), B: T.Buffer((2,), "uint64")):
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float16", 2, A.data, 128, 256, 256, 64, 32, 1, 1, 0, 3, 2, 0)
    T.device_entry()
    bx = T.cta_id([2])
    tx = T.thread_id([32])
    if tx == 0:
        B[bx] = T.address_of(A_map) % T.uint64(64)


@T.prim_func
def map_of_arguments(a: T.handle, b: T.handle, first: T.int32):
    m = T.int32()
    n = T.int32()
    A = T.match_buffer(a, (m, n), "float32")
    B = T.match_buffer(b, (2,), "uint64")
    A_map: T.let[T.TensorMap()] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed(
        "runtime.cuTensorMapEncodeTiled", A_map, "float32", 2,
        T.handle_add_byte_offset(A.data, first * n * 4), n, m - first, n * 4, 4, 8, 1, 2, 0, 0, 0, 1,
    )
    B_map: T.let[T.TensorMap()] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", B_map, "float32", 1, A.data, n * m, 32, 1, 0, 3, 0, 0, 11)
    T.device_entry()
    tx = T.thread_id([32])
    if tx == 0:
        B[0] = T.address_of(A_map) % T.uint64(64)
        B[1] = T.address_of(B_map) % T.uint64(64)
