# test: parse
# What Apache TVM 0.27 prints: extents of parameters are type variables, and their import is a comment.
# from typing import TypeVar
# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

A_dim0 = TypeVar("A_dim0")
B_dim0 = TypeVar("B_dim0")
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((A_dim0,), "float32"), B: T.Buffer((B_dim0, 2), "float32")):
        T.func_attr({"global_symbol": "of_variables"})
        v: T.let[T.TensorMap()] = T.tvm_stack_alloca("tensormap", 1)
        T.tensormap_encode_tiled(v, A.data, A_dim0, 32, 1, descriptor_dtype="float32", rank=1, interleave=0, swizzle=0, l2_promotion=2, oob_fill=0, force_cu_dtype=-1)
        with T.attr({"tirx.device_entry": T.bool(True)}):
            v_1 = T.cta_id([1])
            v_2 = T.thread_id([32])
            w = T.decl_buffer((A_dim0,), "uint32", data=A.data, layout=T.TileLayout(T.S[(A_dim0, 1):(T.int64(1), 1)]))
            B[v_2, 0] = A[v_2] + T.Cast("float32", w[v_2])
