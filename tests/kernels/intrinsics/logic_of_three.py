# test: parse
# test: cuda sm_90a
# Functions of three words, bit by bit, by their tables.
from tvm.script import tirx as T


# sim: tables
#   A: uint32[32] = i * 2654435761 % 4294967296
#   B: uint32[32] = i * 40503 + 77
#   C: uint32[32] = 4294967295 - i * 65537
#   D: uint32[4x32] = 0 -> (A[j] & B[j] | C[j]) if i == 0 else ((A[j] ^ B[j] ^ C[j]) if i == 1 else (0 if i == 2 else (A[j] & ~C[j]) & 4294967295))
@T.prim_func
def tables(
    A: T.Buffer((32,), "uint32"), B: T.Buffer((32,), "uint32"), C: T.Buffer((32,), "uint32"), D: T.Buffer((4, 32), "uint32")
):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    D[0, tx] = T.ptx.lop3.b32(A[tx], B[tx], C[tx], 0xF0 & 0xCC | 0xAA)
    D[1, tx] = T.ptx.lop3.b32(A[tx], B[tx], C[tx], 0xF0 ^ 0xCC ^ 0xAA)
    D[2, tx] = T.ptx.lop3.b32(A[tx], B[tx], C[tx], 0)
    D[3, tx] = T.ptx.lop3.b32(A[tx], B[tx], C[tx], lut=0xF0 & ~0xAA & 0xFF)
