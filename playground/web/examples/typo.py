# An unknown name: the message has a help, which the light bulb or the button of the message applies.
from tvm.script import tirx as T


# sim: scale(N=128)
#   A: float32[N] = i
#   B: float32[N] = 0 -> 3 * i
#   factor = 3.0
@T.jit
def scale(A: T.Buffer((N,), "float32"), B: T.Buffer((N,), "float32"), factor: T.float32, *, N: T.constexpr):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([N])
    B[tx] = A[tz] * factor
