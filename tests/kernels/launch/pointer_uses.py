# test: compile sm_90a
# What kernels do with tensors through pointers: `tests/tests/kernels/launchers.rs` asks the signatures of their launchers.
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx


@T.prim_func
def copied_by_tiles(A: T.Buffer((64, 32), "float16"), B: T.Buffer((64, 32), "float16")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([128])
    S = T.alloc_shared((64, 32), "float16")
    Tx.cta.copy(S[:, :], A[:, :])
    T.cuda.cta_sync()
    Tx.cta.copy(B[:, :], S[:, :])


@T.prim_func
def copied_in_the_background(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((128,), "float32", align=128)
    T.ptx.cp_async(S.ptr_to([tx * 4]), A.ptr_to([tx * 4]), 16)
    T.ptx.cp_async.commit_group()
    T.ptx.cp_async.wait_group(0)
    T.ptx.fence.proxy_async("shared::cta")
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.cp_async_bulk_s2g(B.ptr_to([0]), S.ptr_to([0]), 512)
        T.ptx.cp_async.bulk.commit_group()
        T.ptx.cp_async.bulk.wait_group(0, False)


# One of two tensors, chosen at run time: both are read.
@T.prim_func
def chosen(A: T.Buffer((32,), "uint32"), B: T.Buffer((32,), "uint32"), C: T.Buffer((32,), "uint32"), which: T.int32):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    source: T.let = T.if_then_else(which == 0, A.ptr_to([tx]), B.ptr_to([tx]))
    T.ptx.st(C.ptr_to([tx]), T.ptx.ld(source, "uint32", "u32"), space="global", ptx_type="u32")


# What is counted is read and written.
@T.prim_func
def counted(A: T.Buffer((32,), "int32"), C: T.Buffer((1,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    T.evaluate(T.cuda.atomic_add(C.ptr_to([0]), T.cuda.ldg(A.ptr_to([tx]), "int32")))


# The address as a number: whoever has it may write.
@T.prim_func
def address_as_a_number(A: T.Buffer((32,), "float32"), C: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    address: T.let = T.reinterpret("uint64", C.ptr_to([0]))
    T.cuda.func_call("put", address, tx, A[tx],
                     source_code="__device__ void put(unsigned long long c, int i, float v) { ((float*)c)[i] = v; }")


# The same by way of memory.
@T.prim_func
def address_in_memory(A: T.Buffer((32,), "float32"), C: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    table = T.alloc_local((1,), "uint64")
    table[0] = T.reinterpret("uint64", C.ptr_to([0])) + T.uint64(4)
    T.cuda.func_call("put", table[0], tx, A[tx],
                     source_code="__device__ void put(unsigned long long c, int i, float v) { ((float*)c)[i - 1] = v; }")


# A test of an address gives nobody the address.
@T.prim_func
def address_tested(A: T.Buffer((32,), "float32"), C: T.Buffer((32,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    C[tx] = T.Select(T.reinterpret("uint64", A.ptr_to([0])) % T.uint64(16) == T.uint64(0), 1, 0)


# A kernel that looks at the address may choose its accesses by it.
@T.prim_func
def by_the_address(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([1])
    r = T.alloc_local((4,), "float32")
    if T.reinterpret("uint64", A.ptr_to([0])) % T.uint64(16) == T.uint64(0):
        T.ptx.ld(A.ptr_to([0]), "float32", "f32", vec="v4", dst=r.ptr_to([0]))
    else:
        for i in T.serial(4):
            r[i] = A[i]
    for i in T.serial(4):
        B[i] = r[i]


# Behind an element that is not aligned nothing more is asked of the tensor.
@T.prim_func
def behind_the_first(A: T.Buffer((5,), "float32"), B: T.Buffer((4,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([1])
    r = T.alloc_local((4,), "float32")
    T.ptx.ld(A.ptr_to([1]), "float32", "f32", vec="v2", dst=r.ptr_to([0]))
    T.ptx.ld(A.ptr_to([3]), "float32", "f32", vec="v2", dst=r.ptr_to([2]))
    T.ptx.st(B.ptr_to([0]), src=r.ptr_to([0]), space="global", vec="v2", ptx_type="f32")
    T.ptx.st(B.ptr_to([2]), src=r.ptr_to([2]), space="global", vec="v2", ptx_type="f32")
