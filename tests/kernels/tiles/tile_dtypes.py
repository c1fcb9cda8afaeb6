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


# sim: int8_cta
#   A: int8[16x16] = (i * 3 + j) % 13
#   B: int8[16x16] = 0 -> A[i][j] * 2
@T.prim_func
def int8_cta(A: T.Buffer((16, 16), "int8"), B: T.Buffer((16, 16), "int8")):
    T.device_entry()
    T.cta_id([1])
    wid = T.warp_id([2])
    T.lane_id([32])
    tid = T.thread_id([64])
    s = T.alloc_buffer((16, 16), "int8", scope="shared")
    Tx.cta.copy(s, A)
    T.cuda.cta_sync()
    Tx.cta.add(s, s, s)
    Tx.cta.copy(B, s)


# sim: uint8_thread
#   A: uint8[16x16] = (i * 3 + j) % 13
#   B: uint8[16x16] = 0 -> A[i][j] * 2
@T.prim_func
def uint8_thread(A: T.Buffer((16, 16), "uint8"), B: T.Buffer((16, 16), "uint8")):
    T.device_entry()
    T.cta_id([1])
    wid = T.warp_id([1])
    T.lane_id([32])
    tid = T.thread_id([32])
    s = T.alloc_buffer((16, 16), "uint8", scope="shared")
    if tid == 0:
        Tx.copy(s, A)
        Tx.add(s, s, s)
        Tx.copy(B, s)


# sim: uint8_warp
#   A: uint8[16x16] = (i * 3 + j) % 13
#   B: uint8[16x16] = 0 -> A[i][j] * 2
@T.prim_func
def uint8_warp(A: T.Buffer((16, 16), "uint8"), B: T.Buffer((16, 16), "uint8")):
    T.device_entry()
    T.cta_id([1])
    wid = T.warp_id([2])
    T.lane_id([32])
    tid = T.thread_id([64])
    s = T.alloc_buffer((16, 16), "uint8", scope="shared")
    if wid == 1:
        Tx.warp.copy(s, A)
        T.cuda.warp_sync()
        Tx.warp.add(s, s, s)
        Tx.warp.copy(B, s)


# sim: uint8_warpgroup
#   A: uint8[16x16] = (i * 3 + j) % 13
#   B: uint8[16x16] = 0 -> A[i][j] * 2
@T.prim_func
def uint8_warpgroup(A: T.Buffer((16, 16), "uint8"), B: T.Buffer((16, 16), "uint8")):
    T.device_entry()
    T.cta_id([1])
    wid = T.warp_id([4])
    T.lane_id([32])
    tid = T.thread_id([128])
    s = T.alloc_buffer((16, 16), "uint8", scope="shared")
    Tx.wg.copy(s, A)
    T.cuda.cta_sync()
    Tx.wg.add(s, s, s)
    Tx.wg.copy(B, s)


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


@T.prim_func
def float8_e4m3fn_cta(A: T.Buffer((16, 16), "float8_e4m3fn"), B: T.Buffer((16, 16), "float8_e4m3fn")):
    T.device_entry()
    T.cta_id([1])
    wid = T.warp_id([2])
    T.lane_id([32])
    tid = T.thread_id([64])
    s = T.alloc_buffer((16, 16), "float8_e4m3fn", scope="shared")
    Tx.cta.copy(s, A)
    T.cuda.cta_sync()
    Tx.cta.copy(B, s)


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


# sim: int16_thread
#   A: int16[16x16] = (i * 3 + j) % 13
#   B: int16[16x16] = 0 -> A[i][j] * 2
@T.prim_func
def int16_thread(A: T.Buffer((16, 16), "int16"), B: T.Buffer((16, 16), "int16")):
    T.device_entry()
    T.cta_id([1])
    wid = T.warp_id([1])
    T.lane_id([32])
    tid = T.thread_id([32])
    s = T.alloc_buffer((16, 16), "int16", scope="shared")
    if tid == 0:
        Tx.copy(s, A)
        Tx.add(s, s, s)
        Tx.copy(B, s)


