"""Matrix products for Hopper: tensor copies, multicast and warpgroup matrix operations."""

from __future__ import annotations

from tvm.script import tirx as T


@T.jit
def gemm_wgmma(A: T.Buffer((M, K), "bfloat16"), B: T.Buffer((N, K), "bfloat16"), C: T.Buffer((M, N), "bfloat16"), *,
               M: T.constexpr, N: T.constexpr, K: T.constexpr, BM: T.constexpr = 128, BN: T.constexpr = 256,
               BK: T.constexpr = 64, STAGES: T.constexpr = 4, CTAS: T.constexpr = 132, GROUP: T.constexpr = 16):
    """C = A B^T: one warpgroup copies tiles, two multiply; each block continues with the next tile until all are done."""
    T.static_assert(M % BM == 0 and N % BN == 0 and K % BK == 0, "the tiles must divide the matrices")
    MT = T.meta_var(M // BM)
    NT = T.meta_var(N // BN)
    KT = T.meta_var(K // BK)
    TILES = T.meta_var(MT * NT)
    GM = T.meta_var(GROUP if MT % GROUP == 0 else MT)
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    B_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "bfloat16", 2, A.data, K, M, K * 2, BK, BM, 1, 1, 0, 3, 2, 0)
    T.call_packed("runtime.cuTensorMapEncodeTiled", B_map, "bfloat16", 2, B.data, K, N, K * 2, BK, BN, 1, 1, 0, 3, 2, 0)
    T.device_entry()
    cta = T.cta_id([min(CTAS, TILES)])
    tid = T.thread_id([384])
    pool = T.SMEMPool()
    As = pool.alloc((STAGES, BM, BK), "bfloat16", align=1024)
    Bs = pool.alloc((STAGES, BN, BK), "bfloat16", align=1024)
    full = pool.alloc((STAGES,), "uint64", align=8)
    empty = pool.alloc((STAGES,), "uint64", align=8)
    pool.commit()
    if tid == 0:
        for s in T.unroll(STAGES):
            T.ptx.mbarrier.init(full.ptr_to([s]), 1)
            T.ptx.mbarrier.init(empty.ptr_to([s]), 8)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    stage: T.int32 = 0
    phase: T.int32 = 0
    tile: T.int32 = cta
    if tid < 128:
        T.ptx.setmaxnreg(False, 40)
        if tid == 0:
            while tile < TILES:
                m: T.let = tile // (GM * NT) * GM + tile % (GM * NT) % GM
                n: T.let = tile % (GM * NT) // GM
                for k in range(KT):
                    T.ptx.mbarrier.try_wait(empty.ptr_to([stage]), phase ^ 1)
                    T.ptx.mbarrier.arrive.expect_tx(full.ptr_to([stage]), (BM + BN) * BK * 2)
                    T.ptx.cp_async.bulk.tensor.g2s_cluster(2, As.ptr_to([stage, 0, 0]), full.ptr_to([stage]),
                                                           T.address_of(A_map), 0, 1, "", k * BK, m * BM)
                    T.ptx.cp_async.bulk.tensor.g2s_cluster(2, Bs.ptr_to([stage, 0, 0]), full.ptr_to([stage]),
                                                           T.address_of(B_map), 0, 1, "", k * BK, n * BN)
                    stage = stage + 1
                    if stage == STAGES:
                        stage = 0
                        phase = phase ^ 1
                tile = tile + CTAS
    else:
        T.ptx.setmaxnreg(True, 232)
        group: T.let = tid // 128 - 1
        warp: T.let = tid // 32 % 4
        lane: T.let = tid % 32
        acc = T.alloc_local((BN // 2,), "float32")
        a_desc = T.alloc_local((1,), "uint64")
        b_desc = T.alloc_local((1,), "uint64")
        T.ptx.wgmma.encode_matrix_descriptor(a_desc.data, As.ptr_to([0, group * 64, 0]), 1, 64, 3)
        T.ptx.wgmma.encode_matrix_descriptor(b_desc.data, Bs.ptr_to([0, 0, 0]), 1, 64, 3)
        previous: T.int32 = 0
        while tile < TILES:
            m: T.let = tile // (GM * NT) * GM + tile % (GM * NT) % GM
            n: T.let = tile % (GM * NT) // GM
            for k in range(KT):
                T.ptx.mbarrier.try_wait(full.ptr_to([stage]), phase)
                T.ptx.wgmma.fence()
                for kk in T.unroll(BK // 16):
                    T.ptx.wgmma.mma_async.ss(
                        a_desc[0] + T.cast(stage * (BM * BK * 2 // 16) + kk * 2, "uint64"),
                        b_desc[0] + T.cast(stage * (BN * BK * 2 // 16) + kk * 2, "uint64"),
                        *[acc[i] for i in range(BN // 2)],
                        M=64, N=BN, K=16, in_dtype="bfloat16", out_dtype="float32", transA=False, transB=False,
                        scaleA=1.0, scaleB=1.0, scaleD=T.if_then_else(k + kk > 0, 1, 0))
                T.ptx.wgmma.commit_group()
                T.ptx.wgmma.wait_group(1)
                if k > 0 and lane == 0:
                    T.ptx.mbarrier.arrive(empty.ptr_to([previous]))
                previous = stage
                stage = stage + 1
                if stage == STAGES:
                    stage = 0
                    phase = phase ^ 1
            T.ptx.wgmma.wait_group(0)
            if lane == 0:
                T.ptx.mbarrier.arrive(empty.ptr_to([previous]))
            for j in T.unroll(BN // 8):
                for h in T.unroll(2):
                    for e in T.vectorized(2):
                        C[m * BM + group * 64 + warp * 16 + lane // 4 + h * 8, n * BN + j * 8 + lane % 4 * 2 + e] = T.cast(
                            acc[j * 4 + h * 2 + e], "bfloat16")
            tile = tile + CTAS


@T.jit
def gemm_clusters(A: T.Buffer((M, K), "bfloat16"), B: T.Buffer((N, K), "bfloat16"), C: T.Buffer((M, N), "bfloat16"), *,
                  M: T.constexpr, N: T.constexpr, K: T.constexpr, CLUSTERS: T.constexpr = 66, STAGES: T.constexpr = 4,
                  GROUP: T.constexpr = 8):
    """C = A B^T. A cluster of two blocks computes 256 x 256 elements of C and continues with the next tile until all are done.

    Each block has 128 rows of A; both need the same 256 rows of B, of which each loads one half for both. In a block one warp
    copies tiles into a ring of STAGES slots, and two warpgroups multiply 64 rows each. `full[s]` completes when the bytes
    of slot s have arrived, `empty[s]` when both warpgroups of both blocks have read it.
    """
    BM, BN, BK = T.meta_var(128), T.meta_var(256), T.meta_var(64)
    T.static_assert(M % 256 == 0 and N % 256 == 0 and K % 64 == 0, "the tiles must divide the matrices")
    TILES_M, TILES_N = T.meta_var(M // 256), T.meta_var(N // 256)
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    B_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "bfloat16", 2, A.data, K, M, K * 2, BK, BM, 1, 1, 0, 3, 2, 0)
    T.call_packed("runtime.cuTensorMapEncodeTiled", B_map, "bfloat16", 2, B.data, K, N, K * 2, BK, BN // 2, 1, 1, 0, 3, 2, 0)
    T.device_entry()
    T.attr({"tirx.launch_bounds_min_blocks_per_sm": 1})
    cluster = T.cluster_id([CLUSTERS])
    rank = T.cta_id_in_cluster([2])
    wg = T.warpgroup_id([3])
    warp = T.warp_id_in_wg([4])
    lane = T.lane_id([32])
    pool = T.SMEMPool()
    As = pool.alloc((STAGES, BM, BK), "bfloat16", align=1024)
    Bs = pool.alloc((STAGES, BN, BK), "bfloat16", align=1024)
    full = pool.alloc((STAGES,), "uint64", align=8)
    empty = pool.alloc((STAGES,), "uint64", align=8)
    pool.commit()
    if wg == 0 and warp == 0:
        if T.ptx.elect_sync():
            for s in T.unroll(STAGES):
                T.ptx.mbarrier.init(full.ptr_to([s]), 1)
                T.ptx.mbarrier.init(empty.ptr_to([s]), 4)
            T.ptx.fence.mbarrier_init()
    T.cuda.cluster_sync()
    slot: T.int32 = 0
    phase: T.int32 = 0
    tile: T.int32 = cluster
    if wg == 0:
        T.ptx.setmaxnreg(False, 40)
        if warp == 0:
            if T.ptx.elect_sync():
                while tile < TILES_M * TILES_N:
                    # GROUP rows of tiles are done column by column, so that operands stay in the L2 cache.
                    group: T.let = tile // (GROUP * TILES_N)
                    rows: T.let = T.min(TILES_M - group * GROUP, GROUP)
                    within: T.let = tile % (GROUP * TILES_N)
                    m0: T.let = (group * GROUP + within % rows) * (2 * BM) + rank * BM
                    n0: T.let = (within // rows) * BN
                    for k in T.serial(K // BK):
                        T.ptx.mbarrier.try_wait(empty.ptr_to([slot]), phase ^ 1)
                        T.ptx.mbarrier.arrive.expect_tx(full.ptr_to([slot]), (BM + BN) * BK * 2)
                        T.ptx.cp_async.bulk.tensor.g2s_cluster(
                            2, As.ptr_to([slot, 0, 0]), full.ptr_to([slot]), T.address_of(A_map), 0, 1, "", k * BK, m0)
                        T.ptx.cp_async.bulk.tensor.g2s_cluster(
                            2, Bs.ptr_to([slot, rank * (BN // 2), 0]), full.ptr_to([slot]), T.address_of(B_map), 3, 1, "",
                            k * BK, n0 + rank * (BN // 2))
                        slot += 1
                        if slot == STAGES:
                            slot = 0
                            phase = phase ^ 1
                    tile += CLUSTERS
    else:
        T.ptx.setmaxnreg(True, 232)
        acc = T.alloc_local((BN // 2,), "float32")
        desc_a = T.alloc_local((1,), "uint64")
        desc_b = T.alloc_local((1,), "uint64")
        T.ptx.wgmma.encode_matrix_descriptor(T.address_of(desc_a[0]), As.ptr_to([0, (wg - 1) * 64, 0]), 1, 64, 3)
        T.ptx.wgmma.encode_matrix_descriptor(T.address_of(desc_b[0]), Bs.ptr_to([0, 0, 0]), 1, 64, 3)
        while tile < TILES_M * TILES_N:
            group: T.let = tile // (GROUP * TILES_N)
            rows: T.let = T.min(TILES_M - group * GROUP, GROUP)
            within: T.let = tile % (GROUP * TILES_N)
            m0: T.let = (group * GROUP + within % rows) * (2 * BM) + rank * BM
            n0: T.let = (within // rows) * BN
            last: T.int32 = -1
            for k in T.serial(K // BK):
                T.ptx.mbarrier.try_wait(full.ptr_to([slot]), phase)
                T.ptx.wgmma.fence()
                for kk in T.unroll(BK // 16):
                    T.ptx.wgmma.mma_async.ss(
                        desc_a[0] + T.cast(slot * (BM * BK * 2 // 16) + kk * 2, "uint64"),
                        desc_b[0] + T.cast(slot * (BN * BK * 2 // 16) + kk * 2, "uint64"),
                        *[acc[i] for i in range(BN // 2)],
                        M=64, N=BN, K=16, in_dtype="bfloat16", out_dtype="float32", transA=False, transB=False,
                        scaleA=1.0, scaleB=1.0, scaleD=T.if_then_else(k + kk > 0, 1, 0))
                T.ptx.wgmma.commit_group()
                # The products of the step before are done: its slot is free in both blocks.
                T.ptx.wgmma.wait_group(1)
                if last >= 0 and warp == 0 and lane < 2:
                    T.ptx.mbarrier.arrive(empty.ptr_to([last]), remote=lane)
                last = slot
                slot += 1
                if slot == STAGES:
                    slot = 0
                    phase = phase ^ 1
            T.ptx.wgmma.wait_group(0)
            if warp == 0 and lane < 2:
                T.ptx.mbarrier.arrive(empty.ptr_to([last]), remote=lane)
            row: T.let = m0 + (wg - 1) * 64 + warp * 16 + lane // 4
            col: T.let = n0 + lane % 4 * 2
            for j in T.unroll(BN // 8):
                for h in T.unroll(2):
                    for e in T.vectorized(2):
                        C[row + h * 8, col + j * 8 + e] = T.cast(acc[j * 4 + h * 2 + e], "bfloat16")
            tile += CLUSTERS
    T.cuda.cluster_sync()
