# test: compile sm_100a
# Memory of several GPUs at one address, of which the simulator has one: a reduction over it is its own value. On a GPU the addresses
# would have to be those of a multicast object.
from tvm.script import tirx as T


# sim: one_device
#   A: float32[4] = i -> i + 32 * (i + 1)
#   B: float32[4] = 0 -> i + 32 * (i + 1)
#   H: float16[4] = i -> [0, 1, 4, 4][i]
@T.prim_func
def one_device(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32"), H: T.Buffer((4,), "float16")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    v = T.alloc_local((4,), "float32")
    T.ptx.multimem.red.relaxed.gpu.global_.add.v4.f32(
        A.ptr_to([0]), T.float32(1), T.float32(2), T.float32(3), T.float32(4)
    )
    T.cuda.warp_sync()
    if tx == 0:
        T.ptx.multimem.ld_reduce.weak.global_.add.v4.f32(v[0], v[1], v[2], v[3], A.ptr_to([0]))
        T.ptx.multimem.st.weak.global_.v4.f32(B.ptr_to([0]), v[0], v[1], v[2], v[3])
        T.ptx.multimem.st.weak.global_.f16x2(H.ptr_to([2]), T.uint32(0x44004400))
