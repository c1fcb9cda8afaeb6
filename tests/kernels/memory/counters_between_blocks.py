# Counters and flags between blocks: the order that each needs.
from tvm.script import tirx as T


# Each block leaves a partial sum; the last to count reads them all.
# sim: last_block
#   A: float32[256] = i
#   W: float32[4] = 0 -> i * 4096 + 2016
#   N: uint32[1] = 0 -> 4
#   B: float32[1] = 0 -> 32640
@T.prim_func
def last_block(A: T.Buffer((256,), "float32"), W: T.Buffer((4,), "float32"), N: T.Buffer((1,), "uint32"), B: T.Buffer((1,), "float32")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([32])
    is_last = T.alloc_shared((1,), "uint32")
    if tx == 0:
        s: T.float32 = 0.0
        for i in range(64):
            s += A[bx * 64 + i]
        W[bx] = s
        is_last[0] = T.ptx.atom_scalar(N.ptr_to([0]), T.uint32(1), op="add", ptx_type="u32", sem="acq_rel", scope="gpu")
    T.cuda.cta_sync()
    if is_last[0] == T.uint32(3) and tx == 31:
        t: T.float32 = 0.0
        for i in range(4):
            t += W[i]
        B[0] = t


# The same with fences around a relaxed counter.
# sim: last_block_by_fences
#   A: float32[256] = i
#   W: float32[4] = 0 -> i * 4096 + 2016
#   N: uint32[1] = 0 -> 4
#   B: float32[1] = 0 -> 32640
@T.prim_func
def last_block_by_fences(A: T.Buffer((256,), "float32"), W: T.Buffer((4,), "float32"), N: T.Buffer((1,), "uint32"), B: T.Buffer((1,), "float32")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([32])
    is_last = T.alloc_shared((1,), "uint32")
    if tx == 0:
        s: T.float32 = 0.0
        for i in range(64):
            s += A[bx * 64 + i]
        W[bx] = s
        T.cuda.thread_fence()
        is_last[0] = T.ptx.atom_scalar(N.ptr_to([0]), T.uint32(1), op="add", ptx_type="u32", sem="relaxed", scope="gpu")
        T.cuda.thread_fence()
    T.cuda.cta_sync()
    if is_last[0] == T.uint32(3) and tx == 31:
        t: T.float32 = 0.0
        for i in range(4):
            t += W[i]
        B[0] = t

# A relaxed counter orders nothing.
# variant: last_block_relaxed of last_block
#   replace: 'sem="acq_rel",' -> 'sem="relaxed",'
#   fault: nothing orders the two blocks


# Neither does atomicAdd.
# sim: last_block_atomic_add
#   A: float32[256] = i
#   W: float32[4] = 0
#   N: uint32[1] = 0
#   B: float32[1] = 0
#   fault: nothing orders the two blocks
@T.prim_func
def last_block_atomic_add(A: T.Buffer((256,), "float32"), W: T.Buffer((4,), "float32"), N: T.Buffer((1,), "uint32"), B: T.Buffer((1,), "float32")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([32])
    is_last = T.alloc_shared((1,), "uint32")
    if tx == 0:
        s: T.float32 = 0.0
        for i in range(64):
            s += A[bx * 64 + i]
        W[bx] = s
        is_last[0] = T.cuda.atomic_add(N.ptr_to([0]), T.uint32(1))
    T.cuda.cta_sync()
    if is_last[0] == T.uint32(3) and tx == 31:
        t: T.float32 = 0.0
        for i in range(4):
            t += W[i]
        B[0] = t

# A counter for the block.
# variant: last_block_of_a_block of last_block
#   replace: 'scope="gpu")' -> 'scope="cta")'
#   fault: nothing orders the two blocks

# Release without acquire.
# variant: last_block_releases of last_block
#   replace: 'sem="acq_rel",' -> 'sem="release",'
#   fault: nothing orders the two blocks

# Acquire without release.
# variant: last_block_acquires of last_block
#   replace: 'sem="acq_rel",' -> 'sem="acquire",'
#   fault: nothing orders the two blocks


# Another thread reads without having met thread 0.
# sim: last_block_without_barrier
#   A: float32[256] = i
#   W: float32[4] = 0
#   N: uint32[1] = 0
#   B: float32[1] = 0
#   fault: reads `is_last[0]`, which thread (0, 0, 0) wrote, and no warp or block barrier orders the two
@T.prim_func
def last_block_without_barrier(A: T.Buffer((256,), "float32"), W: T.Buffer((4,), "float32"), N: T.Buffer((1,), "uint32"), B: T.Buffer((1,), "float32")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([32])
    is_last = T.alloc_shared((1,), "uint32")
    if tx == 0:
        s: T.float32 = 0.0
        for i in range(64):
            s += A[bx * 64 + i]
        W[bx] = s
        is_last[0] = T.ptx.atom_scalar(N.ptr_to([0]), T.uint32(1), op="add", ptx_type="u32", sem="acq_rel", scope="gpu")
    last: T.let = T.cuda.__shfl_sync(T.uint32(0xFFFFFFFF), is_last[0], 0, 32)
    if last == T.uint32(3) and tx == 31:
        t: T.float32 = 0.0
        for i in range(4):
            t += W[i]
        B[0] = t

# No fence before the relaxed counter.
# variant: last_block_fence_before of last_block_by_fences
#   without 1: "T.cuda.thread_fence()"
#   fault: nothing orders the two blocks

# No fence behind it.
# variant: last_block_fence_after of last_block_by_fences
#   without 2: "T.cuda.thread_fence()"
#   fault: nothing orders the two blocks

# Fences for the block.
# variant: last_block_fences_of_the_block of last_block_by_fences
#   replace 1: "T.cuda.thread_fence()" -> 'T.ptx.fence("acq_rel", "cta")'
#   replace: "T.cuda.thread_fence(" -> 'T.ptx.fence("acq_rel", "cta"'
#   fault: nothing orders the two blocks


# Every thread leaves a part, and thread 0 counts without having met the others.
# sim: parts_of_all_threads
#   A: float32[256] = i
#   W: float32[4x64] = 0
#   N: uint32[1] = 0
#   B: float32[1] = 0
#   fault: nothing orders the two blocks
@T.prim_func
def parts_of_all_threads(A: T.Buffer((256,), "float32"), W: T.Buffer((4, 64), "float32"), N: T.Buffer((1,), "uint32"), B: T.Buffer((1,), "float32")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    is_last = T.alloc_shared((1,), "uint32")
    W[bx, tx] = A[bx * 64 + tx]
    T.cuda.thread_fence()
    if tx == 0:
        is_last[0] = T.ptx.atom_scalar(N.ptr_to([0]), T.uint32(1), op="add", ptx_type="u32", sem="acq_rel", scope="gpu")
    T.cuda.cta_sync()
    if is_last[0] == T.uint32(3) and tx == 0:
        t: T.float32 = 0.0
        for i in range(256):
            t += W[i // 64, i % 64]
        B[0] = t


# Every thread leaves a part, and thread 0 counts, having met the others.
# sim: parts_with_barrier
#   A: float32[256] = i
#   W: float32[4x64] = 0 -> i * 64 + j
#   N: uint32[1] = 0 -> 4
#   B: float32[1] = 0 -> 32640
@T.prim_func
def parts_with_barrier(A: T.Buffer((256,), "float32"), W: T.Buffer((4, 64), "float32"), N: T.Buffer((1,), "uint32"), B: T.Buffer((1,), "float32")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    is_last = T.alloc_shared((1,), "uint32")
    W[bx, tx] = A[bx * 64 + tx]
    T.cuda.cta_sync()
    if tx == 0:
        is_last[0] = T.ptx.atom_scalar(N.ptr_to([0]), T.uint32(1), op="add", ptx_type="u32", sem="acq_rel", scope="gpu")
    T.cuda.cta_sync()
    if is_last[0] == T.uint32(3) and tx == 0:
        t: T.float32 = 0.0
        for i in range(256):
            t += W[i // 64, i % 64]
        B[0] = t
