# Relaxed arrivals at mbarriers and at the barrier of a cluster, with fences before them (PTX ISA, "Release and Acquire Patterns",
# "mbarrier.arrive", "barrier.cluster").
from tvm.script import tirx as T


# sim: fenced_arrivals
#   A: float32[64] = i
#   B: float32[64] = 0 -> 63 - i
#   seeds: 8
@T.prim_func
def fenced_arrivals(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((64,), "float32")
    bar = T.alloc_shared((1,), "uint64")
    done: T.uint32
    if tx == 0:
        T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), T.uint32(64))
    T.cuda.cta_sync()
    S[tx] = A[tx]
    T.ptx.fence.acq_rel.cta()
    T.ptx.mbarrier.arrive.relaxed.cta.shared__cta.b64(bar.ptr_to([0]))
    done = T.uint32(0)
    while done == T.uint32(0):
        T.ptx.mbarrier.try_wait.parity.acquire.cta.shared__cta.b64(done, bar.ptr_to([0]), T.uint32(0))
    B[tx] = S[63 - tx]

# Both sides are relaxed, and fenced.
# variant: fenced_on_both_sides of fenced_arrivals
#   replace: "parity.acquire.cta" -> "parity.relaxed.cta"
#   replace: "    B[tx] = S" -> "    T.ptx.fence.acq_rel.cta()\n    B[tx] = S"
#   seeds: 8

# variant: fence_of_a_wider_scope of fenced_arrivals
#   replace: "fence.acq_rel.cta" -> "fence.acq_rel.gpu"
#   seeds: 8

# variant: unfenced_arrivals of fenced_arrivals
#   without: "T.ptx.fence.acq_rel.cta()"
#   fault: race
#   seeds: 8

# variant: unfenced_waits of fenced_arrivals
#   replace: "parity.acquire.cta" -> "parity.relaxed.cta"
#   fault: race
#   seeds: 8

# variant: fence_before_the_store of fenced_arrivals
#   without: "T.ptx.fence.acq_rel.cta()"
#   replace: "    S[tx] = A[tx]" -> "    T.ptx.fence.acq_rel.cta()\n    S[tx] = A[tx]"
#   fault: race
#   seeds: 8

# An arrival that releases, and a relaxed one of the same thread behind it.
# variant: two_arrivals of fenced_arrivals
#   without: "T.ptx.fence.acq_rel.cta()"
#   replace: "T.uint32(64))" -> "T.uint32(128))"
#   replace: "    T.ptx.mbarrier.arrive.relaxed" -> "    T.ptx.mbarrier.arrive.shared.b64(bar.ptr_to([0]))\n    T.ptx.mbarrier.arrive.relaxed"
#   seeds: 8


# Arrivals at the mbarrier of another block.
# sim: fenced_for_the_cluster
#   A: float32[2x64] = i * 64 + j
#   B: float32[2x64] = 0 -> (1 - i) * 64 + j
#   seeds: 8
@T.prim_func
def fenced_for_the_cluster(A: T.Buffer((2, 64), "float32"), B: T.Buffer((2, 64), "float32")):
    T.device_entry()
    bx = T.cta_id([2])
    rank = T.cta_id_in_cluster([2])
    tx = T.thread_id([64])
    S = T.alloc_shared((64,), "float32")
    bar = T.alloc_shared((1,), "uint64")
    done: T.uint32
    there: T.uint32
    other: T.uint32
    if tx == 0:
        T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), T.uint32(64))
        T.ptx.fence.mbarrier_init.release.cluster()
    T.cuda.cluster_sync()
    T.ptx.mapa.shared__cluster.u32(there, T.cuda.cvta_generic_to_shared(S.ptr_to([tx])), T.cast(1 - rank, "uint32"))
    T.ptx.mapa.shared__cluster.u32(other, T.cuda.cvta_generic_to_shared(bar.ptr_to([0])), T.cast(1 - rank, "uint32"))
    T.ptx.st.shared__cluster.f32(there, A[rank, tx])
    T.ptx.fence.acq_rel.cluster()
    T.ptx.mbarrier.arrive.relaxed.cluster.shared__cluster.b64(other)
    done = T.uint32(0)
    while done == T.uint32(0):
        T.ptx.mbarrier.try_wait.parity.acquire.cluster.shared__cta.b64(done, bar.ptr_to([0]), T.uint32(0))
    B[rank, tx] = S[tx]
    T.cuda.cluster_sync()