# sim: int16_warp
#   A: int16[16x16] = (i * 3 + j) % 13
#   B: int16[16x16] = 0 -> A[i][j] * 2
@T.prim_func
def int16_warp(A: T.Buffer((16, 16), "int16"), B: T.Buffer((16, 16), "int16")):
    T.device_entry()
    T.cta_id([1])
    wid = T.warp_id([2])
    T.lane_id([32])
    tid = T.thread_id([64])
    s = T.alloc_buffer((16, 16), "int16", scope="shared")
    if wid == 1:
        Tx.warp.copy(s, A)
        T.cuda.warp_sync()
        Tx.warp.add(s, s, s)
        Tx.warp.copy(B, s)


# sim: int16_warpgroup
#   A: int16[16x16] = (i * 3 + j) % 13
#   B: int16[16x16] = 0 -> A[i][j] * 2
@T.prim_func
def int16_warpgroup(A: T.Buffer((16, 16), "int16"), B: T.Buffer((16, 16), "int16")):
    T.device_entry()
    T.cta_id([1])
    wid = T.warp_id([4])
    T.lane_id([32])
    tid = T.thread_id([128])
    s = T.alloc_buffer((16, 16), "int16", scope="shared")
    Tx.wg.copy(s, A)
    T.cuda.cta_sync()
    Tx.wg.add(s, s, s)
    Tx.wg.copy(B, s)


# sim: int16_cta
#   A: int16[16x16] = (i * 3 + j) % 13
#   B: int16[16x16] = 0 -> A[i][j] * 2
@T.prim_func
def int16_cta(A: T.Buffer((16, 16), "int16"), B: T.Buffer((16, 16), "int16")):
    T.device_entry()
    T.cta_id([1])
    wid = T.warp_id([2])
    T.lane_id([32])
    tid = T.thread_id([64])
    s = T.alloc_buffer((16, 16), "int16", scope="shared")
    Tx.cta.copy(s, A)
    T.cuda.cta_sync()
    Tx.cta.add(s, s, s)
    Tx.cta.copy(B, s)


# sim: uint16_warp
#   A: uint16[16x16] = (i * 3 + j) % 13
#   B: uint16[16x16] = 0 -> A[i][j] * 2
@T.prim_func
def uint16_warp(A: T.Buffer((16, 16), "uint16"), B: T.Buffer((16, 16), "uint16")):
    T.device_entry()
    T.cta_id([1])
    wid = T.warp_id([2])
    T.lane_id([32])
    tid = T.thread_id([64])
    s = T.alloc_buffer((16, 16), "uint16", scope="shared")
    if wid == 1:
        Tx.warp.copy(s, A)
        T.cuda.warp_sync()
        Tx.warp.add(s, s, s)
        Tx.warp.copy(B, s)


# sim: float16_thread
#   A: float16[16x16] = (i * 3 + j) % 13
#   B: float16[16x16] = 0 -> A[i][j] * 2
@T.prim_func
def float16_thread(A: T.Buffer((16, 16), "float16"), B: T.Buffer((16, 16), "float16")):
    T.device_entry()
    T.cta_id([1])
    wid = T.warp_id([1])
    T.lane_id([32])
    tid = T.thread_id([32])
    s = T.alloc_buffer((16, 16), "float16", scope="shared")
    if tid == 0:
        Tx.copy(s, A)
        Tx.add(s, s, s)
        Tx.copy(B, s)


# sim: float16_warp
#   A: float16[16x16] = (i * 3 + j) % 13
#   B: float16[16x16] = 0 -> A[i][j] * 2
@T.prim_func
def float16_warp(A: T.Buffer((16, 16), "float16"), B: T.Buffer((16, 16), "float16")):
    T.device_entry()
    T.cta_id([1])
    wid = T.warp_id([2])
    T.lane_id([32])
    tid = T.thread_id([64])
    s = T.alloc_buffer((16, 16), "float16", scope="shared")
    if wid == 1:
        Tx.warp.copy(s, A)
        T.cuda.warp_sync()
        Tx.warp.add(s, s, s)
        Tx.warp.copy(B, s)


# sim: float16_warpgroup
#   A: float16[16x16] = (i * 3 + j) % 13
#   B: float16[16x16] = 0 -> A[i][j] * 2
@T.prim_func
def float16_warpgroup(A: T.Buffer((16, 16), "float16"), B: T.Buffer((16, 16), "float16")):
    T.device_entry()
    T.cta_id([1])
    wid = T.warp_id([4])
    T.lane_id([32])
    tid = T.thread_id([128])
    s = T.alloc_buffer((16, 16), "float16", scope="shared")
    Tx.wg.copy(s, A)
    T.cuda.cta_sync()
    Tx.wg.add(s, s, s)
    Tx.wg.copy(B, s)


