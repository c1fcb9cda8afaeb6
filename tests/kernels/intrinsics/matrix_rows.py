# test: compile sm_100a
# Rows of matrices between shared memory and the registers of a warp, by elements of 16 and of 8 bits.
from tvm.script import tirx as T


# Lane l has elements (l // 4, l % 4 * 2) and the next of each 8x8 matrix; transposed, rows and columns change places.
# sim: loads
#   A: uint16[32x8] = i * 8 + j
#   B: uint16[2x32x8] = 0 -> A[k // 2 * 8 + j // 4][j % 4 * 2 + k % 2] if i == 0 else A[k // 2 * 8 + j % 4 * 2 + k % 2][j // 4]
@T.prim_func
def loads(A: T.Buffer((32, 8), "uint16"), B: T.Buffer((2, 32, 8), "uint16")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((32, 8), "uint16", align=16)
    r = T.alloc_local((4,), "uint32")
    for k in T.serial(8):
        S[tx, k] = A[tx, k]
    T.cuda.warp_sync()
    T.ptx.ldmatrix(False, 4, ".b16", S.ptr_to([tx, 0]), *[r.ptr_to([k]) for k in range(4)])
    for k in T.unroll(4):
        B[0, tx, k * 2] = T.cast(r[k] & T.uint32(0xFFFF), "uint16")
        B[0, tx, k * 2 + 1] = T.cast(r[k] >> T.uint32(16), "uint16")
    T.ptx.ldmatrix(True, 4, ".b16", S.ptr_to([tx, 0]), *[r.ptr_to([k]) for k in range(4)])
    for k in T.unroll(4):
        B[1, tx, k * 2] = T.cast(r[k] & T.uint32(0xFFFF), "uint16")
        B[1, tx, k * 2 + 1] = T.cast(r[k] >> T.uint32(16), "uint16")


# sim: stores
#   A: uint16[32x8] = i * 8 + j
#   B: uint16[32x8] = 0 -> A[i % 8 * 4 + j // 2][i // 8 * 2 + j % 2]
@T.prim_func
def stores(A: T.Buffer((32, 8), "uint16"), B: T.Buffer((32, 8), "uint16")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((32, 8), "uint16", align=16)
    r = T.alloc_local((4,), "uint32")
    for k in T.unroll(4):
        r[k] = T.cast(A[tx, k * 2], "uint32") | T.cast(A[tx, k * 2 + 1], "uint32") << T.uint32(16)
    T.ptx.stmatrix(False, 4, ".b16", S.ptr_to([tx, 0]), *[r.ptr_to([k]) for k in range(4)])
    T.cuda.warp_sync()
    for k in T.serial(8):
        B[tx, k] = S[tx, k]


# 16x8 matrices of bytes, transposed: lane l has bytes (l // 4, l % 4 * 2) and the next, and those eight rows below; each
# of the eight columns is a row of 16 bytes.
# sim: stores_bytes
#   A: uint8[32x8] = i * 8 + j
#   B: uint8[16x16] = 0 -> A[j % 8 * 4 + i % 8 // 2][i // 8 * 4 + j // 8 * 2 + i % 2]
@T.prim_func
def stores_bytes(A: T.Buffer((32, 8), "uint8"), B: T.Buffer((16, 16), "uint8")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((16, 16), "uint8", align=16)
    r = T.alloc_local((2,), "uint32")
    for k in T.unroll(2):
        r[k] = T.uint32(0)
        for byte in T.unroll(4):
            r[k] = r[k] | T.cast(A[tx, k * 4 + byte], "uint32") << T.uint32(byte * 8)
    T.ptx.stmatrix(True, 2, ".b8", S.ptr_to([tx % 16, 0]), r.ptr_to([0]), r.ptr_to([1]), shape="m16n8")
    T.cuda.warp_sync()
    for k in T.serial(8):
        B[tx // 2, tx % 2 * 8 + k] = S[tx // 2, tx % 2 * 8 + k]
