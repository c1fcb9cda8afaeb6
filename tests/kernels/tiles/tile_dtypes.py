# test: compile sm_90a
# test: compile sm_100a
# Copies and sums of every dtype from 8 to 64 bits, by every scope: in, through shared memory, and out.
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx


# sim: int8_thread
#   A: int8[16x16] = (i * 3 + j) % 13
#   B: int8[16x16] = 0 -> A[i][j] * 2
@T.prim_func
def int8_thread(A: T.Buffer((16, 16), "int8"), B: T.Buffer((16, 16), "int8")):
    T.device_entry()
    T.cta_id([1])
    wid = T.warp_id([1])
    T.lane_id([32])
    tid = T.thread_id([32])
    s = T.alloc_buffer((16, 16), "int8", scope="shared")
    if tid == 0:
        Tx.copy(s, A)
        Tx.add(s, s, s)
        Tx.copy(B, s)


# sim: int8_warp
#   A: int8[16x16] = (i * 3 + j) % 13
#   B: int8[16x16] = 0 -> A[i][j] * 2
@T.prim_func
def int8_warp(A: T.Buffer((16, 16), "int8"), B: T.Buffer((16, 16), "int8")):
    T.device_entry()
    T.cta_id([1])
    wid = T.warp_id([2])
    T.lane_id([32])
    tid = T.thread_id([64])
    s = T.alloc_buffer((16, 16), "int8", scope="shared")
    if wid == 1:
        Tx.warp.copy(s, A)
        T.cuda.warp_sync()
        Tx.warp.add(s, s, s)
        Tx.warp.copy(B, s)


# sim: int8_warpgroup
#   A: int8[16x16] = (i * 3 + j) % 13
#   B: int8[16x16] = 0 -> A[i][j] * 2
@T.prim_func
def int8_warpgroup(A: T.Buffer((16, 16), "int8"), B: T.Buffer((16, 16), "int8")):
    T.device_entry()
    T.cta_id([1])
    wid = T.warp_id([4])
    T.lane_id([32])
    tid = T.thread_id([128])
    s = T.alloc_buffer((16, 16), "int8", scope="shared")
    Tx.wg.copy(s, A)
    T.cuda.cta_sync()
    Tx.wg.add(s, s, s)
    Tx.wg.copy(B, s)

# variant: int8_cta of int8_warpgroup
#   replace: "4" -> "2"
#   replace: "128" -> "64"
#   replace all: "wg" -> "cta"

# variant: uint8_thread of int8_thread
#   replace all: '"int8"' -> '"uint8"'
#   A: uint8[16x16] = (i * 3 + j) % 13
#   B: uint8[16x16] = 0 -> A[i][j] * 2

# variant: uint8_warp of int8_warp
#   replace all: '"int8"' -> '"uint8"'
#   A: uint8[16x16] = (i * 3 + j) % 13
#   B: uint8[16x16] = 0 -> A[i][j] * 2

# variant: uint8_warpgroup of int8_warpgroup
#   replace all: '"int8"' -> '"uint8"'
#   A: uint8[16x16] = (i * 3 + j) % 13
#   B: uint8[16x16] = 0 -> A[i][j] * 2


# sim: uint8_cta
#   A: uint8[16x16] = (i * 3 + j) % 13
#   B: uint8[16x16] = 0 -> A[i][j] * 2
@T.prim_func
def uint8_cta(A: T.Buffer((16, 16), "uint8"), B: T.Buffer((16, 16), "uint8")):
    T.device_entry()
    T.cta_id([1])
    wid = T.warp_id([2])
    T.lane_id([32])
    tid = T.thread_id([64])
    s = T.alloc_buffer((16, 16), "uint8", scope="shared")
    Tx.cta.copy(s, A)
    T.cuda.cta_sync()
    Tx.cta.add(s, s, s)
    Tx.cta.copy(B, s)


@T.prim_func
def float8_e4m3fn_thread(A: T.Buffer((16, 16), "float8_e4m3fn"), B: T.Buffer((16, 16), "float8_e4m3fn")):
    T.device_entry()
    T.cta_id([1])
    wid = T.warp_id([1])
    T.lane_id([32])
    tid = T.thread_id([32])
    s = T.alloc_buffer((16, 16), "float8_e4m3fn", scope="shared")
    if tid == 0:
        Tx.copy(s, A)
        Tx.copy(B, s)


@T.prim_func
def float8_e4m3fn_warp(A: T.Buffer((16, 16), "float8_e4m3fn"), B: T.Buffer((16, 16), "float8_e4m3fn")):
    T.device_entry()
    T.cta_id([1])
    wid = T.warp_id([2])
    T.lane_id([32])
    tid = T.thread_id([64])
    s = T.alloc_buffer((16, 16), "float8_e4m3fn", scope="shared")
    if wid == 1:
        Tx.warp.copy(s, A)
        T.cuda.warp_sync()
        Tx.warp.copy(B, s)


