# test: parse
# test: cuda sm_90a
# test: sim
# Conversions of PTX that sm_90 has: roundings, saturation, packed forms.
from tvm.script import tirx as T


@T.prim_func
def integers(A: T.Buffer((16,), "float32"), B: T.Buffer((6, 16), "int32"), C: T.Buffer((2, 16), "uint8"), D: T.Buffer((16,), "uint64")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([16])
    B[0, tx] = T.ptx.cvt("s32", A[tx], atype="f32", rounding="rni")
    B[1, tx] = T.ptx.cvt("s32", A[tx], atype="f32", rounding="rzi")
    B[2, tx] = T.ptx.cvt("s32", A[tx], atype="f32", rounding="rmi", ftz=True)
    B[3, tx] = T.ptx.cvt("s32", A[tx], atype="f32", rounding="rpi")
    B[4, tx] = T.cast(T.ptx.cvt("s8", B[1, tx], atype="s32", sat=True), "int32")
    B[5, tx] = T.cast(T.ptx.cvt("s16", B[1, tx], atype="u8"), "int32")
    C[0, tx] = T.ptx.cvt("u8", A[tx], atype="f32", rounding="rni", sat=True)
    C[1, tx] = T.ptx.cvt("u8", B[1, tx], atype="s32", sat=True)
    D[tx] = T.ptx.cvt("u64", A[tx], atype="f32", rounding="rzi")


@T.prim_func
def floats(A: T.Buffer((16,), "float32"), D: T.Buffer((16,), "float64"), I: T.Buffer((16,), "int64"), B: T.Buffer((7, 16), "float32"), E: T.Buffer((2, 16), "float64")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([16])
    B[0, tx] = T.ptx.cvt("f32", D[tx], atype="f64", rounding="rn")
    B[1, tx] = T.ptx.cvt("f32", D[tx], atype="f64", rounding="rz")
    B[2, tx] = T.ptx.cvt("f32", D[tx], atype="f64", rounding="rm")
    B[3, tx] = T.ptx.cvt("f32", D[tx], atype="f64", rounding="rp")
    B[4, tx] = T.ptx.cvt("f32", A[tx], atype="f32", rounding="rmi")
    B[5, tx] = T.ptx.cvt("f32", A[tx], atype="f32", sat=True)
    B[6, tx] = T.ptx.cvt("f32", I[tx], atype="s64", rounding="rz")
    E[0, tx] = T.ptx.cvt("f64", A[tx], atype="f32")
    E[1, tx] = T.ptx.cvt("f64", I[tx], atype="s64", rounding="rn")


@T.prim_func
def packed(A: T.Buffer((16,), "float32"), H: T.Buffer((4, 8), "uint32"), Q: T.Buffer((4, 8), "uint16"), U: T.Buffer((4, 8), "uint32"), S: T.Buffer((4, 16), "uint16"), W: T.Buffer((3, 16), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([16])
    if tx < 8:
        H[0, tx] = T.ptx.cvt("f16x2", A[2 * tx], A[2 * tx + 1], atype="f32", rounding="rn")
        H[1, tx] = T.ptx.cvt("f16x2", A[2 * tx], A[2 * tx + 1], atype="f32", rounding="rz", relu=True)
        H[2, tx] = T.ptx.cvt("bf16x2", A[2 * tx], A[2 * tx + 1], atype="f32", rounding="rn")
        H[3, tx] = T.ptx.cvt("bf16x2", A[2 * tx], A[2 * tx + 1], atype="f32", rounding="rn", relu=True)
        Q[0, tx] = T.ptx.cvt("e4m3x2", A[2 * tx], A[2 * tx + 1], atype="f32", rounding="rn", satfinite=True)
        Q[1, tx] = T.ptx.cvt("e5m2x2", A[2 * tx], A[2 * tx + 1], atype="f32", rounding="rn", satfinite=True)
        Q[2, tx] = T.ptx.cvt("e4m3x2", A[2 * tx], A[2 * tx + 1], atype="f32", rounding="rn", satfinite=True, relu=True)
        Q[3, tx] = T.ptx.cvt("e4m3x2", H[0, tx], atype="f16x2", rounding="rn", satfinite=True)
        U[0, tx] = T.ptx.cvt("f16x2", Q[0, tx], atype="e4m3x2", rounding="rn")
        U[1, tx] = T.ptx.cvt("f16x2", Q[1, tx], atype="e5m2x2", rounding="rn")
        U[2, tx] = T.ptx.cvt("f16x2", Q[0, tx], atype="e4m3x2", rounding="rn", relu=True)
        U[3, tx] = T.uint32(0)
    S[0, tx] = T.ptx.cvt("f16", A[tx], atype="f32", rounding="rn")
    S[1, tx] = T.ptx.cvt("bf16", A[tx], atype="f32", rounding="rn")
    S[2, tx] = T.ptx.cvt("f16", A[tx], atype="f32", rounding="rz")
    S[3, tx] = T.ptx.cvt("f16", A[tx], atype="f32", rounding="rn", relu=True)
    W[0, tx] = T.ptx.cvt("tf32", A[tx], atype="f32", rounding="rna")
    W[1, tx] = T.ptx.cvt("tf32", A[tx], atype="f32", rounding="rn")
    W[2, tx] = T.ptx.cvt("tf32", A[tx], atype="f32", rounding="rz", relu=True)
