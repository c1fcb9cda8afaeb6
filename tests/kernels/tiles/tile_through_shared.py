# test: compile sm_90a
# test: compile sm_100a
# -D ROWS=3
# An elementwise operation through shared memory, one row per block. `tests/tests/on_gpu.rs` measures it on large tensors.
from __future__ import annotations

import math

from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx


# sim: roots
#   A: float32[3x1024] = (i * 1024 + j) % 8191 * 0.25
#   B: float32[3x1024] = 0 -> math.sqrt(A[i][j])
@T.jit
def roots(A: T.Buffer((ROWS, 1024), "float32"), B: T.Buffer((ROWS, 1024), "float32"), *, ROWS: T.constexpr):
    T.device_entry()
    bx = T.cta_id([ROWS])
    T.thread_id([128])
    row = T.alloc_buffer((1024,), "float32", scope="shared")
    Tx.cta.copy(row, A[bx, 0:1024])
    Tx.cta.sqrt(row, row)
    Tx.cta.copy(B[bx, 0:1024], row)
