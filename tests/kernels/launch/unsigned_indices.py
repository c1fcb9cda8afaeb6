# test: parse
# test: lower LowerTIRx
# test: cuda sm_90a
# Indices of threads and loops of 32 bits without a sign, as TVM 0.27 declares them.
from tvm.script import tirx as T


# Below zero they wrap: the first block and the first iteration are not the ones before the second.
# sim: wraps
#   A: uint32[64] = 0 -> 4294967295 if i < 32 else 0
#   B: uint32[4] = 7 -> 4294967295 + i if i < 1 else i - 1
#   n = 3
@T.prim_func
def wraps(A: T.Buffer((64,), "uint32"), B: T.Buffer((4,), "uint32"), n: T.int32):
    T.device_entry()
    bx, by = T.cta_id([2, 1], dtype="uint32")
    tx = T.thread_id([32], dtype="uint32")
    lane = T.lane_id(dtype="uint32")
    if bx - 1 > T.uint32(5):
        A[lane] = bx - T.uint32(1)
    else:
        A[lane + bx * 32] = by
    if tx == 0 and bx == 0:
        for i in T.serial(n + 1, dtype="uint32"):
            B[i] = i - 1
        for i in T.unroll(1, 2, dtype="uint32"):
            for v in T.vectorized(2, dtype="uint32"):
                B[2 * i + v] = 2 * i + v - 1
