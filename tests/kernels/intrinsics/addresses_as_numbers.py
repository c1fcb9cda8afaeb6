# test: compile sm_90a
# An address in shared memory may be a number of 32 bits that the kernel has computed, wherever an instruction takes an address.
from tvm.script import tirx as T


# A lane's number k is the one that it would read of matrix k itself: rows of four words, one after the other.
# sim: rows_of_matrices
#   A: uint32[128] = i * 7
#   B: uint32[128] = 0 -> A[i % 4 * 32 + i // 4]
#   C: uint32[128] = 0 -> A[i]
@T.prim_func
def rows_of_matrices(A: T.Buffer((128,), "uint32"), B: T.Buffer((128,), "uint32"), C: T.Buffer((128,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((128,), "uint32", align=128)
    back = T.alloc_shared((128,), "uint32", align=128)
    a = T.alloc_local((4,), "uint32")
    to: T.uint32 = T.cuda.cvta_generic_to_shared(back.ptr_to([0]))
    source: T.uint32 = T.cuda.cvta_generic_to_shared(S.ptr_to([0]))
    for k in T.unroll(4):
        T.ptx.st.shared.b32(source + T.cast(k * 128 + tx * 4, "uint32"), A[k * 32 + tx])
    T.cuda.warp_sync()
    T.ptx.ldmatrix.sync.aligned.m8n8.x4.shared.b16(a[0], a[1], a[2], a[3], source + T.cast(tx * 16, "uint32"))
    T.ptx.stmatrix.sync.aligned.m8n8.x4.shared.b16(to + T.cast(tx * 16, "uint32"), a[0], a[1], a[2], a[3])
    T.cuda.warp_sync()
    for k in T.unroll(4):
        B[tx * 4 + k] = a[k]
        C[k * 32 + tx] = back[k * 32 + tx]


# Each block writes to the other one's memory, by the number that `mapa` makes of the number of its own.
# sim: of_the_other_block
#   B: uint32[64] = 0 -> (i ^ 32) + 5
@T.prim_func
def of_the_other_block(B: T.Buffer((64,), "uint32")):
    T.device_entry()
    bx = T.cta_id([2])
    rank = T.cta_id_in_cluster([2])
    tx = T.thread_id([32])
    S = T.alloc_shared((32,), "uint32")
    there: T.uint32
    own: T.uint32 = T.cuda.cvta_generic_to_shared(S.ptr_to([0])) + T.cast(tx * 4, "uint32")
    T.cuda.cluster_sync()
    T.ptx.mapa.shared__cluster.u32(there, own, T.cast(rank ^ 1, "uint32"))
    T.ptx.st.shared__cluster.b32(there, T.cast(bx * 32 + tx + 5, "uint32"))
    T.cuda.cluster_sync()
    B[bx * 32 + tx] = S[tx]


# The other block's shared memory exists from its start on.
# variant: of_a_block_that_may_not_run of of_the_other_block
#   replace: "tx * 4, \"uint32\")\n    T.cuda.cluster_sync()" -> "tx * 4, \"uint32\")"
#   fault: whose block may not have started: no barrier of the cluster
