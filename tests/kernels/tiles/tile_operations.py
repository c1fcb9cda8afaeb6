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

# variant: fill of zero
#   replace: "zero(s, s)" -> "fill(s, 2.5)"
#   B: float32[8x32] = 0 -> 2.5

# variant: sqrt of zero
#   replace: "zero" -> "sqrt"
#   B: float32[8x32] = 0 -> math.sqrt(A[i][j]) +- 1e-6

# variant: exp of zero
#   replace: "zero" -> "exp"
#   B: float32[8x32] = 0 -> math.exp(A[i][j]) +- 1e-6

# variant: exp2 of zero
#   replace: "zero" -> "exp2"
#   B: float32[8x32] = 0 -> 2 ** A[i][j] +- 1e-6

# variant: log2 of zero
#   replace: "zero" -> "log2"
#   B: float32[8x32] = 0 -> math.log2(A[i][j]) +- 1e-5

# variant: reciprocal of zero
#   replace: "zero" -> "reciprocal"
#   B: float32[8x32] = 0 -> 1 / A[i][j] +- 1e-6

# variant: silu of zero
#   replace: "zero" -> "silu"
#   B: float32[8x32] = 0 -> A[i][j] / (1 + math.exp(-A[i][j])) +- 1e-6

# variant: add of zero
#   replace: "zero(s, s)" -> "add(s, s, r)"
#   B: float32[8x32] = 0 -> A[i][j] + C[i][j]

# variant: sub of zero
#   replace: "zero(s, s)" -> "sub(s, s, r)"
#   B: float32[8x32] = 0 -> A[i][j] - C[i][j]

# variant: mul of zero
#   replace: "zero(s, s)" -> "mul(s, s, r)"
#   B: float32[8x32] = 0 -> A[i][j] * C[i][j]

# variant: fdiv of zero
#   replace: "zero(s, s)" -> "fdiv(s, s, r)"
#   B: float32[8x32] = 0 -> A[i][j] / C[i][j] +- 1e-6

# variant: maximum of zero
#   replace: "zero(s, s)" -> "maximum(s, s, r)"
#   B: float32[8x32] = 0 -> max(A[i][j], C[i][j])

# variant: minimum of zero
#   replace: "zero(s, s)" -> "minimum(s, s, r)"
#   B: float32[8x32] = 0 -> min(A[i][j], C[i][j])

# variant: fma of zero
#   replace: "zero(s, s)" -> "fma(s, s, r, s)"
#   B: float32[8x32] = 0 -> A[i][j] * C[i][j] + A[i][j]

# variant: fma_scalars of zero
#   replace: "zero(s, s)" -> "fma(s, s, 2.0, r)"
#   B: float32[8x32] = 0 -> A[i][j] * 2 + C[i][j]

# variant: select of zero
#   replace: "zero(s, s)" -> "select(s, s, r, lambda i, j: i * 4 < j)"
#   B: float32[8x32] = 0 -> A[i][j] if i * 4 < j else C[i][j]

# variant: scalar_right of zero
#   replace: "zero(s, s)" -> "sub(s, s, 0.5)"
#   B: float32[8x32] = 0 -> A[i][j] - 0.5

# variant: scalar_left of zero
#   replace: "zero(s, s)" -> "mul(s, 0.5, s)"
#   B: float32[8x32] = 0 -> A[i][j] * 0.5

# variant: bias_and_scale of zero
#   replace: "zero(s, s)" -> "exp(s, s, 0.25, 0.5)"
#   B: float32[8x32] = 0 -> math.exp(A[i][j] * 0.5 + 0.25) +- 1e-6

# variant: bias_region of zero
#   replace: "zero(s, s)" -> "sqrt(s, s, r, 2.0)"
#   B: float32[8x32] = 0 -> math.sqrt(A[i][j] * 2 + C[i][j]) +- 1e-6

# variant: scale_alone of zero
#   replace: "zero(s, s)" -> "exp2(s, s, None, 0.5)"
#   B: float32[8x32] = 0 -> 2 ** (A[i][j] * 0.5) +- 1e-6

# variant: out_of_place of zero
#   replace: "zero(s, s)" -> 'add(r, s, 1.0)\n    Tx.cta.copy(s, r, dispatch="fallback")\n    T.cuda.cta_sync()'
#   B: float32[8x32] = 0 -> A[i][j] + 1

# variant: row of zero
#   replace: "zero(s, s)" -> "add(s, s, r[0:1, 0:32])"
#   B: float32[8x32] = 0 -> A[i][j] + C[0][j]

# variant: column of zero
#   replace: "zero(s, s)" -> "mul(s, s, r[0:8, 3:4])"
#   B: float32[8x32] = 0 -> A[i][j] * C[i][3]

# variant: small_first of zero
#   replace: "zero(s, s)" -> "add(s, r[0:1, 0:32], s)"
#   B: float32[8x32] = 0 -> A[i][j] + C[0][j]

# variant: element of zero
#   replace: "zero(s, s)" -> "sub(s, s, r[2:3, 5:6])"
#   B: float32[8x32] = 0 -> A[i][j] - C[2][5]
