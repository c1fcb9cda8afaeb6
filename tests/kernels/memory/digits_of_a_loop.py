# test: cuda sm_90a
# test: compile sm_100a
# Some bits of a loop's variable say which row of shared memory is meant. nvcc takes them for the same in all turns where they
# are masked first and moved down then: each kernel leaves other values so.
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx
from tvm.tirx.layout import ComposeLayout, S, TileLayout


# sim: in_a_tile_of_one_thread
#   A: float32[32x8] = i + j
#   B: float32[32x8] = 0 -> (i + j) * 4 if i >= 12 and i < 28 and j >= 4 else i + j
@T.prim_func
def in_a_tile_of_one_thread(A: T.Buffer((32, 8), "float32"), B: T.Buffer((32, 8), "float32")):
    T.device_entry()
    tid = T.thread_id([64])
    plain = T.alloc_buffer((32, 8), "float32", scope="shared", layout=TileLayout(S[(32, 8)]))
    swizzled = T.alloc_buffer((32, 8), "float32", scope="shared", layout=ComposeLayout(2, 3, 3, TileLayout(S[(32, 8)])))
    Tx.cta.copy(plain, A)
    Tx.cta.copy(swizzled, A)
    T.cuda.cta_sync()
    if tid == 1:
        Tx.fma(swizzled[12:28, 4:8], swizzled[12:28, 4:8], T.float32(3.0), plain[12:28, 4:8])
    T.cuda.cta_sync()
    Tx.cta.copy(B, swizzled)


# The row that a turn changes is its own inverse.
# sim: of_a_sum
#   A: float32[256] = i % 13
#   B: float32[256] = 0 -> i % 13 * 3 + (((i // 4) ^ (i // 32)) * 4 + i % 4) % 13 if ((i // 4) ^ (i // 32)) % 2 == 1 and ((i // 4) ^ (i // 32)) >= 25 and ((i // 4) ^ (i // 32)) <= 55 else i % 13
@T.prim_func
def of_a_sum(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32")):
    T.device_entry()
    tid = T.thread_id([256])
    rows = T.alloc_shared((256,), "float32")
    rows[tid] = A[tid]
    T.cuda.cta_sync()
    if tid == 1:
        for s in range(16):
            row: T.let = (s * 2 + 25) ^ ((s * 2 + 25) % 64 // 8)
            for lane in T.vectorized(4):
                rows[row * 4 + lane] = rows[row * 4 + lane] * T.float32(3.0) + A[s * 8 + 100 + lane]
    T.cuda.cta_sync()
    B[tid] = rows[tid]



# The columns begin within a vector, so that each of its lanes has a swizzled place of its own.
# sim: in_the_lanes_of_a_vector
#   A: int32[16x16] = i * 16 + j
#   B: int32[16x16] = 0 -> i * 16 + j - 1 if i >= 6 and i < 14 and j >= 1 and j < 9 else i * 16 + j
@T.prim_func
def in_the_lanes_of_a_vector(A: T.Buffer((16, 16), "int32"), B: T.Buffer((16, 16), "int32")):
    T.device_entry()
    tid = T.thread_id([32])
    swizzled = T.alloc_buffer((16, 16), "int32", scope="shared", layout=ComposeLayout(2, 3, 3, TileLayout(S[(16, 16)])))
    padded = T.alloc_buffer((16, 16), "int32", scope="shared", layout=TileLayout(S[(16, 16) : (18, 1)]))
    Tx.cta.copy(swizzled, A)
    Tx.cta.copy(padded, A)
    T.cuda.cta_sync()
    if tid == 8:
        Tx.add(padded[6:14, 1:9], swizzled[6:14, 1:9], T.int32(-1))
    T.cuda.cta_sync()
    Tx.cta.copy(B, padded)
