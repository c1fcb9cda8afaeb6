# test: parse
# test: cuda sm_90a
# test: sim
# Memory of scope "warp": registers of the lanes, read by shuffles.


@T.prim_func
def by_their_bits(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry()
    tx = T.thread_id([64])
    w = T.alloc_buffer((32,), "float32", scope="warp")
    w[tx % 32] = A[tx]
    B[tx] = w[(tx % 32) ^ 3] + w[tx % 32 & 28] * T.float32(100)


@T.prim_func
def all_reduced(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    T.device_entry()
    tx = T.thread_id([32])
    w = T.alloc_buffer((32,), "float32", scope="warp")
    w[tx] = A[tx]
    for i in range(5):
        w[tx] = w[tx] + w[tx ^ (1 << i)]
    B[tx] = w[tx]


@T.prim_func
def two_registers(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
    T.device_entry()
    tx = T.thread_id([32])
    w = T.alloc_buffer((2, 32), "int32", scope="warp")
    w[0, tx] = A[tx]
    w[1, tx] = A[tx + 32]
    B[tx] = w[1, tx ^ 16]
    B[tx + 32] = w[0, 31 - tx]


@T.prim_func
def neighbours(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
    T.device_entry()
    tx = T.thread_id([32])
    w = T.alloc_buffer((64,), "int32", scope="warp")
    for i in range(2):
        w[tx * 2 + i] = A[tx * 2 + i]
    for i in range(2):
        B[tx * 2 + i] = w[(tx ^ 1) * 2 + i]
