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


@T.prim_func
def add_int8_4(A: T.Buffer((2048,), "int8"), B: T.Buffer((2048,), "int8")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    for v in T.vectorized(4):
        B[(bx * 64 + tx) * 4 + v] = A[(bx * 64 + tx) * 4 + v] + T.int8(3)


@T.prim_func
def add_uint8_2(A: T.Buffer((2048,), "uint8"), B: T.Buffer((2048,), "uint8")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    for v in T.vectorized(2):
        B[(bx * 64 + tx) * 2 + v] = A[(bx * 64 + tx) * 2 + v] + T.uint8(3)


@T.prim_func
def add_uint8_4(A: T.Buffer((2048,), "uint8"), B: T.Buffer((2048,), "uint8")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    for v in T.vectorized(4):
        B[(bx * 64 + tx) * 4 + v] = A[(bx * 64 + tx) * 4 + v] + T.uint8(3)


@T.prim_func
def add_int16_2(A: T.Buffer((2048,), "int16"), B: T.Buffer((2048,), "int16")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    for v in T.vectorized(2):
        B[(bx * 64 + tx) * 2 + v] = A[(bx * 64 + tx) * 2 + v] + T.int16(3)


@T.prim_func
def add_int16_4(A: T.Buffer((2048,), "int16"), B: T.Buffer((2048,), "int16")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    for v in T.vectorized(4):
        B[(bx * 64 + tx) * 4 + v] = A[(bx * 64 + tx) * 4 + v] + T.int16(3)


@T.prim_func
def add_uint16_2(A: T.Buffer((2048,), "uint16"), B: T.Buffer((2048,), "uint16")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    for v in T.vectorized(2):
        B[(bx * 64 + tx) * 2 + v] = A[(bx * 64 + tx) * 2 + v] + T.uint16(3)


@T.prim_func
def add_uint16_4(A: T.Buffer((2048,), "uint16"), B: T.Buffer((2048,), "uint16")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    for v in T.vectorized(4):
        B[(bx * 64 + tx) * 4 + v] = A[(bx * 64 + tx) * 4 + v] + T.uint16(3)


@T.prim_func
def add_float16_2(A: T.Buffer((2048,), "float16"), B: T.Buffer((2048,), "float16")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    for v in T.vectorized(2):
        B[(bx * 64 + tx) * 2 + v] = A[(bx * 64 + tx) * 2 + v] + T.float16(3)


@T.prim_func
def add_float16_4(A: T.Buffer((2048,), "float16"), B: T.Buffer((2048,), "float16")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    for v in T.vectorized(4):
        B[(bx * 64 + tx) * 4 + v] = A[(bx * 64 + tx) * 4 + v] + T.float16(3)


@T.prim_func
def add_float16_8(A: T.Buffer((2048,), "float16"), B: T.Buffer((2048,), "float16")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    for v in T.vectorized(8):
        B[(bx * 64 + tx) * 8 + v] = A[(bx * 64 + tx) * 8 + v] + T.float16(3)


@T.prim_func
def add_bfloat16_2(A: T.Buffer((2048,), "bfloat16"), B: T.Buffer((2048,), "bfloat16")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    for v in T.vectorized(2):
        B[(bx * 64 + tx) * 2 + v] = A[(bx * 64 + tx) * 2 + v] + T.bfloat16(3)


@T.prim_func
def add_bfloat16_4(A: T.Buffer((2048,), "bfloat16"), B: T.Buffer((2048,), "bfloat16")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    for v in T.vectorized(4):
        B[(bx * 64 + tx) * 4 + v] = A[(bx * 64 + tx) * 4 + v] + T.bfloat16(3)


@T.prim_func
def add_bfloat16_8(A: T.Buffer((2048,), "bfloat16"), B: T.Buffer((2048,), "bfloat16")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    for v in T.vectorized(8):
        B[(bx * 64 + tx) * 8 + v] = A[(bx * 64 + tx) * 8 + v] + T.bfloat16(3)


@T.prim_func
def cast_int8_int32(A: T.Buffer((2048,), "int8"), B: T.Buffer((2048,), "int32")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    for v in T.vectorized(4):
        B[(bx * 64 + tx) * 4 + v] = T.cast(A[(bx * 64 + tx) * 4 + v], "int32")


@T.prim_func
def cast_int8_float32(A: T.Buffer((2048,), "int8"), B: T.Buffer((2048,), "float32")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    for v in T.vectorized(4):
        B[(bx * 64 + tx) * 4 + v] = T.cast(A[(bx * 64 + tx) * 4 + v], "float32")


@T.prim_func
def cast_uint8_float32(A: T.Buffer((2048,), "uint8"), B: T.Buffer((2048,), "float32")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    for v in T.vectorized(4):
        B[(bx * 64 + tx) * 4 + v] = T.cast(A[(bx * 64 + tx) * 4 + v], "float32")


@T.prim_func
def cast_uint8_int32(A: T.Buffer((2048,), "uint8"), B: T.Buffer((2048,), "int32")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    for v in T.vectorized(4):
        B[(bx * 64 + tx) * 4 + v] = T.cast(A[(bx * 64 + tx) * 4 + v], "int32")


@T.prim_func
def cast_int16_int32(A: T.Buffer((2048,), "int16"), B: T.Buffer((2048,), "int32")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    for v in T.vectorized(4):
        B[(bx * 64 + tx) * 4 + v] = T.cast(A[(bx * 64 + tx) * 4 + v], "int32")


@T.prim_func
def cast_float16_float32(A: T.Buffer((2048,), "float16"), B: T.Buffer((2048,), "float32")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    for v in T.vectorized(4):
        B[(bx * 64 + tx) * 4 + v] = T.cast(A[(bx * 64 + tx) * 4 + v], "float32")


@T.prim_func
def cast_bfloat16_float32(A: T.Buffer((2048,), "bfloat16"), B: T.Buffer((2048,), "float32")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    for v in T.vectorized(4):
        B[(bx * 64 + tx) * 4 + v] = T.cast(A[(bx * 64 + tx) * 4 + v], "float32")


@T.prim_func
def cast_int8_float16(A: T.Buffer((2048,), "int8"), B: T.Buffer((2048,), "float16")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    for v in T.vectorized(4):
        B[(bx * 64 + tx) * 4 + v] = T.cast(A[(bx * 64 + tx) * 4 + v], "float16")


@T.prim_func
def cast_float32_int8(A: T.Buffer((2048,), "float32"), B: T.Buffer((2048,), "int8")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    for v in T.vectorized(4):
        B[(bx * 64 + tx) * 4 + v] = T.cast(A[(bx * 64 + tx) * 4 + v], "int8")


@T.prim_func
def cast_float32_float16(A: T.Buffer((2048,), "float32"), B: T.Buffer((2048,), "float16")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    for v in T.vectorized(4):
        B[(bx * 64 + tx) * 4 + v] = T.cast(A[(bx * 64 + tx) * 4 + v], "float16")


@T.prim_func
def cast_float32_bfloat16(A: T.Buffer((2048,), "float32"), B: T.Buffer((2048,), "bfloat16")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    for v in T.vectorized(4):
        B[(bx * 64 + tx) * 4 + v] = T.cast(A[(bx * 64 + tx) * 4 + v], "bfloat16")


@T.prim_func
def cast_int32_int8(A: T.Buffer((2048,), "int32"), B: T.Buffer((2048,), "int8")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    for v in T.vectorized(4):
        B[(bx * 64 + tx) * 4 + v] = T.cast(A[(bx * 64 + tx) * 4 + v], "int8")


@T.prim_func
def cast_float8_e4m3fn_float32(A: T.Buffer((2048,), "float8_e4m3fn"), B: T.Buffer((2048,), "float32")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    for v in T.vectorized(4):
        B[(bx * 64 + tx) * 4 + v] = T.cast(A[(bx * 64 + tx) * 4 + v], "float32")


@T.prim_func
def cast_float32_float8_e4m3fn(A: T.Buffer((2048,), "float32"), B: T.Buffer((2048,), "float8_e4m3fn")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    for v in T.vectorized(4):
        B[(bx * 64 + tx) * 4 + v] = T.cast(A[(bx * 64 + tx) * 4 + v], "float8_e4m3fn")


@T.prim_func
def cast_float8_e4m3fn_float16(A: T.Buffer((2048,), "float8_e4m3fn"), B: T.Buffer((2048,), "float16")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    for v in T.vectorized(4):
        B[(bx * 64 + tx) * 4 + v] = T.cast(A[(bx * 64 + tx) * 4 + v], "float16")


@T.prim_func
def cast_float16_float8_e5m2(A: T.Buffer((2048,), "float16"), B: T.Buffer((2048,), "float8_e5m2")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    for v in T.vectorized(4):
        B[(bx * 64 + tx) * 4 + v] = T.cast(A[(bx * 64 + tx) * 4 + v], "float8_e5m2")


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


@T.prim_func
def relu_uint8(A: T.Buffer((2048,), "uint8"), B: T.Buffer((2048,), "uint8")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    for v in T.vectorized(4):
        B[(bx * 64 + tx) * 4 + v] = T.max(A[(bx * 64 + tx) * 4 + v], T.uint8(0))


@T.prim_func
def copy_uint8(A: T.Buffer((4096,), "uint8"), B: T.Buffer((4096,), "uint8")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    for v in T.vectorized(8):
        B[(bx * 64 + tx) * 8 + v] = A[(bx * 64 + tx) * 8 + v]


@T.prim_func
def mul_uint8(A: T.Buffer((2048,), "uint8"), B: T.Buffer((2048,), "uint8"), C: T.Buffer((2048,), "uint8")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    for v in T.vectorized(4):
        C[(bx * 64 + tx) * 4 + v] = A[(bx * 64 + tx) * 4 + v] * B[(bx * 64 + tx) * 4 + v] + C[(bx * 64 + tx) * 4 + v]


@T.prim_func
def relu_float16(A: T.Buffer((2048,), "float16"), B: T.Buffer((2048,), "float16")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    for v in T.vectorized(4):
        B[(bx * 64 + tx) * 4 + v] = T.max(A[(bx * 64 + tx) * 4 + v], T.float16(0))


@T.prim_func
def copy_float16(A: T.Buffer((4096,), "float16"), B: T.Buffer((4096,), "float16")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    for v in T.vectorized(8):
        B[(bx * 64 + tx) * 8 + v] = A[(bx * 64 + tx) * 8 + v]


@T.prim_func
def mul_float16(A: T.Buffer((2048,), "float16"), B: T.Buffer((2048,), "float16"), C: T.Buffer((2048,), "float16")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    for v in T.vectorized(4):
        C[(bx * 64 + tx) * 4 + v] = A[(bx * 64 + tx) * 4 + v] * B[(bx * 64 + tx) * 4 + v] + C[(bx * 64 + tx) * 4 + v]


@T.prim_func
def relu_bfloat16(A: T.Buffer((2048,), "bfloat16"), B: T.Buffer((2048,), "bfloat16")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    for v in T.vectorized(4):
        B[(bx * 64 + tx) * 4 + v] = T.max(A[(bx * 64 + tx) * 4 + v], T.bfloat16(0))


@T.prim_func
def copy_bfloat16(A: T.Buffer((4096,), "bfloat16"), B: T.Buffer((4096,), "bfloat16")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    for v in T.vectorized(8):
        B[(bx * 64 + tx) * 8 + v] = A[(bx * 64 + tx) * 8 + v]


@T.prim_func
def mul_bfloat16(A: T.Buffer((2048,), "bfloat16"), B: T.Buffer((2048,), "bfloat16"), C: T.Buffer((2048,), "bfloat16")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    for v in T.vectorized(4):
        C[(bx * 64 + tx) * 4 + v] = A[(bx * 64 + tx) * 4 + v] * B[(bx * 64 + tx) * 4 + v] + C[(bx * 64 + tx) * 4 + v]


@T.prim_func
def relu_int32(A: T.Buffer((2048,), "int32"), B: T.Buffer((2048,), "int32")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    for v in T.vectorized(4):
        B[(bx * 64 + tx) * 4 + v] = T.max(A[(bx * 64 + tx) * 4 + v], T.int32(0))


@T.prim_func
def copy_int32(A: T.Buffer((4096,), "int32"), B: T.Buffer((4096,), "int32")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    for v in T.vectorized(8):
        B[(bx * 64 + tx) * 8 + v] = A[(bx * 64 + tx) * 8 + v]


@T.prim_func
def mul_int32(A: T.Buffer((2048,), "int32"), B: T.Buffer((2048,), "int32"), C: T.Buffer((2048,), "int32")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    for v in T.vectorized(4):
        C[(bx * 64 + tx) * 4 + v] = A[(bx * 64 + tx) * 4 + v] * B[(bx * 64 + tx) * 4 + v] + C[(bx * 64 + tx) * 4 + v]


@T.prim_func
def relu_float32(A: T.Buffer((2048,), "float32"), B: T.Buffer((2048,), "float32")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    for v in T.vectorized(4):
        B[(bx * 64 + tx) * 4 + v] = T.max(A[(bx * 64 + tx) * 4 + v], T.float32(0))


@T.prim_func
def copy_float32(A: T.Buffer((4096,), "float32"), B: T.Buffer((4096,), "float32")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    for v in T.vectorized(8):
        B[(bx * 64 + tx) * 8 + v] = A[(bx * 64 + tx) * 8 + v]


@T.prim_func
def mul_float32(A: T.Buffer((2048,), "float32"), B: T.Buffer((2048,), "float32"), C: T.Buffer((2048,), "float32")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    for v in T.vectorized(4):
        C[(bx * 64 + tx) * 4 + v] = A[(bx * 64 + tx) * 4 + v] * B[(bx * 64 + tx) * 4 + v] + C[(bx * 64 + tx) * 4 + v]
