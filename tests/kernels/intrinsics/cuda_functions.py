# test: parse
# test: cuda sm_90a
# test: sim
# Functions of CUDA: votes, reductions, conversions of bits, clocks.
from tvm.script import tirx as T


@T.prim_func
def votes(A: T.Buffer((64,), "int32"), B: T.Buffer((6, 64), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    B[0, tx] = T.cuda.syncthreads_and(A[tx] > 0)
    B[1, tx] = T.cuda.syncthreads_or(A[tx] > 60)
    B[2, tx] = T.cast(T.cuda.ballot_sync(T.uint32(0xFFFFFFFF), A[tx] % 3 == 0), "int32")
    B[3, tx] = T.cast(T.cuda.reduce_add_sync_u32(T.uint32(0xFFFFFFFF), T.cast(A[tx], "uint32")), "int32")
    B[4, tx] = T.cast(T.cuda.reduce_min_sync_u32(T.uint32(0xFFFFFFFF), T.cast(A[tx], "uint32")), "int32")
    B[5, tx] = T.ptx.any_sync(T.uint32(0xFFFFFFFF), A[tx] > 40)


@T.prim_func
def warps(A: T.Buffer((64,), "float32"), B: T.Buffer((4, 64), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    B[0, tx] = T.cuda.warp_sum(A[tx])
    B[1, tx] = T.cuda.warp_max(A[tx])
    B[2, tx] = T.cuda.warp_min(A[tx], 8)
    B[3, tx] = T.cuda.warp_reduce(A[tx], "sum", width=4)


@T.prim_func
def blocks(A: T.Buffer((64,), "float32"), B: T.Buffer((4, 64), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    scratch = T.alloc_shared((2,), "float32")
    B[0, tx] = T.cuda.cta_sum(A[tx], 2, scratch.ptr_to([0]))
    T.cuda.cta_sync()
    B[1, tx] = T.cuda.cta_max(A[tx], 2, scratch.ptr_to([0]))
    T.cuda.cta_sync()
    B[2, tx] = T.cuda.cta_min(A[tx], 2, scratch.ptr_to([0]))
    T.cuda.cta_sync()
    B[3, tx] = T.cuda.cta_reduce(A[tx], "max", 2, scratch.ptr_to([0]))


@T.prim_func
def bits(A: T.Buffer((4,), "float32"), H: T.Buffer((4,), "float16"), G: T.Buffer((4,), "bfloat16"), B: T.Buffer((3, 4), "float32"), C: T.Buffer((4, 4), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([4])
    C[0, tx] = T.cuda.float_as_uint(A[tx])
    B[0, tx] = T.cuda.uint_as_float(C[0, tx] + T.uint32(0x800000))
    B[1, tx] = T.cuda.half2float(H[tx]) + T.cuda.bfloat162float(G[tx])
    B[2, tx] = T.cuda.fdividef(A[tx], T.float32(4))
    C[1, tx] = T.cast(T.cuda.ffs_u32(T.cast(tx, "uint32")), "uint32")
    C[2, tx] = T.cast(T.cuda.thread_rank(), "uint32")
    start: T.let = T.cuda.clock64()
    T.cuda.nano_sleep(T.uint64(20))
    C[3, tx] = T.cast(T.cuda.clock64() >= start, "uint32")


@T.prim_func
def packed(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "uint64"), C: T.Buffer((5, 4), "uint32"), D: T.Buffer((2, 4), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([4])
    B[tx] = T.cuda.make_float2(A[tx], T.float32(0.5))
    D[0, tx] = T.cuda.float2_x(B[tx])
    D[1, tx] = T.cuda.float2_y(B[tx])
    C[0, tx] = T.cuda.float22bfloat162_rn(A[tx], T.float32(2))
    C[1, tx] = T.cuda.float22bfloat162_rn_from_float2(B[tx])
    C[2, tx] = T.cuda.hmin2(C[0, tx], C[1, tx])
    C[3, tx] = T.cuda.hmax2(C[0, tx], C[1, tx])
    C[4, tx] = T.cuda.fp8x4_e4m3_from_float4(A[tx], T.float32(1), T.float32(-448), T.float32(1000))
    B[tx] = T.cuda.bfloat1622float2(C[0, tx])


@T.prim_func
def arithmetic(A: T.Buffer((4,), "float32"), B: T.Buffer((8, 4), "float32"), D: T.Buffer((4, 4), "float64"), C: T.Buffer((4,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([4])
    T.ptx.add_f32(B.ptr_to([0, tx]), A[tx], 1.5)
    T.ptx.sub_f32(B.ptr_to([1, tx]), A[tx], 1.5, ftz=True)
    T.ptx.mul_f32(B.ptr_to([2, tx]), A[tx], 1.5, sat=True)
    T.ptx.fma_f32(B.ptr_to([3, tx]), A[tx], 1.5, 0.25, rounding="rn")
    B[4, tx] = T.ptx.exp2(A[tx])
    B[5, tx] = T.ptx.rcp(A[tx])
    B[6, tx] = T.ptx.max_f32(A[tx], T.float32("nan"))
    B[7, tx] = T.ptx.max_f32(A[tx], T.float32("nan"), ftz=True, nan=True)
    T.ptx.add_f64(D.ptr_to([0, tx]), T.float64(A[tx]), 1.5)
    T.ptx.sub_f64(D.ptr_to([1, tx]), T.float64(A[tx]), 1.5)
    T.ptx.mul_f64(D.ptr_to([2, tx]), T.float64(A[tx]), 1.5)
    T.ptx.fma_f64(D.ptr_to([3, tx]), T.float64(A[tx]), 1.5, 0.25)


@T.prim_func
def rounded(A: T.Buffer((4,), "float32"), C: T.Buffer((4,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([4])
    T.ptx.add_f32(A.ptr_to([tx]), A[tx], 1.5, rounding="rz", ftz=True, sat=True)
    C[tx] = T.ptx.fns_b32(C[tx], T.uint32(0), 1)


@T.prim_func
def dependent(A: T.Buffer((4,), "float32")):
    T.device_entry()
    T.attr({"tirx.use_programtic_dependent_launch": 1})
    bx = T.cta_id([1])
    tx = T.thread_id([4])
    T.ptx.griddepcontrol.wait()
    A[tx] = A[tx] + 1.0
    T.ptx.griddepcontrol.launch_dependents()


@T.prim_func
def cooperative(A: T.Buffer((4, 32), "float32"), B: T.Buffer((4, 32), "float32")):
    T.device_entry()
    T.attr({"tirx.use_cooperative_launch": True})
    bx = T.cta_id([4])
    tx = T.thread_id([32])
    B[bx, tx] = A[bx, tx] + 1.0
    T.cuda.grid_sync()
    A[bx, tx] = B[3 - bx, 31 - tx]
