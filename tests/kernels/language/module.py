# test: parse only
# A module of several functions, with attributes.

from tvm.script import ir as I
from tvm.script import tirx as T
@I.ir_module
class Module:
    I.module_attrs({"a": 1})
    @T.prim_func
    def zz(A: T.Buffer((4,), "float32")):
        A[0] = 1.0
    @T.prim_func
    def main(A: T.Buffer((4,), "float32")):
        A[0] = 1.0
    @T.prim_func(private=True)
    def aa(n: T.int32, p: T.handle) -> T.int32:
        T.func_attr({"x": n + 1, "f": 1.5, "s": "q\n", "l": [1, 2.5, "x"], "n": None, "i64": T.int64(3), "fl": T.float32(1)})
        return n + 1
    @T.prim_func(private=True)
    def bb(main: T.int32, zz: T.int32):
        T.evaluate(main + zz)
