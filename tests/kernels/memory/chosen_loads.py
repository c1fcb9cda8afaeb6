# test: cuda sm_90a
# test: compile sm_100a
# test: sim
# What is only read is not promised to have no alias where a load of it can become one load with one of what the kernel
# writes, for nvcc takes that for a load of memory that never changes. Each kernel writes B, and reads it where A is not read.
from tvm.script import tirx as T


@T.prim_func
def of_a_choice(A: T.Buffer((64,), "float32"), B: T.Buffer((128,), "float32"), c: T.int32):
    T.device_entry()
    tx = T.thread_id([32])
    B[tx] = A[tx] + T.float32(1.0)
    T.cuda.cta_sync()
    x: T.let = T.if_then_else(c < 9, A[tx * 2], B[tx ^ 1])
    B[tx + 64] = x


@T.prim_func
def of_branches(A: T.Buffer((64,), "float32"), B: T.Buffer((128,), "float32"), c: T.int32):
    T.device_entry()
    tx = T.thread_id([32])
    B[tx] = A[tx] + T.float32(1.0)
    T.cuda.cta_sync()
    if tx < c:
        B[tx + 64] = A[tx * 2] * T.float32(2.0)
    else:
        B[tx + 64] = B[tx ^ 1] * T.float32(2.0)


@T.prim_func
def of_one_branch(A: T.Buffer((64,), "float32"), B: T.Buffer((128,), "float32"), c: T.int32):
    T.device_entry()
    tx = T.thread_id([32])
    x: T.float32
    B[tx] = A[tx] + T.float32(1.0)
    T.cuda.cta_sync()
    x = B[tx ^ 1]
    if tx < c:
        x = A[tx * 2]
    B[tx + 64] = x


@T.prim_func
def of_two_of_three(A: T.Buffer((64,), "float32"), B: T.Buffer((128,), "float32"), C: T.Buffer((64,), "float32"), c: T.int32):
    T.device_entry()
    tx = T.thread_id([32])
    B[tx] = A[tx] + C[tx]
    T.cuda.cta_sync()
    if tx < c:
        B[tx + 64] = A[tx * 2]
    elif tx < c * 2:
        B[tx + 64] = C[tx * 2]
    else:
        B[tx + 64] = B[tx ^ 1]


@T.prim_func
def within_a_branch(A: T.Buffer((64,), "float32"), B: T.Buffer((128,), "float32"), c: T.int32):
    T.device_entry()
    tx = T.thread_id([32])
    if tx < c:
        B[tx] = B[tx] + A[tx]


@T.prim_func
def after_another_kernel(A: T.Buffer((32,), "float32"), B: T.Buffer((64,), "float32"), c: T.int32):
    with T.launch_thread("blockIdx.x", 1) as bx, T.launch_thread("threadIdx.x", 32) as tx:
        A[tx] = T.cast(tx, "float32")
        T.ptx.griddepcontrol.launch_dependents()
    with T.attr({"tirx.use_programtic_dependent_launch": 1}):
        with T.launch_thread("blockIdx.x", 1) as bx, T.launch_thread("threadIdx.x", 32) as tx:
            if c > 5:
                B[tx + 32] = T.float32(3.0)
            T.ptx.griddepcontrol.wait()
            B[tx] = A[31 - tx]


# A load from a selected address sees the value that was just stored: B is not __restrict__ either.
@T.prim_func
def after_a_store(A: T.Buffer((64,), "float32"), B: T.Buffer((128,), "float32"), c: T.int32):
    T.device_entry()
    tx = T.thread_id([32])
    B[tx * 2] = A[tx] + T.float32(1.0)
    B[tx * 2] = T.if_then_else(tx < c, A[tx * 2], B[tx * c])
