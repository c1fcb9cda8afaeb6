# test: parse only
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx
from tvm.tirx.layout import TileLayout, S, ComposeLayout

@T.prim_func
def k(A_ptr: T.handle, n: T.int32):
    A = T.match_buffer(A_ptr, (32, 32), "float32")
    T.device_entry(); T.cta_id([1]); wid = T.warp_id([8]); T.lane_id([32]); T.thread_id([256])
    s = T.alloc_buffer((32, 32), "float32", scope="shared", layout=ComposeLayout(2, 3, 3, TileLayout(S[(32,32)])))
    s2 = T.alloc_buffer((32, 32), "float32", scope="shared")
    r = T.alloc_buffer((32, 1), "float32", scope="shared")
    Tx.cta.copy(s, A)
    Tx.copy(s[0:4, 0], A[n:n+4, 1], dispatch="vec_128b", cache="nc", num=3)
    Tx.warp.fill(s2, 1.0)
    Tx.wg.fill(s2, T.float32(1.0) )
    Tx.warpgroup.zero(s2)
    Tx.thread.zero(s2, s)
    Tx.cluster.sqrt(s2, s, 1.0, 2.0)
    Tx.cta.exp(s2, s, r, 2.0)
    Tx.cta.add(s2, s, 2.0)
    Tx.cta.fma(s2, s, s, 2.0)
    Tx.cta.cast(s2, s)
    Tx.cta.sum(r, s, axes=-1, accum=True)
    Tx.cta.max(r, s, axes=(1,))
    Tx.cta.gemm(s2, s, s, s2, True, False, 2.0, 1.0)
    Tx.cta.gemm_async(s2, s, s, transA=True)
    Tx.cta.copy_async(s2, A, dispatch="tma", mbar=s2.ptr_to([0,0]), cta_group=2)
    Tx.cta.select(s2, s, 1.0, lambda i, j: i < j)
    Tx.cta.binary_reduce(s2, r, s, s, "add", "sum", -1)
    Tx.cta.unary_reduce(s2, r, s, "exp", "sum", None, None, -1)
    Tx.cta.binary_chain(s2, s, 1.0, 2.0, "add", "mul", True)
    Tx.cta.reduce_negate(r, s, "max")
    Tx.cta.permute_layout(s2, s)
    Tx.cta.memset(s2, 1.0)
    Tx.cta.reciprocal(s2)
    Tx.cta.silu(s2, s)
    Tx.cta.minimum(s2, s, s)
    Tx.cta.fdiv(s2, s, s)
    with Tx.compose_op():
        Tx.cta.silu(s2, s)
        Tx.cta.minimum(s2, s, s)
    Tx.cta.add(s2, s, 2.0, workspace={"x": r}, rounding_mode="rz")
