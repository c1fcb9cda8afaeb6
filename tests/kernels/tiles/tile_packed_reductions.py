# test: target sm_100a
# test: cuda sm_100a
# Reductions of a thread's float32 with the instructions of sm_100: sums in pairs, minima and maxima of three.
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx


# Sums of 8 inputs, of 19 with the old value, and of the columns of 9 x 3.
# sim: sums
#   A: float32[32x27] = (i * 27 + j) % 13 - 6
#   B: float32[32x5] = 100 -> (sum([A[i][q] for q in range(8)]) if j == 0 else 100 + sum([A[i][q] for q in range(5, 24)]) if j == 1 else sum([A[i][q * 3 + j - 2] for q in range(9)]))
@T.prim_func
def sums(A: T.Buffer((32, 27), "float32"), B: T.Buffer((32, 5), "float32")):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([32])
    a = T.alloc_local((27,), "float32")
    b = T.alloc_local((5,), "float32")
    Tx.copy(a, A[tx, :])
    Tx.copy(b, B[tx, :])
    Tx.sum(b[0:1], a[0:8])
    Tx.sum(b[1:2], a[5:24], accum=True, dispatch="packed_add_sum")
    c = a.view(9, 3)
    Tx.sum(b[2:5], c, axes=0)
    Tx.copy(B[tx, :], b)


# sim: extremes
#   A: float32[32x27] = (i * 29 + j * 7) % 41 - 20
#   B: float32[32x5] = 5 -> (max([A[i][q] for q in range(8)]) if j == 0 else min([5] + [A[i][q] for q in range(5, 24)]) if j == 1 else max([A[i][q * 3 + j - 2] for q in range(9)]))
@T.prim_func
def extremes(A: T.Buffer((32, 27), "float32"), B: T.Buffer((32, 5), "float32")):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([32])
    a = T.alloc_local((27,), "float32")
    b = T.alloc_local((5,), "float32")
    Tx.copy(a, A[tx, :])
    Tx.copy(b, B[tx, :])
    Tx.max(b[0:1], a[0:8])
    Tx.min(b[1:2], a[5:24], accum=True, dispatch="3input_maxmin")
    c = a.view(9, 3)
    Tx.max(b[2:5], c, axes=0)
    Tx.copy(B[tx, :], b)
