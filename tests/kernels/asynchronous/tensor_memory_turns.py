# Tensor memory that tiles use in turn, right and with one mistake each.
from tvm.script import tirx as T


def dot(a, b):
    return sum([x * y for x, y in zip(a, b)])


# Two tiles, one after the other in the same columns: one warp multiplies, all read the sums.
# sim: tiles
#   A: float16[2x128x16] = (i + j + k) % 5
#   B: float32[2x128x16] = 0 -> dot(A[i][j], A[i][k])
#   seeds: 6
@T.prim_func
def tiles(A: T.Buffer((2, 128, 16), "float16"), B: T.Buffer((2, 128, 16), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([128])
    warp = T.warp_id([4])
    S = T.alloc_shared((2048,), "float16", align=128)
    slot = T.alloc_shared((1,), "uint32")
    bar = T.alloc_shared((1,), "uint64")
    r = T.alloc_local((16,), "float32")
    a_desc: T.uint64
    i_desc: T.uint32
    if warp == 0:
        T.ptx.tcgen05.alloc(T.address_of(slot[0]), n_cols=32, cta_group=1)
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.ptx.tcgen05.encode_matrix_descriptor(T.address_of(a_desc), S.ptr_to([0]), 8, 16, 0)
    T.ptx.tcgen05.encode_instr_descriptor(T.address_of(i_desc), d_dtype="float32", a_dtype="float16", b_dtype="float16", M=128,
                                          N=16, K=16, trans_a=False, trans_b=False)
    for t in range(2):
        for k in T.serial(16):
            S[(tx // 8 * 2 + k // 8) * 64 + tx % 8 * 8 + k % 8] = A[t, tx, k]
        T.ptx.fence.proxy_async("shared::cta")
        T.ptx.tcgen05.fence.before_thread_sync()
        T.cuda.cta_sync()
        T.ptx.tcgen05.fence.after_thread_sync()
        if tx == 0:
            T.ptx.tcgen05.mma(slot[0], a_desc, a_desc, i_desc, d_dtype="float32", a_dtype="float16", b_dtype="float16",
                              use_a_tmem=False, cta_group=1, enable_input_d=False)
            T.ptx.tcgen05.commit(bar.ptr_to([0]), cta_group=1)
        T.ptx.mbarrier.try_wait(bar.ptr_to([0]), t)
        T.ptx.tcgen05.fence.after_thread_sync()
        T.ptx.tcgen05.ld(slot[0], *[r[k] for k in range(16)], shape="32x32b", num=16, row=warp * 32)
        T.ptx.tcgen05.wait.ld()
        for k in T.unroll(16):
            B[t, tx, k] = r[k]
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cta_sync()
    if warp == 0:
        T.ptx.tcgen05.relinquish_alloc_permit(cta_group=1)
        T.ptx.tcgen05.dealloc(slot[0], n_cols=32, cta_group=1)

# Barriers and waits that acquire order tensor memory by themselves: fences of tcgen05 are for relaxed ones.
# variant: tiles_without_fences of tiles
#   without 1: "T.ptx.tcgen05.fence.before_thread_sync()"
#   without 1: "T.ptx.tcgen05.fence.after_thread_sync()"
#   without 1: "T.ptx.tcgen05.fence.after_thread_sync()"
#   seeds: 6

# The commit stands before the product.
# variant: tiles_commit_first of tiles
#   replace 2: "if tx == 0:" -> "if tx == 0:\n            T.ptx.tcgen05.commit(bar.ptr_to([0]), cta_group=1)"
#   without 2: "T.ptx.tcgen05.commit(bar.ptr_to([0]), cta_group=1)"
#   fault: which an asynchronous operation writes


# The next tile is written while the product reads the last.
# sim: tiles_written_early
#   A: float16[2x128x16] = (i + j + k) % 5
#   B: float32[2x128x16] = 0
#   fault: the matrix product (tcgen05.mma) reads byte
@T.prim_func
def tiles_written_early(A: T.Buffer((2, 128, 16), "float16"), B: T.Buffer((2, 128, 16), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([128])
    warp = T.warp_id([4])
    S = T.alloc_shared((2048,), "float16", align=128)
    slot = T.alloc_shared((1,), "uint32")
    bar = T.alloc_shared((1,), "uint64")
    r = T.alloc_local((16,), "float32")
    a_desc: T.uint64
    i_desc: T.uint32
    if warp == 0:
        T.ptx.tcgen05.alloc(T.address_of(slot[0]), n_cols=32, cta_group=1)
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.ptx.tcgen05.encode_matrix_descriptor(T.address_of(a_desc), S.ptr_to([0]), 8, 16, 0)
    T.ptx.tcgen05.encode_instr_descriptor(T.address_of(i_desc), d_dtype="float32", a_dtype="float16", b_dtype="float16", M=128,
                                          N=16, K=16, trans_a=False, trans_b=False)
    for t in range(2):
        for k in T.serial(16):
            S[(tx // 8 * 2 + k // 8) * 64 + tx % 8 * 8 + k % 8] = A[t, tx, k]
        T.ptx.fence.proxy_async("shared::cta")
        T.ptx.tcgen05.fence.before_thread_sync()
        T.cuda.cta_sync()
        T.ptx.tcgen05.fence.after_thread_sync()
        if tx == 0:
            T.ptx.tcgen05.mma(slot[0], a_desc, a_desc, i_desc, d_dtype="float32", a_dtype="float16", b_dtype="float16",
                              use_a_tmem=False, cta_group=1, enable_input_d=False)
            T.ptx.tcgen05.commit(bar.ptr_to([0]), cta_group=1)
        S[(tx // 8 * 2) * 64 + tx % 8 * 8] = T.float16(0)
        T.ptx.mbarrier.try_wait(bar.ptr_to([0]), t)
        T.ptx.tcgen05.fence.after_thread_sync()
        T.ptx.tcgen05.ld(slot[0], *[r[k] for k in range(16)], shape="32x32b", num=16, row=warp * 32)
        T.ptx.tcgen05.wait.ld()
        for k in T.unroll(16):
            B[t, tx, k] = r[k]
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cta_sync()
    if warp == 0:
        T.ptx.tcgen05.relinquish_alloc_permit(cta_group=1)
        T.ptx.tcgen05.dealloc(slot[0], n_cols=32, cta_group=1)

# The memory is freed while others read.
# variant: tiles_freed_early of tiles
#   without 2: "T.ptx.tcgen05.fence.before_thread_sync()"
#   without 2: "T.cuda.cta_sync()"
#   fault: of tensor memory, which thread (0, 0, 0) freed, and no barrier orders the two


# Two accumulators in turn: the epilogue of a tile runs while the next is multiplied.
# sim: accumulators
#   A: float16[4x128x16] = (i + j + k) % 5
#   B: float32[4x128x16] = 0 -> dot(A[i][j], A[i][k])
#   seeds: 6
@T.prim_func
def accumulators(A: T.Buffer((4, 128, 16), "float16"), B: T.Buffer((4, 128, 16), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([160])
    warp = T.warp_id([5])
    S = T.alloc_shared((4, 2048), "float16", align=128)
    slot = T.alloc_shared((1,), "uint32")
    full = T.alloc_shared((2,), "uint64")
    empty = T.alloc_shared((2,), "uint64")
    r = T.alloc_local((16,), "float32")
    a_desc: T.uint64
    i_desc: T.uint32
    if warp == 4:
        T.ptx.tcgen05.alloc(T.address_of(slot[0]), n_cols=32, cta_group=1)
    if tx == 0:
        for s in T.unroll(2):
            T.ptx.mbarrier.init(full.ptr_to([s]), 1)
            T.ptx.mbarrier.init(empty.ptr_to([s]), 128)
        T.ptx.fence.mbarrier_init()
    if tx < 128:
        for t in range(4):
            for k in T.serial(16):
                S[t, (tx // 8 * 2 + k // 8) * 64 + tx % 8 * 8 + k % 8] = A[t, tx, k]
        T.ptx.fence.proxy_async("shared::cta")
    T.cuda.cta_sync()
    if warp == 4:
        if T.ptx.elect_sync():
            T.ptx.tcgen05.encode_matrix_descriptor(T.address_of(a_desc), S.ptr_to([0, 0]), 8, 16, 0)
            T.ptx.tcgen05.encode_instr_descriptor(T.address_of(i_desc), d_dtype="float32", a_dtype="float16", b_dtype="float16",
                                                  M=128, N=16, K=16, trans_a=False, trans_b=False)
            for t in range(4):
                T.ptx.mbarrier.try_wait(empty.ptr_to([t % 2]), t // 2 % 2 ^ 1)
                T.ptx.tcgen05.fence.after_thread_sync()
                T.ptx.tcgen05.mma(slot[0] + T.cast(t % 2 * 16, "uint32"), a_desc + T.cast(t * 256, "uint64"), a_desc + T.cast(t * 256, "uint64"), i_desc,
                                  d_dtype="float32", a_dtype="float16", b_dtype="float16", use_a_tmem=False, cta_group=1, enable_input_d=False)
                T.ptx.tcgen05.commit(full.ptr_to([t % 2]), cta_group=1)
    else:
        for t in range(4):
            T.ptx.mbarrier.try_wait(full.ptr_to([t % 2]), t // 2 % 2)
            T.ptx.tcgen05.fence.after_thread_sync()
            T.ptx.tcgen05.ld(slot[0] + T.cast(t % 2 * 16, "uint32"), *[r[k] for k in range(16)], shape="32x32b", num=16, row=warp * 32)
            T.ptx.tcgen05.wait.ld()
            T.ptx.tcgen05.fence.before_thread_sync()
            T.ptx.mbarrier.arrive(empty.ptr_to([t % 2]))
            for k in T.unroll(16):
                B[t, tx, k] = r[k]
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cta_sync()
    if warp == 4:
        T.ptx.tcgen05.relinquish_alloc_permit(cta_group=1)
        T.ptx.tcgen05.dealloc(slot[0], n_cols=32, cta_group=1)

# The next product does not wait for the epilogue.
# variant: accumulators_unwaited of accumulators
#   without: "T.ptx.mbarrier.try_wait(empty.ptr_to([t % 2]), t // 2 % 2 ^ 1)"
#   fault: which thread (0, 0, 0) read, and nothing orders the two

# The epilogue gives the columns back before it has loaded them.
# variant: accumulators_arrive_before_load of accumulators
#   without: "T.ptx.tcgen05.wait.ld()"
#   replace: "T.ptx.mbarrier.arrive(empty.ptr_to([t % 2]))" -> "T.ptx.mbarrier.arrive(empty.ptr_to([t % 2]))\n            T.ptx.tcgen05.wait.ld()"
#   fault: of tensor memory, which thread

# Both use the same columns.
# variant: accumulators_same_columns of accumulators
#   replace: '0] + T.cast(t % 2 * 16, "uint32"), a_desc' -> "0], a_desc"
#   replace: ' + T.cast(t % 2 * 16, "uint32")' -> ""
#   fault: of tensor memory, which thread

# The same without fences.
# variant: accumulators_without_fences of accumulators
#   without 1: "T.ptx.tcgen05.fence.before_thread_sync()"
#   without 1: "T.ptx.tcgen05.fence.after_thread_sync()"
#   without 1: "T.ptx.tcgen05.fence.after_thread_sync()"
#   seeds: 6

# The epilogue's arrival is relaxed: fences order the loads before it and the product behind the wait.
# variant: accumulators_relaxed of accumulators
#   replace: "T.ptx.mbarrier.arrive(empty.ptr_to([t % 2]))" -> 'T.ptx.mbarrier.arrive(empty.ptr_to([t % 2]), sem="relaxed", scope="cta")'
#   seeds: 6

# variant: accumulators_relaxed_without_fence_before of accumulators
#   replace: "T.ptx.mbarrier.arrive(empty.ptr_to([t % 2]))" -> 'T.ptx.mbarrier.arrive(empty.ptr_to([t % 2]), sem="relaxed", scope="cta")'
#   without 1: "T.ptx.tcgen05.fence.before_thread_sync()"
#   fault: of tensor memory, which thread

# variant: accumulators_relaxed_without_fence_after of accumulators
#   replace: "T.ptx.mbarrier.arrive(empty.ptr_to([t % 2]))" -> 'T.ptx.mbarrier.arrive(empty.ptr_to([t % 2]), sem="relaxed", scope="cta")'
#   without 1: "T.ptx.tcgen05.fence.after_thread_sync()"
#   fault: only if a tcgen05.fence.after_thread_sync follows it
