# test: cuda sm_90a
# Tensor copies as tile primitives: boxes, strides and swizzles follow from the layouts of both sides.
from tvm.backend.cuda.tile_primitive.tma_utils import SwizzleMode, mma_shared_layout
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx
from tvm.tirx.layout import S, TileLayout


@T.inline
def begin(bar, tx):
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()


@T.inline
def arrived(bar, tx, size):
    if tx == 0:
        T.ptx.mbarrier.arrive.expect_tx(bar.ptr_to([0]), size)
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)


@T.inline
def stored():
    T.ptx.cp_async.bulk.commit_group()
    T.ptx.cp_async.bulk.wait_group(0, False)


# Two tiles of 64 columns side by side, with rows of 128 bytes: one copy each way.
# sim: swizzle_of_128_bytes
#   A: float16[128x256] = i % 8 * 256 + j
#   B: float16[128x256] = 0 -> A[i][j] if j >= 128 else 0
#   C: float16[64x128] = 0 -> A[64 + i][128 + j]
@T.prim_func
def swizzle_of_128_bytes(A: T.Buffer((128, 256), "float16"), B: T.Buffer((128, 256), "float16"), C: T.Buffer((64, 128), "float16")):
    T.device_entry()
    bx = T.cta_id([2])
    tx = T.thread_id([128])
    pool = T.SMEMPool()
    s = pool.alloc((2, 64, 128), "float16", align=1024, layout=mma_shared_layout("float16", SwizzleMode.SWIZZLE_128B_ATOM, (2, 64, 128)))
    bar = pool.alloc((1,), "uint64", align=8)
    pool.commit()
    begin(bar, tx)
    if tx == 0:
        Tx.copy_async(s[1], A[bx * 64 : bx * 64 + 64, 128:256], mbar=bar.ptr_to([0]), prefetch_tensormap=True, cache_hint="evict_first")
    arrived(bar, tx, 64 * 128 * 2)
    if bx == 1:
        for i in T.serial(64):
            C[i, tx] = s[1, i, tx]
    if tx == 0:
        Tx.copy_async(B[bx * 64 : bx * 64 + 64, 128:256], s[1], dispatch="tma_auto", tensormap_l2_promotion="L2::256B")
        stored()


# Narrower swizzles, and rows that begin within a tile of the swizzle.
# sim: narrow_swizzles
#   A: float32[64x32] = i * 32 + j
#   B: float32[64x32] = 0 -> A[i][j]
@T.prim_func
def narrow_swizzles(A: T.Buffer((64, 32), "float32"), B: T.Buffer((64, 32), "float32")):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([32])
    s = T.alloc_shared((64, 16), "float32", align=1024, layout=mma_shared_layout("float32", 2, (64, 16)))
    t = T.alloc_shared((64, 16), "float32", align=1024, layout=mma_shared_layout("float32", 1, (64, 16)))
    bar = T.alloc_shared((1,), "uint64")
    begin(bar, tx)
    if tx == 0:
        Tx.copy_async(s[0:64, :], A[0:64, 0:16], mbar=bar.ptr_to([0]))
        for half in T.unroll(2):
            Tx.copy_async(t[half * 32 : half * 32 + 32, :], A[half * 32 : half * 32 + 32, 16:32], mbar=bar.ptr_to([0]))
    arrived(bar, tx, 64 * 32 * 4)
    for i in T.serial(64):
        B[i, tx] = T.if_then_else(tx < 16, s[i, tx % 16], t[i, tx % 16])


# A matrix that ends within a tile: beyond it are zeros, which a store leaves out.
# sim: ragged
#   A: float32[20x36] = i * 36 + j + 1
#   B: float32[20x36] = 0 -> A[i][j]
#   C: float32[32x64] = 7 -> A[i][j] if i < 20 and j < 36 else 0
@T.prim_func
def ragged(a: T.handle, b: T.handle, C: T.Buffer((32, 64), "float32")):
    m = T.int32()
    k = T.int32()
    A = T.match_buffer(a, (m, k), "float32")
    B = T.match_buffer(b, (m, k), "float32")
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([64])
    s = T.alloc_shared((32, 64), "float32", align=1024, layout=mma_shared_layout("float32", 3, (32, 64)))
    bar = T.alloc_shared((1,), "uint64")
    begin(bar, tx)
    if tx == 0:
        Tx.copy_async(s, A[0:32, 0:64], mbar=bar.ptr_to([0]))
    arrived(bar, tx, 32 * 64 * 4)
    for i in T.serial(32):
        C[i, tx] = s[i, tx]
    if tx == 0:
        Tx.copy_async(B[0:32, 0:64], s)
        stored()


