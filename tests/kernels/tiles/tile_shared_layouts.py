# test: compile sm_90a
# test: compile sm_100a
# Copies through shared memory of many layouts: padded, by columns, swizzled, tiled, shifted; whole tiles and parts of them, at
# offsets that are known and that are not, of extents that vectors divide and of odd ones.
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx
from tvm.tirx.layout import ComposeLayout, S, TileLayout


# sim: plain
#   A: float16[64x96] = (i * 7 + j) % 101
#   B: float16[32x64] = 0 -> A[(i + 8)][(j + 16)] + (1 if 8 <= i < 24 and 16 <= j < 48 else 0)
#   row = 2
@T.prim_func
def plain(A: T.Buffer((64, 96), "float16"), B: T.Buffer((32, 64), "float16"), row: T.int32):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    s = T.alloc_buffer((32, 64), "float16", scope="shared", layout=TileLayout(S[(32, 64)]))
    Tx.cta.copy(s, A[row * 4 : row * 4 + 32, 16:80])
    T.cuda.cta_sync()
    Tx.cta.add(s[8:24, 16:48], s[8:24, 16:48], T.float16(1.0))
    Tx.cta.copy(B, s)


# sim: padded
#   A: float16[64x96] = (i * 7 + j) % 101
#   B: float16[32x64] = 0 -> A[(i + 8)][(j + 16)] + (1 if 8 <= i < 24 and 16 <= j < 48 else 0)
#   row = 2
@T.prim_func
def padded(A: T.Buffer((64, 96), "float16"), B: T.Buffer((32, 64), "float16"), row: T.int32):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    s = T.alloc_buffer((32, 64), "float16", scope="shared", layout=TileLayout(S[(32, 64) : (72, 1)]))
    Tx.cta.copy(s, A[row * 4 : row * 4 + 32, 16:80])
    T.cuda.cta_sync()
    Tx.cta.add(s[8:24, 16:48], s[8:24, 16:48], T.float16(1.0))
    Tx.cta.copy(B, s)


# sim: odd_padding
#   A: float16[64x96] = (i * 7 + j) % 101
#   B: float16[32x64] = 0 -> A[(i + 8)][(j + 16)] + (1 if 8 <= i < 24 and 16 <= j < 48 else 0)
#   row = 2
@T.prim_func
def odd_padding(A: T.Buffer((64, 96), "float16"), B: T.Buffer((32, 64), "float16"), row: T.int32):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    s = T.alloc_buffer((32, 64), "float16", scope="shared", layout=TileLayout(S[(32, 64) : (65, 1)]))
    Tx.cta.copy(s, A[row * 4 : row * 4 + 32, 16:80])
    T.cuda.cta_sync()
    Tx.cta.add(s[8:24, 16:48], s[8:24, 16:48], T.float16(1.0))
    Tx.cta.copy(B, s)


# sim: columns
#   A: float16[64x96] = (i * 7 + j) % 101
#   B: float16[32x64] = 0 -> A[(i + 8)][(j + 16)] + (1 if 8 <= i < 24 and 16 <= j < 48 else 0)
#   row = 2
@T.prim_func
def columns(A: T.Buffer((64, 96), "float16"), B: T.Buffer((32, 64), "float16"), row: T.int32):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    s = T.alloc_buffer((32, 64), "float16", scope="shared", layout=TileLayout(S[(32, 64) : (1, 32)]))
    Tx.cta.copy(s, A[row * 4 : row * 4 + 32, 16:80])
    T.cuda.cta_sync()
    Tx.cta.add(s[8:24, 16:48], s[8:24, 16:48], T.float16(1.0))
    Tx.cta.copy(B, s)


# sim: swizzle_16
#   A: float16[64x96] = (i * 7 + j) % 101
#   B: float16[32x64] = 0 -> A[(i + 8)][(j + 16)] + (1 if 8 <= i < 24 and 16 <= j < 48 else 0)
#   row = 2
@T.prim_func
def swizzle_16(A: T.Buffer((64, 96), "float16"), B: T.Buffer((32, 64), "float16"), row: T.int32):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    s = T.alloc_buffer((32, 64), "float16", scope="shared", layout=ComposeLayout(3, 1, 3, TileLayout(S[(32, 64)])))
    Tx.cta.copy(s, A[row * 4 : row * 4 + 32, 16:80])
    T.cuda.cta_sync()
    Tx.cta.add(s[8:24, 16:48], s[8:24, 16:48], T.float16(1.0))
    Tx.cta.copy(B, s)


