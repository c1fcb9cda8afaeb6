# test: compile sm_90a
# A tensor map that the kernel changes: the map of A becomes one of C, which has more rows.
from tvm.script import tirx as T


# The box begins two rows before the end of C; what lies beyond is zero.
# sim: replaced
#   A: float32[16x16] = i * 16 + j
#   C: float32[32x8] = 1000 + i * 8 + j
#   W: uint32[32] = 0
#   B: float32[4x8] = -1 -> C[30 + i][j] if i < 2 else 0
@T.prim_func
def replaced(
    A: T.Buffer((16, 16), "float32"), C: T.Buffer((32, 8), "float32"), W: T.Buffer((32,), "uint32"), B: T.Buffer((4, 8), "float32")
):
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float32", 2, A.data, 8, 16, 64, 8, 4, 1, 1, 0, 0, 0, 0)
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    M = T.alloc_shared((32,), "uint32", align=128)
    S = T.alloc_shared((32,), "float32", align=128)
    bar = T.alloc_shared((1,), "uint64")
    words: T.let[T.handle("uint32")] = T.reinterpret("handle", T.address_of(A_map))
    template = T.decl_buffer((32,), "uint32", data=words)
    M[tx] = template[tx]
    T.cuda.warp_sync()
    if tx == 0:
        T.ptx["tensormap.replace.tile.global_address.shared::cta.b1024.b64"](M.ptr_to([0]), T.reinterpret("uint64", C.ptr_to([0, 0])))
        T.ptx["tensormap.replace.tile.global_dim.shared::cta.b1024.b32"](M.ptr_to([0]), 1, T.uint32(32))
        T.ptx["tensormap.replace.tile.global_stride.shared::cta.b1024.b64"](M.ptr_to([0]), 0, T.uint64(32))
        T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), T.uint32(1))
        T.ptx.fence.mbarrier_init.release.cluster()
    T.cuda.warp_sync()
    T.ptx["tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned"](W.ptr_to([0]), M.ptr_to([0]))
    if tx == 0:
        T.ptx["fence.proxy.tensormap::generic.acquire.gpu"](W.ptr_to([0]))
        T.ptx["mbarrier.arrive.expect_tx.shared::cta.b64"](bar.ptr_to([0]), T.uint32(128))
        T.ptx["cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes"](
            S.ptr_to([0]), W.ptr_to([0]), 0, 30, bar.ptr_to([0])
        )
    T.cuda.warp_sync()
    T.cuda.mbarrier_wait(bar.ptr_to([0]), 0)
    B[tx // 8, tx % 8] = S[tx]
    # What a map looks like is the machine's own.
    W[tx] = T.uint32(0)

# The first half of a map has all of it: kernels in production copy no more.
# variant: replaced_by_half of replaced
#   replace: "M[tx] = template[tx]" -> "M[tx] = T.Select(tx < 16, template[tx], T.uint32(0))"

# The view says that it is of a parameter's memory.
# variant: replaced_from_a_parameter of replaced
#   replace: "data=words)" -> 'data=T.reinterpret("handle", T.address_of(A_map)), scope="param")'

# The copy may read the map as it was before.
# variant: replaced_without_acquire of replaced
#   without: 'T.ptx["fence.proxy.tensormap::generic.acquire.gpu"](W.ptr_to([0]))'
#   fault: no proxy fence makes the change of the tensor map visible to tensor copies

# Nothing releases what the lanes write.
# variant: replaced_by_stores of replaced
#   replace: 'T.ptx["tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned"](W.ptr_to([0]), M.ptr_to([0]))' -> 'W[tx] = M[tx]\n    T.cuda.warp_sync()'
#   fault: no proxy fence makes the change of the tensor map visible to tensor copies

# Each lane releases what it has stored.
# variant: replaced_and_released of replaced
#   replace: 'T.ptx["tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned"](W.ptr_to([0]), M.ptr_to([0]))' -> 'W[tx] = M[tx]\n    T.ptx["fence.proxy.tensormap::generic.release.gpu"]()\n    T.cuda.warp_sync()'

# The map changes while a copy may read it.
# variant: replaced_again_too_early of replaced
#   replace: 'T.cuda.warp_sync()\n    T.cuda.mbarrier_wait(bar.ptr_to([0]), 0)' -> 'T.cuda.warp_sync()\n    W[tx] = T.uint32(0)\n    T.cuda.mbarrier_wait(bar.ptr_to([0]), 0)'
#   fault: race
