# test: lower MakePackedAPI
# test: lower LowerTVMBuiltin
# test: lower LowerIntrin
# The host function to its last form: every kind of argument on the stack, floor division of what may be negative.
from tvm.script import tirx as T


@T.prim_func
def every_argument(a: T.handle, b: T.handle, p: T.handle("float32"), s: T.float32, h: T.float16, k: T.int64,
                   u: T.uint8, flag: T.bool, d: T.float64):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float16")
    P = T.decl_buffer((256,), "float32", data=p)
    m: T.let = (n + 7) // 8
    q: T.let = (n - 100) % 24
    T.device_entry()
    bx = T.cta_id([m + q])
    tx = T.thread_id([T.min(n, 256)])
    shared = T.alloc_shared((256,), "float32", scope="shared.dyn")
    shared[tx] = P[tx]
    if tx < n and flag and tx % 2 == 0:
        B[tx] = T.cast(A[tx] * s + T.cast(d, "float32") + shared[tx], "float16") + h + T.cast(k, "float16") + T.cast(u, "float16")
