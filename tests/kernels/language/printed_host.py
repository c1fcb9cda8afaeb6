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
    def main(self_handle: T.handle, args: T.handle, num_args: T.int32, result: T.handle) -> T.int32:
        T.func_attr({"calling_conv": 1, "global_symbol": "__tvm_ffi_scale_dyn", "target": T.target({"keys": ["cpu"], "kind": "llvm", "mtriple": "x86_64-conda-linux-gnu", "tag": ""}), "tirx.is_entry_func": True})
        assert num_args == 5, ("TypeError", ["Expected ", "5", " arguments", metadata["tirx.StringImm"][0], "scale_dyn(A: Tensor([n], float32), B: Tensor([n, m], float16), C: Tensor([4, 8], float32), s: float32, k: int32)", "`"])
        assert not T.isnullptr(args), ("TypeError", ["args pointer is NULL", metadata["tirx.StringImm"][0], "scale_dyn(A: Tensor([n], float32), B: Tensor([n, m], float16), C: Tensor([4, 8], float32), s: float32, k: int32)", "`"])
        A_type_index: T.let[T.int32] = T.tvm_struct_get(args, 0, 13, "int32")
        assert A_type_index == 0 or A_type_index == 4 or A_type_index == 7 or A_type_index >= 64, ("TypeError", ["Mismatched type on argument #", "0", metadata["tirx.StringImm"][0], "scale_dyn(A: Tensor([n], float32), B: Tensor([n, m], float16), C: Tensor([4, 8], float32), s: float32, k: int32)", metadata["tirx.StringImm"][1], "Tensor"])
        A_handle: T.let[T.handle] = T.if_then_else(A_type_index == 70, T.handle_add_byte_offset(T.tvm_struct_get(args, 0, 15, T.handle().ty), 24), T.tvm_struct_get(args, 0, 15, T.handle().ty))
        B_type_index: T.let[T.int32] = T.tvm_struct_get(args, 1, 13, "int32")
        assert B_type_index == 0 or B_type_index == 4 or B_type_index == 7 or B_type_index >= 64, ("TypeError", ["Mismatched type on argument #", "1", metadata["tirx.StringImm"][0], "scale_dyn(A: Tensor([n], float32), B: Tensor([n, m], float16), C: Tensor([4, 8], float32), s: float32, k: int32)", metadata["tirx.StringImm"][2], "Tensor"])
        B_handle: T.let[T.handle] = T.if_then_else(B_type_index == 70, T.handle_add_byte_offset(T.tvm_struct_get(args, 1, 15, T.handle().ty), 24), T.tvm_struct_get(args, 1, 15, T.handle().ty))
        C_type_index: T.let[T.int32] = T.tvm_struct_get(args, 2, 13, "int32")
        assert C_type_index == 0 or C_type_index == 4 or C_type_index == 7 or C_type_index >= 64, ("TypeError", ["Mismatched type on argument #", "2", metadata["tirx.StringImm"][0], "scale_dyn(A: Tensor([n], float32), B: Tensor([n, m], float16), C: Tensor([4, 8], float32), s: float32, k: int32)", metadata["tirx.StringImm"][3], "Tensor"])
        C_handle: T.let[T.handle] = T.if_then_else(C_type_index == 70, T.handle_add_byte_offset(T.tvm_struct_get(args, 2, 15, T.handle().ty), 24), T.tvm_struct_get(args, 2, 15, T.handle().ty))
        s_type_index: T.let[T.int32] = T.tvm_struct_get(args, 3, 13, "int32")
        assert s_type_index == 3 or s_type_index == 1 or s_type_index == 2, ("TypeError", ["Mismatched type on argument #", "3", metadata["tirx.StringImm"][0], "scale_dyn(A: Tensor([n], float32), B: Tensor([n, m], float16), C: Tensor([4, 8], float32), s: float32, k: int32)", metadata["tirx.StringImm"][4], "float"])
        s: T.let[T.float32] = T.Select(s_type_index == 3, T.Cast("float32", T.tvm_struct_get(args, 3, 15, "float64")), T.Cast("float32", T.tvm_struct_get(args, 3, 15, "int64")))
        k_type_index: T.let[T.int32] = T.tvm_struct_get(args, 4, 13, "int32")
        assert k_type_index == 1 or k_type_index == 2, ("TypeError", ["Mismatched type on argument #", "4", metadata["tirx.StringImm"][0], "scale_dyn(A: Tensor([n], float32), B: Tensor([n, m], float16), C: Tensor([4, 8], float32), s: float32, k: int32)", metadata["tirx.StringImm"][5], "int"])
        k: T.let[T.int32] = T.Cast("int32", T.tvm_struct_get(args, 4, 15, "int64"))
        assert not T.isnullptr(A_handle), ("TypeError", ["Mismatched type on argument #", "0", metadata["tirx.StringImm"][0], "scale_dyn(A: Tensor([n], float32), B: Tensor([n, m], float16), C: Tensor([4, 8], float32), s: float32, k: int32)", metadata["tirx.StringImm"][6], "Tensor"])
        assert 1 == T.tvm_struct_get(A_handle, 0, 4, "int32"), ("ValueError", ["Mismatched ", "A", ".ndim on argument #", "0", metadata["tirx.StringImm"][0], "scale_dyn(A: Tensor([n], float32), B: Tensor([n, m], float16), C: Tensor([4, 8], float32), s: float32, k: int32)", metadata["tirx.StringImm"][7], "1"])
        assert T.tvm_struct_get(A_handle, 0, 5, "uint8") == T.uint8(2) and T.tvm_struct_get(A_handle, 0, 6, "uint8") == T.uint8(32) and T.tvm_struct_get(A_handle, 0, 7, "uint16") == T.uint16(1), ("TypeError", ["Mismatched ", "A", ".dtype on argument #", "0", metadata["tirx.StringImm"][0], "scale_dyn(A: Tensor([n], float32), B: Tensor([n, m], float16), C: Tensor([4, 8], float32), s: float32, k: int32)", metadata["tirx.StringImm"][8], "float32"])
        scale_dyn_A_shape: T.let[T.handle("int64", "global")] = T.tvm_struct_get(A_handle, 0, 2, T.handle("int64", "global").ty)
        n: T.let[T.int32] = T.Cast("int32", T.tvm_struct_get(scale_dyn_A_shape, 0, 17, "int64"))
        scale_dyn_A_strides: T.let[T.handle("int64", "global")] = T.tvm_struct_get(A_handle, 0, 3, T.handle("int64", "global").ty)
        assert T.tvm_struct_get(A_handle, 0, 10, "int32") == 2, ("ValueError", ["Mismatched ", "A", ".device_type on argument #", "0", metadata["tirx.StringImm"][0], "scale_dyn(A: Tensor([n], float32), B: Tensor([n, m], float16), C: Tensor([4, 8], float32), s: float32, k: int32)", metadata["tirx.StringImm"][9], "cuda"])
        dev_id: T.let[T.int32] = T.tvm_struct_get(A_handle, 0, 9, "int32")
        A = T.Buffer((n,), layout=None)
        with T.attr(A, "storage_alignment", 64):
            assert not T.isnullptr(B_handle), ("TypeError", ["Mismatched type on argument #", "1", metadata["tirx.StringImm"][0], "scale_dyn(A: Tensor([n], float32), B: Tensor([n, m], float16), C: Tensor([4, 8], float32), s: float32, k: int32)", metadata["tirx.StringImm"][10], "Tensor"])
            assert 2 == T.tvm_struct_get(B_handle, 0, 4, "int32"), ("ValueError", ["Mismatched ", "B", ".ndim on argument #", "1", metadata["tirx.StringImm"][0], "scale_dyn(A: Tensor([n], float32), B: Tensor([n, m], float16), C: Tensor([4, 8], float32), s: float32, k: int32)", metadata["tirx.StringImm"][11], "2"])
            assert T.tvm_struct_get(B_handle, 0, 5, "uint8") == T.uint8(2) and T.tvm_struct_get(B_handle, 0, 6, "uint8") == T.uint8(16) and T.tvm_struct_get(B_handle, 0, 7, "uint16") == T.uint16(1), ("TypeError", ["Mismatched ", "B", ".dtype on argument #", "1", metadata["tirx.StringImm"][0], "scale_dyn(A: Tensor([n], float32), B: Tensor([n, m], float16), C: Tensor([4, 8], float32), s: float32, k: int32)", metadata["tirx.StringImm"][12], "float16"])
            scale_dyn_B_shape: T.let[T.handle("int64", "global")] = T.tvm_struct_get(B_handle, 0, 2, T.handle("int64", "global").ty)
            m: T.let[T.int64] = T.tvm_struct_get(scale_dyn_B_shape, 1, 17, "int64")
            scale_dyn_B_strides: T.let[T.handle("int64", "global")] = T.tvm_struct_get(B_handle, 0, 3, T.handle("int64", "global").ty)
            assert T.tvm_struct_get(B_handle, 0, 10, "int32") == 2, ("ValueError", ["Mismatched ", "B", ".device_type on argument #", "1", metadata["tirx.StringImm"][0], "scale_dyn(A: Tensor([n], float32), B: Tensor([n, m], float16), C: Tensor([4, 8], float32), s: float32, k: int32)", metadata["tirx.StringImm"][13], "cuda"])
            B = T.Buffer((n, m), "float16", elem_offset=64, align=16, layout=None)
            with T.attr(B, "storage_alignment", 16):
                assert not T.isnullptr(C_handle), ("TypeError", ["Mismatched type on argument #", "2", metadata["tirx.StringImm"][0], "scale_dyn(A: Tensor([n], float32), B: Tensor([n, m], float16), C: Tensor([4, 8], float32), s: float32, k: int32)", metadata["tirx.StringImm"][14], "Tensor"])
                assert 2 == T.tvm_struct_get(C_handle, 0, 4, "int32"), ("ValueError", ["Mismatched ", "C", ".ndim on argument #", "2", metadata["tirx.StringImm"][0], "scale_dyn(A: Tensor([n], float32), B: Tensor([n, m], float16), C: Tensor([4, 8], float32), s: float32, k: int32)", metadata["tirx.StringImm"][15], "2"])
                assert T.tvm_struct_get(C_handle, 0, 5, "uint8") == T.uint8(2) and T.tvm_struct_get(C_handle, 0, 6, "uint8") == T.uint8(32) and T.tvm_struct_get(C_handle, 0, 7, "uint16") == T.uint16(1), ("TypeError", ["Mismatched ", "C", ".dtype on argument #", "2", metadata["tirx.StringImm"][0], "scale_dyn(A: Tensor([n], float32), B: Tensor([n, m], float16), C: Tensor([4, 8], float32), s: float32, k: int32)", metadata["tirx.StringImm"][16], "float32"])
                scale_dyn_C_shape: T.let[T.handle("int64", "global")] = T.tvm_struct_get(C_handle, 0, 2, T.handle("int64", "global").ty)
                scale_dyn_C_strides: T.let[T.handle("int64", "global")] = T.tvm_struct_get(C_handle, 0, 3, T.handle("int64", "global").ty)
                elem_offset: T.let[T.int32] = T.Cast("int32", T.Div(T.tvm_struct_get(C_handle, 0, 8, "uint64"), T.uint64(4)))
                assert T.truncmod(elem_offset, 4) == 0, ("ValueError", ["Misaligned Tensor data on argument #", "2", metadata["tirx.StringImm"][0], "scale_dyn(A: Tensor([n], float32), B: Tensor([n, m], float16), C: Tensor([4, 8], float32), s: float32, k: int32)", metadata["tirx.StringImm"][17], "16", " bytes"])
                assert T.tvm_struct_get(C_handle, 0, 10, "int32") == 2, ("ValueError", ["Mismatched ", "C", ".device_type on argument #", "2", metadata["tirx.StringImm"][0], "scale_dyn(A: Tensor([n], float32), B: Tensor([n, m], float16), C: Tensor([4, 8], float32), s: float32, k: int32)", metadata["tirx.StringImm"][18], "cuda"])
                C = T.Buffer((4, 8), strides=(16, 1), elem_offset=elem_offset, offset_factor=4, layout=None)
                with T.attr(C, "storage_alignment", 64):
                    T.attr("default", "device_id", dev_id)
                    T.attr("default", "device_type", 2)
                    if not T.isnullptr(scale_dyn_A_strides):
                        assert n == 1 or 1 == T.Cast("int32", T.tvm_struct_get(scale_dyn_A_strides, 0, 17, "int64")), ("ValueError", ["Mismatched ", "A", ".strides on argument #", "0", metadata["tirx.StringImm"][0], "scale_dyn(A: Tensor([n], float32), B: Tensor([n, m], float16), C: Tensor([4, 8], float32), s: float32, k: int32)", metadata["tirx.StringImm"][19]])
                    assert n == 0 or not T.isnullptr(T.reinterpret(T.handle("float32", "global").ty, T.tvm_struct_get(A_handle, 0, 1, T.handle().ty))), ("ValueError", ["A", " data pointer is NULL on argument #", "0", metadata["tirx.StringImm"][0], "scale_dyn(A: Tensor([n], float32), B: Tensor([n, m], float16), C: Tensor([4, 8], float32), s: float32, k: int32)", metadata["tirx.StringImm"][20]])
                    assert n == T.Cast("int32", T.tvm_struct_get(scale_dyn_B_shape, 0, 17, "int64")), ("ValueError", ["Mismatched ", "B.shape[0]", " on argument #", "1", metadata["tirx.StringImm"][0], "scale_dyn(A: Tensor([n], float32), B: Tensor([n, m], float16), C: Tensor([4, 8], float32), s: float32, k: int32)", metadata["tirx.StringImm"][21], "A.shape[0]"])
                    if not T.isnullptr(scale_dyn_B_strides):
                        assert (m == T.int64(1) or 1 == T.Cast("int32", T.tvm_struct_get(scale_dyn_B_strides, 1, 17, "int64"))) and (n == 1 or m == T.Cast("int64", T.Cast("int32", T.tvm_struct_get(scale_dyn_B_strides, 0, 17, "int64")))), ("ValueError", ["Mismatched ", "B", ".strides on argument #", "1", metadata["tirx.StringImm"][0], "scale_dyn(A: Tensor([n], float32), B: Tensor([n, m], float16), C: Tensor([4, 8], float32), s: float32, k: int32)", metadata["tirx.StringImm"][22]])
                    assert dev_id == T.tvm_struct_get(B_handle, 0, 9, "int32"), ("ValueError", ["Mismatched ", "B.device_id", " on argument #", "1", metadata["tirx.StringImm"][0], "scale_dyn(A: Tensor([n], float32), B: Tensor([n, m], float16), C: Tensor([4, 8], float32), s: float32, k: int32)", metadata["tirx.StringImm"][23], "A.device_id"])
                    assert T.Cast("int64", n) * m == T.int64(0) or not T.isnullptr(T.reinterpret(T.handle("float16", "global").ty, T.tvm_struct_get(B_handle, 0, 1, T.handle().ty))), ("ValueError", ["B", " data pointer is NULL on argument #", "1", metadata["tirx.StringImm"][0], "scale_dyn(A: Tensor([n], float32), B: Tensor([n, m], float16), C: Tensor([4, 8], float32), s: float32, k: int32)", metadata["tirx.StringImm"][24]])
                    assert dev_id == T.tvm_struct_get(C_handle, 0, 9, "int32"), ("ValueError", ["Mismatched ", "C.device_id", " on argument #", "2", metadata["tirx.StringImm"][0], "scale_dyn(A: Tensor([n], float32), B: Tensor([n, m], float16), C: Tensor([4, 8], float32), s: float32, k: int32)", metadata["tirx.StringImm"][25], "A.device_id"])
                    assert not T.isnullptr(T.reinterpret(T.handle("float32", "global").ty, T.tvm_struct_get(C_handle, 0, 1, T.handle().ty))), ("ValueError", ["C", " data pointer is NULL on argument #", "2", metadata["tirx.StringImm"][0], "scale_dyn(A: Tensor([n], float32), B: Tensor([n, m], float16), C: Tensor([4, 8], float32), s: float32, k: int32)", metadata["tirx.StringImm"][26]])
                    assert T.uint64(0) == T.tvm_struct_get(A_handle, 0, 8, "uint64"), ("ValueError", ["Invalid ", "A.byte_offset", " on argument #", "0", metadata["tirx.StringImm"][0], "scale_dyn(A: Tensor([n], float32), B: Tensor([n, m], float16), C: Tensor([4, 8], float32), s: float32, k: int32)", metadata["tirx.StringImm"][27], "0"])
                    assert T.uint64(128) == T.tvm_struct_get(B_handle, 0, 8, "uint64"), ("ValueError", ["Invalid ", "B.byte_offset", " on argument #", "1", metadata["tirx.StringImm"][0], "scale_dyn(A: Tensor([n], float32), B: Tensor([n, m], float16), C: Tensor([4, 8], float32), s: float32, k: int32)", metadata["tirx.StringImm"][28], "128"])
                    assert T.Cast("int32", T.tvm_struct_get(scale_dyn_C_shape, 0, 17, "int64")) == 4, ("ValueError", ["Invalid ", "C.shape[0]", " on argument #", "2", metadata["tirx.StringImm"][0], "scale_dyn(A: Tensor([n], float32), B: Tensor([n, m], float16), C: Tensor([4, 8], float32), s: float32, k: int32)", metadata["tirx.StringImm"][29], "4"])
                    assert T.Cast("int32", T.tvm_struct_get(scale_dyn_C_shape, 1, 17, "int64")) == 8, ("ValueError", ["Invalid ", "C.shape[1]", " on argument #", "2", metadata["tirx.StringImm"][0], "scale_dyn(A: Tensor([n], float32), B: Tensor([n, m], float16), C: Tensor([4, 8], float32), s: float32, k: int32)", metadata["tirx.StringImm"][30], "8"])
                    assert T.if_then_else(T.isnullptr(scale_dyn_C_strides), 1, T.Cast("int32", T.tvm_struct_get(scale_dyn_C_strides, 1, 17, "int64"))) == 1, ("ValueError", ["Invalid ", "C.strides[1]", " on argument #", "2", metadata["tirx.StringImm"][0], "scale_dyn(A: Tensor([n], float32), B: Tensor([n, m], float16), C: Tensor([4, 8], float32), s: float32, k: int32)", metadata["tirx.StringImm"][31], "1"])
                    assert T.if_then_else(T.isnullptr(scale_dyn_C_strides), T.Cast("int32", T.tvm_struct_get(scale_dyn_C_shape, 1, 17, "int64")), T.Cast("int32", T.tvm_struct_get(scale_dyn_C_strides, 0, 17, "int64"))) == 16, ("ValueError", ["Invalid ", "C.strides[0]", " on argument #", "2", metadata["tirx.StringImm"][0], "scale_dyn(A: Tensor([n], float32), B: Tensor([n, m], float16), C: Tensor([4, 8], float32), s: float32, k: int32)", metadata["tirx.StringImm"][32], "16"])
                    A = T.decl_buffer((n,), data=T.reinterpret(T.handle("float32", "global").ty, T.tvm_struct_get(A_handle, 0, 1, T.handle().ty)), layout=None)
                    B = T.decl_buffer((n, m), "float16", data=T.reinterpret(T.handle("float16", "global").ty, T.tvm_struct_get(B_handle, 0, 1, T.handle().ty)), elem_offset=64, align=16, layout=None)
                    C = T.decl_buffer((4, 8), data=T.reinterpret(T.handle("float32", "global").ty, T.tvm_struct_get(C_handle, 0, 1, T.handle().ty)), strides=(16, 1), elem_offset=elem_offset, offset_factor=4, layout=None)
                    T.call_packed("__tvm_set_device", 2, dev_id)
                    with T.attr({"compute_scope": "scale_dyn_compute_"}):
                        C_1 = T.decl_buffer((64,), data=C.data, offset_factor=4, layout=None)
                        B_1 = T.decl_buffer((T.Cast("int64", n) * m,), "float16", data=B.data, elem_offset=0, align=16, layout=None)
                        A_1 = T.decl_buffer((n,), data=A.data, layout=None)
                        half: T.let[T.int32] = n // 2
                        T.call_packed("scale_dyn_kernel", A_1.data, B_1.data, C_1.data, elem_offset, m, n, s, (n + 127) // 128, 128)
                    return 0

# Metadata omitted. Use show_meta=True in script() method to show it.
