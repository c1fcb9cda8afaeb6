# test: compile sm_90a
# Operands of mnemonics that are a part of the instruction, known once loops are unrolled.
from tvm.script import tirx as T


# sim: last_groups
#   A: float32[128] = i
#   B: float32[128] = 0 -> A[i]
@T.prim_func
def last_groups(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((128,), "float32", align=128)
    for i in T.unroll(4):
        T.ptx.cp.async_.ca.shared.global_(S.ptr_to([i * 32 + tx]), A.ptr_to([i * 32 + tx]), 4)
        T.ptx.cp.async_.commit_group()
    for i in T.unroll(4):
        T.ptx.cp.async_.wait_group(3 - i)
        B[i * 32 + tx] = S[i * 32 + tx]


# Each turn leaves one group too many.
# variant: one_group_too_many of last_groups
#   replace: "wait_group(3 - i)" -> "wait_group(4 - i)"
#   fault: cp.async


# sim: bulk_groups
#   A: float32[128] = i
#   B: float32[128] = 0 -> A[i]
@T.prim_func
def bulk_groups(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((2, 32), "float32", align=128)
    for i in T.unroll(4):
        if tx == 0:
            T.ptx.cp.async_.bulk.wait_group.read(T.min(i, 1))
        T.cuda.cta_sync()
        S[i % 2, tx] = A[i * 32 + tx]
        T.ptx.fence.proxy.async_.shared__cta()
        T.cuda.cta_sync()
        if tx == 0:
            T.ptx.cp.async_.bulk.global_.shared__cta.bulk_group(B.ptr_to([i * 32]), S.ptr_to([i % 2, 0]), 128)
            T.ptx.cp.async_.bulk.commit_group()
    if tx == 0:
        T.ptx.cp.async_.bulk.wait_group(0)
