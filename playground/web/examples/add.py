# A kernel is a Python function. Each thread computes one element.
# The lines below `# sim:` give the arguments and, behind `->`, the result.
from tvm.script import tirx as T


# sim: add
#   A: float32[256] = i
#   B: float32[256] = 2 * i
#   C: float32[256] = 0 -> A[i] + B[i]
@T.prim_func
def add(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32"), C: T.Buffer((256,), "float32")):
    T.device_entry()
    block = T.cta_id([2])
    thread = T.thread_id([128])
    i: T.let = block * 128 + thread
    C[i] = A[i] + B[i]
