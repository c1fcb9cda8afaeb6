# test: compile sm_90a
# Tensor copies of 1 to 5 dimensions, boxes that reach beyond the tensor, element strides, NaN, gathered rows.
from tvm.script import tirx as T


def stored_one(a, i):
    return a[i - 16] if i >= 16 else -1


def stored_two(a, i, j):
    return a[(i - 3) * 8 + j - 4] if i >= 3 and j >= 4 else -1


def stored_three(a, i, j, k):
    return a[k] if i == 2 and j == 4 else -1


def stored_four(a, i, j, k, l):
    return a[((i - 1) * 2 + k - 1) * 4 + l] if i >= 1 and j == 1 and k >= 1 else -1


def stored_five(a, i, j, k, l, m):
    return a[((j - 1) * 2 + k) * 4 + m] if i == 1 and j >= 1 and l == 1 else -1


def rounded(i):
    return -1 - (i // 2 + (1 if i % 4 == 3 else 0)) / 1024


# sim: loads_one
#   A: float32[40] = i * 1 + 1
#   B: float32[32] = 9 -> A[i + 16] if i < 24 else 0
@T.prim_func
def loads_one(A: T.Buffer((40,), "float32"), B: T.Buffer((32,), "float32")):
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float32", 1, A.data, 40, 32, 1, 0, 0, 0, 0)
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((32,), "float32", align=128)
    bar = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.mbarrier.arrive.expect_tx(bar.ptr_to([0]), 128)
        T.ptx.cp_async.bulk.tensor.g2s_cta(1, S.ptr_to([0]), bar.ptr_to([0]), T.address_of(A_map), -1, "", 16)
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    for k in T.serial(1):
        e: T.let = k * 32 + tx
        if e < 32:
            B[e] = S[e]

# A map of tfloat32 (data type 11) rounds float32 to ten bits of fraction on the way in, ties to even.
# variant: loads_tfloat32 of loads_one
#   replace: "1, 0, 0, 0, 0)" -> "1, 0, 0, 0, 0, 11)"
#   A: float32[40] = -1 - i / 2048
#   B: float32[32] = 9 -> rounded(i + 16) if i < 24 else 0


# Elements beyond the last 16 bytes of the tensor are not written.
# sim: stores_one
#   A: float32[32] = i + 1
#   B: float32[40] = -1 -> stored_one(A, i)
@T.prim_func
def stores_one(A: T.Buffer((32,), "float32"), B: T.Buffer((40,), "float32")):
    B_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", B_map, "float32", 1, B.data, 40, 32, 1, 0, 0, 0, 0)
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((32,), "float32", align=128)
    for k in T.serial(1):
        e: T.let = k * 32 + tx
        if e < 32:
            S[e] = A[e]
    T.ptx.fence.proxy_async("shared::cta")
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.cp_async.bulk.tensor.prefetch(1, T.address_of(B_map), "", 16)
        T.ptx.cp_async.bulk.tensor.s2g(1, S.ptr_to([0]), T.address_of(B_map), "", 16)
        T.ptx.cp_async.bulk.commit_group()
        T.ptx.cp_async.bulk.wait_group(0, False)

# GPUs store all of the last 16 bytes of a row.
# variant: stores_within_16_bytes of stores_one
#   replace: "40, 32, 1, " -> "21, 32, 1, "
#   A: float32[32] = i + 1
#   B: float32[40] = -1 -> stored_one(A, i) if i < 24 else -1


# sim: loads_two
#   A: float32[6x8] = i * 10 + j * 1 + 1
#   B: float32[4x8] = 9 -> A[i + 3][j - 4] if i < 3 and j >= 4 else 0
@T.prim_func
def loads_two(A: T.Buffer((6, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float32", 2, A.data, 8, 6, 32, 8, 4, 1, 1, 0, 0, 0, 0)
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((32,), "float32", align=128)
    bar = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.mbarrier.arrive.expect_tx(bar.ptr_to([0]), 128)
        T.ptx.cp_async.bulk.tensor.g2s_cluster(2, S.ptr_to([0]), bar.ptr_to([0]), T.address_of(A_map), 0, 1, "", -4, 3)
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    for k in T.serial(1):
        e: T.let = k * 32 + tx
        if e < 32:
            B[e // 8, e % 8] = S[e]


# Elements beyond the tensor are not written.
# sim: stores_two
#   A: float32[32] = i + 1
#   B: float32[6x8] = -1 -> stored_two(A, i, j)
@T.prim_func
def stores_two(A: T.Buffer((32,), "float32"), B: T.Buffer((6, 8), "float32")):
    B_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", B_map, "float32", 2, B.data, 8, 6, 32, 8, 4, 1, 1, 0, 0, 0, 0)
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((32,), "float32", align=128)
    for k in T.serial(1):
        e: T.let = k * 32 + tx
        if e < 32:
            S[e] = A[e]
    T.ptx.fence.proxy_async("shared::cta")
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.cp_async.bulk.tensor.prefetch(2, T.address_of(B_map), "", 4, 3)
        T.ptx.cp_async.bulk.tensor.s2g(2, S.ptr_to([0]), T.address_of(B_map), "", 4, 3)
        T.ptx.cp_async.bulk.commit_group()
        T.ptx.cp_async.bulk.wait_group(0, False)


# sim: loads_three
#   A: float32[3x5x4] = i * 100 + j * 10 + k * 1 + 1
#   B: float32[2x2x4] = 9 -> A[i + 2][j + 4][k] if i < 1 and j < 1 else 0
@T.prim_func
def loads_three(A: T.Buffer((3, 5, 4), "float32"), B: T.Buffer((2, 2, 4), "float32")):
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float32", 3, A.data, 4, 5, 3, 16, 80, 4, 2, 2, 1, 1, 1, 0, 0, 0, 0)
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((16,), "float32", align=128)
    bar = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.mbarrier.arrive.expect_tx(bar.ptr_to([0]), 64)
        T.ptx.cp_async.bulk.tensor.g2s_cluster(3, S.ptr_to([0]), bar.ptr_to([0]), T.address_of(A_map), 0, 1, "", 0, 4, 2)
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    for k in T.serial(1):
        e: T.let = k * 32 + tx
        if e < 16:
            B[e // 8, e // 4 % 2, e % 4] = S[e]


# Elements beyond the tensor are not written.
# sim: stores_three
#   A: float32[16] = i + 1
#   B: float32[3x5x4] = -1 -> stored_three(A, i, j, k)
@T.prim_func
def stores_three(A: T.Buffer((16,), "float32"), B: T.Buffer((3, 5, 4), "float32")):
    B_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", B_map, "float32", 3, B.data, 4, 5, 3, 16, 80, 4, 2, 2, 1, 1, 1, 0, 0, 0, 0)
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((16,), "float32", align=128)
    for k in T.serial(1):
        e: T.let = k * 32 + tx
        if e < 16:
            S[e] = A[e]
    T.ptx.fence.proxy_async("shared::cta")
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.cp_async.bulk.tensor.prefetch(3, T.address_of(B_map), "", 0, 4, 2)
        T.ptx.cp_async.bulk.tensor.s2g(3, S.ptr_to([0]), T.address_of(B_map), "", 0, 4, 2)
        T.ptx.cp_async.bulk.commit_group()
        T.ptx.cp_async.bulk.wait_group(0, False)


# sim: loads_four
#   A: float32[3x2x3x4] = i * 1000 + j * 100 + k * 10 + l * 1 + 1
#   B: float32[2x1x2x4] = 9 -> A[i + 1][1][k + 1][l]
@T.prim_func
def loads_four(A: T.Buffer((3, 2, 3, 4), "float32"), B: T.Buffer((2, 1, 2, 4), "float32")):
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float32", 4, A.data, 4, 3, 2, 3, 16, 48, 96, 4, 2, 1, 2, 1, 1, 1, 1, 0, 0, 0, 0)
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((16,), "float32", align=128)
    bar = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.mbarrier.arrive.expect_tx(bar.ptr_to([0]), 64)
        T.ptx.cp_async.bulk.tensor.g2s_cta(4, S.ptr_to([0]), bar.ptr_to([0]), T.address_of(A_map), -1, "", 0, 1, 1, 1)
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    for k in T.serial(1):
        e: T.let = k * 32 + tx
        if e < 16:
            B[e // 8, e // 8 % 1, e // 4 % 2, e % 4] = S[e]


# Elements beyond the tensor are not written.
# sim: stores_four
#   A: float32[16] = i + 1
#   B: float32[3x2x3x4] = -1 -> stored_four(A, i, j, k, l)
@T.prim_func
def stores_four(A: T.Buffer((16,), "float32"), B: T.Buffer((3, 2, 3, 4), "float32")):
    B_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", B_map, "float32", 4, B.data, 4, 3, 2, 3, 16, 48, 96, 4, 2, 1, 2, 1, 1, 1, 1, 0, 0, 0, 0)
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((16,), "float32", align=128)
    for k in T.serial(1):
        e: T.let = k * 32 + tx
        if e < 16:
            S[e] = A[e]
    T.ptx.fence.proxy_async("shared::cta")
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.cp_async.bulk.tensor.prefetch(4, T.address_of(B_map), "", 0, 1, 1, 1)
        T.ptx.cp_async.bulk.tensor.s2g(4, S.ptr_to([0]), T.address_of(B_map), "", 0, 1, 1, 1)
        T.ptx.cp_async.bulk.commit_group()
        T.ptx.cp_async.bulk.wait_group(0, False)


# sim: loads_five
#   A: float32[2x3x2x2x4] = i * 10000 + j * 1000 + k * 100 + l * 10 + m * 1 + 1
#   B: float32[1x2x2x1x4] = 9 -> A[1][j + 1][k][1][m]
@T.prim_func
def loads_five(A: T.Buffer((2, 3, 2, 2, 4), "float32"), B: T.Buffer((1, 2, 2, 1, 4), "float32")):
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float32", 5, A.data, 4, 2, 2, 3, 2, 16, 32, 64, 192, 4, 1, 2, 2, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0)
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((16,), "float32", align=128)
    bar = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.mbarrier.arrive.expect_tx(bar.ptr_to([0]), 64)
        T.ptx.cp_async.bulk.tensor.g2s_cluster(5, S.ptr_to([0]), bar.ptr_to([0]), T.address_of(A_map), 0, 1, "", 0, 1, 0, 1, 1)
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    for k in T.serial(1):
        e: T.let = k * 32 + tx
        if e < 16:
            B[e // 16, e // 8 % 2, e // 4 % 2, e // 4 % 1, e % 4] = S[e]


# Elements beyond the tensor are not written.
# sim: stores_five
#   A: float32[16] = i + 1
#   B: float32[2x3x2x2x4] = -1 -> stored_five(A, i, j, k, l, m)
@T.prim_func
def stores_five(A: T.Buffer((16,), "float32"), B: T.Buffer((2, 3, 2, 2, 4), "float32")):
    B_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", B_map, "float32", 5, B.data, 4, 2, 2, 3, 2, 16, 32, 64, 192, 4, 1, 2, 2, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0)
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((16,), "float32", align=128)
    for k in T.serial(1):
        e: T.let = k * 32 + tx
        if e < 16:
            S[e] = A[e]
    T.ptx.fence.proxy_async("shared::cta")
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.cp_async.bulk.tensor.prefetch(5, T.address_of(B_map), "", 0, 1, 0, 1, 1)
        T.ptx.cp_async.bulk.tensor.s2g(5, S.ptr_to([0]), T.address_of(B_map), "", 0, 1, 0, 1, 1)
        T.ptx.cp_async.bulk.commit_group()
        T.ptx.cp_async.bulk.wait_group(0, False)


# Every second row; the stride of the innermost dimension is ignored.
# sim: strides
#   A: float32[8x8] = i * 8 + j
#   B: float32[4x8] = 9 -> A[i * 2][j] if i < 4 else 0
@T.prim_func
def strides(A: T.Buffer((8, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float32", 2, A.data, 8, 8, 32, 8, 8, 1, 2, 0, 0, 0, 0)
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((32,), "float32", align=128)
    bar = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.mbarrier.arrive.expect_tx(bar.ptr_to([0]), 128)
        T.ptx.cp_async.bulk.tensor.g2s_cluster(2, S.ptr_to([0]), bar.ptr_to([0]), T.address_of(A_map), 0, 1, "", 0, 0)
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    B[tx // 8, tx % 8] = S[tx]

# variant: not_a_number of strides
#   replace: "T.Buffer((8, 8" -> "T.Buffer((4, 8"
#   replace: "8, 32, 8, 8, 1, 2, 0, 0, 0, 0" -> "4, 32, 8, 4, 1, 1, 0, 0, 0, 1"
#   replace: '1, "", 0, 0)' -> '1, "", 0, 2)'
#   A: float32[4x8] = i * 8 + j
#   B: float32[4x8] = 9 -> A[i + 2][j] if i < 2 else float("nan")
