# test: cuda sm_90a
# A module that a function makes: private functions are called by their names, a kernel is added by assignment, and a pointer that
# nothing uses needs no shape.
import tvm
from tvm.script import tirx as T


# sim: sums
#   A: int32[32] = i
#   unused = None
#   B: int32[32] = 0 -> 2 * i + i * i
def make(n=32):
    @T.prim_func(private=True)
    def square_of(values_h: T.handle("int32", "global"), index: T.int32) -> T.int32:
        values = T.decl_buffer((n,), "int32", data=values_h, scope="global")
        return values[index] * values[index]

    module = tvm.IRModule({"square": square_of})
    square = module.get_global_var("square")
    twice = tvm.ir.GlobalVar("twice")

    @T.prim_func(private=True)
    def twice_of(value: T.int32) -> T.int32:
        return value * 2

    @T.prim_func
    def both(a: T.handle, unused: T.handle, b: T.handle):
        A = T.match_buffer(a, (n,), "int32")
        B = T.match_buffer(b, (n,), "int32")
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([n])
        doubled: T.int32 = tvm.ir.Call(twice, [A[tx]], ret_ty="int32")
        B[tx] = doubled + tvm.ir.Call(square, [A.data, tx], ret_ty="int32")

    module[twice] = twice_of
    module["kernel"] = both
    return module


sums = make()
