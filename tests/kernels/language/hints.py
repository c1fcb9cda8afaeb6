# test: parse
# test: lower SplitHostDevice
# test: cuda sm_90a
# test: sim
# Hints for readers of a kernel: they stay in the IR, around the statements they describe, and generate no code.


@T.prim_func
def told(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
    T.hint("on the host")
    T.device_entry()
    tx = T.thread_id([32])
    with T.hint("a region", turns=3, by="hand", exact=True, factor=1.5, parts=[1, 2]):
        with T.hint():
            B[tx] = A[tx] + 1
    T.hint("the rest", of=tx, none=None)
    for i in range(4):
        T.hint("within a loop\n", last={"turn": 3})
        B[tx] += i
