# A fence orders as far as its own scope, whatever the scope of the flag: one of the block or of the cluster is enough for
# threads within it, and is nothing to the others.
from tvm.script import tirx as T


# A flag at the scope of the system, between two warps of a block.
# sim: within_the_block
#   A: float32[32] = i + 1
#   F: uint32[1] = 0 -> 1
#   B: float32[32] = 0 -> 2 * (i + 1)
#   seeds: 3
@T.prim_func
def within_the_block(A: T.Buffer((32,), "float32"), F: T.Buffer((1,), "uint32"), B: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((32,), "float32")
    seen: T.uint32
    if tx < 32:
        S[tx] = A[tx]
        T.cuda.warp_sync()
        if tx == 0:
            T.ptx.fence.acq_rel.cluster()
            T.ptx.st.relaxed.sys.global_.u32(F.ptr_to([0]), T.uint32(1))
    else:
        if tx == 32:
            seen = T.uint32(0)
            while seen == T.uint32(0):
                T.ptx.ld.relaxed.sys.global_.u32(seen, F.ptr_to([0]))
            T.ptx.fence.acq_rel.cta()
        T.cuda.warp_sync()
        B[tx - 32] = S[tx - 32] * T.float32(2)

# variant: without_the_first of within_the_block
#   without: "T.ptx.fence.acq_rel.cluster()"
#   fault: race

# variant: without_the_second of within_the_block
#   without: "T.ptx.fence.acq_rel.cta()"
#   fault: race

# Only the last fence before the flag is narrow: the wide one tells other blocks of what came before it.
# sim: a_wide_fence_and_a_narrow_one
#   A: float32[2] = i + 1
#   W: float32[2] = 0 -> i + 1
#   F: uint32[1] = 0 -> 1
#   B: float32[1] = 0 -> 1
#   seeds: 3
@T.prim_func
def a_wide_fence_and_a_narrow_one(A: T.Buffer((2,), "float32"), W: T.Buffer((2,), "float32"), F: T.Buffer((1,), "uint32"),
                                  B: T.Buffer((1,), "float32")):
    T.device_entry()
    bx = T.cta_id([2])
    tx = T.thread_id([32])
    seen: T.uint32
    if tx == 0:
        if bx == 0:
            W[0] = A[0]
            T.ptx.fence.acq_rel.gpu()
            W[1] = A[1]
            T.ptx.fence.acq_rel.cta()
            T.ptx.st.relaxed.gpu.global_.u32(F.ptr_to([0]), T.uint32(1))
        else:
            seen = T.uint32(0)
            while seen == T.uint32(0):
                T.ptx.ld.relaxed.gpu.global_.u32(seen, F.ptr_to([0]))
            T.ptx.fence.acq_rel.gpu()
            B[0] = W[0]

# variant: behind_the_wide_one of a_wide_fence_and_a_narrow_one
#   replace: "B[0] = W[0]" -> "B[0] = W[1]"
#   fault: the value that it has read was released at scope cta, which does not reach from block to block

# variant: acquired_within_the_block of a_wide_fence_and_a_narrow_one
#   replace: "T.ptx.fence.acq_rel.gpu()\n            B[0]" -> "T.ptx.fence.acq_rel.cta()\n            B[0]"
#   fault: race


# Two blocks of a cluster, by fences of the cluster and a flag of the GPU.
# sim: within_the_cluster
#   A: float32[1] = 7
#   W: float32[1] = 0 -> 7
#   F: uint32[1] = 0 -> 1
#   B: float32[1] = 0 -> 7
#   seeds: 3
@T.prim_func
def within_the_cluster(A: T.Buffer((1,), "float32"), W: T.Buffer((1,), "float32"), F: T.Buffer((1,), "uint32"),
                       B: T.Buffer((1,), "float32")):
    T.device_entry()
    T.cluster_id([1])
    rank = T.cta_id_in_cluster([2])
    tx = T.thread_id([32])
    seen: T.uint32
    if tx == 0:
        if rank == 0:
            W[0] = A[0]
            T.ptx.fence.acq_rel.cluster()
            T.ptx.st.relaxed.gpu.global_.u32(F.ptr_to([0]), T.uint32(1))
        else:
            seen = T.uint32(0)
            while seen == T.uint32(0):
                T.ptx.ld.relaxed.gpu.global_.u32(seen, F.ptr_to([0]))
            T.ptx.fence.acq_rel.cluster()
            B[0] = W[0]


# The read of a reduction acquires nothing, even with a fence behind it (PTX ISA, "Release and Acquire Patterns").
# sim: reduction_by_mnemonic
#   A: float32[1] = i + 1
#   W: float32[1] = 0
#   F: uint32[2] = 0
#   B: float32[1] = 0
#   fault: nothing orders the two blocks
#   seeds: 3
@T.prim_func
def reduction_by_mnemonic(A: T.Buffer((1,), "float32"), W: T.Buffer((1,), "float32"), F: T.Buffer((2,), "uint32"),
                          B: T.Buffer((1,), "float32")):
    T.device_entry()
    bx = T.cta_id([2])
    tx = T.thread_id([32])
    seen: T.uint32
    if tx == 0:
        if bx == 0:
            W[0] = A[0]
            T.ptx.st.release.gpu.global_.u32(F.ptr_to([0]), T.uint32(1))
            T.ptx.st.relaxed.gpu.global_.u32(F.ptr_to([1]), T.uint32(1))
        else:
            seen = T.uint32(0)
            while seen == T.uint32(0):
                T.ptx.ld.relaxed.gpu.global_.u32(seen, F.ptr_to([1]))
            T.ptx.red.relaxed.gpu.global_.add.u32(F.ptr_to([0]), T.uint32(1))
            T.ptx.fence.acq_rel.gpu()
            B[0] = W[0]