# sim: float16_cta
#   A: float16[16x16] = (i * 3 + j) % 13
#   B: float16[16x16] = 0 -> A[i][j] * 2
@T.prim_func
def float16_cta(A: T.Buffer((16, 16), "float16"), B: T.Buffer((16, 16), "float16")):
    T.device_entry()
    T.cta_id([1])
    wid = T.warp_id([2])
    T.lane_id([32])
    tid = T.thread_id([64])
    s = T.alloc_buffer((16, 16), "float16", scope="shared")
    Tx.cta.copy(s, A)
    T.cuda.cta_sync()
    Tx.cta.add(s, s, s)
    Tx.cta.copy(B, s)


# sim: bfloat16_thread
#   A: bfloat16[16x16] = (i * 3 + j) % 13
#   B: bfloat16[16x16] = 0 -> A[i][j] * 2
@T.prim_func
def bfloat16_thread(A: T.Buffer((16, 16), "bfloat16"), B: T.Buffer((16, 16), "bfloat16")):
    T.device_entry()
    T.cta_id([1])
    wid = T.warp_id([1])
    T.lane_id([32])
    tid = T.thread_id([32])
    s = T.alloc_buffer((16, 16), "bfloat16", scope="shared")
    if tid == 0:
        Tx.copy(s, A)
        Tx.add(s, s, s)
        Tx.copy(B, s)


# sim: bfloat16_warp
#   A: bfloat16[16x16] = (i * 3 + j) % 13
#   B: bfloat16[16x16] = 0 -> A[i][j] * 2
@T.prim_func
def bfloat16_warp(A: T.Buffer((16, 16), "bfloat16"), B: T.Buffer((16, 16), "bfloat16")):
    T.device_entry()
    T.cta_id([1])
    wid = T.warp_id([2])
    T.lane_id([32])
    tid = T.thread_id([64])
    s = T.alloc_buffer((16, 16), "bfloat16", scope="shared")
    if wid == 1:
        Tx.warp.copy(s, A)
        T.cuda.warp_sync()
        Tx.warp.add(s, s, s)
        Tx.warp.copy(B, s)


# sim: bfloat16_warpgroup
#   A: bfloat16[16x16] = (i * 3 + j) % 13
#   B: bfloat16[16x16] = 0 -> A[i][j] * 2
@T.prim_func
def bfloat16_warpgroup(A: T.Buffer((16, 16), "bfloat16"), B: T.Buffer((16, 16), "bfloat16")):
    T.device_entry()
    T.cta_id([1])
    wid = T.warp_id([4])
    T.lane_id([32])
    tid = T.thread_id([128])
    s = T.alloc_buffer((16, 16), "bfloat16", scope="shared")
    Tx.wg.copy(s, A)
    T.cuda.cta_sync()
    Tx.wg.add(s, s, s)
    Tx.wg.copy(B, s)


# sim: bfloat16_cta
#   A: bfloat16[16x16] = (i * 3 + j) % 13
#   B: bfloat16[16x16] = 0 -> A[i][j] * 2
@T.prim_func
def bfloat16_cta(A: T.Buffer((16, 16), "bfloat16"), B: T.Buffer((16, 16), "bfloat16")):
    T.device_entry()
    T.cta_id([1])
    wid = T.warp_id([2])
    T.lane_id([32])
    tid = T.thread_id([64])
    s = T.alloc_buffer((16, 16), "bfloat16", scope="shared")
    Tx.cta.copy(s, A)
    T.cuda.cta_sync()
    Tx.cta.add(s, s, s)
    Tx.cta.copy(B, s)


# sim: int32_thread
#   A: int32[16x16] = (i * 3 + j) % 13
#   B: int32[16x16] = 0 -> A[i][j] * 2
@T.prim_func
def int32_thread(A: T.Buffer((16, 16), "int32"), B: T.Buffer((16, 16), "int32")):
    T.device_entry()
    T.cta_id([1])
    wid = T.warp_id([1])
    T.lane_id([32])
    tid = T.thread_id([32])
    s = T.alloc_buffer((16, 16), "int32", scope="shared")
    if tid == 0:
        Tx.copy(s, A)
        Tx.add(s, s, s)
        Tx.copy(B, s)


