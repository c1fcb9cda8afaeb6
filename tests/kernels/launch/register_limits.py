# test: cuda sm_90a
# The registers that a thread may use: `__maxnreg__`, or as many blocks as fit where the kernel has launch bounds of its own.
from tvm.script import tirx as T


@T.inline
def many_values(A, tx):
    x = T.alloc_local((64,), "float32")
    for i in T.unroll(64):
        x[i] = A[i * 256 + tx]
    T.cuda.cta_sync()
    for i in T.unroll(64):
        A[i * 256 + tx] = x[63 - i] * x[i]


@T.prim_func
def of_the_region(A: T.Buffer((16384,), "float32")):
    T.device_entry()
    T.attr({"tirx.max_registers": 40})
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    many_values(A, tx)


@T.prim_func
def beside_bounds(A: T.Buffer((16384,), "float32")):
    T.device_entry()
    T.attr({"tirx.max_registers": 40, "tirx.launch_bounds_min_blocks_per_sm": 1})
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    many_values(A, tx)


# Of 255 registers a block of 1,024 threads gets 64, so that it can be launched.
@T.prim_func
def of_large_blocks(A: T.Buffer((16384,), "float32")):
    T.device_entry()
    T.attr({"tirx.max_registers": 255})
    bx = T.cta_id([1])
    tx = T.thread_id([1024])
    A[tx] = A[tx] + T.float32(1)
