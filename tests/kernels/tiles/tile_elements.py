# test: parse
import math

from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx


# Regions of one element, and scalars where a region is wanted.
#
# sim: elements
#   A: float32[64x8] = i + j * 0.25 + 1
#   B: float32[64] = 0 -> i + 2.75
#   C: float32[64] = 0 -> i * 8 + 15
#   D: float32[64] = 0 -> 1 / (i + 1) +- 1e-6
#   E: float32[64] = 0 -> i + 1
@T.prim_func
def elements(A: T.Buffer((64, 8), "float32"), B: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32"),
             D: T.Buffer((64,), "float32"), E: T.Buffer((64,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    row = T.alloc_local((8,), "float32")
    one = T.alloc_local((1,), "float32")
    most: T.float32
    total = T.local_scalar("float32")
    Tx.copy(row, A[tx, 0:8])
    Tx.max(most, row)
    Tx.sum(total.buffer[0], row[0:8])
    Tx.copy(one[0], A[tx, 0])
    Tx.reciprocal(one)
    B[tx] = most
    C[tx] = total
    D[tx] = one[0]
    Tx.copy(E[tx], A[tx, 0])


# The source of an operation on one region may be left out.
#
# sim: in_place
#   A: float32[32] = i * 0.125 - 2 -> (i * 0.125 - 2) / (1 + math.exp(2 - i * 0.125)) +- 1e-5
@T.prim_func
def in_place(A: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    r = T.alloc_local((1,), "float32")
    Tx.copy(r, A[tx])
    Tx.silu(r)
    Tx.copy(A[tx], r)


# The same bits under another dtype.
#
# sim: bits
#   A: float32[32] = 1.5
#   B: uint32[32] = 0 -> 1069547520
@T.prim_func
def bits(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((32,), "float32")
    S[tx] = A[tx]
    B[tx] = S.with_dtype("uint32")[tx]
