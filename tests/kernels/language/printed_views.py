# test: parse
# What Apache TVM 0.26 printed: flat storage viewed as another dtype, vectors with strides other than 1.
# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((64,), "float32", layout=None), B: T.Buffer((64,), "uint32", layout=None), C: T.Buffer((128,), layout=None)):
        T.func_attr({"global_symbol": "f"})
        B_1 = T.decl_buffer((64,), "uint32", data=B.data, layout=None)
        A_1 = T.decl_buffer((64,), data=A.data, layout=None)
        with T.launch_thread("blockIdx.x", 1) as blockIdx_x:
            threadIdx_x = T.launch_thread("threadIdx.x", 16)
            U = A_1.view("uint32")
            V = A_1.view("uint16")
            B_1[threadIdx_x] = U[threadIdx_x] + T.Cast("uint32", V[threadIdx_x * 2 + 1])
            C[threadIdx_x:threadIdx_x + 64:16] = A_1[63 - threadIdx_x * 4:63 - threadIdx_x * 4 + -4:-1]
            C[5:133:32] = A_1[3:-1:-1]
