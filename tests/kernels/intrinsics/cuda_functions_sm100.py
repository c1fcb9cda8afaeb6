# test: parse
# test: compile sm_100a
# test: sim
# Instructions that Blackwell has.
from tvm.script import tirx as T


@T.prim_func
def pairs(A: T.Buffer((4,), "uint64"), B: T.Buffer((8, 4), "uint64")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([4])
    B[0, tx] = T.cuda.fadd2_rn(A[tx], A[0])
    B[1, tx] = T.cuda.fmul2_rn(A[tx], A[0])
    T.ptx.add_f32x2(B.ptr_to([2, tx]), A[tx], A[0])
    T.ptx.sub_f32x2(B.ptr_to([3, tx]), A[tx], A[0], rounding="rn", ftz=True)
    B[4, tx] = T.ptx.mul_f32x2(A[tx], A[0], dps=False)
    B[5, tx] = T.ptx.fma_f32x2(A[tx], A[0], A[1], dps=False)
    B[6, tx] = T.reinterpret("uint64", T.ptx.add_f32x2(A[tx], A[0], rounding="", dps=False, return_dtype="float32x2"))
    T.ptx.fma_f32x2(B.ptr_to([7, tx]), A[tx], A[0], A[1])


@T.prim_func
def triples(A: T.Buffer((4,), "float32"), B: T.Buffer((3, 4), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([4])
    B[0, tx] = T.ptx.reduce3_max_f32(A[tx], A[0], A[1])
    B[1, tx] = T.ptx.reduce3_min_f32(A[tx], A[0], A[1])
    B[2, tx] = T.ptx.add_rn_f32_bf16(A[tx], T.uint16(0x3FC0))


# One plus three quarters of its last bit, and the negative of that, by each rounding.
@T.prim_func
def rounded_pairs(A: T.Buffer((2,), "uint64"), B: T.Buffer((4,), "uint64")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([1])
    B[0] = T.ptx.add_f32x2(A[0], A[1], rounding="rn", dps=False)
    B[1] = T.ptx.add_f32x2(A[0], A[1], rounding="rz", dps=False)
    T.ptx.add_f32x2(B.ptr_to([2]), A[0], A[1], rounding="rm")
    T.ptx.add_f32x2(B.ptr_to([3]), A[0], A[1], rounding="rp", ftz=True)
