# test: cuda sm_90a
# Values that conversions take.
from tvm.script import tirx as T


# Operands of float dtypes are passed by their bits: float8 1 and 2 are the halves 0x3c00 and 0x4000.
# sim: operands_of_their_own_dtypes
#   A: float16[16] = i * 0.5
#   Q: uint8[32] = 56 + 8 * (i % 2)
#   B: float32[16] = 0 -> A[i]
#   U: uint32[16] = 0 -> 1073757184
@T.prim_func
def operands_of_their_own_dtypes(A: T.Buffer((16,), "float16"), Q: T.Buffer((32,), "uint8"), B: T.Buffer((16,), "float32"), U: T.Buffer((16,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([16])
    B[tx] = T.ptx.cvt("f32", A[tx], atype="f16")
    U[tx] = T.ptx.cvt("f16x2", Q.view("float8_e4m3fn").vload([tx * 2], "float8_e4m3fnx2"), atype="e4m3x2", rounding="rn")