@T.prim_func
def float8_e4m3fn_warpgroup(A: T.Buffer((16, 16), "float8_e4m3fn"), B: T.Buffer((16, 16), "float8_e4m3fn")):
    T.device_entry()
    T.cta_id([1])
    wid = T.warp_id([4])
    T.lane_id([32])
    tid = T.thread_id([128])
    s = T.alloc_buffer((16, 16), "float8_e4m3fn", scope="shared")
    Tx.wg.copy(s, A)
    T.cuda.cta_sync()
    Tx.wg.copy(B, s)

# variant: float8_e4m3fn_cta of float8_e4m3fn_warpgroup
#   replace: "[4" -> "[2"
#   replace: "128" -> "64"
#   replace all: "wg" -> "cta"


@T.prim_func
def float8_e5m2_cta(A: T.Buffer((16, 16), "float8_e5m2"), B: T.Buffer((16, 16), "float8_e5m2")):
    T.device_entry()
    T.cta_id([1])
    wid = T.warp_id([2])
    T.lane_id([32])
    tid = T.thread_id([64])
    s = T.alloc_buffer((16, 16), "float8_e5m2", scope="shared")
    Tx.cta.copy(s, A)
    T.cuda.cta_sync()
    Tx.cta.copy(B, s)

# variant: int16_thread of int8_thread
#   replace all: '"int8"' -> '"int16"'
#   A: int16[16x16] = (i * 3 + j) % 13
#   B: int16[16x16] = 0 -> A[i][j] * 2

# variant: int16_warp of int8_warp
#   replace all: '"int8"' -> '"int16"'
#   A: int16[16x16] = (i * 3 + j) % 13
#   B: int16[16x16] = 0 -> A[i][j] * 2

# variant: int16_warpgroup of int8_warpgroup
#   replace all: '"int8"' -> '"int16"'
#   A: int16[16x16] = (i * 3 + j) % 13
#   B: int16[16x16] = 0 -> A[i][j] * 2

# variant: int16_cta of uint8_cta
#   replace all: '"uint8"' -> '"int16"'
#   A: int16[16x16] = (i * 3 + j) % 13
#   B: int16[16x16] = 0 -> A[i][j] * 2

# variant: uint16_warp of int8_warp
#   replace all: '"int8"' -> '"uint16"'
#   A: uint16[16x16] = (i * 3 + j) % 13
#   B: uint16[16x16] = 0 -> A[i][j] * 2

# variant: float16_thread of int8_thread
#   replace all: '"int8"' -> '"float16"'
#   A: float16[16x16] = (i * 3 + j) % 13
#   B: float16[16x16] = 0 -> A[i][j] * 2

# variant: float16_warp of int8_warp
#   replace all: '"int8"' -> '"float16"'
#   A: float16[16x16] = (i * 3 + j) % 13
#   B: float16[16x16] = 0 -> A[i][j] * 2

# variant: float16_warpgroup of int8_warpgroup
#   replace all: '"int8"' -> '"float16"'
#   A: float16[16x16] = (i * 3 + j) % 13
#   B: float16[16x16] = 0 -> A[i][j] * 2

# variant: float16_cta of uint8_cta
#   replace all: '"uint8"' -> '"float16"'
#   A: float16[16x16] = (i * 3 + j) % 13
#   B: float16[16x16] = 0 -> A[i][j] * 2

# variant: bfloat16_thread of int8_thread
#   replace all: '"int8"' -> '"bfloat16"'
#   A: bfloat16[16x16] = (i * 3 + j) % 13
#   B: bfloat16[16x16] = 0 -> A[i][j] * 2

# variant: bfloat16_warp of int8_warp
#   replace all: '"int8"' -> '"bfloat16"'
#   A: bfloat16[16x16] = (i * 3 + j) % 13
#   B: bfloat16[16x16] = 0 -> A[i][j] * 2

# variant: bfloat16_warpgroup of int8_warpgroup
#   replace all: '"int8"' -> '"bfloat16"'
#   A: bfloat16[16x16] = (i * 3 + j) % 13
#   B: bfloat16[16x16] = 0 -> A[i][j] * 2

# variant: bfloat16_cta of uint8_cta
#   replace all: '"uint8"' -> '"bfloat16"'
#   A: bfloat16[16x16] = (i * 3 + j) % 13
#   B: bfloat16[16x16] = 0 -> A[i][j] * 2

# variant: int32_thread of int8_thread
#   replace all: '"int8"' -> '"int32"'
#   A: int32[16x16] = (i * 3 + j) % 13
#   B: int32[16x16] = 0 -> A[i][j] * 2

