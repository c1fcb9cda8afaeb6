# test: parse
# test: compile sm_90a
# Buffers of one element as TVM prints them: a declaration by its type, stores by the name, shared ones by T.shared_scalar. Each
# reads back as what it was, in the memory where it was.
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx


# sim: as_printed
#   A: float32[32] = i + 1
#   B: float32[32] = 0 -> A[5] + 1 + A[i] * 4
@T.prim_func
def as_printed(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    T.attr({"tirx.device_entry": T.bool(True)})
    v = T.cta_id([1])
    t = T.thread_id([32])
    a: T.float32
    s = T.shared_scalar("float32")
    w: T.int32 = 3
    a = A[t]
    if t == 5:
        s = a + T.float32(1.0)
    T.cuda.cta_sync()
    w = w + 1
    B[t] = s + a * T.Cast("float32", w)


# sim: as_written
#   A: float32[32] = i + 1
#   B: float32[32] = 0 -> A[7] * 2 + A[i]
@T.prim_func
def as_written(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    T.device_entry()
    T.cta_id([1])
    t = T.thread_id([32])
    a = T.alloc_local((1,), "float32")
    s = T.alloc_shared((1,), "float32")
    d = T.alloc_local((1, 1), "float32")
    a[0] = A[t]
    d[0, 0] = a[0] * 2.0
    if t == 7:
        s[0] = d[0, 0]
    T.cuda.cta_sync()
    B[t] = s[0] + a[0]


# A region of one element is a region of the buffer, not its value.
# sim: in_tile_primitives
#   A: float32[32x8] = i + j
#   B: float32[32] = 0 -> sum([A[i][k] for k in range(8)]) + 1
@T.prim_func
def in_tile_primitives(A: T.Buffer((32, 8), "float32"), B: T.Buffer((32,), "float32")):
    T.device_entry()
    T.cta_id([1])
    t = T.thread_id([32])
    a = T.alloc_local((8,), "float32")
    b = T.alloc_local((1,), "float32")
    Tx.copy(a, A[t, 0:8])
    Tx.fill(b, 1.0)
    Tx.sum(b, a, axes=-1, accum=True)
    B[t] = b[0]
