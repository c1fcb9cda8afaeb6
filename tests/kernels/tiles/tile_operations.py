# test: compile sm_90a
# test: compile sm_100a
# Every elementwise operation on shared tiles, with its operands: regions, scalars, smaller regions, a bias and a scale.
import math

from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx


# sim: zero
#   A: float32[8x32] = (i * 5 + j * 3) % 11 * 0.25 + 0.25
#   C: float32[8x32] = (i + j) % 5 * 0.5 + 0.5
#   B: float32[8x32] = 0 -> 0
@T.prim_func
def zero(A: T.Buffer((8, 32), "float32"), C: T.Buffer((8, 32), "float32"), B: T.Buffer((8, 32), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([64])
    s = T.alloc_buffer((8, 32), "float32", scope="shared")
    r = T.alloc_buffer((8, 32), "float32", scope="shared")
    Tx.cta.copy(s, A)
    Tx.cta.copy(r, C)
    T.cuda.cta_sync()
    Tx.cta.zero(s, s)
    Tx.cta.copy(B, s)


# sim: fill
#   A: float32[8x32] = (i * 5 + j * 3) % 11 * 0.25 + 0.25
#   C: float32[8x32] = (i + j) % 5 * 0.5 + 0.5
#   B: float32[8x32] = 0 -> 2.5
@T.prim_func
def fill(A: T.Buffer((8, 32), "float32"), C: T.Buffer((8, 32), "float32"), B: T.Buffer((8, 32), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([64])
    s = T.alloc_buffer((8, 32), "float32", scope="shared")
    r = T.alloc_buffer((8, 32), "float32", scope="shared")
    Tx.cta.copy(s, A)
    Tx.cta.copy(r, C)
    T.cuda.cta_sync()
    Tx.cta.fill(s, 2.5)
    Tx.cta.copy(B, s)


# sim: sqrt
#   A: float32[8x32] = (i * 5 + j * 3) % 11 * 0.25 + 0.25
#   C: float32[8x32] = (i + j) % 5 * 0.5 + 0.5
#   B: float32[8x32] = 0 -> math.sqrt(A[i][j]) +- 1e-6
@T.prim_func
def sqrt(A: T.Buffer((8, 32), "float32"), C: T.Buffer((8, 32), "float32"), B: T.Buffer((8, 32), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([64])
    s = T.alloc_buffer((8, 32), "float32", scope="shared")
    r = T.alloc_buffer((8, 32), "float32", scope="shared")
    Tx.cta.copy(s, A)
    Tx.cta.copy(r, C)
    T.cuda.cta_sync()
    Tx.cta.sqrt(s, s)
    Tx.cta.copy(B, s)


# sim: exp
#   A: float32[8x32] = (i * 5 + j * 3) % 11 * 0.25 + 0.25
#   C: float32[8x32] = (i + j) % 5 * 0.5 + 0.5
#   B: float32[8x32] = 0 -> math.exp(A[i][j]) +- 1e-6
@T.prim_func
def exp(A: T.Buffer((8, 32), "float32"), C: T.Buffer((8, 32), "float32"), B: T.Buffer((8, 32), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([64])
    s = T.alloc_buffer((8, 32), "float32", scope="shared")
    r = T.alloc_buffer((8, 32), "float32", scope="shared")
    Tx.cta.copy(s, A)
    Tx.cta.copy(r, C)
    T.cuda.cta_sync()
    Tx.cta.exp(s, s)
    Tx.cta.copy(B, s)


# sim: exp2
#   A: float32[8x32] = (i * 5 + j * 3) % 11 * 0.25 + 0.25
#   C: float32[8x32] = (i + j) % 5 * 0.5 + 0.5
#   B: float32[8x32] = 0 -> 2 ** A[i][j] +- 1e-6
@T.prim_func
def exp2(A: T.Buffer((8, 32), "float32"), C: T.Buffer((8, 32), "float32"), B: T.Buffer((8, 32), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([64])
    s = T.alloc_buffer((8, 32), "float32", scope="shared")
    r = T.alloc_buffer((8, 32), "float32", scope="shared")
    Tx.cta.copy(s, A)
    Tx.cta.copy(r, C)
    T.cuda.cta_sync()
    Tx.cta.exp2(s, s)
    Tx.cta.copy(B, s)


# sim: log2
#   A: float32[8x32] = (i * 5 + j * 3) % 11 * 0.25 + 0.25
#   C: float32[8x32] = (i + j) % 5 * 0.5 + 0.5
#   B: float32[8x32] = 0 -> math.log2(A[i][j]) +- 1e-5
@T.prim_func
def log2(A: T.Buffer((8, 32), "float32"), C: T.Buffer((8, 32), "float32"), B: T.Buffer((8, 32), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([64])
    s = T.alloc_buffer((8, 32), "float32", scope="shared")
    r = T.alloc_buffer((8, 32), "float32", scope="shared")
    Tx.cta.copy(s, A)
    Tx.cta.copy(r, C)
    T.cuda.cta_sync()
    Tx.cta.log2(s, s)
    Tx.cta.copy(B, s)


# sim: reciprocal
#   A: float32[8x32] = (i * 5 + j * 3) % 11 * 0.25 + 0.25
#   C: float32[8x32] = (i + j) % 5 * 0.5 + 0.5
#   B: float32[8x32] = 0 -> 1 / A[i][j] +- 1e-6
@T.prim_func
def reciprocal(A: T.Buffer((8, 32), "float32"), C: T.Buffer((8, 32), "float32"), B: T.Buffer((8, 32), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([64])
    s = T.alloc_buffer((8, 32), "float32", scope="shared")
    r = T.alloc_buffer((8, 32), "float32", scope="shared")
    Tx.cta.copy(s, A)
    Tx.cta.copy(r, C)
    T.cuda.cta_sync()
    Tx.cta.reciprocal(s, s)
    Tx.cta.copy(B, s)


# sim: silu
#   A: float32[8x32] = (i * 5 + j * 3) % 11 * 0.25 + 0.25
#   C: float32[8x32] = (i + j) % 5 * 0.5 + 0.5
#   B: float32[8x32] = 0 -> A[i][j] / (1 + math.exp(-A[i][j])) +- 1e-6
@T.prim_func
def silu(A: T.Buffer((8, 32), "float32"), C: T.Buffer((8, 32), "float32"), B: T.Buffer((8, 32), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([64])
    s = T.alloc_buffer((8, 32), "float32", scope="shared")
    r = T.alloc_buffer((8, 32), "float32", scope="shared")
    Tx.cta.copy(s, A)
    Tx.cta.copy(r, C)
    T.cuda.cta_sync()
    Tx.cta.silu(s, s)
    Tx.cta.copy(B, s)


# sim: add
#   A: float32[8x32] = (i * 5 + j * 3) % 11 * 0.25 + 0.25
#   C: float32[8x32] = (i + j) % 5 * 0.5 + 0.5
#   B: float32[8x32] = 0 -> A[i][j] + C[i][j]
@T.prim_func
def add(A: T.Buffer((8, 32), "float32"), C: T.Buffer((8, 32), "float32"), B: T.Buffer((8, 32), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([64])
    s = T.alloc_buffer((8, 32), "float32", scope="shared")
    r = T.alloc_buffer((8, 32), "float32", scope="shared")
    Tx.cta.copy(s, A)
    Tx.cta.copy(r, C)
    T.cuda.cta_sync()
    Tx.cta.add(s, s, r)
    Tx.cta.copy(B, s)


# sim: sub
#   A: float32[8x32] = (i * 5 + j * 3) % 11 * 0.25 + 0.25
#   C: float32[8x32] = (i + j) % 5 * 0.5 + 0.5
#   B: float32[8x32] = 0 -> A[i][j] - C[i][j]
@T.prim_func
def sub(A: T.Buffer((8, 32), "float32"), C: T.Buffer((8, 32), "float32"), B: T.Buffer((8, 32), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([64])
    s = T.alloc_buffer((8, 32), "float32", scope="shared")
    r = T.alloc_buffer((8, 32), "float32", scope="shared")
    Tx.cta.copy(s, A)
    Tx.cta.copy(r, C)
    T.cuda.cta_sync()
    Tx.cta.sub(s, s, r)
    Tx.cta.copy(B, s)


# sim: mul
#   A: float32[8x32] = (i * 5 + j * 3) % 11 * 0.25 + 0.25
#   C: float32[8x32] = (i + j) % 5 * 0.5 + 0.5
#   B: float32[8x32] = 0 -> A[i][j] * C[i][j]
@T.prim_func
def mul(A: T.Buffer((8, 32), "float32"), C: T.Buffer((8, 32), "float32"), B: T.Buffer((8, 32), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([64])
    s = T.alloc_buffer((8, 32), "float32", scope="shared")
    r = T.alloc_buffer((8, 32), "float32", scope="shared")
    Tx.cta.copy(s, A)
    Tx.cta.copy(r, C)
    T.cuda.cta_sync()
    Tx.cta.mul(s, s, r)
    Tx.cta.copy(B, s)


# sim: fdiv
#   A: float32[8x32] = (i * 5 + j * 3) % 11 * 0.25 + 0.25
#   C: float32[8x32] = (i + j) % 5 * 0.5 + 0.5
#   B: float32[8x32] = 0 -> A[i][j] / C[i][j] +- 1e-6
@T.prim_func
def fdiv(A: T.Buffer((8, 32), "float32"), C: T.Buffer((8, 32), "float32"), B: T.Buffer((8, 32), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([64])
    s = T.alloc_buffer((8, 32), "float32", scope="shared")
    r = T.alloc_buffer((8, 32), "float32", scope="shared")
    Tx.cta.copy(s, A)
    Tx.cta.copy(r, C)
    T.cuda.cta_sync()
    Tx.cta.fdiv(s, s, r)
    Tx.cta.copy(B, s)


# sim: maximum
#   A: float32[8x32] = (i * 5 + j * 3) % 11 * 0.25 + 0.25
#   C: float32[8x32] = (i + j) % 5 * 0.5 + 0.5
#   B: float32[8x32] = 0 -> max(A[i][j], C[i][j])
@T.prim_func
def maximum(A: T.Buffer((8, 32), "float32"), C: T.Buffer((8, 32), "float32"), B: T.Buffer((8, 32), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([64])
    s = T.alloc_buffer((8, 32), "float32", scope="shared")
    r = T.alloc_buffer((8, 32), "float32", scope="shared")
    Tx.cta.copy(s, A)
    Tx.cta.copy(r, C)
    T.cuda.cta_sync()
    Tx.cta.maximum(s, s, r)
    Tx.cta.copy(B, s)


# sim: minimum
#   A: float32[8x32] = (i * 5 + j * 3) % 11 * 0.25 + 0.25
#   C: float32[8x32] = (i + j) % 5 * 0.5 + 0.5
#   B: float32[8x32] = 0 -> min(A[i][j], C[i][j])
@T.prim_func
def minimum(A: T.Buffer((8, 32), "float32"), C: T.Buffer((8, 32), "float32"), B: T.Buffer((8, 32), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([64])
    s = T.alloc_buffer((8, 32), "float32", scope="shared")
    r = T.alloc_buffer((8, 32), "float32", scope="shared")
    Tx.cta.copy(s, A)
    Tx.cta.copy(r, C)
    T.cuda.cta_sync()
    Tx.cta.minimum(s, s, r)
    Tx.cta.copy(B, s)


# sim: fma
#   A: float32[8x32] = (i * 5 + j * 3) % 11 * 0.25 + 0.25
#   C: float32[8x32] = (i + j) % 5 * 0.5 + 0.5
#   B: float32[8x32] = 0 -> A[i][j] * C[i][j] + A[i][j]
@T.prim_func
def fma(A: T.Buffer((8, 32), "float32"), C: T.Buffer((8, 32), "float32"), B: T.Buffer((8, 32), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([64])
    s = T.alloc_buffer((8, 32), "float32", scope="shared")
    r = T.alloc_buffer((8, 32), "float32", scope="shared")
    Tx.cta.copy(s, A)
    Tx.cta.copy(r, C)
    T.cuda.cta_sync()
    Tx.cta.fma(s, s, r, s)
    Tx.cta.copy(B, s)


# sim: fma_scalars
#   A: float32[8x32] = (i * 5 + j * 3) % 11 * 0.25 + 0.25
#   C: float32[8x32] = (i + j) % 5 * 0.5 + 0.5
#   B: float32[8x32] = 0 -> A[i][j] * 2 + C[i][j]
@T.prim_func
def fma_scalars(A: T.Buffer((8, 32), "float32"), C: T.Buffer((8, 32), "float32"), B: T.Buffer((8, 32), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([64])
    s = T.alloc_buffer((8, 32), "float32", scope="shared")
    r = T.alloc_buffer((8, 32), "float32", scope="shared")
    Tx.cta.copy(s, A)
    Tx.cta.copy(r, C)
    T.cuda.cta_sync()
    Tx.cta.fma(s, s, 2.0, r)
    Tx.cta.copy(B, s)


# sim: select
#   A: float32[8x32] = (i * 5 + j * 3) % 11 * 0.25 + 0.25
#   C: float32[8x32] = (i + j) % 5 * 0.5 + 0.5
#   B: float32[8x32] = 0 -> A[i][j] if i * 4 < j else C[i][j]
@T.prim_func
def select(A: T.Buffer((8, 32), "float32"), C: T.Buffer((8, 32), "float32"), B: T.Buffer((8, 32), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([64])
    s = T.alloc_buffer((8, 32), "float32", scope="shared")
    r = T.alloc_buffer((8, 32), "float32", scope="shared")
    Tx.cta.copy(s, A)
    Tx.cta.copy(r, C)
    T.cuda.cta_sync()
    Tx.cta.select(s, s, r, lambda i, j: i * 4 < j)
    Tx.cta.copy(B, s)


# sim: scalar_right
#   A: float32[8x32] = (i * 5 + j * 3) % 11 * 0.25 + 0.25
#   C: float32[8x32] = (i + j) % 5 * 0.5 + 0.5
#   B: float32[8x32] = 0 -> A[i][j] - 0.5
@T.prim_func
def scalar_right(A: T.Buffer((8, 32), "float32"), C: T.Buffer((8, 32), "float32"), B: T.Buffer((8, 32), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([64])
    s = T.alloc_buffer((8, 32), "float32", scope="shared")
    r = T.alloc_buffer((8, 32), "float32", scope="shared")
    Tx.cta.copy(s, A)
    Tx.cta.copy(r, C)
    T.cuda.cta_sync()
    Tx.cta.sub(s, s, 0.5)
    Tx.cta.copy(B, s)


# sim: scalar_left
#   A: float32[8x32] = (i * 5 + j * 3) % 11 * 0.25 + 0.25
#   C: float32[8x32] = (i + j) % 5 * 0.5 + 0.5
#   B: float32[8x32] = 0 -> A[i][j] * 0.5
@T.prim_func
def scalar_left(A: T.Buffer((8, 32), "float32"), C: T.Buffer((8, 32), "float32"), B: T.Buffer((8, 32), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([64])
    s = T.alloc_buffer((8, 32), "float32", scope="shared")
    r = T.alloc_buffer((8, 32), "float32", scope="shared")
    Tx.cta.copy(s, A)
    Tx.cta.copy(r, C)
    T.cuda.cta_sync()
    Tx.cta.mul(s, 0.5, s)
    Tx.cta.copy(B, s)


# sim: bias_and_scale
#   A: float32[8x32] = (i * 5 + j * 3) % 11 * 0.25 + 0.25
#   C: float32[8x32] = (i + j) % 5 * 0.5 + 0.5
#   B: float32[8x32] = 0 -> math.exp(A[i][j] * 0.5 + 0.25) +- 1e-6
@T.prim_func
def bias_and_scale(A: T.Buffer((8, 32), "float32"), C: T.Buffer((8, 32), "float32"), B: T.Buffer((8, 32), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([64])
    s = T.alloc_buffer((8, 32), "float32", scope="shared")
    r = T.alloc_buffer((8, 32), "float32", scope="shared")
    Tx.cta.copy(s, A)
    Tx.cta.copy(r, C)
    T.cuda.cta_sync()
    Tx.cta.exp(s, s, 0.25, 0.5)
    Tx.cta.copy(B, s)


# sim: bias_region
#   A: float32[8x32] = (i * 5 + j * 3) % 11 * 0.25 + 0.25
#   C: float32[8x32] = (i + j) % 5 * 0.5 + 0.5
#   B: float32[8x32] = 0 -> math.sqrt(A[i][j] * 2 + C[i][j]) +- 1e-6
@T.prim_func
def bias_region(A: T.Buffer((8, 32), "float32"), C: T.Buffer((8, 32), "float32"), B: T.Buffer((8, 32), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([64])
    s = T.alloc_buffer((8, 32), "float32", scope="shared")
    r = T.alloc_buffer((8, 32), "float32", scope="shared")
    Tx.cta.copy(s, A)
    Tx.cta.copy(r, C)
    T.cuda.cta_sync()
    Tx.cta.sqrt(s, s, r, 2.0)
    Tx.cta.copy(B, s)


# sim: scale_alone
#   A: float32[8x32] = (i * 5 + j * 3) % 11 * 0.25 + 0.25
#   C: float32[8x32] = (i + j) % 5 * 0.5 + 0.5
#   B: float32[8x32] = 0 -> 2 ** (A[i][j] * 0.5) +- 1e-6
@T.prim_func
def scale_alone(A: T.Buffer((8, 32), "float32"), C: T.Buffer((8, 32), "float32"), B: T.Buffer((8, 32), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([64])
    s = T.alloc_buffer((8, 32), "float32", scope="shared")
    r = T.alloc_buffer((8, 32), "float32", scope="shared")
    Tx.cta.copy(s, A)
    Tx.cta.copy(r, C)
    T.cuda.cta_sync()
    Tx.cta.exp2(s, s, None, 0.5)
    Tx.cta.copy(B, s)


# sim: out_of_place
#   A: float32[8x32] = (i * 5 + j * 3) % 11 * 0.25 + 0.25
#   C: float32[8x32] = (i + j) % 5 * 0.5 + 0.5
#   B: float32[8x32] = 0 -> A[i][j] + 1
@T.prim_func
def out_of_place(A: T.Buffer((8, 32), "float32"), C: T.Buffer((8, 32), "float32"), B: T.Buffer((8, 32), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([64])
    s = T.alloc_buffer((8, 32), "float32", scope="shared")
    r = T.alloc_buffer((8, 32), "float32", scope="shared")
    Tx.cta.copy(s, A)
    Tx.cta.copy(r, C)
    T.cuda.cta_sync()
    Tx.cta.add(r, s, 1.0)
    Tx.cta.copy(s, r, dispatch="fallback")
    T.cuda.cta_sync()
    Tx.cta.copy(B, s)


# sim: row
#   A: float32[8x32] = (i * 5 + j * 3) % 11 * 0.25 + 0.25
#   C: float32[8x32] = (i + j) % 5 * 0.5 + 0.5
#   B: float32[8x32] = 0 -> A[i][j] + C[0][j]
@T.prim_func
def row(A: T.Buffer((8, 32), "float32"), C: T.Buffer((8, 32), "float32"), B: T.Buffer((8, 32), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([64])
    s = T.alloc_buffer((8, 32), "float32", scope="shared")
    r = T.alloc_buffer((8, 32), "float32", scope="shared")
    Tx.cta.copy(s, A)
    Tx.cta.copy(r, C)
    T.cuda.cta_sync()
    Tx.cta.add(s, s, r[0:1, 0:32])
    Tx.cta.copy(B, s)


# sim: column
#   A: float32[8x32] = (i * 5 + j * 3) % 11 * 0.25 + 0.25
#   C: float32[8x32] = (i + j) % 5 * 0.5 + 0.5
#   B: float32[8x32] = 0 -> A[i][j] * C[i][3]
@T.prim_func
def column(A: T.Buffer((8, 32), "float32"), C: T.Buffer((8, 32), "float32"), B: T.Buffer((8, 32), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([64])
    s = T.alloc_buffer((8, 32), "float32", scope="shared")
    r = T.alloc_buffer((8, 32), "float32", scope="shared")
    Tx.cta.copy(s, A)
    Tx.cta.copy(r, C)
    T.cuda.cta_sync()
    Tx.cta.mul(s, s, r[0:8, 3:4])
    Tx.cta.copy(B, s)


# sim: small_first
#   A: float32[8x32] = (i * 5 + j * 3) % 11 * 0.25 + 0.25
#   C: float32[8x32] = (i + j) % 5 * 0.5 + 0.5
#   B: float32[8x32] = 0 -> A[i][j] + C[0][j]
@T.prim_func
def small_first(A: T.Buffer((8, 32), "float32"), C: T.Buffer((8, 32), "float32"), B: T.Buffer((8, 32), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([64])
    s = T.alloc_buffer((8, 32), "float32", scope="shared")
    r = T.alloc_buffer((8, 32), "float32", scope="shared")
    Tx.cta.copy(s, A)
    Tx.cta.copy(r, C)
    T.cuda.cta_sync()
    Tx.cta.add(s, r[0:1, 0:32], s)
    Tx.cta.copy(B, s)


# sim: element
#   A: float32[8x32] = (i * 5 + j * 3) % 11 * 0.25 + 0.25
#   C: float32[8x32] = (i + j) % 5 * 0.5 + 0.5
#   B: float32[8x32] = 0 -> A[i][j] - C[2][5]
@T.prim_func
def element(A: T.Buffer((8, 32), "float32"), C: T.Buffer((8, 32), "float32"), B: T.Buffer((8, 32), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([64])
    s = T.alloc_buffer((8, 32), "float32", scope="shared")
    r = T.alloc_buffer((8, 32), "float32", scope="shared")
    Tx.cta.copy(s, A)
    Tx.cta.copy(r, C)
    T.cuda.cta_sync()
    Tx.cta.sub(s, s, r[2:3, 5:6])
    Tx.cta.copy(B, s)
