# Release and acquire patterns of two instructions at one place (PTX ISA, "Release and Acquire Patterns").
from tvm.script import tirx as T


# A release, and then a strong write of the same thread: who acquires the second is behind what came before the first.
# sim: release_and_write
#   A: float32[32] = i
#   W: float32[32] = 0 -> i
#   F: uint32[1] = 0 -> 2
#   B: float32[32] = 0 -> 2 * i
#   seeds: 8
@T.prim_func
def release_and_write(A: T.Buffer((32,), "float32"), W: T.Buffer((32,), "float32"), F: T.Buffer((1,), "uint32"),
                      B: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([2])
    tx = T.thread_id([32])
    if bx == 0:
        W[tx] = A[tx]
        T.cuda.cta_sync()
        if tx == 0:
            T.ptx.st_release(F.ptr_to([0]), T.uint32(1), ptx_type="u32", scope="gpu")
            T.ptx.st_relaxed(F.ptr_to([0]), T.uint32(2), ptx_type="u32", scope="gpu")
    else:
        if tx == 0:
            while T.ptx.ld_acquire(F.ptr_to([0]), "uint32", "u32", scope="gpu") != T.uint32(2):
                T.cuda.nano_sleep(T.uint64(20))
        T.cuda.cta_sync()
        B[tx] = W[tx] * T.float32(2)

# variant: release_and_volatile_write of release_and_write
#   replace: 'T.ptx.st_relaxed(F.ptr_to([0]), T.uint32(2), ptx_type="u32", scope="gpu")' -> 'T.ptx.st_volatile(F.ptr_to([0]), T.uint32(2), ptx_type="u32")'
#   seeds: 8

# variant: release_and_atomic of release_and_write
#   replace: 'T.ptx.st_relaxed(F.ptr_to([0]), T.uint32(2), ptx_type="u32", scope="gpu")' -> 'T.ptx.red_scalar(F.ptr_to([0]), T.uint32(1), op="add", ptx_type="u32", sem="relaxed", scope="gpu")'
#   seeds: 8

# An atomic that releases begins the pattern as well.
# variant: atomic_and_write of release_and_write
#   replace: 'T.ptx.st_release(F.ptr_to([0]), T.uint32(1), ptx_type="u32", scope="gpu")' -> 'T.ptx.red_scalar(F.ptr_to([0]), T.uint32(1), op="add", ptx_type="u32", sem="release", scope="gpu")'
#   seeds: 8

# Many writes later.
# variant: release_and_many_writes of release_and_write
#   replace: '            T.ptx.st_relaxed(F.ptr_to([0]), T.uint32(2)' -> '            for i in T.serial(3):\n                T.ptx.st_relaxed(F.ptr_to([0]), T.cast(3 + i, "uint32"), ptx_type="u32", scope="gpu")\n            T.ptx.st_relaxed(F.ptr_to([0]), T.uint32(2)'
#   seeds: 8

# What is stored between the two is not covered.
# variant: stored_between of release_and_write
#   replace: "            T.ptx.st_relaxed" -> "            W[0] = A[0] + T.float32(1)\n            T.ptx.st_relaxed"
#   fault: nothing orders the two blocks
#   seeds: 8

# variant: relaxed_and_write of release_and_write
#   replace: "T.ptx.st_release" -> "T.ptx.st_relaxed"
#   fault: nothing orders the two blocks
#   seeds: 8

# The first reaches the block alone.
# variant: narrow_release of release_and_write
#   replace: 'T.uint32(1), ptx_type="u32", scope="gpu"' -> 'T.uint32(1), ptx_type="u32", scope="cta"'
#   fault: race
#   seeds: 8

# The second is another thread's.
# variant: write_of_another_thread of release_and_write
#   replace: "            T.ptx.st_relaxed" -> "        T.cuda.warp_sync()\n        if tx == 1:\n            T.ptx.st_relaxed"
#   fault: nothing orders the two blocks
#   seeds: 8

# The release is at another place.
# sim: release_of_another_flag
#   A: float32[32] = i
#   W: float32[32] = 0
#   F: uint32[2] = 0
#   B: float32[32] = 0
#   fault: nothing orders the two blocks
#   seeds: 8
@T.prim_func
def release_of_another_flag(A: T.Buffer((32,), "float32"), W: T.Buffer((32,), "float32"), F: T.Buffer((2,), "uint32"),
                            B: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([2])
    tx = T.thread_id([32])
    if bx == 0:
        W[tx] = A[tx]
        T.cuda.cta_sync()
        if tx == 0:
            T.ptx.st_release(F.ptr_to([1]), T.uint32(1), ptx_type="u32", scope="gpu")
            T.ptx.st_relaxed(F.ptr_to([0]), T.uint32(1), ptx_type="u32", scope="gpu")
    else:
        if tx == 0:
            while T.ptx.ld_acquire(F.ptr_to([0]), "uint32", "u32", scope="gpu") == T.uint32(0):
                T.cuda.nano_sleep(T.uint64(20))
        T.cuda.cta_sync()
        B[tx] = W[tx] * T.float32(2)


# A strong read, and then an acquire at the place: another thread has written there between the two.
# sim: read_and_acquire
#   A: float32[32] = i
#   W: float32[32] = 0 -> i
#   F: uint32[3] = 0 -> [2, 1, 1][i]
#   B: float32[32] = 0 -> 2 * i
#   seeds: 8
@T.prim_func
def read_and_acquire(A: T.Buffer((32,), "float32"), W: T.Buffer((32,), "float32"), F: T.Buffer((3,), "uint32"),
                     B: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([3])
    tx = T.thread_id([32])
    if bx == 0:
        W[tx] = A[tx]
        T.cuda.cta_sync()
        if tx == 0:
            T.ptx.st_release(F.ptr_to([0]), T.uint32(1), ptx_type="u32", scope="gpu")
    elif bx == 1:
        if tx == 0:
            while T.ptx.ld_relaxed(F.ptr_to([1]), "uint32", "u32", scope="gpu") == T.uint32(0):
                T.cuda.nano_sleep(T.uint64(20))
            T.ptx.st_relaxed(F.ptr_to([0]), T.uint32(2), ptx_type="u32", scope="gpu")
            T.ptx.st_relaxed(F.ptr_to([2]), T.uint32(1), ptx_type="u32", scope="gpu")
    else:
        if tx == 0:
            while T.ptx.ld_relaxed(F.ptr_to([0]), "uint32", "u32", scope="gpu") == T.uint32(0):
                T.cuda.nano_sleep(T.uint64(20))
            T.ptx.st_relaxed(F.ptr_to([1]), T.uint32(1), ptx_type="u32", scope="gpu")
            while T.ptx.ld_relaxed(F.ptr_to([2]), "uint32", "u32", scope="gpu") == T.uint32(0):
                T.cuda.nano_sleep(T.uint64(20))
            while T.ptx.ld_acquire(F.ptr_to([0]), "uint32", "u32", scope="gpu") != T.uint32(2):
                T.cuda.nano_sleep(T.uint64(20))
        T.cuda.cta_sync()
        B[tx] = W[tx] * T.float32(2)

# variant: read_and_read of read_and_acquire
#   replace: "T.ptx.ld_acquire" -> "T.ptx.ld_relaxed"
#   fault: nothing orders the two blocks
#   seeds: 8


# The read of a reduction "does not form an acquire pattern", even with a fence behind it.
# sim: reduction_and_fence
#   A: float32[32] = i
#   W: float32[32] = 0
#   F: uint32[2] = 0
#   B: float32[32] = 0
#   fault: nothing orders the two blocks
#   seeds: 8
@T.prim_func
def reduction_and_fence(A: T.Buffer((32,), "float32"), W: T.Buffer((32,), "float32"), F: T.Buffer((2,), "uint32"),
                        B: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([2])
    tx = T.thread_id([32])
    if bx == 0:
        W[tx] = A[tx]
        T.cuda.cta_sync()
        if tx == 0:
            T.ptx.st_release(F.ptr_to([0]), T.uint32(1), ptx_type="u32", scope="gpu")
            T.ptx.st_relaxed(F.ptr_to([1]), T.uint32(1), ptx_type="u32", scope="gpu")
    else:
        if tx == 0:
            while T.ptx.ld_relaxed(F.ptr_to([1]), "uint32", "u32", scope="gpu") == T.uint32(0):
                T.cuda.nano_sleep(T.uint64(20))
            T.ptx.red_scalar(F.ptr_to([0]), T.uint32(1), op="add", ptx_type="u32", sem="relaxed", scope="gpu")
            T.ptx.fence("acq_rel", "gpu")
        T.cuda.cta_sync()
        B[tx] = W[tx] * T.float32(2)

# An atomic that gives what was there does.
# sim: atomic_and_fence
#   A: float32[32] = i
#   W: float32[32] = 0 -> i
#   F: uint32[1] = 0 -> 1
#   B: float32[32] = 0 -> 2 * i
#   seeds: 8
@T.prim_func
def atomic_and_fence(A: T.Buffer((32,), "float32"), W: T.Buffer((32,), "float32"), F: T.Buffer((1,), "uint32"),
                     B: T.Buffer((32,), "float32")):
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
            while T.ptx.atom_scalar(F.ptr_to([0]), T.uint32(0), op="add", ptx_type="u32", sem="relaxed", scope="gpu") == T.uint32(0):
                T.cuda.nano_sleep(T.uint64(20))
            T.ptx.fence("acq_rel", "gpu")
        T.cuda.cta_sync()
        B[tx] = W[tx] * T.float32(2)

# A reduction is a link between a release and an acquire.
# sim: reduction_between
#   A: float32[32] = i
#   W: float32[32] = 0 -> i
#   F: uint32[1] = 0 -> 2
#   B: float32[32] = 0 -> 2 * i
#   seeds: 8
@T.prim_func
def reduction_between(A: T.Buffer((32,), "float32"), W: T.Buffer((32,), "float32"), F: T.Buffer((1,), "uint32"),
                      B: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([3])
    tx = T.thread_id([32])
    if bx == 0:
        W[tx] = A[tx]
        T.cuda.cta_sync()
        if tx == 0:
            T.ptx.red_scalar(F.ptr_to([0]), T.uint32(1), op="add", ptx_type="u32", sem="release", scope="gpu")
    elif bx == 1:
        if tx == 0:
            T.ptx.red_scalar(F.ptr_to([0]), T.uint32(1), op="add", ptx_type="u32", sem="relaxed", scope="gpu")
    else:
        if tx == 0:
            while T.ptx.ld_acquire(F.ptr_to([0]), "uint32", "u32", scope="gpu") != T.uint32(2):
                T.cuda.nano_sleep(T.uint64(20))
        T.cuda.cta_sync()
        B[tx] = W[tx] * T.float32(2)
