# test: parse
# test: cuda sm_90a
# test: sim
# Names of T that are rare in kernels: a parameter that may be absent, iterators of a layout, small floats.
from tvm.script import tirx as T


@T.jit
def maybe(A: T.Buffer((32,), "float32"), B: T.Optional(T.handle)):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    A[tx] = A[tx] + T.float32(2)


@T.prim_func
def iterators(A: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    L = T.alloc_buffer((8, 4), "float32", scope="shared", layout=T.TileLayout.from_iters([T.Iter(8, 1, "m"), T.Iter(4, 8, "m")]))
    L[tx // 4, tx % 4] = A[tx]
    T.cuda.cta_sync()
    A[tx] = L[tx % 8, tx // 8] + T.float32(1.0)


@T.prim_func
def sixes(A: T.Buffer((8,), "float32"), B: T.Buffer((2, 8), "float32"), C: T.Buffer((8,), "float6_e2m3fn"), D: T.Buffer((8,), "float6_e3m2fn")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([8])
    C[tx] = T.cast(A[tx], "float6_e2m3fn")
    D[tx] = T.cast(A[tx], "float6_e3m2fn")
    B[0, tx] = T.cast(C[tx], "float32")
    B[1, tx] = T.cast(D[tx], "float32")
