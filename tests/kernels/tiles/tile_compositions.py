# test: compile sm_90a
# Compositions: several operations by one call, in registers and in shared memory.
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx


# sim: in_registers on sm_90a, sm_100a
#   A: float32[64x8] = (i * 8 + j) % 11 - 5
#   B: float32[64x8] = 0 -> 2 ** ((i * 8 + j) % 11 - 5)
#   C: float32[64] = 0 -> 2 ** ((i * 8) % 11 - 5) + 2 ** ((i * 8 + 1) % 11 - 5) + 2 ** ((i * 8 + 2) % 11 - 5) + 2 ** ((i * 8 + 3) % 11 - 5) + 2 ** ((i * 8 + 4) % 11 - 5) + 2 ** ((i * 8 + 5) % 11 - 5) + 2 ** ((i * 8 + 6) % 11 - 5) + 2 ** ((i * 8 + 7) % 11 - 5) +- 0.01
@T.prim_func
def in_registers(A: T.Buffer((64, 8), "float32"), B: T.Buffer((64, 8), "float32"), C: T.Buffer((64,), "float32")):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([64])
    row = T.alloc_local((8,), "float32")
    powers = T.alloc_local((8,), "float32")
    total = T.alloc_local((1,), "float32")
    Tx.copy(row, A[tx, :])
    Tx.unary_reduce(powers, total, row, "exp2", "sum", reduce_axes=-1)
    Tx.copy(B[tx, :], powers)
    C[tx] = total[0]


# Bias and scale come before the operation.
# sim: scaled on sm_90a, sm_100a
#   A: float32[32x4] = j + 1
#   B: float32[32] = 0 -> 11
@T.prim_func
def scaled(A: T.Buffer((32, 4), "float32"), B: T.Buffer((32,), "float32")):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([32])
    row = T.alloc_local((4,), "float32")
    roots = T.alloc_local((4,), "float32")
    most = T.alloc_local((1,), "float32")
    Tx.copy(row, A[tx, :])
    Tx.mul(row, row, row)
    Tx.unary_reduce(roots, most, row, "sqrt", "max", bias=T.float32(-23.0), scale=T.float32(9.0), reduce_axes=[-1])
    B[tx] = most[0]


# sim: in_shared_memory
#   A: int32[16x8] = i * 8 + j
#   B: int32[16x8] = j % 3
#   P: int32[16x8] = 0 -> (i * 8 + j) * (j % 3)
#   C: int32[16] = 0 -> 0 - ((i * 8 + 1) + (i * 8 + 2) * 2 + (i * 8 + 4) + (i * 8 + 5) * 2 + (i * 8 + 7))
@T.prim_func
def in_shared_memory(
    A: T.Buffer((16, 8), "int32"), B: T.Buffer((16, 8), "int32"), P: T.Buffer((16, 8), "int32"), C: T.Buffer((16,), "int32")
):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([64])
    a = T.alloc_shared((16, 8), "int32")
    b = T.alloc_shared((16, 8), "int32")
    p = T.alloc_shared((16, 8), "int32")
    least = T.alloc_shared((16,), "int32")
    c = T.alloc_shared((16,), "int32")
    Tx.cta.copy(a, A)
    Tx.cta.copy(b, B)
    T.cuda.cta_sync()
    Tx.cta.binary_reduce(p, least, a, b, "mul", "min")
    Tx.cta.reduce_negate(c, p, "sum")
    Tx.cta.copy(P, p)
    Tx.cta.copy(C, c)


# `binary_chain` is elementwise: the output may be an operand of the second operation.
# sim: chained
#   A: float32[128] = i
#   B: float32[128] = i % 7 + 1
#   C: float32[128] = 0 -> (i % 7 + 1) - (3 - i)
#   D: float32[128] = 0 -> (3 - i) * (i % 7 + 1)
@T.prim_func
def chained(
    A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32"), C: T.Buffer((128,), "float32"), D: T.Buffer((128,), "float32")
):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([32])
    a = T.alloc_local((4,), "float32")
    b = T.alloc_local((4,), "float32")
    c = T.alloc_local((4,), "float32")
    Tx.copy(a, A[tx * 4 : tx * 4 + 4])
    Tx.copy(b, B[tx * 4 : tx * 4 + 4])
    Tx.binary_chain(c, a, T.float32(3.0), b, "sub", "mul")
    Tx.copy(D[tx * 4 : tx * 4 + 4], c)
    Tx.binary_chain(b, a, T.float32(3.0), b, "sub", "sub", reverse1=True)
    Tx.copy(C[tx * 4 : tx * 4 + 4], b)


# The first operand of a difference or a quotient may be a scalar, or be repeated.
# sim: first_operands
#   A: float32[4x32] = i * 32 + j + 1
#   B: float32[4x32] = 0 -> 1 / (i * 32 + j + 1) +- 0.0001
#   C: float32[4x32] = 0 -> (i * 32 + 1) - (i * 32 + j + 1)
@T.prim_func
def first_operands(A: T.Buffer((4, 32), "float32"), B: T.Buffer((4, 32), "float32"), C: T.Buffer((4, 32), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([32])
    a = T.alloc_shared((4, 32), "float32")
    b = T.alloc_shared((4, 32), "float32")
    c = T.alloc_shared((4, 32), "float32")
    Tx.cta.copy(a, A)
    T.cuda.cta_sync()
    Tx.cta.fdiv(b, T.float32(1.0), a)
    Tx.cta.sub(c, a[:, 0:1], a)
    Tx.cta.copy(B, b)
    Tx.cta.copy(C, c)


# sim: as_one
#   A: float32[64] = i
#   B: float32[64] = 0 -> (i + 2) * (i + 2)
@T.prim_func
def as_one(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([16])
    a = T.alloc_local((4,), "float32")
    Tx.copy(a, A[tx * 4 : tx * 4 + 4])
    with Tx.compose_op():
        Tx.add(a, a, T.float32(2.0))
        Tx.mul(a, a, a)
    Tx.copy(B[tx * 4 : tx * 4 + 4], a)
