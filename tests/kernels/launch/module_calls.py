# test: parse
# test: lower SplitHostDevice
# test: cuda sm_90a
# test: compile sm_100a
# test: sim
# Functions of a module that call each other: device code calls device functions, the host launches kernels by name.
from tvm.script import ir as I
from tvm.script import tirx as T

@I.ir_module
class Values:
    @T.prim_func(private=True)
    def twice(x: T.float32) -> T.float32:
        T.func_attr({"target": T.target({"kind": "cuda", "arch": "sm_90a"})})
        return x * T.float32(2)

    @T.prim_func(private=True)
    def blend(x: T.float32, A_ptr: T.handle("float32", "global"), i: T.int32) -> T.float32:
        A = T.decl_buffer((64,), data=A_ptr)
        y: T.let = Values.twice(x)
        return y + A[i] * y

    @T.prim_func
    def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        T.device_entry()
        bx = T.cta_id([2])
        tx = T.thread_id([32])
        B[bx * 32 + tx] = Values.blend(T.cast(tx, "float32"), A.data, bx * 32 + tx)

@I.ir_module
class Statements:
    @T.prim_func(private=True)
    def add(A_ptr: T.handle("float32", "global"), i: T.int32, step: T.float32):
        A = T.decl_buffer((64,), data=A_ptr)
        for k in range(3):
            if i % 2 == 0:
                A[i] = A[i] + step

    @T.prim_func
    def main(A: T.Buffer((64,), "float32")):
        T.device_entry()
        bx = T.cta_id([2])
        tx = T.thread_id([32])
        Statements.add(A.data, bx * 32 + tx, T.float32(1))
        Statements.add(A.data, bx * 32 + tx, T.float32(10))

@I.ir_module
class Launches:
    @T.prim_func(private=True)
    def fill(A_ptr: T.handle("float32", "global"), blocks: T.int32, value: T.float32):
        T.func_attr({"target": T.target({"kind": "cuda", "arch": "sm_90a"}), "tirx.use_programtic_dependent_launch": True})
        A = T.decl_buffer((64,), data=A_ptr)
        T.device_entry()
        bx = T.cta_id([blocks])
        tx = T.thread_id([32])
        T.ptx.griddepcontrol.wait()
        A[bx * 32 + tx] = value

    @T.prim_func
    def main(A: T.Buffer((64,), "float32"), n: T.int32):
        T.func_attr({"target": T.target("llvm")})
        Launches.fill(A.data, n, T.float32(1))
        Launches.fill(A.data, n - 1, T.float32(2))

@T.prim_func
def two_regions(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32"), n: T.int32):
    for i in range(2):
        T.device_entry()
        bx = T.cta_id([2])
        tx = T.thread_id([32])
        A[bx * 32 + tx] = A[bx * 32 + tx] + 1.0
    if n > 1:
        T.device_entry()
        bx = T.cta_id([n])
        tx = T.thread_id([32])
        B[bx * 32 + tx] = A[bx * 32 + tx] * 2.0
    else:
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        B[tx] = A[tx] * 3.0

@I.ir_module
class Returns:
    @T.prim_func(private=True)
    def search(A_ptr: T.handle("int32", "global"), wanted: T.int32) -> T.int32:
        A = T.decl_buffer((64,), "int32", data=A_ptr)
        if wanted < 0:
            T.ret(-2)
        for i in range(8):
            for j in range(8):
                if A[i * 8 + j] == wanted:
                    T.ret(i * 8 + j)
        T.ret(-1)

    @T.prim_func(private=True)
    def mark(B_ptr: T.handle("int32", "global"), i: T.int32, at: T.int32):
        B = T.decl_buffer((64,), "int32", data=B_ptr)
        if at < 0:
            return
        B[i] = B[i] + at

    @T.prim_func
    def main(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
        T.device_entry()
        bx = T.cta_id([2])
        tx = T.thread_id([32])
        B[bx * 32 + tx] = Returns.search(A.data, bx * 32 + tx - 3) * 100 + Returns.search(A.data, 2 * tx)
        Returns.mark(B.data, bx * 32 + tx, Returns.search(A.data, tx + 20))