# variant: unfenced_for_the_cluster of fenced_for_the_cluster
#   without: "T.ptx.fence.acq_rel.cluster()"
#   fault: race
#   seeds: 8

# variant: fenced_for_the_block of fenced_for_the_cluster
#   replace: "fence.acq_rel.cluster" -> "fence.acq_rel.cta"
#   fault: race
#   seeds: 8

# variant: wait_of_the_block of fenced_for_the_cluster
#   replace: "parity.acquire.cluster" -> "parity.acquire.cta"
#   fault: race
#   seeds: 8


# "Use memory fence prior to arrive for relaxed barrier": an example of barrier.cluster.
# sim: fenced_cluster_barrier
#   A: float32[2x64] = i * 64 + j
#   B: float32[2x64] = 0 -> (1 - i) * 64 + j
#   seeds: 8
@T.prim_func
def fenced_cluster_barrier(A: T.Buffer((2, 64), "float32"), B: T.Buffer((2, 64), "float32")):
    T.device_entry()
    bx = T.cta_id([2])
    rank = T.cta_id_in_cluster([2])
    tx = T.thread_id([64])
    S = T.alloc_shared((64,), "float32")
    there: T.uint32
    value: T.float32
    S[tx] = A[rank, tx]
    T.ptx.fence.acq_rel.cluster()
    T.ptx.barrier.cluster.arrive.relaxed.aligned()
    T.ptx.barrier.cluster.wait.acquire.aligned()
    T.ptx.mapa.shared__cluster.u32(there, T.cuda.cvta_generic_to_shared(S.ptr_to([tx])), T.cast(1 - rank, "uint32"))
    T.ptx.ld.shared__cluster.f32(value, there)
    B[rank, tx] = value
    T.cuda.cluster_sync()

# Global memory.
# variant: fence_of_the_gpu of fenced_cluster_barrier
#   replace: "fence.acq_rel.cluster" -> "fence.acq_rel.gpu"
#   seeds: 8

# variant: fence_of_the_block of fenced_cluster_barrier
#   replace: "fence.acq_rel.cluster" -> "fence.acq_rel.cta"
#   fault: race
#   seeds: 8

# variant: unfenced_cluster_barrier of fenced_cluster_barrier
#   without: "T.ptx.fence.acq_rel.cluster()"
#   fault: race
#   seeds: 8

# variant: stored_behind_the_fence of fenced_cluster_barrier
#   replace: "    T.ptx.fence.acq_rel.cluster()" -> "    T.ptx.fence.acq_rel.cluster()\n    S[tx] = A[rank, tx] + T.float32(1)"
#   fault: race
#   seeds: 8

# A fence of the block's scope is enough for threads of the block.
# sim: barrier_for_the_block
#   A: float32[2x64] = i * 64 + j
#   B: float32[2x64] = 0 -> i * 64 + 63 - j
#   seeds: 8
@T.prim_func
def barrier_for_the_block(A: T.Buffer((2, 64), "float32"), B: T.Buffer((2, 64), "float32")):
    T.device_entry()
    bx = T.cta_id([2])
    rank = T.cta_id_in_cluster([2])
    tx = T.thread_id([64])
    S = T.alloc_shared((64,), "float32")
    S[tx] = A[rank, tx]
    T.ptx.fence.acq_rel.cta()
    T.ptx.barrier.cluster.arrive.relaxed.aligned()
    T.ptx.barrier.cluster.wait.acquire.aligned()
    B[rank, tx] = S[63 - tx]
