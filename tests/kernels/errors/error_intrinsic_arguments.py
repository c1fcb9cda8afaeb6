# test: messages

from tvm.script import tirx as T

@T.prim_func
def missing(A: T.Buffer((64,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1]); tx = T.thread_id([32])
    T.ptx.mbarrier.init(A.ptr_to([0]))

@T.prim_func
def word(A: T.Buffer((64,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1]); tx = T.thread_id([32])
    bar = T.alloc_shared((1,), "uint64")
    T.ptx.mbarrier.arrive(bar.ptr_to([0]), sem="acquire", scope="cta")

@T.prim_func
def together(A: T.Buffer((64,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1]); tx = T.thread_id([32])
    bar = T.alloc_shared((1,), "uint64")
    T.ptx.mbarrier.arrive(bar.ptr_to([0]), sem="release")

@T.prim_func
def pointer(A: T.Buffer((64,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1]); tx = T.thread_id([32])
    bar = T.alloc_shared((1,), "uint64")
    T.ptx.mbarrier.try_wait(5, 0)

@T.prim_func
def registers(A: T.Buffer((64,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1]); tx = T.thread_id([32])
    r = T.alloc_local((4,), "uint32")
    T.ptx.tcgen05.ld(0, r[0], r[1], r[2], shape="32x32b", num=4)

@T.prim_func
def shape(A: T.Buffer((64,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1]); tx = T.thread_id([128])
    r = T.alloc_local((4,), "float32")
    T.ptx.wgmma.mma_async.ss(T.uint64(0), T.uint64(0), *[r[i] for i in range(4)], M=64, N=8, K=8, in_dtype="float16", out_dtype="float32", transA=False, transB=False, scaleA=1, scaleB=1, scaleD=1)

@T.prim_func
def unknown_keyword(A: T.Buffer((64,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1]); tx = T.thread_id([32])
    bar = T.alloc_shared((1,), "uint64")
    T.ptx.mbarrier.arrive(bar.ptr_to([0]), cta_id=1)

@T.prim_func
def dtypes(A: T.Buffer((64,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1]); tx = T.thread_id([32])
    d: T.uint32
    T.ptx.tcgen05.encode_instr_descriptor(T.address_of(d), d_dtype="float32", a_dtype="float16", b_dtype="int8", M=128, N=128, K=16, trans_a=False, trans_b=False)

@T.prim_func
def variable_modifier(A: T.Buffer((64,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1]); tx = T.thread_id([32])
    T.ptx.cp_async.wait_group(tx)

@T.prim_func
def sums_of_another_dtype(A: T.Buffer((64,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1]); tx = T.thread_id([32])
    r = T.alloc_local((4,), "int32")
    T.ptx.mma("m16n8k32", "row", "col", "int32", "int8", "int8", "float32", [r.ptr_to([i]) for i in range(4)],
              [r.ptr_to([i]) for i in range(4)], [r.ptr_to([i]) for i in range(2)], [r.ptr_to([i]) for i in range(4)])


@T.prim_func
def accumulators_of_another_dtype(A: T.Buffer((64,), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    acc = T.alloc_local((8,), "float16")
    da: T.uint64 = T.uint64(0)
    T.ptx.wgmma.mma_async.ss(da, da, *[acc[i] for i in range(8)], M=64, N=16, K=16, in_dtype="float16", out_dtype="float32", transA=False, transB=False, scaleA=1.0, scaleB=1.0, scaleD=1)


@T.prim_func
def accumulators_of_half_a_register(A: T.Buffer((64,), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    acc = T.alloc_local((8,), "float16")
    da: T.uint64 = T.uint64(0)
    T.ptx.wgmma.mma_async.ss(da, da, *[acc[i] for i in range(8)], M=64, N=16, K=16, in_dtype="float16", out_dtype="float16", transA=False, transB=False, scaleA=1.0, scaleB=1.0, scaleD=1)


@T.prim_func
def accumulators_of_bytes(A: T.Buffer((64,), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    acc = T.alloc_local((4,), "uint8")
    da: T.uint64 = T.uint64(0)
    T.ptx.wgmma.mma_async.ss(da, da, *[acc[i] for i in range(4)], M=64, N=16, K=16, in_dtype="float16", out_dtype="float16", transA=False, transB=False, scaleA=1.0, scaleB=1.0, scaleD=1)
