# test: compile sm_90a
# Errors of float values against the same computation in double precision.
from tvm.script import tirx as T


# A sum of many equal terms loses bits at each step.
# sim: naive_sum
#   A: float32[1024] = 0.1
#   B: float32[1] = 0 -> 102.4 +- 2e-5
#   error: B 2e-5
@T.prim_func
def naive_sum(A: T.Buffer((1024,), "float32"), B: T.Buffer((1,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    s = T.alloc_local((1,), "float32")
    if tx == 0:
        s[0] = T.float32(0)
        for i in range(1024):
            s[0] = s[0] + A[i]
        B[0] = s[0]


# Kahan's sum of the same terms has an error of one rounding.
# sim: compensated_sum
#   A: float32[1024] = 0.1
#   B: float32[1] = 0 -> 102.4 +- 1e-7
#   error: B 1.2e-7
@T.prim_func
def compensated_sum(A: T.Buffer((1024,), "float32"), B: T.Buffer((1,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    s = T.alloc_local((1,), "float32")
    c = T.alloc_local((1,), "float32")
    y = T.alloc_local((1,), "float32")
    t = T.alloc_local((1,), "float32")
    if tx == 0:
        s[0] = T.float32(0)
        c[0] = T.float32(0)
        for i in range(1024):
            y[0] = A[i] - c[0]
            t[0] = s[0] + y[0]
            c[0] = (t[0] - s[0]) - y[0]
            s[0] = t[0]
        B[0] = s[0]
