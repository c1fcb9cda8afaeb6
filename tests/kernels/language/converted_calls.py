# test: parse
# test: cuda sm_90a
# test: sim
# Arguments and results of a module's functions are converted as in C++.
from tvm.script import ir as I
from tvm.script import tirx as T


@I.ir_module
class Converted:
    @T.prim_func(private=True)
    def half_of(x: T.int32) -> T.float32:
        T.func_attr({"target": T.target({"kind": "cuda", "arch": "sm_90a"})})
        return x // 2

    @T.prim_func(private=True)
    def twice(x: T.float64) -> T.float32:
        T.func_attr({"target": T.target({"kind": "cuda", "arch": "sm_90a"})})
        return x * T.float64(2)

    @T.prim_func
    def main(A: T.Buffer((4,), "float32"), B: T.Buffer((2, 4), "float32")):
        T.device_entry()
        tx = T.thread_id([4])
        B[0, tx] = Converted.half_of(A[tx])
        B[1, tx] = Converted.twice(A[tx])
