# test: compile sm_90a
# Tensor maps of parts of a tensor: the host moves its pointer, by an element's address or by an access pointer.
from tvm.script import tirx as T


# sim: matrices_of_a_buffer
#   A: float32[512] = i
#   B: float32[4x16] = 0 -> [first, first + 8, 256, 256 + 4][i] + j // 4 * 16 + j % 4
#   first = 32
@T.prim_func
def matrices_of_a_buffer(A: T.Buffer((512,), "float32"), B: T.Buffer((4, 16), "float32"), first: T.int32):
    maps: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    later: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    half: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    third: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", maps, "float32", 2, T.address_of(A[first]), 16, 4, 64, 4, 4, 1, 1, 0, 0, 0, 0)
    T.call_packed("runtime.cuTensorMapEncodeTiled", later, "float32", 2, A.ptr_to([first + 8]), 16, 4, 64, 4, 4, 1, 1, 0, 0, 0, 0)
    T.call_packed("runtime.cuTensorMapEncodeTiled", half, "float32", 2, A.access_ptr("r", offset=256), 16, 4, 64, 4, 4, 1, 1, 0, 0, 0, 0)
    T.call_packed("runtime.cuTensorMapEncodeTiled", third, "float32", 2, T.handle_add_byte_offset(A.data, 1040), 16, 4, 64, 4, 4, 1, 1, 0, 0, 0, 0)
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((4, 32), "float32", align=128)
    bar = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
        T.ptx.mbarrier.arrive.expect_tx(bar.ptr_to([0]), 4 * 64)
        for k, tensor_map in enumerate([maps, later, half, third]):
            T.ptx.cp_async.bulk.tensor.g2s_cluster(2, S.ptr_to([k, 0]), bar.ptr_to([0]), T.address_of(tensor_map), 0, 1, "", 0, 0)
    T.cuda.cta_sync()
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    B[tx // 16, tx % 16] = S[tx // 16, tx % 16]
