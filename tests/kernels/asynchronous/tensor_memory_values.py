# test: compile sm_100a
# Tensor memory: addresses, descriptors made at run time, shifts, products of a sparse A with scale factors and without.
from tvm.script import tirx as T


# sim: addresses
#   B: uint32[4] = 0 -> [(3 + 16) * 65536 + 5 + 8, 3 * 65536 + 5, (3 - 1) * 65536 + 5 - 2, 0xce000029][i]
@T.prim_func
def addresses(B: T.Buffer((4,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    desc: T.uint32
    if tx == 0:
        base: T.let = T.uint32(3 * 65536 + 5)
        B[0] = T.cuda.get_tmem_addr(base, 16, 8)
        B[1] = T.cuda.get_tmem_addr(base, 0, 0)
        B[2] = T.cuda.get_tmem_addr(base, -1, -2)
        # Bits 29 and 30, and 4 and 5, become 0b10; the others stay.
        desc = T.uint32(0xAE000019)
        T.cuda.runtime_instr_desc(T.address_of(desc), T.uint32(2))
        B[3] = desc


# Rows of 32 bytes move to the next row; the first row is unchanged.
# sim: shifts
#   B: int32[128x10] = 0 -> (max(i - 1, 0) if j < 8 else i) * 10 + j
@T.prim_func
def shifts(B: T.Buffer((128, 10), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([128])
    warp = T.warp_id([4])
    slot = T.alloc_shared((1,), "uint32")
    bar = T.alloc_shared((1,), "uint64")
    r = T.alloc_local((16,), "int32")
    for k in T.unroll(16):
        r[k] = tx * 10 + k
    if warp == 0:
        T.ptx.tcgen05.alloc(T.address_of(slot[0]), n_cols=32, cta_group=1)
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    T.ptx.tcgen05.st(slot[0], *[r[k] for k in range(16)], shape="32x32b", num=16, row=warp * 32)
    T.ptx.tcgen05.wait.st()
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cta_sync()
    T.ptx.tcgen05.fence.after_thread_sync()
    if tx == 0:
        T.ptx.tcgen05.shift(slot[0])
        T.ptx.tcgen05.commit(bar.ptr_to([0]))
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    T.ptx.tcgen05.fence.after_thread_sync()
    T.ptx.tcgen05.ld(slot[0], *[r[k] for k in range(16)], shape="32x32b", num=16, row=warp * 32)
    T.ptx.tcgen05.wait.ld()
    for k in T.unroll(10):
        B[tx, k] = r[k]
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cta_sync()
    if warp == 0:
        T.ptx.tcgen05.dealloc(slot[0], n_cols=32, cta_group=1)


def sparse(a, b, i, j):
    """Row i keeps the first two of four elements where it is even, the last two where it is odd."""
    total = 0
    for g in range(8):
        for e in range(2):
            total += a[i][2 * g + e] * b[j][4 * g + 2 * (i % 2) + e]
    return total


# sim: sparse_halves
#   A: float16[128x16] = (i * 3 + j * 5) % 7 - 3
#   B: float16[16x32] = (i * 2 + j) % 5 - 2
#   D: float32[128x16] = 0 -> sparse(A, B, i, j)
@T.prim_func
def sparse_halves(A: T.Buffer((128, 16), "float16"), B: T.Buffer((16, 32), "float16"), D: T.Buffer((128, 16), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([128])
    warp = T.warp_id([4])
    As = T.alloc_shared((2048,), "float16", align=128)
    Bs = T.alloc_shared((512,), "float16", align=128)
    slot = T.alloc_shared((1,), "uint32")
    bar = T.alloc_shared((1,), "uint64")
    m = T.alloc_local((1,), "uint32")
    r = T.alloc_local((16,), "float32")
    a_desc: T.uint64
    b_desc: T.uint64
    i_desc: T.uint32
    # Pieces of 8 rows and 16 bytes, one after the other along k, then along the rows.
    for k in T.serial(16):
        As[(tx // 8 * 2 + k // 8) * 64 + tx % 8 * 8 + k % 8] = A[tx, k]
    for k in T.serial(4):
        Bs[(tx // 8 // 8 * 4 + tx // 8 % 8 // 2) * 64 + tx % 8 * 8 + tx // 8 % 2 * 4 + k] = B[tx // 64 * 8 + tx % 8, tx // 8 % 8 * 4 + k]
    if warp == 0:
        T.ptx.tcgen05.alloc(T.address_of(slot[0]), n_cols=64, cta_group=1)
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.ptx.fence.proxy_async("shared::cta")
    T.cuda.cta_sync()
    # A lane holds the metadata of two rows eight apart: both even, or both odd.
    m[0] = T.if_then_else(tx % 2 == 0, T.uint32(0x44444444), T.uint32(0xEEEEEEEE))
    T.ptx.tcgen05.st(slot[0], m[0], shape="32x32b", num=1, row=warp * 32, col=32)
    T.ptx.tcgen05.wait.st()
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cta_sync()
    T.ptx.tcgen05.fence.after_thread_sync()
    if tx == 0:
        T.ptx.tcgen05.encode_matrix_descriptor(T.address_of(a_desc), As.ptr_to([0]), 8, 16, 0)
        T.ptx.tcgen05.encode_matrix_descriptor(T.address_of(b_desc), Bs.ptr_to([0]), 8, 32, 0)
        T.ptx.tcgen05.encode_instr_descriptor(T.address_of(i_desc), d_dtype="float32", a_dtype="float16", b_dtype="float16", M=128,
                                              N=16, K=32, trans_a=False, trans_b=False, is_sparse=True)
        T.ptx.tcgen05.mma.sp(slot[0], a_desc, b_desc, T.cuda.get_tmem_addr(slot[0], 0, 32), i_desc, d_dtype="float32",
                             a_dtype="float16", b_dtype="float16", use_a_tmem=False, cta_group=1, enable_input_d=False)
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
        T.ptx.tcgen05.dealloc(slot[0], n_cols=64, cta_group=1)


def sparse_bytes(a, b, i, j):
    """The same of float8_e4m3 by its bits: 1, 2, -1 and 0.5."""
    values = {0x38: 1.0, 0x40: 2.0, 0xB8: -1.0, 0x30: 0.5}
    total = 0
    for g in range(16):
        for e in range(2):
            total += values[a[i][2 * g + e]] * values[b[j][4 * g + 2 * (i % 2) + e]]
    return total


# The factors of A are 2, those of B 4.
# sim: sparse_bytes_with_factors
#   A: uint8[128x32] = [0x38, 0x40, 0xB8, 0x30][(i + j * 3) % 4]
#   B: uint8[8x64] = [0x38, 0x40, 0xB8, 0x30][(i * 5 + j // 3) % 4]
#   D: float32[128x8] = 0 -> sparse_bytes(A, B, i, j) * 8
@T.prim_func
def sparse_bytes_with_factors(A: T.Buffer((128, 32), "uint8"), B: T.Buffer((8, 64), "uint8"), D: T.Buffer((128, 8), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([128])
    warp = T.warp_id([4])
    As = T.alloc_shared((4096,), "uint8", align=128)
    Bs = T.alloc_shared((512,), "uint8", align=128)
    slot = T.alloc_shared((1,), "uint32")
    bar = T.alloc_shared((1,), "uint64")
    m = T.alloc_local((2,), "uint32")
    f = T.alloc_local((4,), "uint32")
    r = T.alloc_local((8,), "float32")
    a_desc: T.uint64
    b_desc: T.uint64
    i_desc: T.uint32
    for k in T.serial(32):
        As[(tx // 8 * 2 + k // 16) * 128 + tx % 8 * 16 + k % 16] = A[tx, k]
    for k in T.serial(4):
        Bs[tx // 32 * 128 + tx % 8 * 16 + tx // 8 % 4 * 4 + k] = B[tx % 8, tx // 32 * 16 + tx // 8 % 4 * 4 + k]
    if warp == 0:
        T.ptx.tcgen05.alloc(T.address_of(slot[0]), n_cols=64, cta_group=1)
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.ptx.fence.proxy_async("shared::cta")
    T.cuda.cta_sync()
    for k in T.unroll(2):
        m[k] = T.if_then_else(tx % 2 == 0, T.uint32(0x44444444), T.uint32(0xEEEEEEEE))
    T.ptx.tcgen05.st(slot[0], m[0], m[1], shape="32x32b", num=2, row=warp * 32, col=32)
    for k in T.unroll(4):
        f[k] = T.uint32(0x80808080)
    T.ptx.tcgen05.st(slot[0], f[0], f[1], f[2], f[3], shape="32x32b", num=4, row=warp * 32, col=40)
    f[0] = T.uint32(0x81818181)
    T.ptx.tcgen05.st(slot[0], f[0], shape="32x32b", num=1, row=warp * 32, col=48)
    T.ptx.tcgen05.wait.st()
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cta_sync()
    T.ptx.tcgen05.fence.after_thread_sync()
    if tx == 0:
        T.ptx.tcgen05.encode_matrix_descriptor(T.address_of(a_desc), As.ptr_to([0]), 8, 16, 0)
        T.ptx.tcgen05.encode_matrix_descriptor(T.address_of(b_desc), Bs.ptr_to([0]), 8, 32, 0)
        T.ptx.tcgen05.encode_instr_descriptor_block_scaled(
            T.address_of(i_desc), d_dtype="float32", a_dtype="float8_e4m3fn", b_dtype="float8_e4m3fn", sfa_dtype="float8_e8m0fnu",
            sfb_dtype="float8_e8m0fnu", sfa_tmem_addr=slot[0] + T.uint32(40), sfb_tmem_addr=slot[0] + T.uint32(48), M=128, N=8, K=64,
            trans_a=False, trans_b=False, is_sparse=True)
        T.ptx.tcgen05.mma.sp.block_scale(
            slot[0], a_desc, b_desc, slot[0] + T.uint32(40), slot[0] + T.uint32(48), slot[0] + T.uint32(32), i_desc,
            d_dtype="float32", a_dtype="float8_e4m3fn", b_dtype="float8_e4m3fn", sfa_dtype="float8_e8m0fnu",
            sfb_dtype="float8_e8m0fnu", use_a_tmem=False, cta_group=1, enable_input_d=False)
        T.ptx.tcgen05.commit(bar.ptr_to([0]))
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    T.ptx.tcgen05.fence.after_thread_sync()
    T.ptx.tcgen05.ld(slot[0], *[r[k] for k in range(8)], shape="32x32b", num=8, row=warp * 32)
    T.ptx.tcgen05.wait.ld()
    for k in T.unroll(8):
        D[tx, k] = r[k]
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cta_sync()
    if warp == 0:
        T.ptx.tcgen05.dealloc(slot[0], n_cols=64, cta_group=1)


def product(a, b, i, j):
    return sum(a[i][k] * b[j][k] for k in range(16))


# A product of 64 rows is in the first 16 lanes of each warp: the other lanes load nothing.
# sim: half_of_the_lanes
#   A: float16[64x16] = (i * 3 + j * 5) % 7 - 3
#   B: float16[16x16] = (i * 2 + j) % 5 - 2
#   D: float32[64x16] = 0 -> product(A, B, i, j)
#   rows = 16
#
# sim: half_of_the_lanes
#   A: float16[64x16] = (i * 3 + j * 5) % 7 - 3
#   B: float16[16x16] = (i * 2 + j) % 5 - 2
#   D: float32[64x16] = 0
#   rows = 17
#   fault: before this thread has written it
@T.prim_func
def half_of_the_lanes(A: T.Buffer((64, 16), "float16"), B: T.Buffer((16, 16), "float16"), D: T.Buffer((64, 16), "float32"),
                      rows: T.int32):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([128])
    warp = T.warp_id([4])
    As = T.alloc_shared((1024,), "float16", align=128)
    Bs = T.alloc_shared((256,), "float16", align=128)
    slot = T.alloc_shared((1,), "uint32")
    bar = T.alloc_shared((1,), "uint64")
    r = T.alloc_local((16,), "float32")
    a_desc: T.uint64
    b_desc: T.uint64
    i_desc: T.uint32
    for k in T.serial(16):
        if tx < 64:
            As[(tx // 8 * 2 + k // 8) * 64 + tx % 8 * 8 + k % 8] = A[tx, k]
        if tx < 16:
            Bs[(tx // 8 * 2 + k // 8) * 64 + tx % 8 * 8 + k % 8] = B[tx, k]
    if warp == 0:
        T.ptx.tcgen05.alloc(T.address_of(slot[0]), n_cols=32, cta_group=1)
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.ptx.fence.proxy_async("shared::cta")
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cta_sync()
    T.ptx.tcgen05.fence.after_thread_sync()
    if tx == 0:
        T.ptx.tcgen05.encode_matrix_descriptor(T.address_of(a_desc), As.ptr_to([0]), 8, 16, 0)
        T.ptx.tcgen05.encode_matrix_descriptor(T.address_of(b_desc), Bs.ptr_to([0]), 8, 16, 0)
        T.ptx.tcgen05.encode_instr_descriptor(T.address_of(i_desc), d_dtype="float32", a_dtype="float16", b_dtype="float16", M=64,
                                              N=16, K=16, trans_a=False, trans_b=False)
        T.ptx.tcgen05.mma(slot[0], a_desc, b_desc, i_desc, d_dtype="float32", a_dtype="float16", b_dtype="float16",
                          use_a_tmem=False, cta_group=1, enable_input_d=False)
        T.ptx.tcgen05.commit(bar.ptr_to([0]))
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    T.ptx.tcgen05.fence.after_thread_sync()
    T.ptx.tcgen05.ld(slot[0], *[r[k] for k in range(16)], shape="32x32b", num=16, row=warp * 32)
    T.ptx.tcgen05.wait.ld()
    if tx % 32 < rows:
        for k in T.unroll(16):
            D[warp * 16 + tx % 32 % 16, k] = r[k]
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cta_sync()
    if warp == 0:
        T.ptx.tcgen05.dealloc(slot[0], n_cols=32, cta_group=1)


# The tensor core of the first block reads the shared memory of both; the second block's copy is not waited for.
# sim: copy_of_the_other_block
#   A: float16[256x64] = i % 3
#   B: float16[32x64] = i % 2
#   fault: reads byte 0 of shared `As` of rank 1 of the cluster, which another asynchronous operation wrote
@T.prim_func
def copy_of_the_other_block(A: T.Buffer((256, 64), "float16"), B: T.Buffer((32, 64), "float16")):
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    B_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float16", 2, A.data, 64, 256, 128, 64, 128, 1, 1, 0, 3, 2, 0)
    T.call_packed("runtime.cuTensorMapEncodeTiled", B_map, "float16", 2, B.data, 64, 32, 128, 64, 16, 1, 1, 0, 3, 2, 0)
    T.device_entry()
    T.cluster_id([1])
    rank = T.cta_id_in_cluster([2])
    tx = T.thread_id([32])
    As = T.alloc_shared((128, 64), "float16", align=1024)
    Bs = T.alloc_shared((16, 64), "float16", align=1024)
    where = T.alloc_shared((1,), "uint32")
    bar = T.alloc_shared((2,), "uint64", align=8)
    if tx == 0:
        for i in T.unroll(2):
            T.ptx.mbarrier.init(bar.ptr_to([i]), 1)
        T.ptx.fence.mbarrier_init()
        T.ptx.mbarrier.arrive.expect_tx(bar.ptr_to([0]), 144 * 128)
        T.ptx.cp_async.bulk.tensor.g2s_cluster(
            2, As.ptr_to([0, 0]), bar.ptr_to([0]), T.address_of(A_map), 0, 1, "", 0, rank * 128)
        T.ptx.cp_async.bulk.tensor.g2s_cluster(
            2, Bs.ptr_to([0, 0]), bar.ptr_to([0]), T.address_of(B_map), 0, 1, "", 0, rank * 16)
    T.cuda.warp_sync()
    T.ptx.tcgen05.alloc(where.ptr_to([0]), n_cols=32, cta_group=2)
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cluster_sync()
    T.ptx.tcgen05.fence.after_thread_sync()
    if tx == 0 and rank == 0:
        descriptors = T.alloc_local((2,), "uint64")
        kind = T.alloc_local((1,), "uint32")
        T.ptx.tcgen05.encode_matrix_descriptor(descriptors.ptr_to([0]), As.ptr_to([0, 0]), 1, 64, 3)
        T.ptx.tcgen05.encode_matrix_descriptor(descriptors.ptr_to([1]), Bs.ptr_to([0, 0]), 1, 64, 3)
        T.ptx.tcgen05.encode_instr_descriptor(
            kind.data, d_dtype="float32", a_dtype="float16", b_dtype="float16", M=256, N=32, K=16, trans_a=False,
            trans_b=False, n_cta_groups=2)
        T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
        T.ptx.tcgen05.mma(
            where[0], descriptors[0], descriptors[1], kind[0], d_dtype="float32", a_dtype="float16", b_dtype="float16",
            use_a_tmem=False, cta_group=2, enable_input_d=0)
        T.ptx.tcgen05.commit(bar.ptr_to([1]), cta_group=2, cta_mask=3)
    T.ptx.mbarrier.try_wait(bar.ptr_to([1]), 0)
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cluster_sync()
    T.ptx.tcgen05.fence.after_thread_sync()
    T.ptx.tcgen05.relinquish_alloc_permit(cta_group=2)
    T.ptx.tcgen05.dealloc(where[0], n_cols=32, cta_group=2)
