# test: compile sm_90a
# test: compile sm_100a
# Casts between dtypes of one and of different widths, in shared memory.
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx


# sim: float32_to_float16
#   A: float32[16x32] = (i + j * 2) % 8
#   B: float16[16x32] = 0 -> A[i][j]
@T.prim_func
def float32_to_float16(A: T.Buffer((16, 32), "float32"), B: T.Buffer((16, 32), "float16")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    s = T.alloc_buffer((16, 32), "float32", scope="shared")
    d = T.alloc_buffer((16, 32), "float16", scope="shared")
    Tx.cta.copy(s, A)
    T.cuda.cta_sync()
    Tx.cta.cast(d, s)
    Tx.cta.copy(B, d)


# sim: float16_to_float32
#   A: float16[16x32] = (i + j * 2) % 8
#   B: float32[16x32] = 0 -> A[i][j]
@T.prim_func
def float16_to_float32(A: T.Buffer((16, 32), "float16"), B: T.Buffer((16, 32), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    s = T.alloc_buffer((16, 32), "float16", scope="shared")
    d = T.alloc_buffer((16, 32), "float32", scope="shared")
    Tx.cta.copy(s, A)
    T.cuda.cta_sync()
    Tx.cta.cast(d, s)
    Tx.cta.copy(B, d)


# sim: float32_to_bfloat16
#   A: float32[16x32] = (i + j * 2) % 8
#   B: bfloat16[16x32] = 0 -> A[i][j]
@T.prim_func
def float32_to_bfloat16(A: T.Buffer((16, 32), "float32"), B: T.Buffer((16, 32), "bfloat16")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    s = T.alloc_buffer((16, 32), "float32", scope="shared")
    d = T.alloc_buffer((16, 32), "bfloat16", scope="shared")
    Tx.cta.copy(s, A)
    T.cuda.cta_sync()
    Tx.cta.cast(d, s)
    Tx.cta.copy(B, d)


# sim: bfloat16_to_float32
#   A: bfloat16[16x32] = (i + j * 2) % 8
#   B: float32[16x32] = 0 -> A[i][j]
@T.prim_func
def bfloat16_to_float32(A: T.Buffer((16, 32), "bfloat16"), B: T.Buffer((16, 32), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    s = T.alloc_buffer((16, 32), "bfloat16", scope="shared")
    d = T.alloc_buffer((16, 32), "float32", scope="shared")
    Tx.cta.copy(s, A)
    T.cuda.cta_sync()
    Tx.cta.cast(d, s)
    Tx.cta.copy(B, d)


# sim: float16_to_bfloat16
#   A: float16[16x32] = (i + j * 2) % 8
#   B: bfloat16[16x32] = 0 -> A[i][j]
@T.prim_func
def float16_to_bfloat16(A: T.Buffer((16, 32), "float16"), B: T.Buffer((16, 32), "bfloat16")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    s = T.alloc_buffer((16, 32), "float16", scope="shared")
    d = T.alloc_buffer((16, 32), "bfloat16", scope="shared")
    Tx.cta.copy(s, A)
    T.cuda.cta_sync()
    Tx.cta.cast(d, s)
    Tx.cta.copy(B, d)


# sim: int32_to_float32
#   A: int32[16x32] = (i + j * 2) % 8
#   B: float32[16x32] = 0 -> A[i][j]
@T.prim_func
def int32_to_float32(A: T.Buffer((16, 32), "int32"), B: T.Buffer((16, 32), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    s = T.alloc_buffer((16, 32), "int32", scope="shared")
    d = T.alloc_buffer((16, 32), "float32", scope="shared")
    Tx.cta.copy(s, A)
    T.cuda.cta_sync()
    Tx.cta.cast(d, s)
    Tx.cta.copy(B, d)


# sim: float32_to_int32
#   A: float32[16x32] = (i + j * 2) % 8
#   B: int32[16x32] = 0 -> A[i][j]
@T.prim_func
def float32_to_int32(A: T.Buffer((16, 32), "float32"), B: T.Buffer((16, 32), "int32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    s = T.alloc_buffer((16, 32), "float32", scope="shared")
    d = T.alloc_buffer((16, 32), "int32", scope="shared")
    Tx.cta.copy(s, A)
    T.cuda.cta_sync()
    Tx.cta.cast(d, s)
    Tx.cta.copy(B, d)


# sim: int8_to_int32
#   A: int8[16x32] = (i + j * 2) % 8
#   B: int32[16x32] = 0 -> A[i][j]
@T.prim_func
def int8_to_int32(A: T.Buffer((16, 32), "int8"), B: T.Buffer((16, 32), "int32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    s = T.alloc_buffer((16, 32), "int8", scope="shared")
    d = T.alloc_buffer((16, 32), "int32", scope="shared")
    Tx.cta.copy(s, A)
    T.cuda.cta_sync()
    Tx.cta.cast(d, s)
    Tx.cta.copy(B, d)


# sim: float64_to_float32
#   A: float64[16x32] = (i + j * 2) % 8
#   B: float32[16x32] = 0 -> A[i][j]
@T.prim_func
def float64_to_float32(A: T.Buffer((16, 32), "float64"), B: T.Buffer((16, 32), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    s = T.alloc_buffer((16, 32), "float64", scope="shared")
    d = T.alloc_buffer((16, 32), "float32", scope="shared")
    Tx.cta.copy(s, A)
    T.cuda.cta_sync()
    Tx.cta.cast(d, s)
    Tx.cta.copy(B, d)


# sim: uint8_to_float16
#   A: uint8[16x32] = (i + j * 2) % 8
#   B: float16[16x32] = 0 -> A[i][j]
@T.prim_func
def uint8_to_float16(A: T.Buffer((16, 32), "uint8"), B: T.Buffer((16, 32), "float16")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    s = T.alloc_buffer((16, 32), "uint8", scope="shared")
    d = T.alloc_buffer((16, 32), "float16", scope="shared")
    Tx.cta.copy(s, A)
    T.cuda.cta_sync()
    Tx.cta.cast(d, s)
    Tx.cta.copy(B, d)


# sim: int64_to_int32
#   A: int64[16x32] = (i + j * 2) % 8
#   B: int32[16x32] = 0 -> A[i][j]
@T.prim_func
def int64_to_int32(A: T.Buffer((16, 32), "int64"), B: T.Buffer((16, 32), "int32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    s = T.alloc_buffer((16, 32), "int64", scope="shared")
    d = T.alloc_buffer((16, 32), "int32", scope="shared")
    Tx.cta.copy(s, A)
    T.cuda.cta_sync()
    Tx.cta.cast(d, s)
    Tx.cta.copy(B, d)


# sim: through_float8_e4m3fn_of_float32
#   A: float32[16x32] = (i + j * 2) % 8
#   B: float32[16x32] = 0 -> A[i][j]
@T.prim_func
def through_float8_e4m3fn_of_float32(A: T.Buffer((16, 32), "float32"), B: T.Buffer((16, 32), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    s = T.alloc_buffer((16, 32), "float32", scope="shared")
    d = T.alloc_buffer((16, 32), "float8_e4m3fn", scope="shared")
    Tx.cta.copy(s, A)
    T.cuda.cta_sync()
    Tx.cta.cast(d, s)
    Tx.cta.cast(s, d)
    Tx.cta.copy(B, s)


# sim: through_float8_e4m3fn_of_float16
#   A: float16[16x32] = (i + j * 2) % 8
#   B: float16[16x32] = 0 -> A[i][j]
@T.prim_func
def through_float8_e4m3fn_of_float16(A: T.Buffer((16, 32), "float16"), B: T.Buffer((16, 32), "float16")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    s = T.alloc_buffer((16, 32), "float16", scope="shared")
    d = T.alloc_buffer((16, 32), "float8_e4m3fn", scope="shared")
    Tx.cta.copy(s, A)
    T.cuda.cta_sync()
    Tx.cta.cast(d, s)
    Tx.cta.cast(s, d)
    Tx.cta.copy(B, s)


# sim: through_float8_e5m2_of_float32
#   A: float32[16x32] = (i + j * 2) % 8
#   B: float32[16x32] = 0 -> A[i][j]
@T.prim_func
def through_float8_e5m2_of_float32(A: T.Buffer((16, 32), "float32"), B: T.Buffer((16, 32), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    s = T.alloc_buffer((16, 32), "float32", scope="shared")
    d = T.alloc_buffer((16, 32), "float8_e5m2", scope="shared")
    Tx.cta.copy(s, A)
    T.cuda.cta_sync()
    Tx.cta.cast(d, s)
    Tx.cta.cast(s, d)
    Tx.cta.copy(B, s)


# sim: through_float8_e5m2_of_float16
#   A: float16[16x32] = (i + j * 2) % 8
#   B: float16[16x32] = 0 -> A[i][j]
@T.prim_func
def through_float8_e5m2_of_float16(A: T.Buffer((16, 32), "float16"), B: T.Buffer((16, 32), "float16")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    s = T.alloc_buffer((16, 32), "float16", scope="shared")
    d = T.alloc_buffer((16, 32), "float8_e5m2", scope="shared")
    Tx.cta.copy(s, A)
    T.cuda.cta_sync()
    Tx.cta.cast(d, s)
    Tx.cta.cast(s, d)
    Tx.cta.copy(B, s)
