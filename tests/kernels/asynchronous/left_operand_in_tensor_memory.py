# test: compile sm_100a
# Products whose left operand warps store to tensor memory, and who tells of it.
from tvm.script import tirx as T


# A from tensor memory, as probabilities of attention are: 16 rows of B are 32 bytes each, N is innermost.
# sim: left_from_tensor_memory
#   A: uint16[128x16] = [0x3f80, 0x4000, 0xbf80, 0x3f00][(i + j * 3) % 4]
#   B: uint16[16x16] = [0x3f80, 0x4000, 0xbf80, 0x3f00][(i * 5 + j // 3) % 4]
#   D: float32[128x16] = 0 -> sum([1, 2, -1, 0.5][(i + k * 3) % 4] * [1, 2, -1, 0.5][(k * 5 + j // 3) % 4] for k in range(16))
@T.prim_func
def left_from_tensor_memory(A: T.Buffer((128, 16), "uint16"), B: T.Buffer((16, 16), "uint16"), D: T.Buffer((128, 16), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([128])
    warp = T.warp_id([4])
    Bs = T.alloc_shared((16, 16), "uint16", align=1024)
    slot = T.alloc_shared((1,), "uint32")
    bar = T.alloc_shared((1,), "uint64")
    a = T.alloc_local((8,), "uint32")
    r = T.alloc_local((16,), "float32")
    b_desc: T.uint64
    i_desc: T.uint32
    # Chunks of 16 bytes are exchanged in every other group of four rows.
    if tx < 32:
        for e in T.vectorized(8):
            Bs[tx // 2, (tx % 2 ^ tx // 8 % 2) * 8 + e] = B[tx // 2, tx % 2 * 8 + e]
    for k in T.unroll(8):
        a[k] = T.cast(A[tx, 2 * k], "uint32") | T.cast(A[tx, 2 * k + 1], "uint32") << T.uint32(16)
    if warp == 0:
        T.ptx.tcgen05.alloc(T.address_of(slot[0]), n_cols=32, cta_group=1)
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.ptx.fence.proxy_async("shared::cta")
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cta_sync()
    T.ptx.tcgen05.fence.after_thread_sync()
    T.ptx.tcgen05.st(slot[0], *[a[k] for k in range(8)], shape="32x32b", num=8, row=warp * 32, col=16)
    T.ptx.tcgen05.wait.st()
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cta_sync()
    T.ptx.tcgen05.fence.after_thread_sync()
    if tx == 0:
        T.ptx.tcgen05.encode_matrix_descriptor(T.address_of(b_desc), Bs.ptr_to([0, 0]), 1, 16, 1)
        T.ptx.tcgen05.encode_instr_descriptor(T.address_of(i_desc), d_dtype="float32", a_dtype="bfloat16", b_dtype="bfloat16", M=128,
                                              N=16, K=16, trans_a=False, trans_b=True)
        T.ptx.tcgen05.mma(slot[0], slot[0] + T.uint32(16), b_desc, i_desc, d_dtype="float32", a_dtype="bfloat16",
                          b_dtype="bfloat16", use_a_tmem=True, cta_group=1, enable_input_d=False)
        T.ptx.tcgen05.commit(bar.ptr_to([0]))
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    T.ptx.tcgen05.fence.after_thread_sync()
    T.ptx.tcgen05.ld(slot[0], *[r[k] for k in range(16)], shape="32x32b", num=16, row=warp * 32)
    T.ptx.tcgen05.wait.ld()
    for k in T.unroll(16):
        D[tx, k] = r[k]
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cta_sync()
    if warp == 0:
        T.ptx.tcgen05.dealloc(slot[0], n_cols=32, cta_group=1)


# A warp stores as a whole: behind its wait one elected lane tells the thread of the product, and no barrier is needed.
# variant: left_told_by_elected_lanes of left_from_tensor_memory
#   replace: 'bar = T.alloc_shared((1,), "uint64")' -> 'bar = T.alloc_shared((2,), "uint64")'
#   replace: 'T.ptx.mbarrier.init(bar.ptr_to([0]), 1)' -> 'T.ptx.mbarrier.init(bar.ptr_to([0]), 1)\n        T.ptx.mbarrier.init(bar.ptr_to([1]), 4)'
#   replace: 'T.ptx.tcgen05.wait.st()\n    T.ptx.tcgen05.fence.before_thread_sync()\n    T.cuda.cta_sync()\n    T.ptx.tcgen05.fence.after_thread_sync()' -> 'T.ptx.tcgen05.wait.st()\n    if T.ptx.elect_sync():\n        T.ptx.mbarrier.arrive(bar.ptr_to([1]))\n    T.ptx.mbarrier.try_wait(bar.ptr_to([1]), 0)'
#   seeds: 3

# It tells before the stores are waited for.
# variant: left_told_too_early of left_from_tensor_memory
#   replace: 'bar = T.alloc_shared((1,), "uint64")' -> 'bar = T.alloc_shared((2,), "uint64")'
#   replace: 'T.ptx.mbarrier.init(bar.ptr_to([0]), 1)' -> 'T.ptx.mbarrier.init(bar.ptr_to([0]), 1)\n        T.ptx.mbarrier.init(bar.ptr_to([1]), 4)'
#   replace: 'T.ptx.tcgen05.wait.st()\n    T.ptx.tcgen05.fence.before_thread_sync()\n    T.cuda.cta_sync()\n    T.ptx.tcgen05.fence.after_thread_sync()' -> 'if T.ptx.elect_sync():\n        T.ptx.mbarrier.arrive(bar.ptr_to([1]))\n    T.ptx.tcgen05.wait.st()\n    T.ptx.mbarrier.try_wait(bar.ptr_to([1]), 0)'
#   fault: nothing orders the two
