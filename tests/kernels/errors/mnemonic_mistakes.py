# test: messages
# What instructions of PTX do not have: the word, what is legal there, and since which release and GPU.
from tvm.script import tirx as T


@T.prim_func
def no_such_type(A: T.Buffer((32,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    x: T.uint32
    T.ptx.ld.global_.b33(x, A.ptr_to([tx]))


@T.prim_func
def other_line(A: T.Buffer((32,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    x: T.uint32
    T.ptx["ld.volatile.acquire.b32"](x, A.ptr_to([tx]))


@T.prim_func
def incomplete(A: T.Buffer((32,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    x: T.uint32
    T.ptx["ld.acquire.b32"](x, A.ptr_to([tx]))


@T.prim_func
def wrong_dtype(A: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    x: T.float32
    T.ptx.add.u32(x, 1, 2)


@T.prim_func
def wrong_count(A: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    x: T.float32
    T.ptx.add.f32(x, x)


@T.prim_func
def wrong_count_of_registers(A: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((256,), "float16")
    r = T.alloc_local((4,), "uint32")
    T.ptx["ldmatrix.sync.aligned.m8n8.x4.shared.b16"](r[0], S.ptr_to([tx * 8]))


@T.prim_func
def no_variable(A: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    T.ptx.add.f32(A[tx] + 1.0, A[tx], A[tx])


@T.prim_func
def no_instruction(A: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    T.ptx["addd.f32"](A[tx], A[tx], A[tx])
