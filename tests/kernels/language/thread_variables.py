# test: parse
# test: cuda sm_90a
# test: sim
# Hardware indices that have a variable before they are launched: it is an ordinary int32 everywhere.
from tvm.script import tirx as T


@T.prim_func
def arithmetic(A: T.Buffer((64,), "int32")):
    b = T.env_thread("blockIdx.x")
    t = T.env_thread("threadIdx.x")
    T.launch_thread(b, 4)
    T.launch_thread(t, 16)
    A[b * 16 + t] = b


@T.prim_func
def before_and_after(A: T.Buffer((64,), "int32")):
    b = T.env_thread("blockIdx.x")
    t = T.env_thread("threadIdx.x")
    i = T.meta_var(b * 16 + t)
    with T.launch_thread(b, 4):
        with T.launch_thread(t, 16):
            k: T.let = -t + T.max(b, 3)
            n: T.int32 = ~b
            if b > 1 and not t == 3:
                A[i] = T.if_then_else(t < 8, n, T.cast(t, "int32")) + (k << 1)
            for j in range(t):
                A[i] = A[i] + j


@T.prim_func
def two_launches(A: T.Buffer((2, 64), "int32")):
    T.device_entry()
    t = T.env_thread("threadIdx.x")
    with T.launch_thread(t, 32):
        A[0, t * 2] = t % 5
        A[1, t] = t.astype("int32") // 2
