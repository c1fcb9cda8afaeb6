# test: parse only
# What Apache TVM 0.26 printed.
# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func
    def scale_dyn_kernel(A_ptr: T.handle("float32", "global"), B_ptr: T.handle("float16", "global"), C_ptr: T.handle("float32", "global"), elem_offset: T.int32, m: T.int64, n: T.int32, s: T.float32):
        T.func_attr({"calling_conv": 2, "target": T.target({"arch": "sm_90a", "keys": ["cuda", "gpu"], "kind": "cuda", "max_num_threads": 1024, "tag": "", "thread_warp_size": 32}), "tirx.is_global_func": True, "tirx.kernel_launch_params": ["blockIdx.x", "threadIdx.x"], "tirx.noalias": True})
        B = T.decl_buffer((T.Cast("int64", n) * m,), "float16", data=B_ptr, elem_offset=0, align=16, layout=None)
        C = T.decl_buffer((64,), data=C_ptr, offset_factor=4, layout=None)
        A = T.decl_buffer((n,), data=A_ptr, layout=None)
        with T.launch_thread("blockIdx.x", (n + 127) // 128) as blockIdx_x:
            threadIdx_x = T.launch_thread("threadIdx.x", 128)
            warp_id_in_cta: T.let[T.int32] = T.tvm_warp_shuffle(T.uint32(4294967295), threadIdx_x // 32, 0, 32, 32)
            bx: T.let[T.int32] = blockIdx_x
            tx: T.let[T.int32] = threadIdx_x
            i = T.alloc_local((1,), "int32", layout=None)
            i[0] = blockIdx_x * 128 + threadIdx_x
            acc = T.alloc_local((1,), layout=None)
            acc[0] = T.float32(0.0)
            if i[0] < n:
                for j in range(n):
                    acc[0] = acc[0] + A[i[0]] * s
                for j in range(2, 5):
                    acc[0] = acc[0] + T.float32(1.0)
                for j, kk in T.grid(4, 8):
                    C[j * 8 + kk + elem_offset] = acc[0]
                B[T.Cast("int64", i[0]) * m + T.int64(64)] = T.Cast("float16", acc[0])
            else:
                if i[0] < 3:
                    A[i[0]] = acc[0]
                else:
                    while T.bool(True):
                        i[0] = i[0] // 2
                        if i[0] == 4:
                            T.break_loop()
                        else:
                            T.continue_loop()

    @T.prim_func
    def main(A: T.Buffer(("n",), "float32", layout=None), B: T.Buffer((n, "m"), "float16", elem_offset=64, align=16, layout=None), C: T.Buffer((4, 8), "float32", strides=(16, 1), offset_factor=4, layout=None), s: T.float32, k: T.int32):
        n = T.int32()
        m = T.int64()
        T.func_attr({"global_symbol": "scale_dyn", "target": T.target({"arch": "sm_90a", "host": {"keys": ["cpu"], "kind": "llvm", "mtriple": "x86_64-conda-linux-gnu", "tag": ""}, "keys": ["cuda", "gpu"], "kind": "cuda", "max_num_threads": 1024, "tag": "", "thread_warp_size": 32}), "tirx.is_entry_func": True})
        C_1 = T.decl_buffer((64,), data=C.data, offset_factor=4, layout=None)
        B_1 = T.decl_buffer((T.Cast("int64", n) * m,), "float16", data=B.data, elem_offset=0, align=16, layout=None)
        A_1 = T.decl_buffer((n,), data=A.data, layout=None)
        half: T.let[T.int32] = n // 2
        T.call_packed("scale_dyn_kernel", A_1.data, B_1.data, C_1.data, C.elem_offset, m, n, s, (n + 127) // 128, 128)
