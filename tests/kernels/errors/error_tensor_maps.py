# test: messages
# Tensor maps that no launch could encode.
from tvm.script import tirx as T


@T.prim_func
def wide_for_its_swizzle(A: T.Buffer((256, 128), "float16"), B: T.Buffer((2,), "uint64")):
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float16", 2, A.data, 128, 256, 256, 72, 32, 1, 1, 0, 3, 2, 0)
    T.device_entry()
    tx = T.thread_id([32])
    if tx == 0:
        B[0] = T.address_of(A_map)


@T.prim_func
def odd_stride(A: T.Buffer((256, 128), "float16"), B: T.Buffer((2,), "uint64")):
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float16", 2, A.data, 128, 256, 250, 64, 32, 1, 1, 0, 3, 2, 0)
    T.device_entry()
    tx = T.thread_id([32])
    if tx == 0:
        B[0] = T.address_of(A_map)


@T.prim_func
def large_box(A: T.Buffer((256, 128), "float16"), B: T.Buffer((2,), "uint64")):
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float16", 2, A.data, 128, 256, 256, 64, 512, 1, 1, 0, 3, 2, 0)
    T.device_entry()
    tx = T.thread_id([32])
    if tx == 0:
        B[0] = T.address_of(A_map)


@T.prim_func
def narrow_box(A: T.Buffer((256, 128), "float16"), B: T.Buffer((2,), "uint64")):
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float16", 2, A.data, 128, 256, 256, 4, 32, 1, 1, 0, 0, 2, 0)
    T.device_entry()
    tx = T.thread_id([32])
    if tx == 0:
        B[0] = T.address_of(A_map)


@T.prim_func
def strided_inside(A: T.Buffer((256, 128), "float16"), B: T.Buffer((2,), "uint64")):
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float16", 2, A.data, 128, 256, 256, 64, 32, 2, 1, 0, 3, 2, 0)
    T.device_entry()
    tx = T.thread_id([32])
    if tx == 0:
        B[0] = T.address_of(A_map)


@T.prim_func
def large_step(A: T.Buffer((256, 128), "float16"), B: T.Buffer((2,), "uint64")):
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float16", 2, A.data, 128, 256, 256, 64, 32, 1, 9, 0, 3, 2, 0)
    T.device_entry()
    tx = T.thread_id([32])
    if tx == 0:
        B[0] = T.address_of(A_map)


@T.prim_func
def unknown_swizzle(A: T.Buffer((256, 128), "float16"), B: T.Buffer((2,), "uint64")):
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float16", 2, A.data, 128, 256, 256, 64, 32, 1, 1, 0, 4, 2, 0)
    T.device_entry()
    tx = T.thread_id([32])
    if tx == 0:
        B[0] = T.address_of(A_map)


@T.prim_func
def interleaved_of_two(A: T.Buffer((256, 128), "float16"), B: T.Buffer((2,), "uint64")):
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float16", 2, A.data, 128, 256, 256, 64, 32, 1, 1, 1, 0, 2, 0)
    T.device_entry()
    tx = T.thread_id([32])
    if tx == 0:
        B[0] = T.address_of(A_map)


@T.prim_func
def interleaved_unswizzled(A: T.Buffer((256, 128), "float16"), B: T.Buffer((2,), "uint64")):
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float16", 3, A.data, 128, 16, 16, 256, 4096, 16, 8, 8, 1, 1, 1, 2, 0, 2, 0)
    T.device_entry()
    tx = T.thread_id([32])
    if tx == 0:
        B[0] = T.address_of(A_map)


@T.prim_func
def nan_of_integers(A: T.Buffer((256, 128), "float16"), B: T.Buffer((2,), "uint64")):
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "int32", 2, A.data, 64, 256, 256, 32, 32, 1, 1, 0, 3, 2, 1)
    T.device_entry()
    tx = T.thread_id([32])
    if tx == 0:
        B[0] = T.address_of(A_map)


@T.prim_func
def unknown_dtype(A: T.Buffer((256, 128), "float16"), B: T.Buffer((2,), "uint64")):
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float16x2", 2, A.data, 64, 256, 256, 32, 32, 1, 1, 0, 3, 2, 0)
    T.device_entry()
    tx = T.thread_id([32])
    if tx == 0:
        B[0] = T.address_of(A_map)


@T.prim_func
def rank(A: T.Buffer((256, 128), "float16"), B: T.Buffer((2,), "uint64")):
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float16", 6, A.data, 128, 256, 256, 64, 32, 1, 1, 0, 3, 2, 0)
    T.device_entry()
    tx = T.thread_id([32])
    if tx == 0:
        B[0] = T.address_of(A_map)


@T.prim_func
def too_few(A: T.Buffer((256, 128), "float16"), B: T.Buffer((2,), "uint64")):
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float16", 3, A.data, 128, 256, 256, 64, 32, 1, 1, 0, 3, 2, 0)
    T.device_entry()
    tx = T.thread_id([32])
    if tx == 0:
        B[0] = T.address_of(A_map)


@T.prim_func
def empty(A: T.Buffer((256, 128), "float16"), B: T.Buffer((2,), "uint64")):
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float16", 2, A.data, 128, 0, 256, 64, 32, 1, 1, 0, 3, 2, 0)
    T.device_entry()
    tx = T.thread_id([32])
    if tx == 0:
        B[0] = T.address_of(A_map)


@T.prim_func
def tfloat32_of_halves(A: T.Buffer((256, 128), "float16"), B: T.Buffer((2,), "uint64")):
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float16", 2, A.data, 128, 256, 256, 64, 32, 1, 1, 0, 3, 2, 0, 11)
    T.device_entry()
    tx = T.thread_id([32])
    if tx == 0:
        B[0] = T.address_of(A_map)


@T.prim_func
def no_map(A: T.Buffer((256, 128), "float16"), B: T.Buffer((2,), "uint64")):
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A.data, "float16", 2, A.data, 128, 256, 256, 64, 32, 1, 1, 0, 3, 2, 0)
    T.device_entry()
    tx = T.thread_id([32])
    if tx == 0:
        B[0] = T.address_of(A_map)