# sim: swizzle_64
#   A: float16[64x96] = (i * 7 + j) % 101
#   B: float16[32x64] = 0 -> A[(i + 8)][(j + 16)] + (1 if 8 <= i < 24 and 16 <= j < 48 else 0)
#   row = 2
@T.prim_func
def swizzle_64(A: T.Buffer((64, 96), "float16"), B: T.Buffer((32, 64), "float16"), row: T.int32):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    s = T.alloc_buffer((32, 64), "float16", scope="shared", layout=ComposeLayout(3, 2, 3, TileLayout(S[(32, 64)])))
    Tx.cta.copy(s, A[row * 4 : row * 4 + 32, 16:80])
    T.cuda.cta_sync()
    Tx.cta.add(s[8:24, 16:48], s[8:24, 16:48], T.float16(1.0))
    Tx.cta.copy(B, s)


# sim: swizzle_128
#   A: float16[64x96] = (i * 7 + j) % 101
#   B: float16[32x64] = 0 -> A[(i + 8)][(j + 16)] + (1 if 8 <= i < 24 and 16 <= j < 48 else 0)
#   row = 2
@T.prim_func
def swizzle_128(A: T.Buffer((64, 96), "float16"), B: T.Buffer((32, 64), "float16"), row: T.int32):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    s = T.alloc_buffer((32, 64), "float16", scope="shared", layout=ComposeLayout(3, 3, 3, TileLayout(S[(32, 64)])))
    Tx.cta.copy(s, A[row * 4 : row * 4 + 32, 16:80])
    T.cuda.cta_sync()
    Tx.cta.add(s[8:24, 16:48], s[8:24, 16:48], T.float16(1.0))
    Tx.cta.copy(B, s)


# sim: small_chunks
#   A: float16[64x96] = (i * 7 + j) % 101
#   B: float16[32x64] = 0 -> A[(i + 8)][(j + 16)] + (1 if 8 <= i < 24 and 16 <= j < 48 else 0)
#   row = 2
@T.prim_func
def small_chunks(A: T.Buffer((64, 96), "float16"), B: T.Buffer((32, 64), "float16"), row: T.int32):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    s = T.alloc_buffer((32, 64), "float16", scope="shared", layout=ComposeLayout(1, 3, 4, TileLayout(S[(32, 64)])))
    Tx.cta.copy(s, A[row * 4 : row * 4 + 32, 16:80])
    T.cuda.cta_sync()
    Tx.cta.add(s[8:24, 16:48], s[8:24, 16:48], T.float16(1.0))
    Tx.cta.copy(B, s)


# sim: outer_swizzle
#   A: float16[64x96] = (i * 7 + j) % 101
#   B: float16[32x64] = 0 -> A[(i + 8)][(j + 16)] + (1 if 8 <= i < 24 and 16 <= j < 48 else 0)
#   row = 2
@T.prim_func
def outer_swizzle(A: T.Buffer((64, 96), "float16"), B: T.Buffer((32, 64), "float16"), row: T.int32):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    s = T.alloc_buffer((32, 64), "float16", scope="shared", layout=ComposeLayout(3, 3, 3, TileLayout(S[(32, 64)]), False))
    Tx.cta.copy(s, A[row * 4 : row * 4 + 32, 16:80])
    T.cuda.cta_sync()
    Tx.cta.add(s[8:24, 16:48], s[8:24, 16:48], T.float16(1.0))
    Tx.cta.copy(B, s)


# sim: tiled
#   A: float16[64x96] = (i * 7 + j) % 101
#   B: float16[32x64] = 0 -> A[(i + 8)][(j + 16)] + (1 if 8 <= i < 24 and 16 <= j < 48 else 0)
#   row = 2
@T.prim_func
def tiled(A: T.Buffer((64, 96), "float16"), B: T.Buffer((32, 64), "float16"), row: T.int32):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    s = T.alloc_buffer((32, 64), "float16", scope="shared", layout=TileLayout(S[(32, 8, 8) : (8, 256, 1)]))
    Tx.cta.copy(s, A[row * 4 : row * 4 + 32, 16:80])
    T.cuda.cta_sync()
    Tx.cta.add(s[8:24, 16:48], s[8:24, 16:48], T.float16(1.0))
    Tx.cta.copy(B, s)


# sim: tiled_swizzle
#   A: float16[64x96] = (i * 7 + j) % 101
#   B: float16[32x64] = 0 -> A[(i + 8)][(j + 16)] + (1 if 8 <= i < 24 and 16 <= j < 48 else 0)
#   row = 2
@T.prim_func
def tiled_swizzle(A: T.Buffer((64, 96), "float16"), B: T.Buffer((32, 64), "float16"), row: T.int32):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    s = T.alloc_buffer((32, 64), "float16", scope="shared", layout=ComposeLayout(3, 3, 3, TileLayout(S[(8, 64)])).tile_to((32, 64), (8, 64)))
    Tx.cta.copy(s, A[row * 4 : row * 4 + 32, 16:80])
    T.cuda.cta_sync()
    Tx.cta.add(s[8:24, 16:48], s[8:24, 16:48], T.float16(1.0))
    Tx.cta.copy(B, s)