# variant: int32_warp of int8_warp
#   replace all: '"int8"' -> '"int32"'
#   A: int32[16x16] = (i * 3 + j) % 13
#   B: int32[16x16] = 0 -> A[i][j] * 2

# variant: int32_warpgroup of int8_warpgroup
#   replace all: '"int8"' -> '"int32"'
#   A: int32[16x16] = (i * 3 + j) % 13
#   B: int32[16x16] = 0 -> A[i][j] * 2

# variant: int32_cta of uint8_cta
#   replace all: '"uint8"' -> '"int32"'
#   A: int32[16x16] = (i * 3 + j) % 13
#   B: int32[16x16] = 0 -> A[i][j] * 2

# variant: uint32_warp of int8_warp
#   replace all: '"int8"' -> '"uint32"'
#   A: uint32[16x16] = (i * 3 + j) % 13
#   B: uint32[16x16] = 0 -> A[i][j] * 2

# variant: float32_thread of int8_thread
#   replace all: '"int8"' -> '"float32"'
#   A: float32[16x16] = (i * 3 + j) % 13
#   B: float32[16x16] = 0 -> A[i][j] * 2

# variant: float32_warp of int8_warp
#   replace all: '"int8"' -> '"float32"'
#   A: float32[16x16] = (i * 3 + j) % 13
#   B: float32[16x16] = 0 -> A[i][j] * 2

# variant: float32_warpgroup of int8_warpgroup
#   replace all: '"int8"' -> '"float32"'
#   A: float32[16x16] = (i * 3 + j) % 13
#   B: float32[16x16] = 0 -> A[i][j] * 2

# variant: float32_cta of uint8_cta
#   replace all: '"uint8"' -> '"float32"'
#   A: float32[16x16] = (i * 3 + j) % 13
#   B: float32[16x16] = 0 -> A[i][j] * 2

# variant: int64_thread of int8_thread
#   replace all: '"int8"' -> '"int64"'
#   A: int64[16x16] = (i * 3 + j) % 13
#   B: int64[16x16] = 0 -> A[i][j] * 2

# variant: int64_warp of int8_warp
#   replace all: '"int8"' -> '"int64"'
#   A: int64[16x16] = (i * 3 + j) % 13
#   B: int64[16x16] = 0 -> A[i][j] * 2

# variant: int64_warpgroup of int8_warpgroup
#   replace all: '"int8"' -> '"int64"'
#   A: int64[16x16] = (i * 3 + j) % 13
#   B: int64[16x16] = 0 -> A[i][j] * 2

# variant: int64_cta of uint8_cta
#   replace all: '"uint8"' -> '"int64"'
#   A: int64[16x16] = (i * 3 + j) % 13
#   B: int64[16x16] = 0 -> A[i][j] * 2

# variant: uint64_thread of int8_thread
#   replace all: '"int8"' -> '"uint64"'
#   A: uint64[16x16] = (i * 3 + j) % 13
#   B: uint64[16x16] = 0 -> A[i][j] * 2

# variant: uint64_warp of int8_warp
#   replace all: '"int8"' -> '"uint64"'
#   A: uint64[16x16] = (i * 3 + j) % 13
#   B: uint64[16x16] = 0 -> A[i][j] * 2

# variant: uint64_warpgroup of int8_warpgroup
#   replace all: '"int8"' -> '"uint64"'
#   A: uint64[16x16] = (i * 3 + j) % 13
#   B: uint64[16x16] = 0 -> A[i][j] * 2

# variant: uint64_cta of uint8_cta
#   replace all: '"uint8"' -> '"uint64"'
#   A: uint64[16x16] = (i * 3 + j) % 13
#   B: uint64[16x16] = 0 -> A[i][j] * 2

# variant: float64_thread of int8_thread
#   replace all: '"int8"' -> '"float64"'
#   A: float64[16x16] = (i * 3 + j) % 13
#   B: float64[16x16] = 0 -> A[i][j] * 2

# variant: float64_warp of int8_warp
#   replace all: '"int8"' -> '"float64"'
#   A: float64[16x16] = (i * 3 + j) % 13
#   B: float64[16x16] = 0 -> A[i][j] * 2

# variant: float64_warpgroup of int8_warpgroup
#   replace all: '"int8"' -> '"float64"'
#   A: float64[16x16] = (i * 3 + j) % 13
#   B: float64[16x16] = 0 -> A[i][j] * 2

# variant: float64_cta of uint8_cta
#   replace all: '"uint8"' -> '"float64"'
#   A: float64[16x16] = (i * 3 + j) % 13
#   B: float64[16x16] = 0 -> A[i][j] * 2
