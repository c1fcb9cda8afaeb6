# test: parse only
# What Apache TVM 0.26 printed.
# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((256, 4), "float32", layout=None), B: T.Buffer((1024,), "float16", layout=None)):
        T.func_attr({"global_symbol": "mem", "target": T.target({"arch": "sm_90a", "host": {"keys": ["cpu"], "kind": "llvm", "mtriple": "x86_64-conda-linux-gnu", "tag": ""}, "keys": ["cuda", "gpu"], "kind": "cuda", "max_num_threads": 1024, "tag": "", "thread_warp_size": 32})})
        B_1 = T.decl_buffer((1024,), "float16", data=B.data, layout=None)
        A_1 = A.view(1024)
        with T.launch_thread("blockIdx.x", 2) as blockIdx_x:
            threadIdx_x = T.launch_thread("threadIdx.x", 128)
            blockIdx_y = T.launch_thread("blockIdx.y", 3)
            warp_id_in_cta: T.let[T.int32] = T.tvm_warp_shuffle(T.uint32(4294967295), threadIdx_x // 32, 0, 32, 32)
            bx: T.let[T.int32] = blockIdx_x
            by: T.let[T.int32] = blockIdx_y
            wg: T.let[T.int32] = warp_id_in_cta
            cse_v1: T.let[T.int32] = threadIdx_x % 32
            l: T.let[T.int32] = cse_v1
            tx: T.let[T.int32] = threadIdx_x
            S = T.alloc_shared((1056,), layout=None)
            r = T.alloc_local((4,), layout=None)
            D = T.alloc_buffer((64,), scope="shared.dyn", align=128, layout=None)
            V = S.view(1024)
            p: T.let[T.handle("float32", "shared")] = T.address_of(S[35])
            ph = T.alloc_local((1,), "int32", layout=None)
            ph[0] = 0
            q = T.alloc_local((1,), "int32", layout=None)
            q[0] = 4
            cse_v2: T.let[T.int32] = threadIdx_x * 4
            x: T.let[T.int32] = cse_v2
            cse_v3: T.let[T.int32] = threadIdx_x + 4
            y: T.let[T.int32] = cse_v3
            sh = T.alloc_shared((1,), layout=None)
            sh[0] = T.float32(1.0)
            r[0] = A_1[cse_v2]
            cse_v4: T.let[T.int32] = cse_v2 + 1
            r[1] = A_1[cse_v4]
            r[2] = A_1[cse_v2 + 2]
            r[3] = A_1[cse_v2 + 3]
            A_1[cse_v2:cse_v2 + 4] = r[0:4]
            B_1[cse_v2:cse_v2 + 4] = B_1[cse_v2 + 8:cse_v2 + 8 + 4]
            A2 = T.decl_buffer((1024,), data=A_1.data, layout=None)
            At = T.decl_buffer((1024,), data=A_1.data, layout=None)
            A2[threadIdx_x // 4 * 16] = At[9]
            T.cuda.cta_sync()
            T.cuda.warp_sync()
            T.cuda.func_call("ld", T.address_of(A_1[cse_v2]), p, source_code="\n__device__ float ld(float* a) { return *a; }\n", return_type="float32")
            cse_v5: T.let[T.int32] = cse_v1 * 33
            S[cse_v5 + 1] = T.if_then_else(threadIdx_x < 3, T.exp(A_1[cse_v4]), T.float32(0.0))
            S[cse_v5 + 2] = T.Select(threadIdx_x < 3 and threadIdx_x != 2 or threadIdx_x != 7, T.max(A_1[cse_v4], T.float32(0.0)), T.float32(9.9999999999999995e-07))
            S[cse_v5 + 3] = T.tvm_warp_shuffle_xor(T.int64(4294967295), A_1[cse_v4], 4, 32, 32)
            B_1[threadIdx_x] = T.float16(1.5) + B_1[threadIdx_x] * T.Cast("float16", cse_v2) - B_1[T.Div(threadIdx_x, 2)] / B_1[T.truncmod(threadIdx_x, 3)]
            D[threadIdx_x % 64] = T.reinterpret("float32", cse_v3)
            D[0] = T.Cast("float32", threadIdx_x * 5 + 3)
            A_1[0] = T.cuda.__shfl_xor_sync(T.uint32(4294967295), A_1[1], 4, 32)
            T.cuda.atomic_add(T.address_of(A_1[0]), T.float32(1.0))
            A_1[4] = T.call_extern("float32", "foo", A_1.data, 3)
            A_1[5] = T.sqrt(T.min(T.fabs(A_1[5]), T.float32("inf")))
            B_1[3] = (B_1[threadIdx_x] + B_1[threadIdx_x]) * B_1[threadIdx_x] - (B_1[1] - B_1[2]) - T.max(B_1[1], B_1[2])
            A_1[6] = T.Cast("float32", T.bitwise_or(T.bitwise_and(threadIdx_x, 3), T.bitwise_xor(T.shift_left(threadIdx_x, 2), T.shift_right(T.bitwise_not(threadIdx_x), 1))))
