# test: parse
# test: compile sm_90a
# TVM prints the element of a buffer with one dimension and one element by the name of the buffer. A name on the right side is
# read as the element, and an assignment to such a name stores, also in nested blocks.
from tvm.script import tirx as T


# sim: stored_in_blocks
#   A: float32[1] = 5
#   n: int32[1] = 3
#   B: float32[32] = 0 -> 5 + 10 if i < 8 else (7 if i < 16 else 5)
@T.prim_func
def stored_in_blocks(A: T.Buffer((1,), "float32"), n: T.Buffer((1,), "int32"), B: T.Buffer((32,), "float32")):
    T.device_entry()
    T.cta_id([1])
    t = T.thread_id([32])
    x = T.local_scalar("float32")
    y = T.alloc_local((1,), "float32")
    x = A
    y = A
    if t < 8:
        y = T.float32(0)
        for _ in range(n):
            if t >= 0:
                y = x
        x = y + A + A
    elif t < 16:
        x = T.float32(7)
    B[t] = x


# sim: read_as_values
#   A: float32[1] = 4
#   n: int32[1] = 2
#   B: float32[32] = i -> (2 if i == 2 else 4) if i < 4 else (4 + i if i < 8 else -4)
@T.prim_func
def read_as_values(A: T.Buffer((1,), "float32"), n: T.Buffer((1,), "int32"), B: T.Buffer((32,), "float32")):
    T.device_entry()
    T.cta_id([1])
    t = T.thread_id([32])
    two: T.int32 = n
    exact: T.let = A
    if n == two and not A < exact:
        if t < 4:
            B[t] = T.if_then_else(t == n, T.cast(n, "float32"), A)
        elif t < 8:
            B[t] += T.max(A, exact)
        else:
            B[t] = -A


# Several names of one buffer; a name of its own for each step of a compile-time loop; the same names in inline functions.
@T.inline
def move(to, source):
    to = source


# As in TVM, the last name is the parameter's.
# sim: other_names
#   same: float32[1] = 3 -> 10
#   B: float32[32] = 0 -> 3 + 10
@T.prim_func
def other_names(A: T.Buffer((1,), "float32"), B: T.Buffer((32,), "float32")):
    T.device_entry()
    T.cta_id([1])
    t = T.thread_id([32])
    x: T.float32
    move(x, A)
    T.cuda.cta_sync()
    if t == 0:
        same = A
        same[0] = T.float32(10)
    T.cuda.cta_sync()
    steps = [T.alloc_local((1,), "float32") for _ in range(2)]
    for step in steps:
        current = step
        current[0] = A
    B[t] = x + (steps[0][0] + steps[1][0]) * T.float32(0.5)


# sim: declared_in_a_block
#   B: float32[32] = 0 -> 1
@T.prim_func
def declared_in_a_block(B: T.Buffer((32,), "float32")):
    T.device_entry()
    T.cta_id([1])
    t = T.thread_id([32])
    x: T.float32 = T.float32(1)
    if t < 16:
        x = T.local_scalar("float32")
        x = T.float32(2)
    B[t] = x
