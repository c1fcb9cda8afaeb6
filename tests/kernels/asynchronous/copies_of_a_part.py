# test: compile sm_90a
# cp.async by its mnemonic: some of the bytes are read and the others are zeros, none where a predicate says so, and 16 bytes through
# the first-level cache. The address of the destination is a number, or a pointer.
from tvm.script import tirx as T


# sim: parts
#   A: uint32[128] = i + 1
#   B: uint32[128] = 0 -> A[i] if i % 4 < i // 4 % 5 else 0
#   C: uint32[128] = 0 -> 0 if i // 4 % 3 == 0 else A[i]
#   D: uint32[128] = 0 -> A[i]
@T.prim_func
def parts(A: T.Buffer((128,), "uint32"), B: T.Buffer((128,), "uint32"), C: T.Buffer((128,), "uint32"), D: T.Buffer((128,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((3, 128), "uint32", align=128)
    own: T.uint32 = T.cuda.cvta_generic_to_shared(S.ptr_to([0, 0])) + T.cast(tx * 16, "uint32")
    T.ptx.cp.async_.cg.shared.global_(own, A.ptr_to([tx * 4]), 16, T.cast(tx % 5 * 4, "uint32"))
    T.ptx.cp.async_.cg.shared.global_(S.ptr_to([1, tx * 4]), A.ptr_to([tx * 4]), 16, tx % 3 == 0)
    T.ptx.cp.async_.ca.shared.global_(own + T.uint32(1024), A.ptr_to([tx * 4]), 16)
    T.ptx.cp.async_.commit_group()
    T.ptx.cp.async_.wait_group(0)
    for k in T.unroll(4):
        B[tx * 4 + k] = S[0, tx * 4 + k]
        C[tx * 4 + k] = S[1, tx * 4 + k]
        D[tx * 4 + k] = S[2, tx * 4 + k]


# sim: too_large_a_part
#   fault: cp.async of 16 bytes reads 20 of them (src-size)
#   A: uint32[4] = 1
@T.prim_func
def too_large_a_part(A: T.Buffer((4,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([1])
    S = T.alloc_shared((4,), "uint32", align=128)
    T.ptx.cp.async_.cg.shared.global_(S.ptr_to([0]), A.ptr_to([0]), 16, T.cast(tx + 20, "uint32"))
    T.ptx.cp.async_.commit_group()
    T.ptx.cp.async_.wait_group(0)
