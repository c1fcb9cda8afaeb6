# test: parse
# test: sim
# A kernel uses the values that its names have where it is decorated, whatever they are rebound to later.
from tvm.script import tirx as T

N = 4


@T.prim_func
def before(A: T.Buffer((N,), "int32")):
    T.device_entry()
    tx = T.thread_id([N])
    A[tx] = N


N = 8


@T.prim_func
def behind(A: T.Buffer((N,), "int32")):
    T.device_entry()
    tx = T.thread_id([N])
    A[tx] = N


y = 5
held = [5]


class Holder:
    v = 5


def read():
    return y


@T.inline
def store(A, i):
    A[i, 4] = y


@T.prim_func
def values(A: T.Buffer((4, 5), "int32")):
    T.device_entry()
    tx = T.thread_id([4])
    A[tx, 0] = y
    A[tx, 1] = read()
    A[tx, 2] = Holder.v
    A[tx, 3] = held[0]
    store(A, tx)


y = 7
held[0] = 9
Holder.v = 9


@T.prim_func
def inlines_keep_theirs(A: T.Buffer((4, 5), "int32")):
    T.device_entry()
    tx = T.thread_id([4])
    A[tx, 0] = y
    store(A, tx)


kernels = []
for i in range(3):

    @T.prim_func
    def of_a_loop(A: T.Buffer((4,), "int32")):
        T.device_entry()
        tx = T.thread_id([4])
        A[tx] = i

    kernels.append(of_a_loop)

first_of_three = kernels[0]
count = [0]


def counted():
    count[0] += 1
    return count[0]


@T.prim_func
def counting(A: T.Buffer((4,), "int32")):
    T.device_entry()
    tx = T.thread_id([4])
    A[tx] = counted()


counted()
counted()


def factory(n):
    z = n

    @T.inline
    def add(A, i):
        A[i, 0] = z

    z = n + 1

    @T.prim_func
    def made(A: T.Buffer((4, 2), "int32")):
        T.device_entry()
        tx = T.thread_id([4])
        add(A, tx)
        A[tx, 1] = z

    z = n + 2
    return made


of_a_factory = factory(10)


@T.jit
def specialized(A: T.Buffer((4,), "int32"), *, M: T.constexpr = 3):
    T.device_entry()
    tx = T.thread_id([4])
    A[tx] = y + M


y = 9
N = 16
i = 100
