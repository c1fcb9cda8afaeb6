# tcgen05: the instruction descriptor says what the call says.
from tvm.script import tirx as T


def dot(a, b):
    return sum([x * y for x, y in zip(a, b)])


# sim: product on sm_100a
#   A: float16[128x16] = (i + j) % 5
#   D: float32[128x16] = 0 -> dot(A[i], A[j])
@T.prim_func
def product(A: T.Buffer((128, 16), "float16"), D: T.Buffer((128, 16), "float32")):
    T.device_entry()
    T.cta_id([1])
    warp = T.warp_id([4])
    tx = T.thread_id([128])
    tile = T.alloc_shared((2048,), "float16", align=128)
    columns = T.alloc_shared((1,), "uint32")
    done = T.alloc_shared((1,), "uint64")
    sums = T.alloc_local((16,), "float32")
    operand: T.uint64
    instruction: T.uint32
    if warp == 0:
        T.ptx.tcgen05.alloc(T.address_of(columns[0]), n_cols=32, cta_group=1)
    if tx == 0:
        T.ptx.mbarrier.init(done.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    for k in T.serial(16):
        tile[(tx // 8 * 2 + k // 8) * 64 + tx % 8 * 8 + k % 8] = A[tx, k]
    T.ptx.tcgen05.encode_matrix_descriptor(T.address_of(operand), tile.ptr_to([0]), 8, 16, 0)
    T.ptx.tcgen05.encode_instr_descriptor(T.address_of(instruction), d_dtype="float32", a_dtype="float16", b_dtype="float16",
                                          M=128, N=16, K=16, trans_a=False, trans_b=False)
    T.ptx.fence.proxy_async("shared::cta")
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cta_sync()
    T.ptx.tcgen05.fence.after_thread_sync()
    if tx == 0:
        T.ptx.tcgen05.mma(columns[0], operand, operand, instruction, d_dtype="float32", a_dtype="float16", b_dtype="float16",
                          use_a_tmem=False, cta_group=1, enable_input_d=False)
        T.ptx.tcgen05.commit(done.ptr_to([0]), cta_group=1)
    T.ptx.mbarrier.try_wait(done.ptr_to([0]), 0)
    T.ptx.tcgen05.fence.after_thread_sync()
    T.ptx.tcgen05.ld(columns[0], *[sums[c] for c in range(16)], shape="32x32b", num=16, row=warp * 32)
    T.ptx.tcgen05.wait.ld()
    for c in T.unroll(16):
        D[tx, c] = sums[c]
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cta_sync()
    if warp == 0:
        T.ptx.tcgen05.relinquish_alloc_permit(cta_group=1)
        T.ptx.tcgen05.dealloc(columns[0], n_cols=32, cta_group=1)
