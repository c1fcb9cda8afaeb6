# test: parse
# What Apache TVM 0.26 printed: comparisons of truth values stand without brackets.
# from tvm.script import ir as I
# from tvm.script import tirx as T

@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((128,), "int32", layout=None), B: T.Buffer((128,), "int32", layout=None)):
        T.func_attr({"global_symbol": "k"})
        with T.launch_thread("blockIdx.x", 1) as blockIdx_x:
            threadIdx_x = T.launch_thread("threadIdx.x", 128)
            if B[threadIdx_x] < A[threadIdx_x] == (T.bitwise_and(threadIdx_x, 4) == 0):
                A[threadIdx_x] = B[threadIdx_x]
            if B[threadIdx_x] < A[threadIdx_x] != (3 < B[threadIdx_x]):
                A[threadIdx_x] = 1 if 1 < A[threadIdx_x] < B[threadIdx_x] else 2
            B[threadIdx_x] = T.if_then_else(3 < A[threadIdx_x] == (A[threadIdx_x] < 9), 1, 2)
