# test: parse
# test: compile sm_100a
# test: sim
# Conversions of PTX to floats of 4, 6 and 8 bits that need sm_100.
from tvm.script import tirx as T


@T.prim_func
def small(A: T.Buffer((16,), "float32"), B: T.Buffer((2, 8), "uint8"), C: T.Buffer((4, 8), "uint16"), D: T.Buffer((4, 8), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([8])
    B[0, tx] = T.ptx.cvt("e2m1x2", A[2 * tx], A[2 * tx + 1], atype="f32", rounding="rn", satfinite=True)
    B[1, tx] = T.ptx.cvt("e2m1x2", A[2 * tx], A[2 * tx + 1], atype="f32", rounding="rn", satfinite=True, relu=True)
    C[0, tx] = T.ptx.cvt("e2m3x2", A[2 * tx], A[2 * tx + 1], atype="f32", rounding="rn", satfinite=True)
    C[1, tx] = T.ptx.cvt("e3m2x2", A[2 * tx], A[2 * tx + 1], atype="f32", rounding="rn", satfinite=True)
    C[2, tx] = T.ptx.cvt("ue8m0x2", A[2 * tx], A[2 * tx + 1], atype="f32", rounding="rz", satfinite=True)
    C[3, tx] = T.ptx.cvt("ue8m0x2", A[2 * tx], A[2 * tx + 1], atype="f32", rounding="rp", satfinite=True)
    D[0, tx] = T.ptx.cvt("f16x2", B[0, tx], atype="e2m1x2", rounding="rn")
    D[1, tx] = T.ptx.cvt("f16x2", C[0, tx], atype="e2m3x2", rounding="rn")
    D[2, tx] = T.ptx.cvt("f16x2", C[1, tx], atype="e3m2x2", rounding="rn")
    D[3, tx] = T.ptx.cvt("bf16x2", C[3, tx], atype="ue8m0x2", rounding="rn")


@T.prim_func
def bulk(B: T.Buffer((64,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((64,), "uint32", align=16)
    S[tx] = T.cast(tx, "uint32")
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.st_bulk(S.ptr_to([0]), 64)
        T.ptx.st_bulk(S.ptr_to([32]), 40, weak=True)
        T.ptx.st_bulk(S.ptr_to([48]), T.uint32(8), space="")
    T.cuda.cta_sync()
    B[tx] = S[tx]


@T.prim_func
def random(A: T.Buffer((8,), "float32"), B: T.Buffer((2,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([1])
    B[0] = T.ptx.cvt("e4m3x4", A[0], A[1], A[2], A[3], atype="f32", rounding="rs", satfinite=True, rbits=T.uint32(0x12345678))
    B[1] = T.ptx.cvt("f16x2", A[4], A[5], atype="f32", rounding="rs", relu=True, rbits=B[0])
