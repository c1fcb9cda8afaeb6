# A product of wgmma belongs to the four warps of a warpgroup: it begins when all of them have issued it, and no warp's wait for
# it is over before. So one thread may tell for its warpgroup that a tile is free (PTX ISA, "wgmma.commit_group", "wgmma.wait_group").


def dot(a, b):
    return sum([x * y for x, y in zip(a, b)])


def row(i, c):
    return i // 32 * 16 + i % 32 // 4 + c // 2 % 2 * 8


def column(i, c):
    return c // 4 * 8 + i % 4 * 2 + c % 2


# A ring of two slots; one thread of the warpgroup gives a slot back.
# sim: ring
#   A: float16[64x320] = (i * 3 + j) % 5 - 2
#   C: float32[128x32] = 0 -> dot(A[row(i, j)], A[column(i, j)])
#   seeds: 96
@T.prim_func
def ring(A: T.Buffer((64, 320), "float16"), C: T.Buffer((128, 32), "float32")):
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float16", 2, A.data, 320, 64, 640, 64, 64, 1, 1, 0, 3, 2, 0)
    T.device_entry()
    T.cta_id([1])
    group = T.warpgroup_id([2])
    warp = T.warp_id_in_wg([4])
    tx = T.thread_id_in_wg([128])
    S = T.alloc_shared((2, 64, 64), "float16", align=1024)
    full = T.alloc_shared((2,), "uint64")
    empty = T.alloc_shared((2,), "uint64")
    last = T.alloc_shared((1,), "uint64")
    if group == 0 and tx == 0:
        for s in T.unroll(2):
            T.ptx.mbarrier.init(full.ptr_to([s]), 1)
            T.ptx.mbarrier.init(empty.ptr_to([s]), 1)
        T.ptx.mbarrier.init(last.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    if group == 0:
        if tx == 0:
            for k in T.serial(5):
                T.ptx.mbarrier.try_wait(empty.ptr_to([k % 2]), k // 2 % 2 ^ 1)
                T.ptx.mbarrier.arrive.expect_tx(full.ptr_to([k % 2]), 8192)
                T.ptx.cp_async.bulk.tensor.g2s_cta(2, S.ptr_to([k % 2, 0, 0]), full.ptr_to([k % 2]), T.address_of(A_map), 1, "",
                                                   k * 64, 0)
    else:
        acc = T.alloc_local((32,), "float32")
        a: T.uint64
        T.ptx.wgmma.encode_matrix_descriptor(T.address_of(a), S.ptr_to([0, 0, 0]), 1, 64, 3)
        for k in T.serial(5):
            T.ptx.mbarrier.try_wait(full.ptr_to([k % 2]), k // 2 % 2)
            T.ptx.wgmma.fence()
            for kk in T.unroll(4):
                T.ptx.wgmma.mma_async.ss(a + T.cast(k % 2 * 512 + kk * 2, "uint64"), a + T.cast(k % 2 * 512 + kk * 2, "uint64"),
                                         *[acc[i] for i in range(32)], M=64, N=64, K=16, in_dtype="float16", out_dtype="float32",
                                         transA=False, transB=False, scaleA=1.0, scaleB=1.0,
                                         scaleD=T.if_then_else(k + kk > 0, 1, 0))
            T.ptx.wgmma.commit_group()
            T.ptx.wgmma.wait_group(0)
            if tx == 0:
                T.ptx.mbarrier.arrive(empty.ptr_to([k % 2]))
        for c in T.unroll(32):
            C[tx, c] = acc[c]

# An elected lane of another warp does.
# variant: ring_of_an_elected_lane of ring
#   replace: "if tx == 0:\n                T.ptx.mbarrier.arrive(empty" -> "if warp == 2 and T.ptx.elect_sync() != 0:\n                T.ptx.mbarrier.arrive(empty"
#   seeds: 16

# One product stays under way; the slot of the step before is given back.
# variant: ring_with_one_under_way of ring
#   replace: "T.ptx.wgmma.wait_group(0)" -> "T.ptx.wgmma.wait_group(1)"
#   replace: "if tx == 0:\n                T.ptx.mbarrier.arrive(empty.ptr_to([k % 2]))" -> "if tx == 0 and k > 0:\n                T.ptx.mbarrier.arrive(empty.ptr_to([(k + 1) % 2]))"
#   replace: "        for c in T.unroll" -> "        T.ptx.wgmma.wait_group(0)\n        for c in T.unroll"
#   seeds: 16

# The slot of the present step is given back while its product may be under way.
# variant: ring_given_back_too_early of ring
#   replace: "T.ptx.wgmma.wait_group(0)" -> "T.ptx.wgmma.wait_group(1)"
#   replace: "        for c in T.unroll" -> "        T.ptx.wgmma.wait_group(0)\n        for c in T.unroll"
#   fault: the tensor copy writes byte 0 of shared `S`, which another asynchronous operation read
#   seeds: 8

# A warp comes to the product when another one has waited for it.
# variant: late_before_the_fence of ring
#   replace: "            T.ptx.wgmma.fence()" -> "            if warp == 3 and k == 4:\n                T.ptx.mbarrier.try_wait(last.ptr_to([0]), 0)\n            T.ptx.wgmma.fence()"
#   replace: "            if tx == 0:\n                T.ptx.mbarrier.arrive(empty" -> "            if tx == 0 and k == 4:\n                T.ptx.mbarrier.arrive(last.ptr_to([0]))\n            if tx == 0:\n                T.ptx.mbarrier.arrive(empty"
#   fault: 96 threads wait for a wgmma group that warp 7 of the warpgroup has not committed

# variant: late_before_the_commit of ring
#   replace: "            T.ptx.wgmma.commit_group()" -> "            if warp == 3 and k == 4:\n                T.ptx.mbarrier.try_wait(last.ptr_to([0]), 0)\n            T.ptx.wgmma.commit_group()"
#   replace: "            if tx == 0:\n                T.ptx.mbarrier.arrive(empty" -> "            if tx == 0 and k == 4:\n                T.ptx.mbarrier.arrive(last.ptr_to([0]))\n            if tx == 0:\n                T.ptx.mbarrier.arrive(empty"
#   fault: 96 threads wait for a wgmma group that warp 7 of the warpgroup has not committed

# The wait leaves the late group out.
# variant: late_and_not_waited_for of ring
#   replace: "            T.ptx.wgmma.commit_group()" -> "            if warp == 3 and k == 4:\n                T.ptx.mbarrier.try_wait(last.ptr_to([0]), 0)\n            T.ptx.wgmma.commit_group()\n            T.ptx.wgmma.wait_group(1)\n            if tx == 0 and k == 4:\n                T.ptx.mbarrier.arrive(last.ptr_to([0]))"
#   seeds: 8

# variant: commit_of_three_warps of ring
#   replace: "            T.ptx.wgmma.commit_group()" -> "            if warp < 3:\n                T.ptx.wgmma.commit_group()"
#   fault: the four warps of a warpgroup do each wgmma instruction together

# variant: wait_of_three_warps of ring
#   replace: "            T.ptx.wgmma.wait_group(0)" -> "            if warp < 3:\n                T.ptx.wgmma.wait_group(0)"
#   fault: the four warps of a warpgroup do each wgmma instruction together

# variant: fence_of_three_warps of ring
#   replace: "            T.ptx.wgmma.fence()" -> "            if warp < 3 or k == 0:\n                T.ptx.wgmma.fence()"
#   fault: the four warps of a warpgroup do each wgmma instruction together

# variant: last_commit_of_three_warps of ring
#   replace: "        for c in T.unroll" -> "        if warp < 3:\n            T.ptx.wgmma.commit_group()\n        for c in T.unroll"
#   fault: warp 4 has come to this wgmma.commit_group, and warp 7 of its warpgroup has not

# variant: warp_that_leaves of ring
#   replace: "            T.ptx.wgmma.fence()" -> "            if warp == 3 and k == 4:\n                T.evaluate(T.thread_return())\n            T.ptx.wgmma.fence()"
#   fault: 96 threads wait for a wgmma group that warp 7 of the warpgroup has not committed (warp 7 has ended)

# variant: tiles_of_two_warps of ring
#   replace: "encode_matrix_descriptor(T.address_of(a), S.ptr_to([0, 0, 0])" -> "encode_matrix_descriptor(T.address_of(a), S.ptr_to([warp // 3, 0, 0])"
#   fault: the descriptors are the same in all warps of a warpgroup

# What one warp stored is visible to its own part of the product alone.
# sim: tile_of_one_warp
#   A: float16[64x16] = (i + j) % 5
#   B: float32[128x4] = 0
#   fault: and no barrier orders the two
#   seeds: 2
@T.prim_func
def tile_of_one_warp(A: T.Buffer((64, 16), "float16"), B: T.Buffer((128, 4), "float32")):
    T.device_entry()
    T.cta_id([1])
    warp = T.warp_id([4])
    tx = T.thread_id([128])
    S = T.alloc_shared((1024,), "float16", align=128)
    acc = T.alloc_local((4,), "float32")
    a: T.uint64
    T.ptx.wgmma.encode_matrix_descriptor(T.address_of(a), S.ptr_to([0]), 8, 16, 0)
    if warp == 0:
        for i in T.serial(32):
            S[i * 32 + tx] = A[(i * 32 + tx) // 16, tx % 16]
        T.ptx.fence.proxy_async("shared::cta")
        T.cuda.warp_sync()
    T.ptx.wgmma.fence()
    T.ptx.wgmma.mma_async.ss(a, a, acc[0], acc[1], acc[2], acc[3], M=64, N=8, K=16, in_dtype="float16", out_dtype="float32",
                             transA=False, transB=False, scaleA=1.0, scaleB=1.0, scaleD=0)
    T.ptx.wgmma.commit_group()
    T.ptx.wgmma.wait_group(0)
    for k in T.serial(4):
        B[tx, k] = acc[k]
