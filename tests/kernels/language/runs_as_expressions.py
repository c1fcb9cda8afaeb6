# Inputs and expected results of a run, as expressions beside the kernel.
from tvm.script import tirx as T


def clamped(x, low, high):
    return min(max(x, low), high)


# sim: clamp
#   A: float32[64] = i * 0.5 - 16
#   B: float32[64] = 0 -> clamped(A[i], low, 4.5)
#   low = -3.25
#
# sim: clamp
#   A: float32[64] = float("inf") if i % 2 else -i
#   B: float32[64] = 0 -> 4.5 if i % 2 else max(-i, 0.0)
#   low = 0.0
@T.prim_func
def clamp(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32"), low: T.float32):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    B[tx] = T.min(T.max(A[tx], low), T.float32(4.5))


# sim: transpose
#   A: int32[8x4] = 10 * i + j
#   B: int32[4x8] = -1 -> A[j][i]
@T.prim_func
def transpose(A: T.Buffer((8, 4), "int32"), B: T.Buffer((4, 8), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    B[tx % 4, tx // 4] = A[tx // 4, tx % 4]


# sim: outside
#   A: int32[4] = i
#   at = 4
#   fault: writes `A[4]`
@T.prim_func
def outside(A: T.Buffer((4,), "int32"), at: T.int32):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    if tx == 0:
        A[at] = 1
