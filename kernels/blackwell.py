"""Matrix products for Blackwell: tensor copies, tcgen05 and tensor memory."""

from __future__ import annotations

from tvm.script import tirx as T


@T.jit
def gemm_tcgen05(A: T.Buffer((M, K), "bfloat16"), B: T.Buffer((N, K), "bfloat16"), C: T.Buffer((M, N), "bfloat16"), *,
                 M: T.constexpr, N: T.constexpr, K: T.constexpr, STAGES: T.constexpr = 4):
    """C = A B^T by 128 x 128 tiles: one warp copies, one multiplies into tensor memory, all four store the sums."""
    T.static_assert(M % 128 == 0 and N % 128 == 0 and K % 64 == 0, "the tiles must divide the matrices")
    KT = T.meta_var(K // 64)
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    B_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "bfloat16", 2, A.data, K, M, K * 2, 64, 128, 1, 1, 0, 3, 2, 0)
    T.call_packed("runtime.cuTensorMapEncodeTiled", B_map, "bfloat16", 2, B.data, K, N, K * 2, 64, 128, 1, 1, 0, 3, 2, 0)
    T.device_entry()
    bx, by = T.cta_id([N // 128, M // 128])
    tid = T.thread_id([128])
    warp: T.let = tid // 32
    pool = T.SMEMPool()
    As = pool.alloc((STAGES, 128, 64), "bfloat16", align=1024)
    Bs = pool.alloc((STAGES, 128, 64), "bfloat16", align=1024)
    full = pool.alloc((STAGES,), "uint64", align=8)
    empty = pool.alloc((STAGES,), "uint64", align=8)
    done = pool.alloc((1,), "uint64", align=8)
    where = pool.alloc((1,), "uint32", align=8)
    pool.commit()
    if tid == 0:
        for s in T.unroll(STAGES):
            T.ptx.mbarrier.init(full.ptr_to([s]), 1)
            T.ptx.mbarrier.init(empty.ptr_to([s]), 1)
        T.ptx.mbarrier.init(done.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    if warp == 0:
        T.ptx.tcgen05.alloc(where.ptr_to([0]), n_cols=128, cta_group=1)
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cta_sync()
    T.ptx.tcgen05.fence.after_thread_sync()
    sums: T.let = where[0]
    if warp == 0:
        if T.ptx.elect_sync():
            for k in range(KT):
                T.ptx.mbarrier.try_wait(empty.ptr_to([k % STAGES]), (k // STAGES + 1) % 2)
                T.ptx.mbarrier.arrive.expect_tx(full.ptr_to([k % STAGES]), 256 * 64 * 2)
                T.ptx.cp_async.bulk.tensor.g2s_cluster(2, As.ptr_to([k % STAGES, 0, 0]), full.ptr_to([k % STAGES]),
                                                       T.address_of(A_map), 0, 1, "", k * 64, by * 128)
                T.ptx.cp_async.bulk.tensor.g2s_cluster(2, Bs.ptr_to([k % STAGES, 0, 0]), full.ptr_to([k % STAGES]),
                                                       T.address_of(B_map), 0, 1, "", k * 64, bx * 128)
    if warp == 1:
        if T.ptx.elect_sync():
            a_desc = T.alloc_local((1,), "uint64")
            b_desc = T.alloc_local((1,), "uint64")
            i_desc = T.alloc_local((1,), "uint32")
            T.ptx.tcgen05.encode_instr_descriptor(i_desc.data, d_dtype="float32", a_dtype="bfloat16", b_dtype="bfloat16",
                                                  M=128, N=128, K=16, trans_a=False, trans_b=False)
            for k in range(KT):
                T.ptx.mbarrier.try_wait(full.ptr_to([k % STAGES]), k // STAGES % 2)
                T.ptx.tcgen05.encode_matrix_descriptor(a_desc.data, As.ptr_to([k % STAGES, 0, 0]), 1, 64, 3)
                T.ptx.tcgen05.encode_matrix_descriptor(b_desc.data, Bs.ptr_to([k % STAGES, 0, 0]), 1, 64, 3)
                for kk in T.unroll(4):
                    T.ptx.tcgen05.mma(sums, a_desc[0] + T.uint64(kk * 2), b_desc[0] + T.uint64(kk * 2), i_desc[0],
                                      d_dtype="float32", a_dtype="bfloat16", b_dtype="bfloat16", use_a_tmem=False,
                                      cta_group=1, enable_input_d=T.if_then_else(k + kk > 0, 1, 0))
                T.ptx.tcgen05.commit(empty.ptr_to([k % STAGES]), cta_group=1)
            T.ptx.tcgen05.commit(done.ptr_to([0]), cta_group=1)
    T.cuda.warp_sync()
    T.ptx.mbarrier.try_wait(done.ptr_to([0]), 0)
    T.ptx.tcgen05.fence.after_thread_sync()
    row = T.alloc_local((32,), "float32")
    for c in range(4):
        T.ptx.tcgen05.ld(sums, *[row[i] for i in range(32)], shape="32x32b", num=32, row=warp * 32, col=c * 32)
        T.ptx.tcgen05.wait.ld()
        for i in T.unroll(32):
            C[by * 128 + tid, bx * 128 + c * 32 + i] = T.cast(row[i], "bfloat16")
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cta_sync()
    if warp == 0:
        T.ptx.tcgen05.relinquish_alloc_permit(cta_group=1)
        T.ptx.tcgen05.dealloc(sums, n_cols=128, cta_group=1)


@T.jit
def gemm_mxfp8(A: T.Buffer((M, K), "float8_e4m3fn"), B: T.Buffer((N, K), "float8_e4m3fn"),
               SA: T.Buffer((M // 128 * (K // 128), 512), "float8_e8m0fnu"),
               SB: T.Buffer((N // 128 * (K // 128), 512), "float8_e8m0fnu"), C: T.Buffer((M, N), "float32"), *,
               M: T.constexpr, N: T.constexpr, K: T.constexpr, STAGES: T.constexpr = 4):
    """C = A B^T where 32 elements of a row share a scale factor. Factors come by tiles of 128 rows and four blocks: first
    by row % 32, then row // 32, then block, as tensor memory takes them."""
    T.static_assert(M % 128 == 0 and N % 128 == 0 and K % 128 == 0, "the tiles must divide the matrices")
    KT = T.meta_var(K // 128)
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    B_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "uint8", 2, A.data, K, M, K, 128, 128, 1, 1, 0, 3, 2, 0)
    T.call_packed("runtime.cuTensorMapEncodeTiled", B_map, "uint8", 2, B.data, K, N, K, 128, 128, 1, 1, 0, 3, 2, 0)
    SA_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    SB_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", SA_map, "int32", 2, SA.data, 128, M // 128 * KT, 512, 128, 1, 1, 1, 0, 0, 2, 0)
    T.call_packed("runtime.cuTensorMapEncodeTiled", SB_map, "int32", 2, SB.data, 128, N // 128 * KT, 512, 128, 1, 1, 1, 0, 0, 2, 0)
    T.device_entry()
    bx, by = T.cta_id([N // 128, M // 128])
    tid = T.thread_id([128])
    warp: T.let = tid // 32
    pool = T.SMEMPool()
    As = pool.alloc((STAGES, 128, 128), "uint8", align=1024)
    Bs = pool.alloc((STAGES, 128, 128), "uint8", align=1024)
    FAs = pool.alloc((STAGES, 512), "uint8", align=128)
    FBs = pool.alloc((STAGES, 512), "uint8", align=128)
    full = pool.alloc((STAGES,), "uint64", align=8)
    empty = pool.alloc((STAGES,), "uint64", align=8)
    done = pool.alloc((1,), "uint64", align=8)
    where = pool.alloc((1,), "uint32", align=8)
    pool.commit()
    if tid == 0:
        for s in T.unroll(STAGES):
            T.ptx.mbarrier.init(full.ptr_to([s]), 1)
            T.ptx.mbarrier.init(empty.ptr_to([s]), 1)
        T.ptx.mbarrier.init(done.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    if warp == 0:
        T.ptx.tcgen05.alloc(where.ptr_to([0]), n_cols=256, cta_group=1)
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cta_sync()
    T.ptx.tcgen05.fence.after_thread_sync()
    sums: T.let = where[0]
    if warp == 0:
        if T.ptx.elect_sync():
            for k in range(KT):
                T.ptx.mbarrier.try_wait(empty.ptr_to([k % STAGES]), (k // STAGES + 1) % 2)
                T.ptx.mbarrier.arrive.expect_tx(full.ptr_to([k % STAGES]), 256 * 128 + 1024)
                T.ptx.cp_async.bulk.tensor.g2s_cluster(2, As.ptr_to([k % STAGES, 0, 0]), full.ptr_to([k % STAGES]),
                                                       T.address_of(A_map), 0, 1, "", k * 128, by * 128)
                T.ptx.cp_async.bulk.tensor.g2s_cluster(2, Bs.ptr_to([k % STAGES, 0, 0]), full.ptr_to([k % STAGES]),
                                                       T.address_of(B_map), 0, 1, "", k * 128, bx * 128)
                T.ptx.cp_async.bulk.tensor.g2s_cluster(2, FAs.ptr_to([k % STAGES, 0]), full.ptr_to([k % STAGES]),
                                                       T.address_of(SA_map), 0, 1, "", 0, by * KT + k)
                T.ptx.cp_async.bulk.tensor.g2s_cluster(2, FBs.ptr_to([k % STAGES, 0]), full.ptr_to([k % STAGES]),
                                                       T.address_of(SB_map), 0, 1, "", 0, bx * KT + k)
    if warp == 1:
        if T.ptx.elect_sync():
            a_desc = T.alloc_local((1,), "uint64")
            b_desc = T.alloc_local((1,), "uint64")
            i_desc = T.alloc_local((1,), "uint32")
            f_desc = T.alloc_local((2,), "uint64")
            T.ptx.tcgen05.encode_instr_descriptor_block_scaled(
                i_desc.data, d_dtype="float32", a_dtype="float8_e4m3fn", b_dtype="float8_e4m3fn", sfa_dtype="float8_e8m0fnu",
                sfb_dtype="float8_e8m0fnu", sfa_tmem_addr=sums + T.uint32(128), sfb_tmem_addr=sums + T.uint32(132), M=128, N=128,
                K=32, trans_a=False, trans_b=False)
            for k in range(KT):
                T.ptx.mbarrier.try_wait(full.ptr_to([k % STAGES]), k // STAGES % 2)
                T.ptx.tcgen05.encode_matrix_descriptor(a_desc.data, As.ptr_to([k % STAGES, 0, 0]), 1, 64, 3)
                T.ptx.tcgen05.encode_matrix_descriptor(b_desc.data, Bs.ptr_to([k % STAGES, 0, 0]), 1, 64, 3)
                T.ptx.tcgen05.encode_matrix_descriptor(f_desc.ptr_to([0]), FAs.ptr_to([k % STAGES, 0]), 1, 8, 0)
                T.ptx.tcgen05.encode_matrix_descriptor(f_desc.ptr_to([1]), FBs.ptr_to([k % STAGES, 0]), 1, 8, 0)
                T.ptx.tcgen05.cp(sums, f_desc[0], shape="32x128b", cta_group=1, multicast="warpx4", col=128)
                T.ptx.tcgen05.cp(sums, f_desc[1], shape="32x128b", cta_group=1, multicast="warpx4", col=132)
                for kk in T.unroll(4):
                    # The factors of 32 elements are a byte of each column: the descriptor says which.
                    T.ptx.tcgen05.mma.block_scale(
                        sums, a_desc[0] + T.uint64(kk * 2), b_desc[0] + T.uint64(kk * 2), sums + T.uint32(128),
                        sums + T.uint32(132), i_desc[0] | T.uint32(kk * 536870912 + kk * 16), d_dtype="float32",
                        a_dtype="float8_e4m3fn", b_dtype="float8_e4m3fn", sfa_dtype="float8_e8m0fnu",
                        sfb_dtype="float8_e8m0fnu", use_a_tmem=False, cta_group=1,
                        enable_input_d=T.if_then_else(k + kk > 0, 1, 0))
                T.ptx.tcgen05.commit(empty.ptr_to([k % STAGES]), cta_group=1)
            T.ptx.tcgen05.commit(done.ptr_to([0]), cta_group=1)
    T.cuda.warp_sync()
    T.ptx.mbarrier.try_wait(done.ptr_to([0]), 0)
    T.ptx.tcgen05.fence.after_thread_sync()
    row = T.alloc_local((32,), "float32")
    for c in range(4):
        T.ptx.tcgen05.ld(sums, *[row[i] for i in range(32)], shape="32x32b", num=32, row=warp * 32, col=c * 32)
        T.ptx.tcgen05.wait.ld()
        for i in T.unroll(32):
            C[by * 128 + tid, bx * 128 + c * 32 + i] = row[i]
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cta_sync()
    if warp == 0:
        T.ptx.tcgen05.relinquish_alloc_permit(cta_group=1)
        T.ptx.tcgen05.dealloc(sums, n_cols=256, cta_group=1)


@T.jit
def gemm_nvfp4(A: T.Buffer((M, K // 2), "uint8"), B: T.Buffer((N, K // 2), "uint8"),
               SA: T.Buffer((M // 128 * (K // 64), 512), "float8_e4m3fn"),
               SB: T.Buffer((N // 128 * (K // 64), 512), "float8_e4m3fn"), C: T.Buffer((M, N), "float32"), *,
               M: T.constexpr, N: T.constexpr, K: T.constexpr, STAGES: T.constexpr = 4):
    """C = A B^T of elements of four bits, two in a byte, of which 16 share a scale factor. Factors come by tiles
    of 128 rows and four blocks, as those of gemm_mxfp8."""
    T.static_assert(M % 128 == 0 and N % 128 == 0 and K % 256 == 0, "the tiles must divide the matrices")
    KT = T.meta_var(K // 256)
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    B_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "uint8", 2, A.data, K // 2, M, K // 2, 128, 128, 1, 1, 0, 3, 2, 0)
    T.call_packed("runtime.cuTensorMapEncodeTiled", B_map, "uint8", 2, B.data, K // 2, N, K // 2, 128, 128, 1, 1, 0, 3, 2, 0)
    SA_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    SB_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", SA_map, "int32", 2, SA.data, 128, M // 128 * KT * 4, 512, 128, 4, 1, 1, 0, 0, 2, 0)
    T.call_packed("runtime.cuTensorMapEncodeTiled", SB_map, "int32", 2, SB.data, 128, N // 128 * KT * 4, 512, 128, 4, 1, 1, 0, 0, 2, 0)
    T.device_entry()
    bx, by = T.cta_id([N // 128, M // 128])
    tid = T.thread_id([128])
    warp: T.let = tid // 32
    pool = T.SMEMPool()
    As = pool.alloc((STAGES, 128, 128), "uint8", align=1024)
    Bs = pool.alloc((STAGES, 128, 128), "uint8", align=1024)
    FAs = pool.alloc((STAGES, 4, 512), "uint8", align=128)
    FBs = pool.alloc((STAGES, 4, 512), "uint8", align=128)
    full = pool.alloc((STAGES,), "uint64", align=8)
    empty = pool.alloc((STAGES,), "uint64", align=8)
    done = pool.alloc((1,), "uint64", align=8)
    where = pool.alloc((1,), "uint32", align=8)
    pool.commit()
    if tid == 0:
        for s in T.unroll(STAGES):
            T.ptx.mbarrier.init(full.ptr_to([s]), 1)
            T.ptx.mbarrier.init(empty.ptr_to([s]), 1)
        T.ptx.mbarrier.init(done.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    if warp == 0:
        T.ptx.tcgen05.alloc(where.ptr_to([0]), n_cols=256, cta_group=1)
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cta_sync()
    T.ptx.tcgen05.fence.after_thread_sync()
    sums: T.let = where[0]
    if warp == 0:
        if T.ptx.elect_sync():
            for k in range(KT):
                T.ptx.mbarrier.try_wait(empty.ptr_to([k % STAGES]), (k // STAGES + 1) % 2)
                T.ptx.mbarrier.arrive.expect_tx(full.ptr_to([k % STAGES]), 256 * 128 + 4096)
                T.ptx.cp_async.bulk.tensor.g2s_cluster(2, As.ptr_to([k % STAGES, 0, 0]), full.ptr_to([k % STAGES]),
                                                       T.address_of(A_map), 0, 1, "", k * 128, by * 128)
                T.ptx.cp_async.bulk.tensor.g2s_cluster(2, Bs.ptr_to([k % STAGES, 0, 0]), full.ptr_to([k % STAGES]),
                                                       T.address_of(B_map), 0, 1, "", k * 128, bx * 128)
                T.ptx.cp_async.bulk.tensor.g2s_cluster(2, FAs.ptr_to([k % STAGES, 0, 0]), full.ptr_to([k % STAGES]),
                                                       T.address_of(SA_map), 0, 1, "", 0, (by * KT + k) * 4)
                T.ptx.cp_async.bulk.tensor.g2s_cluster(2, FBs.ptr_to([k % STAGES, 0, 0]), full.ptr_to([k % STAGES]),
                                                       T.address_of(SB_map), 0, 1, "", 0, (bx * KT + k) * 4)
    if warp == 1:
        if T.ptx.elect_sync():
            a_desc = T.alloc_local((1,), "uint64")
            b_desc = T.alloc_local((1,), "uint64")
            i_desc = T.alloc_local((1,), "uint32")
            f_desc = T.alloc_local((2,), "uint64")
            T.ptx.tcgen05.encode_instr_descriptor_block_scaled(
                i_desc.data, d_dtype="float32", a_dtype="float4_e2m1fn", b_dtype="float4_e2m1fn", sfa_dtype="float8_e4m3fn",
                sfb_dtype="float8_e4m3fn", sfa_tmem_addr=sums + T.uint32(128), sfb_tmem_addr=sums + T.uint32(144), M=128, N=128,
                K=64, trans_a=False, trans_b=False)
            for k in range(KT):
                T.ptx.mbarrier.try_wait(full.ptr_to([k % STAGES]), k // STAGES % 2)
                T.ptx.tcgen05.encode_matrix_descriptor(a_desc.data, As.ptr_to([k % STAGES, 0, 0]), 1, 64, 3)
                T.ptx.tcgen05.encode_matrix_descriptor(b_desc.data, Bs.ptr_to([k % STAGES, 0, 0]), 1, 64, 3)
                T.ptx.tcgen05.encode_matrix_descriptor(f_desc.ptr_to([0]), FAs.ptr_to([k % STAGES, 0, 0]), 1, 8, 0)
                T.ptx.tcgen05.encode_matrix_descriptor(f_desc.ptr_to([1]), FBs.ptr_to([k % STAGES, 0, 0]), 1, 8, 0)
                for kk in T.unroll(4):
                    T.ptx.tcgen05.cp(sums, f_desc[0] + T.uint64(kk * 32), shape="32x128b", cta_group=1, multicast="warpx4",
                                     col=128 + kk * 4)
                    T.ptx.tcgen05.cp(sums, f_desc[1] + T.uint64(kk * 32), shape="32x128b", cta_group=1, multicast="warpx4",
                                     col=144 + kk * 4)
                for kk in T.unroll(4):
                    T.ptx.tcgen05.mma.block_scale(
                        sums, a_desc[0] + T.uint64(kk * 2), b_desc[0] + T.uint64(kk * 2), sums + T.uint32(128 + kk * 4),
                        sums + T.uint32(144 + kk * 4), i_desc[0], d_dtype="float32", a_dtype="float4_e2m1fn",
                        b_dtype="float4_e2m1fn", sfa_dtype="float8_e4m3fn", sfb_dtype="float8_e4m3fn", use_a_tmem=False,
                        cta_group=1, enable_input_d=T.if_then_else(k + kk > 0, 1, 0))
                T.ptx.tcgen05.commit(empty.ptr_to([k % STAGES]), cta_group=1)
            T.ptx.tcgen05.commit(done.ptr_to([0]), cta_group=1)
    T.cuda.warp_sync()
    T.ptx.mbarrier.try_wait(done.ptr_to([0]), 0)
    T.ptx.tcgen05.fence.after_thread_sync()
    row = T.alloc_local((32,), "float32")
    for c in range(4):
        T.ptx.tcgen05.ld(sums, *[row[i] for i in range(32)], shape="32x32b", num=32, row=warp * 32, col=c * 32)
        T.ptx.tcgen05.wait.ld()
        for i in T.unroll(32):
            C[by * 128 + tid, bx * 128 + c * 32 + i] = row[i]
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cta_sync()
    if warp == 0:
        T.ptx.tcgen05.relinquish_alloc_permit(cta_group=1)
        T.ptx.tcgen05.dealloc(sums, n_cols=256, cta_group=1)