# sim: int32_warp
#   A: int32[16x16] = (i * 3 + j) % 13
#   B: int32[16x16] = 0 -> A[i][j] * 2
@T.prim_func
def int32_warp(A: T.Buffer((16, 16), "int32"), B: T.Buffer((16, 16), "int32")):
    T.device_entry()
    T.cta_id([1])
    wid = T.warp_id([2])
    T.lane_id([32])
    tid = T.thread_id([64])
    s = T.alloc_buffer((16, 16), "int32", scope="shared")
    if wid == 1:
        Tx.warp.copy(s, A)
        T.cuda.warp_sync()
        Tx.warp.add(s, s, s)
        Tx.warp.copy(B, s)


# sim: int32_warpgroup
#   A: int32[16x16] = (i * 3 + j) % 13
#   B: int32[16x16] = 0 -> A[i][j] * 2
@T.prim_func
def int32_warpgroup(A: T.Buffer((16, 16), "int32"), B: T.Buffer((16, 16), "int32")):
    T.device_entry()
    T.cta_id([1])
    wid = T.warp_id([4])
    T.lane_id([32])
    tid = T.thread_id([128])
    s = T.alloc_buffer((16, 16), "int32", scope="shared")
    Tx.wg.copy(s, A)
    T.cuda.cta_sync()
    Tx.wg.add(s, s, s)
    Tx.wg.copy(B, s)


# sim: int32_cta
#   A: int32[16x16] = (i * 3 + j) % 13
#   B: int32[16x16] = 0 -> A[i][j] * 2
@T.prim_func
def int32_cta(A: T.Buffer((16, 16), "int32"), B: T.Buffer((16, 16), "int32")):
    T.device_entry()
    T.cta_id([1])
    wid = T.warp_id([2])
    T.lane_id([32])
    tid = T.thread_id([64])
    s = T.alloc_buffer((16, 16), "int32", scope="shared")
    Tx.cta.copy(s, A)
    T.cuda.cta_sync()
    Tx.cta.add(s, s, s)
    Tx.cta.copy(B, s)


# sim: uint32_warp
#   A: uint32[16x16] = (i * 3 + j) % 13
#   B: uint32[16x16] = 0 -> A[i][j] * 2
@T.prim_func
def uint32_warp(A: T.Buffer((16, 16), "uint32"), B: T.Buffer((16, 16), "uint32")):
    T.device_entry()
    T.cta_id([1])
    wid = T.warp_id([2])
    T.lane_id([32])
    tid = T.thread_id([64])
    s = T.alloc_buffer((16, 16), "uint32", scope="shared")
    if wid == 1:
        Tx.warp.copy(s, A)
        T.cuda.warp_sync()
        Tx.warp.add(s, s, s)
        Tx.warp.copy(B, s)


