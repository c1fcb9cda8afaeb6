"""Kernels around asynchronous copies and blocks that work together."""

from __future__ import annotations

from tvm.script import tirx as T


@T.jit
def scale_tma(X: T.Buffer((M, 32), "float32"), Y: T.Buffer((M, 32), "float32"), alpha: T.float32, *, M: T.constexpr,
              TILES: T.constexpr = 8, STAGES: T.constexpr = 3):
    """Y = alpha X by tiles of 64 rows: tensor copies load the next tiles and store the previous ones meanwhile."""
    T.static_assert(M % (64 * TILES) == 0, "whole blocks of tiles")
    X_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    Y_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", X_map, "float32", 2, X.data, 32, M, 128, 32, 64, 1, 1, 0, 0, 2, 0)
    T.call_packed("runtime.cuTensorMapEncodeTiled", Y_map, "float32", 2, Y.data, 32, M, 128, 32, 64, 1, 1, 0, 0, 2, 0)
    T.device_entry()
    bx = T.cta_id([M // (64 * TILES)])
    tid = T.thread_id([128])
    pool = T.SMEMPool()
    tiles = pool.alloc((STAGES, 64, 32), "float32", align=128)
    done = pool.alloc((2, 64, 32), "float32", align=128)
    full = pool.alloc((STAGES,), "uint64", align=8)
    pool.commit()
    if tid == 0:
        for s in T.unroll(STAGES):
            T.ptx.mbarrier.init(full.ptr_to([s]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    if tid == 0:
        for s in T.unroll(STAGES):
            T.ptx.mbarrier.arrive.expect_tx(full.ptr_to([s]), 64 * 32 * 4)
            T.ptx.cp_async.bulk.tensor.g2s_cluster(2, tiles.ptr_to([s, 0, 0]), full.ptr_to([s]), T.address_of(X_map), 0, 1, "",
                                                   0, (bx * TILES + s) * 64)
    for t in range(TILES):
        T.ptx.mbarrier.try_wait(full.ptr_to([t % STAGES]), t // STAGES % 2)
        # The copy of two tiles ago has read its half of `done`.
        if tid == 0:
            T.ptx.cp_async.bulk.wait_group(1, True)
        T.cuda.cta_sync()
        for l in T.unroll(16):
            done[t % 2, l * 4 + tid // 32, tid % 32] = tiles[t % STAGES, l * 4 + tid // 32, tid % 32] * alpha
        T.ptx.fence.proxy_async("shared::cta")
        T.cuda.cta_sync()
        if tid == 0:
            T.ptx.cp_async.bulk.tensor.s2g(2, done.ptr_to([t % 2, 0, 0]), T.address_of(Y_map), "", 0, (bx * TILES + t) * 64)
            T.ptx.cp_async.bulk.commit_group()
            if t + STAGES < TILES:
                T.ptx.mbarrier.arrive.expect_tx(full.ptr_to([t % STAGES]), 64 * 32 * 4)
                T.ptx.cp_async.bulk.tensor.g2s_cluster(2, tiles.ptr_to([t % STAGES, 0, 0]), full.ptr_to([t % STAGES]),
                                                       T.address_of(X_map), 0, 1, "", 0, (bx * TILES + t + STAGES) * 64)
    if tid == 0:
        T.ptx.cp_async.bulk.wait_group(0, False)


@T.jit
def sum_rows_cluster(A: T.Buffer((ROWS, N), "float32"), S: T.Buffer((ROWS,), "float32"), *, ROWS: T.constexpr,
                     N: T.constexpr):
    """The sum of each row: four blocks of a cluster add a quarter each, the first adds theirs from their shared memory."""
    T.static_assert(N % 512 == 0, "each of 512 threads of a cluster adds as many")
    T.device_entry()
    bx = T.cta_id([ROWS * 4])
    rank = T.cta_id_in_cluster([4])
    tid = T.thread_id([128])
    parts = T.alloc_shared((4,), "float32")
    total = T.alloc_shared((1,), "float32")
    sum: T.float32 = 0.0
    for i in range(N // 512):
        sum = sum + A[bx // 4, rank * (N // 4) + i * 128 + tid]
    warp_total: T.let = T.cuda.warp_sum(sum)
    if tid % 32 == 0:
        parts[tid // 32] = warp_total
    T.cuda.cta_sync()
    if tid == 0:
        total[0] = parts[0] + parts[1] + parts[2] + parts[3]
    T.cuda.cluster_sync()
    if rank == 0 and tid == 0:
        row: T.float32 = 0.0
        for other in range(4):
            place: T.let = T.ptx.mapa(total.ptr_to([0]), other, "shared::cluster", "u32", "uint32")
            row = row + T.ptx.ld(place, "float32", "f32", space="shared::cluster")
        S[bx // 4] = row
    # A block must not end before the others have read its shared memory.
    T.cuda.cluster_sync()


@T.jit
def matmul_split_k(A: T.Buffer((M, K), "float32"), B: T.Buffer((K, N), "float32"), C: T.Buffer((M, N), "float32"), *,
                   M: T.constexpr, N: T.constexpr, K: T.constexpr, SPLITS: T.constexpr = 4):
    """C += A B: each block adds its part of K to a 32 x 32 tile of C."""
    T.static_assert(M % 32 == 0 and N % 32 == 0 and K % (32 * SPLITS) == 0, "the tiles must divide the matrices")
    T.device_entry()
    bx, by, bz = T.cta_id([N // 32, M // 32, SPLITS])
    tid = T.thread_id([256])
    tx: T.let = tid % 32
    ty: T.let = tid // 32
    As = T.alloc_shared((32, 33), "float32")
    Bs = T.alloc_shared((32, 32), "float32")
    acc = T.alloc_local((4,), "float32")
    for i in T.unroll(4):
        acc[i] = 0.0
    for k in range(K // (32 * SPLITS)):
        first: T.let = (bz * (K // (32 * SPLITS)) + k) * 32
        for i in T.unroll(4):
            As[i * 8 + ty, tx] = A[by * 32 + i * 8 + ty, first + tx]
            Bs[i * 8 + ty, tx] = B[first + i * 8 + ty, bx * 32 + tx]
        T.cuda.cta_sync()
        for kk in range(32):
            for i in T.unroll(4):
                acc[i] += As[i * 8 + ty, kk] * Bs[kk, tx]
        T.cuda.cta_sync()
    for i in T.unroll(4):
        T.evaluate(T.cuda.atomic_add(C.ptr_to([by * 32 + i * 8 + ty, bx * 32 + tx]), acc[i]))
