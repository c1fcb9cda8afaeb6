# test: parse
# test: cuda sm_90a
# test: sim
# Variables in lists: a variable takes the first name it is bound to. Binding a list to a name computes its values.
from tvm.script import tirx as T


def extents(count):
    made = [T.int32() for _ in range(count)]
    return made


class Shape:
    def __init__(self, rank):
        self.rows, *self.rest = extents(rank)


@T.prim_func
def comprehension(a: T.handle, b: T.handle):
    n, m = [T.int32() for _ in range(2)]
    A = T.match_buffer(a, (n, m), "int32")
    B = T.match_buffer(b, (m, n), "int32")
    T.device_entry()
    bx = T.cta_id([n])
    tx = T.thread_id([32])
    for i in range(T.ceildiv(m, 32)):
        if i * 32 + tx < m:
            B[i * 32 + tx, bx] = A[bx, i * 32 + tx]


@T.prim_func
def of_an_object(a: T.handle):
    shape = T.meta_var(Shape(3))
    n = shape.rows
    m, k = shape.rest
    A = T.match_buffer(a, (n, m, k), "int32")
    T.device_entry()
    bx, by = T.cta_id([n, m])
    tx = T.thread_id([32])
    if tx < k:
        A[bx, by, tx] += n * 100 + m * 10 + k


@T.prim_func
def of_a_list(a: T.handle, B: T.Buffer((4,), "int32")):
    shape = T.meta_var([T.int32(), 4])
    A = T.match_buffer(a, shape, "int32")
    rows = shape[0]
    T.device_entry()
    tx = T.thread_id([4])
    B[tx] = A[rows - 1, tx] + rows


@T.prim_func
def blocks(A: T.Buffer((2, 3, 4, 8), "int32")):
    T.device_entry()
    place = T.meta_var(T.cta_id([2, 3]))
    bx, by = place
    tx = T.thread_id([8])
    for at in T.grid(4, 1):
        i, j = at
        A[bx, by, i + j, tx] = ((bx * 3 + by) * 4 + i) * 8 + tx


@T.prim_func
def copied(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    T.device_entry()
    tx = T.thread_id([8])
    weights = [1, 2, [3, tx]]
    near = (A[tx], A[7 - tx] * weights[1])
    B[tx] = near[0] + near[1] + weights[2][0] + weights[2][1]
