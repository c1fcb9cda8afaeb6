# test: target sm_100a
# What one lane of a warp may tell others, or an engine, of what all of its lanes have done.
from tvm.script import tirx as T


# Each lane fences what it has written; the lanes meet before one of them issues the copy.
# sim: copied_by_one
#   A: float32[32] = i
#   B: float32[32] = 0 -> i
#   seeds: 3
@T.prim_func
def copied_by_one(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((32,), "float32", align=128)
    S[tx] = A[tx]
    T.ptx.fence.proxy_async("shared::cta")
    T.cuda.warp_sync()
    if tx == 0:
        T.ptx.cp_async_bulk_s2g(B.ptr_to([0]), S.ptr_to([0]), 128)
        T.ptx.cp_async.bulk.commit_group()
        T.ptx.cp_async.bulk.wait_group(0)

# Lockstep is no synchronization: the fences of the others order nothing before what this lane issues.
# variant: copied_by_one_too_early of copied_by_one
#   without: "T.cuda.warp_sync()"
#   fault: nothing orders the two

# A lane that has met the others fences what they have written too.
# variant: fenced_behind_the_meeting of copied_by_one
#   replace: 'T.ptx.fence.proxy_async("shared::cta")\n    T.cuda.warp_sync()' -> 'T.cuda.warp_sync()\n    T.ptx.fence.proxy_async("shared::cta")'

# Electing a lane orders nothing either.
# variant: copied_by_an_elected_lane_too_early of copied_by_one
#   replace: "T.cuda.warp_sync()\n    if tx == 0:" -> "if T.ptx.elect_sync():"
#   fault: nothing orders the two


# Behind tcgen05.wait::ld one lane tells that the warp's loads of tensor memory are over. Of what the lanes have read of
# shared memory it tells where they have met.
# sim: told_of_reads
#   A: float32[64] = i
#   B: float32[64] = 0 -> i
#   seeds: 3
@T.prim_func
def told_of_reads(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((32,), "float32", align=128)
    address = T.alloc_shared((1,), "uint32")
    bar = T.alloc_shared((1,), "uint64")
    row = T.alloc_local((1,), "float32")
    if tx < 32:
        T.ptx.tcgen05.alloc(T.address_of(address[0]), 32)
        S[tx] = A[tx]
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
    T.cuda.cta_sync()
    if tx < 32:
        B[tx] = S[tx]
        row[0] = T.float32(0)
        T.ptx.tcgen05.st(address[0], row[0], shape="32x32b", num=1)
        T.ptx.tcgen05.wait.st()
        T.ptx.tcgen05.ld(address[0], row[0], shape="32x32b", num=1)
        T.ptx.tcgen05.wait.ld()
        T.cuda.warp_sync()
        if T.ptx.elect_sync():
            T.ptx.mbarrier.arrive(bar.ptr_to([0]))
    else:
        T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
        S[tx - 32] = A[tx]
        B[tx] = S[tx - 32]
    T.cuda.cta_sync()
    if tx < 32:
        T.ptx.tcgen05.dealloc(address[0], 32)

# variant: told_of_reads_too_early of told_of_reads
#   without: "T.cuda.warp_sync()"
#   fault: and no barrier orders the two
