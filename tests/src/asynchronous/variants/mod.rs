//! Broken variants: the replaced text of a kernel, and the message that the simulator must give.

mod blackwell;

/// A kernel with a mistake.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// The kernel.
    pub entry: &'static str,
    /// What is wrong.
    pub name: &'static str,
    /// The text to replace; every occurrence within the kernel.
    pub from: &'static str,
    /// Its replacement.
    pub to: &'static str,
    /// Parts of the message, at least one of which must occur.
    pub says: &'static [&'static str],
}

const fn variant(
    entry: &'static str,
    name: &'static str,
    from: &'static str,
    to: &'static str,
    says: &'static [&'static str],
) -> Variant {
    Variant {
        entry,
        name,
        from,
        to,
        says,
    }
}

const RACE: &[&str] = &["race"];
const STUCK: &[&str] = &["deadlock", "no thread can run"];
/// A copy whose data is read or overwritten too early is a race, or the read finds nothing.
const EARLY: &[&str] = &["race", "uninitialized", "before"];

/// All variants.
pub fn variants() -> impl Iterator<Item = &'static Variant> {
    VARIANTS.iter().chain(blackwell::VARIANTS)
}

static VARIANTS: &[Variant] = &[
    // Copies by cp.async.
    variant(
        "matmul_cp_async",
        "no wait for the copies",
        "        T.ptx.cp_async.wait_group(STAGES - 2)\n",
        "",
        EARLY,
    ),
    variant(
        "matmul_cp_async",
        "one copy too many under way",
        "wait_group(STAGES - 2)",
        "wait_group(STAGES - 1)",
        EARLY,
    ),
    variant(
        "matmul_cp_async",
        "no barrier after the wait",
        "        T.ptx.cp_async.wait_group(STAGES - 2)\n        T.cuda.cta_sync()\n",
        "        T.ptx.cp_async.wait_group(STAGES - 2)\n",
        EARLY,
    ),
    variant(
        "matmul_cp_async",
        "the slot that is being read",
        "ahead: T.let = k + STAGES - 1\n",
        "ahead: T.let = k + STAGES\n",
        EARLY,
    ),
    variant(
        "matmul_cp_async",
        "copies not committed in the loop",
        "ahead * 16 + ty, bx * 64 + tx * 4]), 16)\n        T.ptx.cp_async.commit_group()\n",
        "ahead * 16 + ty, bx * 64 + tx * 4]), 16)\n",
        EARLY,
    ),
    // cp.async, ldmatrix and mma.sync.
    variant(
        "matmul_mma",
        "no wait for the copies",
        "        T.ptx.cp_async.wait_group(STAGES - 2)\n",
        "",
        EARLY,
    ),
    variant(
        "matmul_mma",
        "no barrier after the wait",
        "        T.ptx.cp_async.wait_group(STAGES - 2)\n        T.cuda.cta_sync()\n",
        "        T.ptx.cp_async.wait_group(STAGES - 2)\n",
        EARLY,
    ),
    variant(
        "matmul_mma",
        "the slot that is being read",
        "ahead: T.let = k + STAGES - 1\n",
        "ahead: T.let = k + STAGES\n",
        EARLY,
    ),
    variant(
        "matmul_mma",
        "rows of 72 bytes",
        "As = pool.alloc((STAGES, 128, 40), \"bfloat16\", align=16)",
        "As = pool.alloc((STAGES, 128, 36), \"bfloat16\", align=16)",
        &["misaligned"],
    ),
    variant(
        "matmul_mma",
        "ldmatrix by half a warp",
        "            for i in T.unroll(4):\n                T.ptx.ldmatrix(False, 4, \".b16\",\n                               As",
        "            for i in T.unroll(4):\n              if lane < 16:\n                T.ptx.ldmatrix(False, 4, \".b16\",\n                               As",
        &["all 32 lanes"],
    ),
    // Tensor copies.
    variant(
        "scale_tma",
        "no wait for the copy",
        "        T.ptx.mbarrier.try_wait(full.ptr_to([t % STAGES]), t // STAGES % 2)\n",
        "",
        EARLY,
    ),
    variant(
        "scale_tma",
        "the phase never turns",
        "t // STAGES % 2)",
        "0)",
        &["race", "uninitialized", "deadlock"],
    ),
    variant(
        "scale_tma",
        "the phase turns too early",
        "t // STAGES % 2)",
        "(t // STAGES + 1) % 2)",
        EARLY,
    ),
    variant(
        "scale_tma",
        "too many bytes expected",
        "64 * 32 * 4)",
        "64 * 32 * 4 + 128)",
        STUCK,
    ),
    variant(
        "scale_tma",
        "too few bytes expected",
        "64 * 32 * 4)",
        "64 * 32 * 2)",
        &["bytes", "race", "deadlock"],
    ),
    variant(
        "scale_tma",
        "no fence before the copy to global memory",
        "        T.ptx.fence.proxy_async(\"shared::cta\")\n",
        "",
        &["fence"],
    ),
    variant(
        "scale_tma",
        "no barrier after the fence",
        "        T.ptx.fence.proxy_async(\"shared::cta\")\n        T.cuda.cta_sync()\n",
        "        T.ptx.fence.proxy_async(\"shared::cta\")\n",
        RACE,
    ),
    variant(
        "scale_tma",
        "no wait before the half is written again",
        "        if tid == 0:\n            T.ptx.cp_async.bulk.wait_group(1, True)\n",
        "",
        RACE,
    ),
    variant(
        "scale_tma",
        "a copy too many under way",
        "wait_group(1, True)",
        "wait_group(2, True)",
        RACE,
    ),
    variant(
        "scale_tma",
        "the next slot",
        "tiles.ptr_to([t % STAGES, 0, 0]), full.ptr_to([t % STAGES]),",
        "tiles.ptr_to([(t + 1) % STAGES, 0, 0]), full.ptr_to([t % STAGES]),",
        RACE,
    ),
    variant(
        "scale_tma",
        "every thread copies",
        "        if tid == 0:\n            T.ptx.cp_async.bulk.tensor.s2g",
        "        if tid < 128:\n            T.ptx.cp_async.bulk.tensor.s2g",
        &["race", "arriv", "mbarrier"],
    ),
    variant(
        "scale_tma",
        "the barrier is not initialized",
        "            T.ptx.mbarrier.init(full.ptr_to([s]), 1)\n",
        "            pass\n",
        &["init"],
    ),
    // Warpgroup matrix operations.
    variant(
        "gemm_wgmma",
        "no wait for the copies",
        "                T.ptx.mbarrier.try_wait(full.ptr_to([stage]), phase)\n",
        "",
        EARLY,
    ),
    variant(
        "gemm_wgmma",
        "the consumers' phase is wrong",
        "try_wait(full.ptr_to([stage]), phase)",
        "try_wait(full.ptr_to([stage]), phase ^ 1)",
        EARLY,
    ),
    variant(
        "gemm_wgmma",
        "the copies' phase is wrong",
        "try_wait(empty.ptr_to([stage]), phase ^ 1)",
        "try_wait(empty.ptr_to([stage]), phase)",
        STUCK,
    ),
    variant(
        "gemm_wgmma",
        "no wait for a free slot",
        "                    T.ptx.mbarrier.try_wait(empty.ptr_to([stage]), phase ^ 1)\n",
        "",
        &["race", "arriv", "phase"],
    ),
    variant(
        "gemm_wgmma",
        "the slot is freed before the operations are done",
        "arrive(empty.ptr_to([previous]))\n                previous",
        "arrive(empty.ptr_to([stage]))\n                previous",
        &["race", "arriv", "deadlock"],
    ),
    variant(
        "gemm_wgmma",
        "too few arrivals free a slot",
        "init(empty.ptr_to([s]), 8)",
        "init(empty.ptr_to([s]), 4)",
        &["race", "arriv"],
    ),
    variant(
        "gemm_wgmma",
        "too many arrivals are awaited",
        "init(empty.ptr_to([s]), 8)",
        "init(empty.ptr_to([s]), 9)",
        STUCK,
    ),
    variant(
        "gemm_wgmma",
        "every lane frees the slot",
        "                if k > 0 and lane == 0:\n",
        "                if k > 0:\n",
        &["race", "arriv"],
    ),
    variant(
        "gemm_wgmma",
        "no fence before the operations",
        "                T.ptx.wgmma.fence()\n",
        "",
        &["wgmma.fence"],
    ),
    variant(
        "gemm_wgmma",
        "the sums are read before the last operations are done",
        "            T.ptx.wgmma.wait_group(0)\n",
        "",
        &["wgmma.wait_group", "race"],
    ),
    variant(
        "gemm_wgmma",
        "the operations are not committed",
        "                T.ptx.wgmma.commit_group()\n",
        "",
        &["wgmma", "race"],
    ),
    variant(
        "gemm_wgmma",
        "bytes of A alone are expected",
        "(BM + BN) * BK * 2)",
        "BM * BK * 2)",
        &["bytes", "race", "deadlock"],
    ),
    variant(
        "gemm_wgmma",
        "one stage further than there are",
        "if stage == STAGES:",
        "if stage == STAGES + 1:",
        &["out-of-bounds", "init", "race", "deadlock"],
    ),
    variant(
        "gemm_wgmma",
        "a barrier of the block in one role",
        "            T.ptx.wgmma.wait_group(0)\n",
        "            T.ptx.wgmma.wait_group(0)\n            T.cuda.cta_sync()\n",
        &["barrier", "deadlock"],
    ),
    // Multicast.
    variant(
        "gemm_clusters",
        "the other block is not told that a slot is free",
        "if last >= 0 and warp == 0 and lane < 2:",
        "if last >= 0 and warp == 0 and lane < 1:",
        STUCK,
    ),
    variant(
        "gemm_clusters",
        "barriers are used before the other block has made them",
        "    T.cuda.cluster_sync()\n    slot",
        "    T.cuda.cta_sync()\n    slot",
        &["init", "race", "mbarrier"],
    ),
    variant(
        "gemm_clusters",
        "copies for the own block alone",
        "T.address_of(B_map), 3, 1,",
        "T.address_of(B_map), 1, 1,",
        &["deadlock", "bytes", "race", "uninitialized"],
    ),
    variant(
        "gemm_clusters",
        "a slot is free when one of the blocks has read it",
        "init(empty.ptr_to([s]), 4)",
        "init(empty.ptr_to([s]), 2)",
        &["race", "arriv"],
    ),
    variant(
        "gemm_clusters",
        "the slot that is being multiplied is freed",
        "T.ptx.mbarrier.arrive(empty.ptr_to([last]), remote=lane)\n                last",
        "T.ptx.mbarrier.arrive(empty.ptr_to([slot]), remote=lane)\n                last",
        &["race", "arriv", "deadlock"],
    ),
    variant(
        "hopper_attention",
        "the weights are written while they are multiplied",
        "            T.ptx.wgmma.wait_group(0)\n            if warp == 0 and lane == 0:\n                T.ptx.mbarrier.arrive(v_empty",
        "            if warp == 0 and lane == 0:\n                T.ptx.mbarrier.arrive(v_empty",
        &["wgmma.wait_group", "race"],
    ),
    variant(
        "hopper_attention",
        "no wait for the values",
        "            T.ptx.mbarrier.try_wait(v_full.ptr_to([s]), p)\n",
        "",
        EARLY,
    ),
    // Attention.
    variant(
        "attention",
        "no wait for the queries",
        "        T.ptx.mbarrier.try_wait(q_full.ptr_to([0]), 0)\n",
        "",
        EARLY,
    ),
    variant(
        "attention",
        "no wait for the keys",
        "            T.ptx.mbarrier.try_wait(k_full.ptr_to([stage]), phase)\n",
        "",
        EARLY,
    ),
    variant(
        "attention",
        "no wait for the values",
        "            T.ptx.mbarrier.try_wait(v_full.ptr_to([stage]), phase)\n",
        "",
        EARLY,
    ),
    variant(
        "attention",
        "the scores are read before they are there",
        "            T.ptx.wgmma.commit_group()\n            T.ptx.wgmma.wait_group(0)\n            if lane == 0:\n                T.ptx.mbarrier.arrive(k_empty",
        "            T.ptx.wgmma.commit_group()\n            if lane == 0:\n                T.ptx.mbarrier.arrive(k_empty",
        &["wgmma.wait_group", "race"],
    ),
    variant(
        "attention",
        "the sums are scaled while they are added to",
        "            T.ptx.wgmma.commit_group()\n            T.ptx.wgmma.wait_group(0)\n            if lane == 0:\n                T.ptx.mbarrier.arrive(v_empty",
        "            T.ptx.wgmma.commit_group()\n            if lane == 0:\n                T.ptx.mbarrier.arrive(v_empty",
        &["wgmma.wait_group", "race"],
    ),
    variant(
        "attention",
        "keys are never freed",
        "            if lane == 0:\n                T.ptx.mbarrier.arrive(k_empty.ptr_to([stage]))\n",
        "",
        STUCK,
    ),
    variant(
        "attention",
        "no fence before the values",
        "            T.ptx.mbarrier.try_wait(v_full.ptr_to([stage]), phase)\n            T.ptx.wgmma.fence()\n",
        "            T.ptx.mbarrier.try_wait(v_full.ptr_to([stage]), phase)\n",
        &["wgmma.fence"],
    ),
    // Blocks together.
    variant(
        "sum_rows_cluster",
        "no barrier before the sums are read",
        "        total[0] = parts[0] + parts[1] + parts[2] + parts[3]\n    T.cuda.cluster_sync()\n",
        "        total[0] = parts[0] + parts[1] + parts[2] + parts[3]\n",
        EARLY,
    ),
    variant(
        "sum_rows_cluster",
        "no barrier before the blocks end",
        "        S[bx // 4] = row\n    # A block must not end before the others have read its shared memory.\n    T.cuda.cluster_sync()\n",
        "        S[bx // 4] = row\n",
        &["may have ended"],
    ),
    variant(
        "sum_rows_cluster",
        "no barrier between the warps' parts and their sum",
        "        parts[tid // 32] = warp_total\n    T.cuda.cta_sync()\n",
        "        parts[tid // 32] = warp_total\n",
        EARLY,
    ),
    variant(
        "sum_rows_cluster",
        "a block that is not in the cluster",
        "for other in range(4):",
        "for other in range(5):",
        &["cluster"],
    ),
    variant(
        "matmul_split_k",
        "plain additions",
        "T.evaluate(T.cuda.atomic_add(C.ptr_to([by * 32 + i * 8 + ty, bx * 32 + tx]), acc[i]))",
        "C[by * 32 + i * 8 + ty, bx * 32 + tx] += acc[i]",
        RACE,
    ),
    variant(
        "matmul_split_k",
        "no barrier before the products",
        "            Bs[i * 8 + ty, tx] = B[first + i * 8 + ty, bx * 32 + tx]\n        T.cuda.cta_sync()\n",
        "            Bs[i * 8 + ty, tx] = B[first + i * 8 + ty, bx * 32 + tx]\n",
        EARLY,
    ),
    variant(
        "matmul_split_k",
        "no barrier after the products",
        "                acc[i] += As[i * 8 + ty, kk] * Bs[kk, tx]\n        T.cuda.cta_sync()\n",
        "                acc[i] += As[i * 8 + ty, kk] * Bs[kk, tx]\n",
        RACE,
    ),
];
