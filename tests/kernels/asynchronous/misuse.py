# Asynchronous operations that break rules of the PTX ISA: each fault names the rule.
from tvm.script import tirx as T


# sim: parity_that_never_comes
#   B: int32[32] = 0
#   fault: wait for parity 0 of the mbarrier `bar[0]`, whose phase 0 (parity 0) waits for 1 of 2 arrivals
@T.prim_func
def parity_that_never_comes(B: T.Buffer((32,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    bar = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 2)
        T.ptx.mbarrier.arrive(bar.ptr_to([0]))
    T.cuda.cta_sync()
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    B[tx] = 1


# sim: arrivals_past_the_count
#   B: int32[32] = 0
#   fault: arrives 3 times at an mbarrier whose phase 0 waits for 2 more of its 2 arrivals
@T.prim_func
def arrivals_past_the_count(B: T.Buffer((32,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    bar = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 2)
        T.ptx.mbarrier.arrive(bar.ptr_to([0]), count=3)


# sim: more_bytes_than_expected
#   A: float32[32] = i
#   B: float32[32] = 0
#   fault: and never completes: it expects 64 bytes (expect_tx), and copies have brought 128
@T.prim_func
def more_bytes_than_expected(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((32,), "float32", align=128)
    bar = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
        T.ptx.mbarrier.arrive.expect_tx(bar.ptr_to([0]), 64)
        T.ptx.cp_async_bulk_g2s_cta(S.ptr_to([0]), A.ptr_to([0]), 128, bar.ptr_to([0]))
        T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)

# variant: fewer_bytes_than_expected of more_bytes_than_expected
#   replace: "bar.ptr_to([0]), 64)" -> "bar.ptr_to([0]), 192)"
#   fault: and 64 bytes of copies


# sim: barrier_that_nobody_made
#   B: int32[32] = 0
#   fault: is no mbarrier: nobody has initialized it
@T.prim_func
def barrier_that_nobody_made(B: T.Buffer((32,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    bar = T.alloc_shared((1,), "uint64")
    T.ptx.mbarrier.arrive(bar.ptr_to([0]))


# sim: barrier_without_fence
#   A: float32[32] = i
#   B: float32[32] = 0
#   fault: whose initialization no fence has made visible to the async proxy
@T.prim_func
def barrier_without_fence(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((32,), "float32", align=128)
    bar = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
        T.ptx.mbarrier.arrive.expect_tx(bar.ptr_to([0]), 128)
        T.ptx.cp_async_bulk_g2s_cta(S.ptr_to([0]), A.ptr_to([0]), 128, bar.ptr_to([0]))
        T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)


# sim: generic_write_without_fence
#   A: float32[32] = i
#   B: float32[32] = 0
#   fault: no fence.proxy.async makes it visible to the async proxy
@T.prim_func
def generic_write_without_fence(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((32,), "float32", align=128)
    S[tx] = A[tx]
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.cp_async_bulk_s2g(B.ptr_to([0]), S.ptr_to([0]), 128)
        T.ptx.cp_async.bulk.commit_group()
        T.ptx.cp_async.bulk.wait_group(0, False)


# sim: block_barrier_in_a_role
#   B: int32[128] = 0
#   fault: 64 of the block's 128 wait at a block barrier (cta_sync) within a branch that other threads do not take
@T.prim_func
def block_barrier_in_a_role(B: T.Buffer((128,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([128])
    bar = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
    T.cuda.cta_sync()
    if tx < 64:
        T.cuda.cta_sync()
        T.ptx.mbarrier.arrive(bar.ptr_to([0]))
    else:
        T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    B[tx] = 1


# sim: two_barriers_of_a_warp
#   B: int32[32] = 0
#   fault: waits at another block barrier than lane 0: all lanes of a warp come to a barrier
@T.prim_func
def two_barriers_of_a_warp(B: T.Buffer((32,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    if tx < 16:
        B[tx] = 1
        T.cuda.cta_sync()
    else:
        T.cuda.cta_sync()
        B[tx] = 2


# sim: election_of_some_lanes
#   B: int32[32] = 0
#   fault: elect.sync by 16 of the 32 lanes of the warp that run
@T.prim_func
def election_of_some_lanes(B: T.Buffer((32,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    if tx < 16:
        if T.ptx.elect_sync():
            B[tx] = 1
    T.cuda.cta_sync()


# sim: registers_of_all_roles
#   B: int32[384] = 0
#   fault: ask for 89088 registers together, and the block has 64512
@T.prim_func
def registers_of_all_roles(B: T.Buffer((384,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([384])
    T.ptx.setmaxnreg(True, 232)
    B[tx] = 1


# sim: registers_by_half_a_warp
#   B: int32[32] = 0
#   fault: setmaxnreg by some lanes of a warp
@T.prim_func
def registers_by_half_a_warp(B: T.Buffer((32,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    if tx < 16:
        T.ptx.setmaxnreg(False, 40)
    B[tx] = 1


# sim: registers_of_two_roles
#   B: int32[256] = 0 -> i
@T.prim_func
def registers_of_two_roles(B: T.Buffer((256,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    if tx < 128:
        T.ptx.setmaxnreg(False, 40)
    else:
        T.ptx.setmaxnreg(True, 200)
    B[tx] = tx

# variant: registers_of_one_warp of registers_of_two_roles
#   replace: "        T.ptx.setmaxnreg(False, 40)" -> "        if tx < 32:\n            T.ptx.setmaxnreg(False, 40)"
#   fault: setmaxnreg 40 by warp 0, and not by warp 1 of the same warpgroup

# variant: registers_of_half_a_warpgroup of registers_of_two_roles
#   replace: "if tx < 128:" -> "if tx < 64:"
#   fault: of the same warpgroup: all warps of a warpgroup execute the same setmaxnreg

# variant: registers_decreased_to_more of registers_of_two_roles
#   replace: "        T.ptx.setmaxnreg(False, 40)" -> "        T.ptx.setmaxnreg(False, 40)\n        T.ptx.setmaxnreg(False, 64)"
#   fault: setmaxnreg.dec to 64 registers, but the warp has 40

# variant: registers_increased_to_fewer of registers_of_two_roles
#   replace: "        T.ptx.setmaxnreg(True, 200)" -> "        T.ptx.setmaxnreg(True, 200)\n        T.ptx.setmaxnreg(True, 104)"
#   fault: setmaxnreg.inc to 104 registers, but the warp has 200


# sim: box_beyond_shared_memory
#   A: float32[8x32] = i
#   B: float32[32] = 0
#   fault: of shared `S`, which has 512
@T.prim_func
def box_beyond_shared_memory(A: T.Buffer((8, 32), "float32"), B: T.Buffer((32,), "float32")):
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float32", 2, A.data, 32, 8, 128, 32, 8, 1, 1, 0, 0, 0, 0)
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((128,), "float32", align=128)
    bar = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.mbarrier.arrive.expect_tx(bar.ptr_to([0]), 1024)
        T.ptx.cp_async.bulk.tensor.g2s_cluster(2, S.ptr_to([0]), bar.ptr_to([0]), T.address_of(A_map), 0, 1, "", 0, 0)
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)


# The box of a copy to global memory may end beyond the tensor, but not begin before it: that is an illegal instruction on a GPU.
# sim: box_before_the_tensor
#   A: float32[4x8] = 0
#   fault: a tensor copy to global memory begins at -4 of dimension 0
@T.prim_func
def box_before_the_tensor(A: T.Buffer((4, 8), "float32")):
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float32", 2, A.data, 8, 4, 32, 8, 4, 1, 1, 0, 0, 0, 0)
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((32,), "float32", align=128)
    S[tx] = 1
    T.ptx.fence.proxy_async("shared::cta")
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.cp_async.bulk.tensor.s2g(2, S.ptr_to([0]), T.address_of(A_map), "", -4, 0)
        T.ptx.cp_async.bulk.commit_group()
        T.ptx.cp_async.bulk.wait_group(0, False)


# Along the innermost dimension a box begins at a multiple of 16 bytes: any other is an illegal instruction on a GPU.
# sim: box_between_multiples_of_16_bytes
#   A: float32[4x8] = 0
#   B: float32[32] = 0
#   fault: a tensor copy begins at -1 of dimension 0, along which it may begin at multiples of 4 elements
@T.prim_func
def box_between_multiples_of_16_bytes(A: T.Buffer((4, 8), "float32"), B: T.Buffer((32,), "float32")):
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float32", 2, A.data, 8, 4, 32, 8, 4, 1, 1, 0, 0, 0, 0)
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((32,), "float32", align=128)
    bar = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
        T.ptx.mbarrier.arrive.expect_tx(bar.ptr_to([0]), 128)
        T.ptx.cp_async.bulk.tensor.g2s_cluster(2, S.ptr_to([0]), bar.ptr_to([0]), T.address_of(A_map), 0, 1, "", -1, 0)
    T.cuda.cta_sync()
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    B[tx] = S[tx]


# A descriptor whose strides leave the array.
# sim: descriptor_beyond_the_tile
#   A: float16[64x16] = 1
#   B: float32[128x4] = 0
#   fault: are the same bytes
@T.prim_func
def descriptor_beyond_the_tile(A: T.Buffer((64, 16), "float16"), B: T.Buffer((128, 4), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([128])
    S = T.alloc_shared((64, 16), "float16", align=128)
    acc = T.alloc_local((4,), "float32")
    a: T.uint64
    b: T.uint64
    for k in T.serial(8):
        S[tx // 2, tx % 2 * 8 + k] = A[tx // 2, tx % 2 * 8 + k]
    T.ptx.fence.proxy_async("shared::cta")
    T.cuda.cta_sync()
    T.ptx.wgmma.encode_matrix_descriptor(T.address_of(a), S.ptr_to([0, 0]), 1, 64, 0)
    T.ptx.wgmma.encode_matrix_descriptor(T.address_of(b), S.ptr_to([0, 0]), 1, 16, 0)
    T.ptx.wgmma.fence()
    T.ptx.wgmma.mma_async.ss(a, b, acc[0], acc[1], acc[2], acc[3], M=64, N=8, K=16, in_dtype="float16", out_dtype="float32",
                             transA=False, transB=False, scaleA=1.0, scaleB=1.0, scaleD=False)
    T.ptx.wgmma.commit_group()
    T.ptx.wgmma.wait_group(0)
    for k in T.serial(4):
        B[tx, k] = acc[k]


# sim: sums_before_their_wait
#   A: float16[64x16] = 1
#   B: float32[128x4] = 0
#   fault: wgmma.wait_group
@T.prim_func
def sums_before_their_wait(A: T.Buffer((64, 16), "float16"), B: T.Buffer((128, 4), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([128])
    S = T.alloc_shared((64, 16), "float16", align=128)
    acc = T.alloc_local((4,), "float32")
    a: T.uint64
    for k in T.serial(8):
        S[tx // 2, tx % 2 * 8 + k] = A[tx // 2, tx % 2 * 8 + k]
    T.ptx.fence.proxy_async("shared::cta")
    T.cuda.cta_sync()
    T.ptx.wgmma.encode_matrix_descriptor(T.address_of(a), S.ptr_to([0, 0]), 8, 16, 0)
    T.ptx.wgmma.fence()
    T.ptx.wgmma.mma_async.ss(a, a, acc[0], acc[1], acc[2], acc[3], M=64, N=8, K=16, in_dtype="float16", out_dtype="float32",
                             transA=False, transB=False, scaleA=1.0, scaleB=1.0, scaleD=False)
    T.ptx.wgmma.commit_group()
    for k in T.serial(4):
        B[tx, k] = acc[k]
    T.ptx.wgmma.wait_group(0)


# sim: memory_that_is_not_freed
#   B: uint32[32] = 0
#   fault: the block ends with 64 columns of tensor memory allocated: tcgen05.dealloc is missing
@T.prim_func
def memory_that_is_not_freed(B: T.Buffer((32,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    slot = T.alloc_shared((1,), "uint32")
    T.ptx.tcgen05.alloc(T.address_of(slot[0]), n_cols=64, cta_group=1)


# Warp 0 of each warpgroup is two warps.
# sim: memory_that_is_freed_twice
#   B: uint32[256] = 0
#   fault: warp 4 frees tensor memory that warp 0 frees by the same instruction: one warp of the block executes it
@T.prim_func
def memory_that_is_freed_twice(B: T.Buffer((256,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    group = T.warpgroup_id([2])
    warp = T.warp_id_in_wg([4])
    lane = T.lane_id([32])
    slot = T.alloc_shared((1,), "uint32")
    if group == 0:
        if warp == 0:
            T.ptx.tcgen05.alloc(T.address_of(slot[0]), n_cols=64, cta_group=1)
    T.cuda.cta_sync()
    if warp == 0:
        T.ptx.tcgen05.dealloc(slot[0], n_cols=64, cta_group=1)


# sim: memory_before_its_allocation_is_read
#   B: uint32[64] = 0
#   fault: race
@T.prim_func
def memory_before_its_allocation_is_read(B: T.Buffer((64,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    warp = T.warp_id([2])
    slot = T.alloc_shared((1,), "uint32")
    if warp == 0:
        T.ptx.tcgen05.alloc(T.address_of(slot[0]), n_cols=64, cta_group=1)
    B[tx] = slot[0]
    T.cuda.cta_sync()
    if warp == 0:
        T.ptx.tcgen05.dealloc(slot[0], n_cols=64, cta_group=1)


# sim: memory_that_is_not_allocated
#   B: uint32[32] = 0
#   fault: which is not allocated
@T.prim_func
def memory_that_is_not_allocated(B: T.Buffer((32,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    slot = T.alloc_shared((1,), "uint32")
    r = T.alloc_local((1,), "uint32")
    r[0] = T.uint32(1)
    T.ptx.tcgen05.alloc(T.address_of(slot[0]), n_cols=32, cta_group=1)
    T.cuda.cta_sync()
    T.ptx.tcgen05.st(slot[0], r[0], shape="32x32b", num=1, col=40)
    T.ptx.tcgen05.wait.st()
    T.ptx.tcgen05.dealloc(slot[0], n_cols=32, cta_group=1)


# sim: tensor_memory_of_another_warp_without_a_barrier
#   B: uint32[160] = 0
#   fault: loads lane 0, column 0 of tensor memory, which thread (0, 0, 0) wrote, and no barrier orders the two
@T.prim_func
def tensor_memory_of_another_warp_without_a_barrier(B: T.Buffer((160,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([160])
    warp = T.warp_id([5])
    slot = T.alloc_shared((1,), "uint32")
    r = T.alloc_local((1,), "uint32")
    r[0] = T.uint32(1)
    if warp == 0:
        T.ptx.tcgen05.alloc(T.address_of(slot[0]), n_cols=32, cta_group=1)
    T.cuda.cta_sync()
    if warp == 0:
        T.ptx.tcgen05.st(slot[0], r[0], shape="32x32b", num=1)
        T.ptx.tcgen05.wait.st()
    if warp == 4:
        T.ptx.tcgen05.ld(slot[0], r[0], shape="32x32b", num=1)
        T.ptx.tcgen05.wait.ld()
    B[tx] = r[0]
    T.cuda.cta_sync()
    if warp == 0:
        T.ptx.tcgen05.dealloc(slot[0], n_cols=32, cta_group=1)


# sim: tensor_memory_load_without_a_wait
#   B: uint32[32] = 0
#   fault: the warp ends before this tcgen05.ld is waited for: tcgen05.wait::ld is missing
@T.prim_func
def tensor_memory_load_without_a_wait(B: T.Buffer((32,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    slot = T.alloc_shared((1,), "uint32")
    r = T.alloc_local((1,), "uint32")
    r[0] = T.uint32(1)
    T.ptx.tcgen05.alloc(T.address_of(slot[0]), n_cols=32, cta_group=1)
    T.ptx.tcgen05.st(slot[0], r[0], shape="32x32b", num=1)
    T.ptx.tcgen05.wait.st()
    T.ptx.tcgen05.ld(slot[0], r[0], shape="32x32b", num=1)
    B[tx] = r[0]
    T.ptx.tcgen05.dealloc(slot[0], n_cols=32, cta_group=1)

# The report is at the store, which nothing waits for.
# variant: tensor_memory_store_without_a_wait of tensor_memory_load_without_a_wait
#   without: "T.ptx.tcgen05.wait.st()"
#   without: "T.ptx.tcgen05.ld("
#   fault: |     T.ptx.tcgen05.st(slot[0], r[0], shape="32x32b", num=1)


# The array was empty before: the fault is the missing wait, not a missing write.
# sim: copy_under_way_to_fresh_memory
#   A: float16[8x8] = i * 8 + j
#   B: uint32[32] = 0
#   fault: thread (0, 0, 0) reads byte 0 of shared `S`, which an asynchronous operation writes, and this thread
@T.prim_func
def copy_under_way_to_fresh_memory(A: T.Buffer((8, 8), "float16"), B: T.Buffer((32,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((8, 8), "float16", align=16)
    r = T.alloc_local((1,), "uint32")
    if tx < 8:
        T.ptx.cp_async(S.ptr_to([tx, 0]), A.ptr_to([tx, 0]), 16)
    T.ptx.cp_async.commit_group()
    T.cuda.warp_sync()
    T.ptx.ldmatrix(False, 1, ".b16", S.ptr_to([tx % 8, 0]), r.ptr_to([0]))
    B[tx] = r[0]


# sim: copy_of_what_is_under_way
#   A: float32[32] = i
#   B: float32[32] = 0
#   fault: which another asynchronous operation
@T.prim_func
def copy_of_what_is_under_way(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((32,), "float32", align=128)
    if tx == 0:
        for k in T.unroll(8):
            T.ptx.cp_async(S.ptr_to([k * 4]), A.ptr_to([k * 4]), 16)
        T.ptx.cp_async_bulk_s2g(B.ptr_to([0]), S.ptr_to([0]), 128)
        T.ptx.cp_async.bulk.commit_group()
        T.ptx.cp_async.bulk.wait_group(0, False)
        T.ptx.cp_async.commit_group()
        T.ptx.cp_async.wait_group(0)


# sim: product_that_nothing_has_waited_for
#   A: float16[128x16] = i + j
#   B: float32[128x16] = 0
#   fault: a tcgen05 operation is in flight, and this thread has not waited for its completion
@T.prim_func
def product_that_nothing_has_waited_for(A: T.Buffer((128, 16), "float16"), B: T.Buffer((128, 16), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([128])
    warp = T.warp_id([4])
    As = T.alloc_shared((2048,), "float16", align=128)
    slot = T.alloc_shared((1,), "uint32")
    r = T.alloc_local((16,), "float32")
    a_desc: T.uint64
    i_desc: T.uint32
    for k in T.serial(16):
        As[(tx // 8 * 2 + k // 8) * 64 + tx % 8 * 8 + k % 8] = A[tx, k]
    if warp == 0:
        T.ptx.tcgen05.alloc(T.address_of(slot[0]), n_cols=32, cta_group=1)
    T.ptx.fence.proxy_async("shared::cta")
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.tcgen05.encode_matrix_descriptor(T.address_of(a_desc), As.ptr_to([0]), 8, 16, 0)
        T.ptx.tcgen05.encode_instr_descriptor(T.address_of(i_desc), d_dtype="float32", a_dtype="float16", b_dtype="float16", M=128,
                                              N=16, K=16, trans_a=False, trans_b=False)
        T.ptx.tcgen05.mma(slot[0], a_desc, a_desc, i_desc, d_dtype="float32", a_dtype="float16", b_dtype="float16",
                          use_a_tmem=False, cta_group=1, enable_input_d=False)
    T.ptx.tcgen05.ld(slot[0], *[r[k] for k in range(16)], shape="32x32b", num=16, row=warp * 32)
    T.ptx.tcgen05.wait.ld()
    for k in T.unroll(16):
        B[tx, k] = r[k]
    T.cuda.cta_sync()
    if warp == 0:
        T.ptx.tcgen05.dealloc(slot[0], n_cols=32, cta_group=1)


# sim: one_named_barrier_for_two_groups
#   B: int32[128] = 0
#   fault: warp 2 arrives at named barrier 8, at which warp 0 arrived in the phase before, and nothing orders the two arrivals
@T.prim_func
def one_named_barrier_for_two_groups(B: T.Buffer((128,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([128])
    S = T.alloc_shared((128,), "int32")
    S[tx] = tx
    if tx < 64:
        T.ptx.bar.sync(8, 64)
        B[tx] = S[63 - tx]
    else:
        T.ptx.bar.sync(8, 64)
        B[tx] = S[191 - tx]


# sim: arrives_twice_in_a_phase
#   B: int32[32] = 0
#   fault: warp 0 arrives twice in one phase of named barrier 1: it counts twice
@T.prim_func
def arrives_twice_in_a_phase(B: T.Buffer((32,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((2, 32), "int32")
    if tx < 32:
        for i in T.serial(2):
            S[i, tx] = tx
            T.ptx.bar.arrive(1, 64)
        T.ptx.bar.arrive(2, 64)
    else:
        T.ptx.bar.sync(2, 64)
        for i in T.serial(2):
            T.ptx.bar.sync(1, 64)
            B[tx - 32] = S[i, tx - 32]


# sim: arrives_without_waiting_for_the_phase_before
#   B: int32[32] = 0
#   fault: warp 0 arrives at named barrier 1, at which warp 1 arrived in the phase before, and nothing orders the two arrivals
@T.prim_func
def arrives_without_waiting_for_the_phase_before(B: T.Buffer((32,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((2, 32), "int32")
    turn = T.alloc_shared((1,), "int32")
    if tx == 0:
        turn[0] = 0
    T.cuda.cta_sync()
    if tx < 32:
        for i in T.serial(2):
            # A relaxed read orders nothing.
            while T.ptx.ld_relaxed(turn.ptr_to([0]), "int32", "s32", scope="cta", space="shared") < i:
                pass
            S[i, tx] = tx
            T.ptx.bar.arrive(1, 64)
    else:
        for i in T.serial(2):
            T.ptx.bar.sync(1, 64)
            B[tx - 32] = S[i, tx - 32]
            T.ptx.st_relaxed(turn.ptr_to([0]), i + 1, scope="cta", space="shared", ptx_type="s32")


# sim: one_named_barrier_in_turns
#   B: int32[128] = 0 -> 63 - i if i < 64 else 191 - i
@T.prim_func
def one_named_barrier_in_turns(B: T.Buffer((128,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([128])
    S = T.alloc_shared((128,), "int32")
    S[tx] = tx
    if tx < 64:
        T.ptx.bar.sync(8, 64)
        B[tx] = S[63 - tx]
    T.cuda.cta_sync()
    if tx >= 64:
        T.ptx.bar.sync(8, 64)
        B[tx] = S[191 - tx]


# sim: counts_of_a_named_barrier_differ
#   B: int32[64] = 0
#   fault: arrives at named barrier 1 with a count of
@T.prim_func
def counts_of_a_named_barrier_differ(B: T.Buffer((64,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    if tx < 32:
        T.ptx.bar.arrive(1, 128)
    else:
        T.ptx.bar.sync(1, 64)
    B[tx] = tx


# sim: columns_freed_for_a_pair
#   B: uint32[32] = 0
#   fault: a tcgen05 instruction of cta_group 2, and one of cta_group 1 before: all tcgen05 instructions of a kernel have the same cta_group
@T.prim_func
def columns_freed_for_a_pair(B: T.Buffer((32,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    slot = T.alloc_shared((1,), "uint32")
    T.ptx.tcgen05.alloc(T.address_of(slot[0]), n_cols=32, cta_group=1)
    B[tx] = slot[0]
    T.ptx.tcgen05.dealloc(slot[0], n_cols=32, cta_group=2)


# The first phase of an mbarrier has parity 0: parity 1 is that of a phase which counts as completed.
# sim: parity_before_the_first
#   A: float32[32] = i
#   B: float32[32] = 0
#   fault: last wait there was for parity 1, which needs no completed phase: the first phase of an mbarrier has parity 0
#   seeds: 8
@T.prim_func
def parity_before_the_first(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((32,), "float32", align=128)
    bar = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
        T.ptx.mbarrier.arrive.expect_tx(bar.ptr_to([0]), 128)
        T.ptx.cp_async_bulk_g2s_cta(S.ptr_to([0]), A.ptr_to([0]), 128, bar.ptr_to([0]))
    T.cuda.cta_sync()
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 1)
    B[tx] = S[tx]


# sim: stores_behind_the_row
#   A: float32[32] = i
#   B: float32[21] = 0
#   fault: stores 3 elements behind the end of the tensor's row, outside of the allocation: GPUs store whole 16 bytes
@T.prim_func
def stores_behind_the_row(A: T.Buffer((32,), "float32"), B: T.Buffer((21,), "float32")):
    B_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", B_map, "float32", 1, B.data, 21, 32, 1, 0, 0, 0, 0)
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((32,), "float32", align=128)
    S[tx] = A[tx]
    T.ptx.fence.proxy_async("shared::cta")
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.cp_async.bulk.tensor.s2g(1, S.ptr_to([0]), T.address_of(B_map), "", 16)
        T.ptx.cp_async.bulk.commit_group()
        T.ptx.cp_async.bulk.wait_group(0, False)
