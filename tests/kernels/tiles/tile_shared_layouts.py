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

# variant: padded of plain
#   replace: ")]" -> ") : (72, 1)]"

# variant: odd_padding of plain
#   replace: ")]" -> ") : (65, 1)]"

# variant: columns of plain
#   replace: ")]" -> ") : (1, 32)]"

# variant: swizzle_16 of plain
#   replace: "TileLayout(S[(32, 64)]" -> "ComposeLayout(3, 1, 3, TileLayout(S[(32, 64)])"

# variant: swizzle_64 of plain
#   replace: "TileLayout(S[(32, 64)]" -> "ComposeLayout(3, 2, 3, TileLayout(S[(32, 64)])"

# variant: swizzle_128 of plain
#   replace: "TileLayout(S[(32, 64)]" -> "ComposeLayout(3, 3, 3, TileLayout(S[(32, 64)])"

# variant: small_chunks of plain
#   replace: "TileLayout(S[(32, 64)]" -> "ComposeLayout(1, 3, 4, TileLayout(S[(32, 64)])"

# variant: outer_swizzle of plain
#   replace: "TileLayout(S[(32, 64)]" -> "ComposeLayout(3, 3, 3, TileLayout(S[(32, 64)]), False"

# variant: tiled of plain
#   replace: "64)]" -> "8, 8) : (8, 256, 1)]"

# variant: tiled_swizzle of plain
#   replace: "TileLayout(S[(32, 64)]" -> "ComposeLayout(3, 3, 3, TileLayout(S[(8, 64)])).tile_to((32, 64), (8, 64)"

# variant: shifted of plain
#   replace: ")]" -> ")] + 16"


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

# variant: one_row of prime_rows
#   replace all: "7, 32" -> "1, 64"
#   replace: "cta.copy(s, A[0:7, 0:32" -> "warp.copy(s, A[3:4, 8:72"
#   replace: "cta." -> "warp."
#   B: float32[1x64] = 0 -> A[i + 3][j + 8]

# variant: odd_columns of prime_rows
#   replace all: "7, 32" -> "32, 5"
#   replace: "7, 0:32" -> "32, 3:8"
#   B: float32[32x5] = 0 -> A[i][j + 3]

# variant: unaligned of prime_rows
#   replace all: "7" -> "16"
#   replace: "[32" -> "[64"
#   replace: "0:16, 0:32" -> "5:21, 3:35"
#   B: float32[16x32] = 0 -> A[i + 5][j + 3]


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

# variant: does_not_divide of prime_rows
#   replace all: "7, 32" -> "5, 7"
#   replace: "[32" -> "[64"
#   replace: "7, 0:32" -> "5, 0:7"
#   B: float32[5x7] = 0 -> A[i][j]