# Five dimensions, of which the tile takes one index of two; and a long row, in boxes of 256 elements.
# sim: dimensions
#   A: int8[3x4x8x2x32] = i * 64 + j * 16 + k + l * 8
#   B: int8[4x8x32] = 0 -> A[2][i][j][1][k]
#   C: int64[2x1024] = i * 1024 + j
#   D: int64[1024] = 0 -> C[1][i]
@T.prim_func
def dimensions(A: T.Buffer((3, 4, 8, 2, 32), "int8"), B: T.Buffer((4, 8, 32), "int8"), C: T.Buffer((2, 1024), "int64"), D: T.Buffer((1024,), "int64")):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([32])
    s = T.alloc_shared((4, 8, 32), "int8", align=128)
    t = T.alloc_shared((1024,), "int64", align=128)
    bar = T.alloc_shared((1,), "uint64")
    begin(bar, tx)
    if tx == 0:
        Tx.copy_async(s, A[2, :, :, 1, :], mbar=bar.ptr_to([0]))
        Tx.copy_async(t, C[1, :], mbar=bar.ptr_to([0]))
    arrived(bar, tx, 1024 + 8192)
    if tx == 0:
        Tx.copy_async(B, s)
        Tx.copy_async(D, t)
        stored()


# Several copies: of a padded tile, and of a tile whose columns begin anywhere.
# sim: several_copies
#   A: bfloat16[32x192] = i + j
#   B: bfloat16[32x64] = 0 -> A[i][j]
#   C: bfloat16[32x128] = 0 -> A[i][24 + j]
#   first = 24
@T.prim_func
def several_copies(A: T.Buffer((32, 192), "bfloat16"), B: T.Buffer((32, 64), "bfloat16"), C: T.Buffer((32, 128), "bfloat16"), first: T.int32):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([128])
    s = T.alloc_shared((32, 64), "bfloat16", align=128, layout=TileLayout(S[(4, 8, 64) : (576, 64, 1)]))
    t = T.alloc_shared((32, 128), "bfloat16", align=1024, layout=mma_shared_layout("bfloat16", 3, (32, 128)))
    bar = T.alloc_shared((1,), "uint64")
    begin(bar, tx)
    if tx == 0:
        Tx.copy_async(s, A[:, 0:64], mbar=bar.ptr_to([0]))
        Tx.copy_async(t, A[:, first : first + 128], mbar=bar.ptr_to([0]))
    arrived(bar, tx, 32 * 64 * 2 + 32 * 128 * 2)
    for i in T.serial(32):
        C[i, tx] = t[i, tx]
    if tx == 0:
        Tx.copy_async(B, s)
        stored()


# Elements of 4 bits are copied as bytes; a view of a tensor begins where its offset says.
# sim: nibbles_and_views
#   A: uint8[16x64] = i * 16 + j % 16
#   B: uint8[16x32] = 0 -> A[i][32 + j]
#   C: float32[64] = i
#   D: float32[32] = 0 -> C[32 + i]
@T.prim_func
def nibbles_and_views(A: T.Buffer((16, 64), "uint8"), B: T.Buffer((16, 32), "uint8"), C: T.Buffer((64,), "float32"), D: T.Buffer((32,), "float32")):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([32])
    halves = T.decl_buffer((16, 128), "float4_e2m1fn", data=A.data, scope="global")
    back = T.decl_buffer((16, 64), "float4_e2m1fn", data=B.data, scope="global")
    upper = T.decl_buffer((32,), "float32", data=C.data, elem_offset=32, scope="global")
    s = T.alloc_shared((16, 64), "float4_e2m1fn", align=128)
    t = T.alloc_shared((32,), "float32", align=128)
    bar = T.alloc_shared((1,), "uint64")
    begin(bar, tx)
    if tx == 0:
        Tx.copy_async(s, halves[:, 64:128], mbar=bar.ptr_to([0]))
        Tx.copy_async(t, upper, mbar=bar.ptr_to([0]))
    arrived(bar, tx, 16 * 32 + 128)
    if tx == 0:
        Tx.copy_async(back, s)
        stored()
    D[tx] = t[tx]


# A sum into global memory.
# sim: sums
#   A: float32[8x32] = i + j -> 3 * (i + j)
@T.prim_func
def sums(A: T.Buffer((8, 32), "float32")):
    T.device_entry()
    T.cta_id([2])
    tx = T.thread_id([32])
    s = T.alloc_shared((8, 32), "float32", align=128)
    for i in T.serial(8):
        s[i, tx] = T.cast(i + tx, "float32")
    T.ptx.fence.proxy_async("shared::cta")
    T.cuda.cta_sync()
    if tx == 0:
        Tx.copy_async(A, s, use_tma_reduce="add")
        stored()