# sim: shifted
#   A: float16[64x96] = (i * 7 + j) % 101
#   B: float16[32x64] = 0 -> A[(i + 8)][(j + 16)] + (1 if 8 <= i < 24 and 16 <= j < 48 else 0)
#   row = 2
@T.prim_func
def shifted(A: T.Buffer((64, 96), "float16"), B: T.Buffer((32, 64), "float16"), row: T.int32):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    s = T.alloc_buffer((32, 64), "float16", scope="shared", layout=TileLayout(S[(32, 64)] + 16))
    Tx.cta.copy(s, A[row * 4 : row * 4 + 32, 16:80])
    T.cuda.cta_sync()
    Tx.cta.add(s[8:24, 16:48], s[8:24, 16:48], T.float16(1.0))
    Tx.cta.copy(B, s)


# sim: prime_rows
#   A: float32[64x96] = i * 100 + j
#   B: float32[7x32] = 0 -> A[i][j]
@T.prim_func
def prime_rows(A: T.Buffer((64, 96), "float32"), B: T.Buffer((7, 32), "float32")):
    T.device_entry()
    T.cta_id([1])
    tid = T.thread_id([32])
    s = T.alloc_buffer((7, 32), "float32", scope="shared")
    Tx.cta.copy(s, A[0:7, 0:32])
    T.cuda.cta_sync()
    Tx.cta.copy(B, s)


# sim: one_row
#   A: float32[64x96] = i * 100 + j
#   B: float32[1x64] = 0 -> A[i + 3][j + 8]
@T.prim_func
def one_row(A: T.Buffer((64, 96), "float32"), B: T.Buffer((1, 64), "float32")):
    T.device_entry()
    T.cta_id([1])
    tid = T.thread_id([32])
    s = T.alloc_buffer((1, 64), "float32", scope="shared")
    Tx.warp.copy(s, A[3:4, 8:72])
    T.cuda.cta_sync()
    Tx.warp.copy(B, s)


# sim: odd_columns
#   A: float32[64x96] = i * 100 + j
#   B: float32[32x5] = 0 -> A[i][j + 3]
@T.prim_func
def odd_columns(A: T.Buffer((64, 96), "float32"), B: T.Buffer((32, 5), "float32")):
    T.device_entry()
    T.cta_id([1])
    tid = T.thread_id([32])
    s = T.alloc_buffer((32, 5), "float32", scope="shared")
    Tx.cta.copy(s, A[0:32, 3:8])
    T.cuda.cta_sync()
    Tx.cta.copy(B, s)


# sim: unaligned
#   A: float32[64x96] = i * 100 + j
#   B: float32[16x32] = 0 -> A[i + 5][j + 3]
@T.prim_func
def unaligned(A: T.Buffer((64, 96), "float32"), B: T.Buffer((16, 32), "float32")):
    T.device_entry()
    T.cta_id([1])
    tid = T.thread_id([64])
    s = T.alloc_buffer((16, 32), "float32", scope="shared")
    Tx.cta.copy(s, A[5:21, 3:35])
    T.cuda.cta_sync()
    Tx.cta.copy(B, s)


# sim: three_by_three
#   A: float32[64x96] = i * 100 + j
#   B: float32[3x3] = 0 -> A[i + 2][j + 1]
@T.prim_func
def three_by_three(A: T.Buffer((64, 96), "float32"), B: T.Buffer((3, 3), "float32")):
    T.device_entry()
    T.cta_id([1])
    tid = T.thread_id([32])
    s = T.alloc_buffer((3, 3), "float32", scope="shared")
    if tid == 0:
        Tx.copy(s, A[2:5, 1:4])
        Tx.copy(B, s)


# sim: does_not_divide
#   A: float32[64x96] = i * 100 + j
#   B: float32[5x7] = 0 -> A[i][j]
@T.prim_func
def does_not_divide(A: T.Buffer((64, 96), "float32"), B: T.Buffer((5, 7), "float32")):
    T.device_entry()
    T.cta_id([1])
    tid = T.thread_id([64])
    s = T.alloc_buffer((5, 7), "float32", scope="shared")
    Tx.cta.copy(s, A[0:5, 0:7])
    T.cuda.cta_sync()
    Tx.cta.copy(B, s)
