# Flags between blocks, as stream-K products have them: the order that each needs.
from tvm.script import tirx as T


# Stream-K: block 0 leaves a tile and a flag, block 1 waits for the flag and adds the tile.
# sim: stream_k
#   A: float32[64] = i
#   W: float32[32] = 0 -> i
#   F: uint32[1] = 0 -> 1
#   B: float32[32] = 0 -> 2 * i + 32
@T.prim_func
def stream_k(A: T.Buffer((64,), "float32"), W: T.Buffer((32,), "float32"), F: T.Buffer((1,), "uint32"), B: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([2])
    tx = T.thread_id([32])
    if bx == 0:
        W[tx] = A[tx]
        T.cuda.cta_sync()
        if tx == 0:
            T.ptx.st_release(F.ptr_to([0]), T.uint32(1), ptx_type="u32", scope="gpu")
    else:
        if tx == 0:
            while T.ptx.ld_acquire(F.ptr_to([0]), "uint32", "u32", scope="gpu") == T.uint32(0):
                T.cuda.nano_sleep(T.uint64(20))
        T.cuda.cta_sync()
        B[tx] = A[tx + 32] + W[tx]

# A relaxed load acquires nothing.
# variant: stream_k_relaxed_load of stream_k
#   replace: "T.ptx.ld_acquire" -> "T.ptx.ld_relaxed"
#   fault: nothing orders the two blocks

# Neither is ordered.
# variant: stream_k_relaxed_both of stream_k
#   replace: "T.ptx.st_release" -> "T.ptx.st_relaxed"
#   replace: "T.ptx.ld_acquire" -> "T.ptx.ld_relaxed"
#   fault: nothing orders the two blocks


# A volatile flag is relaxed.
# sim: stream_k_volatile
#   A: float32[64] = i
#   W: float32[32] = 0
#   F: uint32[1] = 0
#   B: float32[32] = 0
#   fault: nothing orders the two blocks
@T.prim_func
def stream_k_volatile(A: T.Buffer((64,), "float32"), W: T.Buffer((32,), "float32"), F: T.Buffer((1,), "uint32"), B: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([2])
    tx = T.thread_id([32])
    if bx == 0:
        W[tx] = A[tx]
        T.cuda.cta_sync()
        if tx == 0:
            T.ptx.st_volatile(F.ptr_to([0]), T.uint32(1), ptx_type="u32")
    else:
        if tx == 0:
            while T.ptx.ld_volatile(F.ptr_to([0]), "uint32", "u32") == T.uint32(0):
                T.cuda.nano_sleep(T.uint64(20))
        T.cuda.cta_sync()
        B[tx] = A[tx + 32] + W[tx]

# The store is for its block.
# variant: stream_k_release_cta of stream_k
#   replace: 'ptx_type="u32", scope="gpu")' -> 'ptx_type="u32", scope="cta")'
#   fault: nothing orders the two blocks

# The load is for its block.
# variant: stream_k_acquire_cta of stream_k
#   replace: 'scope="gpu") ' -> 'scope="cta") '
#   fault: nothing orders the two blocks

# Thread 0 tells of the others' writes without having met them.
# variant: stream_k_no_barrier_before of stream_k
#   without 1: "T.cuda.cta_sync()"
#   fault: nothing orders the two blocks

# The others have not met the thread that waited.
# variant: stream_k_no_barrier_after of stream_k
#   without 2: "T.cuda.cta_sync()"
#   fault: nothing orders the two blocks


# Fences around relaxed accesses do.
# sim: stream_k_fences
#   A: float32[64] = i
#   W: float32[32] = 0 -> i
#   F: uint32[1] = 0 -> 1
#   B: float32[32] = 0 -> 2 * i + 32
@T.prim_func
def stream_k_fences(A: T.Buffer((64,), "float32"), W: T.Buffer((32,), "float32"), F: T.Buffer((1,), "uint32"), B: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([2])
    tx = T.thread_id([32])
    if bx == 0:
        W[tx] = A[tx]
        T.cuda.cta_sync()
        if tx == 0:
            T.cuda.thread_fence()
            T.ptx.st_relaxed(F.ptr_to([0]), T.uint32(1), ptx_type="u32", scope="gpu")
    else:
        if tx == 0:
            while T.ptx.ld_relaxed(F.ptr_to([0]), "uint32", "u32", scope="gpu") == T.uint32(0):
                T.cuda.nano_sleep(T.uint64(20))
        T.cuda.thread_fence()
        T.cuda.cta_sync()
        B[tx] = A[tx + 32] + W[tx]

# The fence is of other threads than the one that waited.
# variant: stream_k_fence_by_others_only of stream_k_fences
#   replace 2: "T.cuda.thread_fence()" -> "if tx > 0:\n            T.cuda.thread_fence()"
#   fault: nothing orders the two blocks


# A reduction releases.
# sim: stream_k_red_release
#   A: float32[64] = i
#   W: float32[32] = 0 -> i
#   F: uint32[1] = 0 -> 1
#   B: float32[32] = 0 -> 2 * i + 32
@T.prim_func
def stream_k_red_release(A: T.Buffer((64,), "float32"), W: T.Buffer((32,), "float32"), F: T.Buffer((1,), "uint32"), B: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([2])
    tx = T.thread_id([32])
    if bx == 0:
        W[tx] = A[tx]
        T.cuda.cta_sync()
        if tx == 0:
            T.ptx.red_scalar(F.ptr_to([0]), T.uint32(1), op="add", ptx_type="u32", sem="release", scope="gpu")
    else:
        if tx == 0:
            while T.ptx.ld_acquire(F.ptr_to([0]), "uint32", "u32", scope="gpu") == T.uint32(0):
                T.cuda.nano_sleep(T.uint64(20))
        T.cuda.cta_sync()
        B[tx] = A[tx + 32] + W[tx]

# A relaxed one does not.
# variant: stream_k_red_relaxed of stream_k_red_release
#   replace: 'sem="release",' -> 'sem="relaxed",'
#   fault: nothing orders the two blocks

# Polling by a relaxed atomic.
# variant: stream_k_atomic_poll of stream_k
#   replace: 'T.ptx.ld_acquire(F.ptr_to([0]), "uint32", "u32", scope="gpu"' -> "T.cuda.atomic_add(F.ptr_to([0]), T.uint32(0)"
#   fault: nothing orders the two blocks


# The flag before the tile.
# sim: stream_k_flag_first
#   A: float32[64] = i
#   W: float32[32] = 0
#   F: uint32[1] = 0
#   B: float32[32] = 0
#   fault: nothing orders the two blocks
@T.prim_func
def stream_k_flag_first(A: T.Buffer((64,), "float32"), W: T.Buffer((32,), "float32"), F: T.Buffer((1,), "uint32"), B: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([2])
    tx = T.thread_id([32])
    if bx == 0:
        if tx == 0:
            T.ptx.st_release(F.ptr_to([0]), T.uint32(1), ptx_type="u32", scope="gpu")
        T.cuda.cta_sync()
        W[tx] = A[tx]
    else:
        if tx == 0:
            while T.ptx.ld_acquire(F.ptr_to([0]), "uint32", "u32", scope="gpu") == T.uint32(0):
                T.cuda.nano_sleep(T.uint64(20))
        T.cuda.cta_sync()
        B[tx] = A[tx + 32] + W[tx]


# The wait is for any value, the flag is set to 1 first, to 2 when done.
# sim: stream_k_wrong_flag_value
#   A: float32[64] = i
#   W: float32[32] = 0
#   F: uint32[1] = 0
#   B: float32[32] = 0
#   fault: nothing orders the two blocks
#   seeds: 6
@T.prim_func
def stream_k_wrong_flag_value(A: T.Buffer((64,), "float32"), W: T.Buffer((32,), "float32"), F: T.Buffer((1,), "uint32"), B: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([2])
    tx = T.thread_id([32])
    if bx == 0:
        if tx == 0:
            T.ptx.st_release(F.ptr_to([0]), T.uint32(1), ptx_type="u32", scope="gpu")
        W[tx] = A[tx]
        T.cuda.cta_sync()
        if tx == 0:
            T.ptx.st_release(F.ptr_to([0]), T.uint32(2), ptx_type="u32", scope="gpu")
    else:
        if tx == 0:
            while T.ptx.ld_acquire(F.ptr_to([0]), "uint32", "u32", scope="gpu") == T.uint32(0):
                T.cuda.nano_sleep(T.uint64(20))
        T.cuda.cta_sync()
        B[tx] = A[tx + 32] + W[tx]
