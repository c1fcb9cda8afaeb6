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

# variant: float32_to_bfloat16 of float32_to_float16
#   replace all: '"float16' -> '"bfloat16'
#   B: bfloat16[16x32] = 0 -> A[i][j]

# variant: bfloat16_to_float32 of float16_to_float32
#   replace all: '"float16' -> '"bfloat16'
#   A: bfloat16[16x32] = (i + j * 2) % 8

# variant: float16_to_bfloat16 of float16_to_float32
#   replace all: "float32" -> "bfloat16"
#   B: bfloat16[16x32] = 0 -> A[i][j]

# variant: int32_to_float32 of float16_to_float32
#   replace all: "float16" -> "int32"
#   A: int32[16x32] = (i + j * 2) % 8

# variant: float32_to_int32 of float32_to_float16
#   replace all: "float16" -> "int32"
#   B: int32[16x32] = 0 -> A[i][j]

# variant: int8_to_int32 of float32_to_float16
#   replace: 'float32"), B: T.Buffer((16, 32), "float16' -> 'int8"), B: T.Buffer((16, 32), "int32'
#   replace: "float32" -> "int8"
#   replace: "float16" -> "int32"
#   A: int8[16x32] = (i + j * 2) % 8
#   B: int32[16x32] = 0 -> A[i][j]

# variant: float64_to_float32 of float16_to_float32
#   replace all: "float16" -> "float64"
#   A: float64[16x32] = (i + j * 2) % 8

# variant: uint8_to_float16 of float32_to_float16
#   replace all: "float32" -> "uint8"
#   A: uint8[16x32] = (i + j * 2) % 8

# variant: int64_to_int32 of float32_to_float16
#   replace: 'float32"), B: T.Buffer((16, 32), "float16' -> 'int64"), B: T.Buffer((16, 32), "int32'
#   replace: "float32" -> "int64"
#   replace: "float16" -> "int32"
#   A: int64[16x32] = (i + j * 2) % 8
#   B: int32[16x32] = 0 -> A[i][j]

# variant: through_float8_e4m3fn_of_float32 of float32_to_float16
#   replace: 'float16")' -> 'float32")'
#   replace: "float16" -> "float8_e4m3fn"
#   replace: "copy(B, d" -> "cast(s, d)\n    Tx.cta.copy(B, s"
#   B: float32[16x32] = 0 -> A[i][j]

# variant: through_float8_e4m3fn_of_float16 of float16_to_float32
#   replace: 'float32")' -> 'float16")'
#   replace: "float32" -> "float8_e4m3fn"
#   replace: "copy(B, d" -> "cast(s, d)\n    Tx.cta.copy(B, s"
#   B: float16[16x32] = 0 -> A[i][j]

# variant: through_float8_e5m2_of_float32 of float32_to_float16
#   replace: 'float16")' -> 'float32")'
#   replace: "float16" -> "float8_e5m2"
#   replace: "copy(B, d" -> "cast(s, d)\n    Tx.cta.copy(B, s"
#   B: float32[16x32] = 0 -> A[i][j]

# variant: through_float8_e5m2_of_float16 of float16_to_float32
#   replace: 'float32")' -> 'float16")'
#   replace: "float32" -> "float8_e5m2"
#   replace: "copy(B, d" -> "cast(s, d)\n    Tx.cta.copy(B, s"
#   B: float16[16x32] = 0 -> A[i][j]
