# test: compile sm_90a
# Tensor copies of the region as it is written; multicast; copies to another block of the cluster.
from tvm.backend.cuda.tile_primitive.tma_utils import SwizzleMode, mma_shared_layout
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx


@T.inline
def begin(bar, tx):
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cluster_sync()


@T.inline
def arrived(bar, tx, size):
    if tx == 0:
        T.ptx.mbarrier.arrive.expect_tx(bar.ptr_to([0]), size)
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)


# The box reaches beyond the tensor: NaN there. A store leaves out what lies beyond.
# sim: beyond_the_edge
#   A: float32[6x40] = i * 40 + j
#   B: float32[6x40] = 0 -> A[i][j] if i >= 2 and j >= 32 else 0
#   C: int32[8x32] = 0 -> 0 if i < 4 and j < 8 else 1
#   row = 2
#   half = 1
@T.prim_func
def beyond_the_edge(A: T.Buffer((6, 40), "float32"), B: T.Buffer((6, 40), "float32"), C: T.Buffer((8, 32), "int32"), row: T.int32, half: T.int32):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([32])
    s = T.alloc_shared((8, 32), "float32", align=1024, layout=mma_shared_layout("float32", SwizzleMode.SWIZZLE_128B_ATOM, (8, 32)))
    bar = T.alloc_shared((1,), "uint64")
    begin(bar, tx)
    if tx == 0:
        Tx.copy_async(s, A[row : row + 8, 32 * half : 32 * half + 32], dispatch="tma_explicit", mbar=bar.ptr_to([0]), oob="nan", prefetch_tensormap=True, tensormap_l2_promotion=1)
    arrived(bar, tx, 1024)
    for i in T.serial(8):
        C[i, tx] = T.if_then_else(s[i, tx] == s[i, tx], 0, 1)
    if tx == 0:
        Tx.copy_async(B[row : row + 8, 32 * half : 32 * half + 32], s, dispatch="tma_explicit", cache_hint="evict_first")
        T.ptx.cp_async.bulk.commit_group()
        T.ptx.cp_async.bulk.wait_group(0, False)


# float32 rounded to tf32 on the way.
# sim: rounded
#   A: float32[4x32] = 1 + j * 0.0001220703125
#   B: float32[4x32] = 0 -> 1 + [0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 4, 4, 4, 4][j] * 0.0009765625
@T.prim_func
def rounded(A: T.Buffer((4, 32), "float32"), B: T.Buffer((4, 32), "float32")):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([32])
    s = T.alloc_shared((4, 32), "float32", align=128)
    bar = T.alloc_shared((1,), "uint64")
    begin(bar, tx)
    if tx == 0:
        Tx.copy_async(s, A, dispatch="tma_explicit", mbar=bar.ptr_to([0]), tma_dtype="tf32")
    arrived(bar, tx, 512)
    for i in T.serial(4):
        B[i, tx] = s[i, tx]


# The source is one of three tensors.
# sim: chosen_source
#   A: float32[4x32] = i
#   B: float32[4x32] = 10 + i
#   C: float32[6x32] = 20 + i
#   D: float32[3x4x32] = 0 -> j + 10 * i
@T.prim_func
def chosen_source(A: T.Buffer((4, 32), "float32"), B: T.Buffer((4, 32), "float32"), C: T.Buffer((6, 32), "float32"), D: T.Buffer((3, 4, 32), "float32")):
    T.device_entry()
    bx = T.cta_id([3])
    tx = T.thread_id([32])
    s = T.alloc_shared((4, 32), "float32", align=128)
    bar = T.alloc_shared((1,), "uint64")
    begin(bar, tx)
    if tx == 0:
        Tx.copy_async(s, A, dispatch="tma_explicit", mbar=bar.ptr_to([0]), src_selector=[(bx == 1, B), (bx >= 1, C)])
    arrived(bar, tx, 512)
    for i in T.serial(4):
        D[bx, i, tx] = s[i, tx]


# Each block of a cluster loads half of the rows for both.
# sim: multicast
#   A: float16[64x64] = i * 64 + j
#   B: float16[2x64x64] = 0 -> A[j][k]
#   seeds: 3
@T.prim_func
def multicast(A: T.Buffer((64, 64), "float16"), B: T.Buffer((2, 64, 64), "float16")):
    T.device_entry()
    bx = T.cta_id([2])
    rank = T.cta_id_in_cluster([2])
    tx = T.thread_id([64])
    s = T.alloc_shared((64, 64), "float16", align=1024, layout=mma_shared_layout("float16", 3, (64, 64)))
    bar = T.alloc_shared((1,), "uint64")
    begin(bar, tx)
    if tx == 0:
        Tx.copy_async(s[rank * 32 : rank * 32 + 32, :], A[rank * 32 : rank * 32 + 32, :], mbar=bar.ptr_to([0]), cta_mask=3)
    arrived(bar, tx, 64 * 64 * 2)
    for i in T.serial(64):
        B[bx, i, tx] = s[i, tx]
    T.cuda.cluster_sync()


# A tile to the other block: one run, and rows of a padded tile.
# sim: to_the_other_block
#   A: float32[2x16x32] = i * 512 + j * 32 + k
#   B: float32[2x16x32] = 0 -> A[1 - i][j][k]
#   seeds: 3
@T.prim_func
def to_the_other_block(A: T.Buffer((2, 16, 32), "float32"), B: T.Buffer((2, 16, 32), "float32")):
    T.device_entry()
    bx = T.cta_id([2])
    rank = T.cta_id_in_cluster([2])
    tx = T.thread_id([32])
    s = T.alloc_shared((16, 32), "float32", align=1024, layout=mma_shared_layout("float32", 3, (16, 32)))
    d = T.alloc_shared((16, 32), "float32", align=1024, layout=mma_shared_layout("float32", 3, (16, 32)))
    p = T.alloc_shared((16, 32), "float32", align=128)
    q = T.alloc_shared((16, 64), "float32", align=128)
    bar = T.alloc_shared((1,), "uint64")
    begin(bar, tx)
    for i in T.serial(16):
        s[i, tx] = A[bx, i, tx]
        p[i, tx] = A[bx, i, tx]
    T.ptx.fence.proxy_async("shared::cta")
    T.cuda.cta_sync()
    if tx == 0:
        Tx.copy_async(d[0:8, :], s[0:8, :], mbar=bar.ptr_to([0]), remote_cta_id=1 - rank)
        Tx.copy_async(q[8:16, 32:64], p[8:16, :], dispatch="dsmem", mbar=bar.ptr_to([0]), remote_cta_id=1 - rank)
    arrived(bar, tx, 2048)
    for i in T.serial(8):
        B[bx, i, tx] = d[i, tx]
        B[bx, 8 + i, tx] = q[8 + i, 32 + tx]
    T.cuda.cluster_sync()
