# entry: k
# error: "fill" is a function of another module
# error: functions of one @I.ir_module call each other
from tvm.script import ir as I
from tvm.script import tirx as T


@I.ir_module
class Launches:
    @T.prim_func(private=True)
    def fill(A_ptr: T.handle("float32", "global"), value: T.float32):
        A = T.decl_buffer((64,), data=A_ptr)
        A[0] = value


@T.prim_func
def k(A: T.Buffer((64,), "float32")):
    T.device_entry()
    tx = T.thread_id([1])
    Launches.fill(A.data, T.float32(1))