# sim: float32_thread
#   A: float32[16x16] = (i * 3 + j) % 13
#   B: float32[16x16] = 0 -> A[i][j] * 2
@T.prim_func
def float32_thread(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32")):
    T.device_entry()
    T.cta_id([1])
    wid = T.warp_id([1])
    T.lane_id([32])
    tid = T.thread_id([32])
    s = T.alloc_buffer((16, 16), "float32", scope="shared")
    if tid == 0:
        Tx.copy(s, A)
        Tx.add(s, s, s)
        Tx.copy(B, s)


# sim: float32_warp
#   A: float32[16x16] = (i * 3 + j) % 13
#   B: float32[16x16] = 0 -> A[i][j] * 2
@T.prim_func
def float32_warp(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32")):
    T.device_entry()
    T.cta_id([1])
    wid = T.warp_id([2])
    T.lane_id([32])
    tid = T.thread_id([64])
    s = T.alloc_buffer((16, 16), "float32", scope="shared")
    if wid == 1:
        Tx.warp.copy(s, A)
        T.cuda.warp_sync()
        Tx.warp.add(s, s, s)
        Tx.warp.copy(B, s)


# sim: float32_warpgroup
#   A: float32[16x16] = (i * 3 + j) % 13
#   B: float32[16x16] = 0 -> A[i][j] * 2
@T.prim_func
def float32_warpgroup(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32")):
    T.device_entry()
    T.cta_id([1])
    wid = T.warp_id([4])
    T.lane_id([32])
    tid = T.thread_id([128])
    s = T.alloc_buffer((16, 16), "float32", scope="shared")
    Tx.wg.copy(s, A)
    T.cuda.cta_sync()
    Tx.wg.add(s, s, s)
    Tx.wg.copy(B, s)


# sim: float32_cta
#   A: float32[16x16] = (i * 3 + j) % 13
#   B: float32[16x16] = 0 -> A[i][j] * 2
@T.prim_func
def float32_cta(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32")):
    T.device_entry()
    T.cta_id([1])
    wid = T.warp_id([2])
    T.lane_id([32])
    tid = T.thread_id([64])
    s = T.alloc_buffer((16, 16), "float32", scope="shared")
    Tx.cta.copy(s, A)
    T.cuda.cta_sync()
    Tx.cta.add(s, s, s)
    Tx.cta.copy(B, s)


# sim: int64_thread
#   A: int64[16x16] = (i * 3 + j) % 13
#   B: int64[16x16] = 0 -> A[i][j] * 2
@T.prim_func
def int64_thread(A: T.Buffer((16, 16), "int64"), B: T.Buffer((16, 16), "int64")):
    T.device_entry()
    T.cta_id([1])
    wid = T.warp_id([1])
    T.lane_id([32])
    tid = T.thread_id([32])
    s = T.alloc_buffer((16, 16), "int64", scope="shared")
    if tid == 0:
        Tx.copy(s, A)
        Tx.add(s, s, s)
        Tx.copy(B, s)


# sim: int64_warp
#   A: int64[16x16] = (i * 3 + j) % 13
#   B: int64[16x16] = 0 -> A[i][j] * 2
@T.prim_func
def int64_warp(A: T.Buffer((16, 16), "int64"), B: T.Buffer((16, 16), "int64")):
    T.device_entry()
    T.cta_id([1])
    wid = T.warp_id([2])
    T.lane_id([32])
    tid = T.thread_id([64])
    s = T.alloc_buffer((16, 16), "int64", scope="shared")
    if wid == 1:
        Tx.warp.copy(s, A)
        T.cuda.warp_sync()
        Tx.warp.add(s, s, s)
        Tx.warp.copy(B, s)


# sim: int64_warpgroup
#   A: int64[16x16] = (i * 3 + j) % 13
#   B: int64[16x16] = 0 -> A[i][j] * 2
@T.prim_func
def int64_warpgroup(A: T.Buffer((16, 16), "int64"), B: T.Buffer((16, 16), "int64")):
    T.device_entry()
    T.cta_id([1])
    wid = T.warp_id([4])
    T.lane_id([32])
    tid = T.thread_id([128])
    s = T.alloc_buffer((16, 16), "int64", scope="shared")
    Tx.wg.copy(s, A)
    T.cuda.cta_sync()
    Tx.wg.add(s, s, s)
    Tx.wg.copy(B, s)


# sim: int64_cta
#   A: int64[16x16] = (i * 3 + j) % 13
#   B: int64[16x16] = 0 -> A[i][j] * 2
@T.prim_func
def int64_cta(A: T.Buffer((16, 16), "int64"), B: T.Buffer((16, 16), "int64")):
    T.device_entry()
    T.cta_id([1])
    wid = T.warp_id([2])
    T.lane_id([32])
    tid = T.thread_id([64])
    s = T.alloc_buffer((16, 16), "int64", scope="shared")
    Tx.cta.copy(s, A)
    T.cuda.cta_sync()
    Tx.cta.add(s, s, s)
    Tx.cta.copy(B, s)


# sim: uint64_thread
#   A: uint64[16x16] = (i * 3 + j) % 13
#   B: uint64[16x16] = 0 -> A[i][j] * 2
@T.prim_func
def uint64_thread(A: T.Buffer((16, 16), "uint64"), B: T.Buffer((16, 16), "uint64")):
    T.device_entry()
    T.cta_id([1])
    wid = T.warp_id([1])
    T.lane_id([32])
    tid = T.thread_id([32])
    s = T.alloc_buffer((16, 16), "uint64", scope="shared")
    if tid == 0:
        Tx.copy(s, A)
        Tx.add(s, s, s)
        Tx.copy(B, s)


# sim: uint64_warp
#   A: uint64[16x16] = (i * 3 + j) % 13
#   B: uint64[16x16] = 0 -> A[i][j] * 2
@T.prim_func
def uint64_warp(A: T.Buffer((16, 16), "uint64"), B: T.Buffer((16, 16), "uint64")):
    T.device_entry()
    T.cta_id([1])
    wid = T.warp_id([2])
    T.lane_id([32])
    tid = T.thread_id([64])
    s = T.alloc_buffer((16, 16), "uint64", scope="shared")
    if wid == 1:
        Tx.warp.copy(s, A)
        T.cuda.warp_sync()
        Tx.warp.add(s, s, s)
        Tx.warp.copy(B, s)


# sim: uint64_warpgroup
#   A: uint64[16x16] = (i * 3 + j) % 13
#   B: uint64[16x16] = 0 -> A[i][j] * 2
@T.prim_func
def uint64_warpgroup(A: T.Buffer((16, 16), "uint64"), B: T.Buffer((16, 16), "uint64")):
    T.device_entry()
    T.cta_id([1])
    wid = T.warp_id([4])
    T.lane_id([32])
    tid = T.thread_id([128])
    s = T.alloc_buffer((16, 16), "uint64", scope="shared")
    Tx.wg.copy(s, A)
    T.cuda.cta_sync()
    Tx.wg.add(s, s, s)
    Tx.wg.copy(B, s)


# sim: uint64_cta
#   A: uint64[16x16] = (i * 3 + j) % 13
#   B: uint64[16x16] = 0 -> A[i][j] * 2
@T.prim_func
def uint64_cta(A: T.Buffer((16, 16), "uint64"), B: T.Buffer((16, 16), "uint64")):
    T.device_entry()
    T.cta_id([1])
    wid = T.warp_id([2])
    T.lane_id([32])
    tid = T.thread_id([64])
    s = T.alloc_buffer((16, 16), "uint64", scope="shared")
    Tx.cta.copy(s, A)
    T.cuda.cta_sync()
    Tx.cta.add(s, s, s)
    Tx.cta.copy(B, s)


# sim: float64_thread
#   A: float64[16x16] = (i * 3 + j) % 13
#   B: float64[16x16] = 0 -> A[i][j] * 2
@T.prim_func
def float64_thread(A: T.Buffer((16, 16), "float64"), B: T.Buffer((16, 16), "float64")):
    T.device_entry()
    T.cta_id([1])
    wid = T.warp_id([1])
    T.lane_id([32])
    tid = T.thread_id([32])
    s = T.alloc_buffer((16, 16), "float64", scope="shared")
    if tid == 0:
        Tx.copy(s, A)
        Tx.add(s, s, s)
        Tx.copy(B, s)


# sim: float64_warp
#   A: float64[16x16] = (i * 3 + j) % 13
#   B: float64[16x16] = 0 -> A[i][j] * 2
@T.prim_func
def float64_warp(A: T.Buffer((16, 16), "float64"), B: T.Buffer((16, 16), "float64")):
    T.device_entry()
    T.cta_id([1])
    wid = T.warp_id([2])
    T.lane_id([32])
    tid = T.thread_id([64])
    s = T.alloc_buffer((16, 16), "float64", scope="shared")
    if wid == 1:
        Tx.warp.copy(s, A)
        T.cuda.warp_sync()
        Tx.warp.add(s, s, s)
        Tx.warp.copy(B, s)


# sim: float64_warpgroup
#   A: float64[16x16] = (i * 3 + j) % 13
#   B: float64[16x16] = 0 -> A[i][j] * 2
@T.prim_func
def float64_warpgroup(A: T.Buffer((16, 16), "float64"), B: T.Buffer((16, 16), "float64")):
    T.device_entry()
    T.cta_id([1])
    wid = T.warp_id([4])
    T.lane_id([32])
    tid = T.thread_id([128])
    s = T.alloc_buffer((16, 16), "float64", scope="shared")
    Tx.wg.copy(s, A)
    T.cuda.cta_sync()
    Tx.wg.add(s, s, s)
    Tx.wg.copy(B, s)


# sim: float64_cta
#   A: float64[16x16] = (i * 3 + j) % 13
#   B: float64[16x16] = 0 -> A[i][j] * 2
@T.prim_func
def float64_cta(A: T.Buffer((16, 16), "float64"), B: T.Buffer((16, 16), "float64")):
    T.device_entry()
    T.cta_id([1])
    wid = T.warp_id([2])
    T.lane_id([32])
    tid = T.thread_id([64])
    s = T.alloc_buffer((16, 16), "float64", scope="shared")
    Tx.cta.copy(s, A)
    T.cuda.cta_sync()
    Tx.cta.add(s, s, s)
    Tx.cta.copy(B, s)
