# test: compile sm_90a
# Reductions by tensor copies, with each operation; two blocks at a time.
from tvm.script import tirx as T


# sim: add_float32
#   A: float32[32] = (i * 5) % 7
#   B: float32[32] = (i * 3) % 5 -> B[i] + A[i]
@T.prim_func
def add_float32(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    B_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", B_map, "float32", 1, B.data, 32, 16, 1, 0, 0, 0, 0)
    T.device_entry()
    bx = T.cta_id([2])
    tx = T.thread_id([32])
    S = T.alloc_shared((16,), "float32", align=128)
    if tx < 16:
        S[tx] = A[bx * 16 + tx]
    T.ptx.fence.proxy_async("shared::cta")
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.cp_async.bulk.tensor.s2g_reduce(1, S.ptr_to([0]), T.address_of(B_map), "", "add", bx * 16)
        T.ptx.cp_async.bulk.commit_group()
        T.ptx.cp_async.bulk.wait_group(0, False)

# variant: add_int32 of add_float32
#   replace all: "float32" -> "int32"
#   A: int32[32] = (i * 5) % 7 - 3
#   B: int32[32] = (i * 3) % 5 - 2 -> B[i] + A[i]

# variant: min_int32 of add_float32
#   replace all: "float32" -> "int32"
#   replace: '", "add", bx' -> '", "min", bx'
#   A: int32[32] = (i * 5) % 7 - 3
#   B: int32[32] = (i * 3) % 5 - 2 -> min(A[i], B[i])

# variant: max_int32 of add_float32
#   replace all: "float32" -> "int32"
#   replace: '", "add", bx' -> '", "max", bx'
#   A: int32[32] = (i * 5) % 7 - 3
#   B: int32[32] = (i * 3) % 5 - 2 -> max(A[i], B[i])

# variant: inc_uint32 of add_float32
#   replace all: "float32" -> "uint32"
#   replace: '", "add", bx' -> '", "inc", bx'
#   A: uint32[32] = (i * 5) % 7
#   B: uint32[32] = (i * 3) % 5 -> 0 if B[i] >= A[i] else B[i] + 1

# variant: dec_uint32 of add_float32
#   replace all: "float32" -> "uint32"
#   replace: '", "add", bx' -> '", "dec", bx'
#   A: uint32[32] = (i * 5) % 7
#   B: uint32[32] = (i * 3) % 5 -> A[i] if B[i] == 0 or B[i] > A[i] else B[i] - 1

# variant: and_uint32 of add_float32
#   replace all: "float32" -> "uint32"
#   replace: '", "add", bx' -> '", "and", bx'
#   A: uint32[32] = (i * 5) % 7
#   B: uint32[32] = (i * 3) % 5 -> B[i] & A[i]

# variant: or_uint32 of add_float32
#   replace all: "float32" -> "uint32"
#   replace: '", "add", bx' -> '", "or", bx'
#   A: uint32[32] = (i * 5) % 7
#   B: uint32[32] = (i * 3) % 5 -> B[i] | A[i]

# variant: xor_uint32 of add_float32
#   replace all: "float32" -> "uint32"
#   replace: '", "add", bx' -> '", "xor", bx'
#   A: uint32[32] = (i * 5) % 7
#   B: uint32[32] = (i * 3) % 5 -> B[i] ^ A[i]

# variant: add_float16 of add_float32
#   replace all: "float32" -> "float16"
#   A: float16[32] = (i * 5) % 7
#   B: float16[32] = (i * 3) % 5 -> B[i] + A[i]

# variant: min_float16 of add_float32
#   replace all: "float32" -> "float16"
#   replace: '", "add", bx' -> '", "min", bx'
#   A: float16[32] = (i * 5) % 7 - 3
#   B: float16[32] = (i * 3) % 5 - 2 -> min(A[i], B[i])

# variant: max_bfloat16 of add_float32
#   replace all: "float32" -> "bfloat16"
#   replace: '", "add", bx' -> '", "max", bx'
#   A: bfloat16[32] = (i * 5) % 7 - 3
#   B: bfloat16[32] = (i * 3) % 5 - 2 -> max(A[i], B[i])

# The copy engine adds no int64.
# variant: add_int64 of add_float32
#   replace all: "float32" -> "int64"
#   A: int64[32] = (i * 5) % 7 - 3
#   B: int64[32] = (i * 3) % 5 - 2
#   fault: a tensor copy cannot combine elements of int64 by `add`


# All blocks add to the same box.
# sim: all_add
#   A: int32[4x16] = i * 16 + j
#   B: int32[16] = 100 -> 100 + A[0][i] + A[1][i] + A[2][i] + A[3][i]
@T.prim_func
def all_add(A: T.Buffer((4, 16), "int32"), B: T.Buffer((16,), "int32")):
    B_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", B_map, "int32", 1, B.data, 16, 16, 1, 0, 0, 0, 0)
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([32])
    S = T.alloc_shared((16,), "int32", align=128)
    if tx < 16:
        S[tx] = A[bx, tx]
    T.ptx.fence.proxy_async("shared::cta")
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.cp_async.bulk.tensor.s2g_reduce(1, S.ptr_to([0]), T.address_of(B_map), "", "add", 0)
        T.ptx.cp_async.bulk.commit_group()
        T.ptx.cp_async.bulk.wait_group(0, False)
