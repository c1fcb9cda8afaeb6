# test: cuda sm_90a
# test: compile sm_100a
# Sums, products, maxima, conversions and copies of vectors of each dtype.
from tvm.script import tirx as T


@T.prim_func
def add_int8_2(A: T.Buffer((2048,), "int8"), B: T.Buffer((2048,), "int8")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    for v in T.vectorized(2):
        B[(bx * 64 + tx) * 2 + v] = A[(bx * 64 + tx) * 2 + v] + T.int8(3)

# variant: add_int8_4 of add_int8_2
#   replace: "(2)" -> "(4)"
#   replace all: "* 2" -> "* 4"

# variant: add_uint8_2 of add_int8_2
#   replace all: 'int8"' -> 'uint8"'
#   replace: "int8(" -> "uint8("

# variant: add_uint8_4 of add_int8_2
#   replace all: 'int8"' -> 'uint8"'
#   replace: "(2)" -> "(4)"
#   replace all: "* 2" -> "* 4"
#   replace: "int8(" -> "uint8("

# variant: add_int16_2 of add_int8_2
#   replace all: "int8" -> "int16"

# variant: add_int16_4 of add_int8_2
#   replace all: "int8" -> "int16"
#   replace: "(2)" -> "(4)"
#   replace all: "* 2" -> "* 4"

# variant: add_uint16_2 of add_int8_2
#   replace all: "int8" -> "uint16"

# variant: add_uint16_4 of add_int8_2
#   replace all: "int8" -> "uint16"
#   replace: "(2)" -> "(4)"
#   replace all: "* 2" -> "* 4"

# variant: add_float16_2 of add_int8_2
#   replace all: "int8" -> "float16"

# variant: add_float16_4 of add_int8_2
#   replace all: "int8" -> "float16"
#   replace: "(2)" -> "(4)"
#   replace all: "* 2" -> "* 4"

# variant: add_float16_8 of add_int8_2
#   replace all: "int8" -> "float16"
#   replace: "(2)" -> "(8)"
#   replace all: "* 2" -> "* 8"

# variant: add_bfloat16_2 of add_int8_2
#   replace all: "int8" -> "bfloat16"

# variant: add_bfloat16_4 of add_int8_2
#   replace all: "int8" -> "bfloat16"
#   replace: "(2)" -> "(4)"
#   replace all: "* 2" -> "* 4"

# variant: add_bfloat16_8 of add_int8_2
#   replace all: "int8" -> "bfloat16"
#   replace: "(2)" -> "(8)"
#   replace all: "* 2" -> "* 8"


@T.prim_func
def cast_int8_int32(A: T.Buffer((2048,), "int8"), B: T.Buffer((2048,), "int32")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    for v in T.vectorized(4):
        B[(bx * 64 + tx) * 4 + v] = T.cast(A[(bx * 64 + tx) * 4 + v], "int32")

# variant: cast_int8_float32 of cast_int8_int32
#   replace all: "int32" -> "float32"

# variant: cast_uint8_float32 of cast_int8_int32
#   replace: 'int8"' -> 'uint8"'
#   replace all: "int32" -> "float32"

# variant: cast_uint8_int32 of cast_int8_int32
#   replace: 'int8"' -> 'uint8"'

# variant: cast_int16_int32 of cast_int8_int32
#   replace: "int8" -> "int16"

# variant: cast_float16_float32 of cast_int8_int32
#   replace: "int8" -> "float16"
#   replace all: "int32" -> "float32"

# variant: cast_bfloat16_float32 of cast_int8_int32
#   replace: "int8" -> "bfloat16"
#   replace all: "int32" -> "float32"

# variant: cast_int8_float16 of cast_int8_int32
#   replace all: "int32" -> "float16"

# variant: cast_float32_int8 of cast_int8_int32
#   replace: 'int8"' -> 'float32"'
#   replace all: "int32" -> "int8"

# variant: cast_float32_float16 of cast_int8_int32
#   replace: "int8" -> "float32"
#   replace all: "int32" -> "float16"

# variant: cast_float32_bfloat16 of cast_int8_int32
#   replace: "int8" -> "float32"
#   replace all: "int32" -> "bfloat16"

# variant: cast_int32_int8 of cast_int8_int32
#   replace: 'int8"' -> 'int32"'
#   replace: 'int32"))' -> 'int8"))'
#   replace: '], "int32' -> '], "int8'

# variant: cast_float8_e4m3fn_float32 of cast_int8_int32
#   replace: "int8" -> "float8_e4m3fn"
#   replace all: "int32" -> "float32"

# variant: cast_float32_float8_e4m3fn of cast_int8_int32
#   replace: "int8" -> "float32"
#   replace all: "int32" -> "float8_e4m3fn"

# variant: cast_float8_e4m3fn_float16 of cast_int8_int32
#   replace: "int8" -> "float8_e4m3fn"
#   replace all: "int32" -> "float16"

# variant: cast_float16_float8_e5m2 of cast_int8_int32
#   replace: "int8" -> "float16"
#   replace all: "int32" -> "float8_e5m2"


@T.prim_func
def relu_int8(A: T.Buffer((2048,), "int8"), B: T.Buffer((2048,), "int8")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    for v in T.vectorized(4):
        B[(bx * 64 + tx) * 4 + v] = T.max(A[(bx * 64 + tx) * 4 + v], T.int8(0))


@T.prim_func
def copy_int8(A: T.Buffer((4096,), "int8"), B: T.Buffer((4096,), "int8")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    for v in T.vectorized(8):
        B[(bx * 64 + tx) * 8 + v] = A[(bx * 64 + tx) * 8 + v]


@T.prim_func
def mul_int8(A: T.Buffer((2048,), "int8"), B: T.Buffer((2048,), "int8"), C: T.Buffer((2048,), "int8")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    for v in T.vectorized(4):
        C[(bx * 64 + tx) * 4 + v] = A[(bx * 64 + tx) * 4 + v] * B[(bx * 64 + tx) * 4 + v] + C[(bx * 64 + tx) * 4 + v]

# variant: relu_uint8 of relu_int8
#   replace all: 'int8"' -> 'uint8"'
#   replace: ".int8" -> ".uint8"

# variant: copy_uint8 of copy_int8
#   replace all: 'int8"' -> 'uint8"'

# variant: mul_uint8 of mul_int8
#   replace all: 'int8"' -> 'uint8"'

# variant: relu_float16 of relu_int8
#   replace all: "int8" -> "float16"

# variant: copy_float16 of copy_int8
#   replace all: "int8" -> "float16"

# variant: mul_float16 of mul_int8
#   replace all: "int8" -> "float16"

# variant: relu_bfloat16 of relu_int8
#   replace all: "int8" -> "bfloat16"

# variant: copy_bfloat16 of copy_int8
#   replace all: "int8" -> "bfloat16"

# variant: mul_bfloat16 of mul_int8
#   replace all: "int8" -> "bfloat16"

# variant: relu_int32 of relu_int8
#   replace all: "int8" -> "int32"

# variant: copy_int32 of copy_int8
#   replace all: "int8" -> "int32"

# variant: mul_int32 of mul_int8
#   replace all: "int8" -> "int32"

# variant: relu_float32 of relu_int8
#   replace all: "int8" -> "float32"

# variant: copy_float32 of copy_int8
#   replace all: "int8" -> "float32"

# variant: mul_float32 of mul_int8
#   replace all: "int8" -> "float32"
