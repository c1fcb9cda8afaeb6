# test: parse
# test: cuda sm_90a
# Tensors of more elements than int32 counts: an extent of 64 bits makes their indices 64 bits wide.
from tvm.script import tirx as T


@T.prim_func
def first_extent(A: T.Buffer((T.int64(65536), 65536), "float32")):
    T.device_entry()
    bx = T.cta_id([65536])
    tx = T.thread_id([256])
    for i in range(256):
        A[bx, i * 256 + tx] = A[bx, i * 256 + tx] * T.float32(2)


@T.prim_func
def viewed(A: T.Buffer((T.int64(65536), 65536), "float32")):
    T.device_entry()
    bx = T.cta_id([65536])
    tx = T.thread_id([256])
    B = A.view(T.int64(4), 16384, 65536)
    B[bx // 16384, bx % 16384, tx] = T.float32(1)


@T.prim_func
def symbolic(A_h: T.handle, B_h: T.handle):
    n = T.int64()
    m = T.int32()
    A = T.match_buffer(A_h, (n, m), "float32")
    B = T.match_buffer(B_h, (n,), "float32")
    T.device_entry()
    bx = T.cta_id([65536])
    tx = T.thread_id([256])
    row: T.let = T.cast(bx, "int64") * T.int64(256) + T.cast(tx, "int64")
    if row < n:
        total = T.local_scalar("float32")
        total = 0
        for i in range(m):
            total = total + A[row, i]
        B[row] = total
