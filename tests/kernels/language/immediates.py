# test: cuda sm_90a
# Operands that are a part of the instruction, known once loops are unrolled.
from tvm.script import tirx as T


# sim: last_groups
#   A: float32[128] = i
#   B: float32[128] = 0 -> A[i]
@T.prim_func
def last_groups(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((128,), "float32", align=128)
    for i in T.unroll(4):
        T.ptx.cp_async(S.ptr_to([i * 32 + tx]), A.ptr_to([i * 32 + tx]), 4)
        T.ptx.cp_async.commit_group()
    for i in T.unroll(4):
        left: T.let = 3 - i
        T.ptx.cp_async.wait_group(left)
        B[i * 32 + tx] = S[i * 32 + tx]


# sim: bulk_groups
#   A: float32[128] = i
#   B: float32[128] = 0 -> A[i]
@T.prim_func
def bulk_groups(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((2, 32), "float32", align=128)
    for i in T.unroll(4):
        if tx == 0:
            T.ptx.cp_async.bulk.wait_group(T.min(i, 1), True)
        T.cuda.cta_sync()
        S[i % 2, tx] = A[i * 32 + tx]
        T.ptx.fence.proxy_async("shared::cta")
        T.cuda.cta_sync()
        if tx == 0:
            T.ptx.cp_async_bulk_s2g(B.ptr_to([i * 32]), S.ptr_to([i % 2, 0]), 128)
            T.ptx.cp_async.bulk.commit_group()
    if tx == 0:
        T.ptx.cp_async.bulk.wait_group(0, False)
