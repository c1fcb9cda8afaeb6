# test: parse
# test: cuda sm_90a
# test: sim
# Arithmetic on bools: computed as numbers, with a bool result, in scalars and in lanes.


@T.prim_func
def of_scalars(A: T.Buffer((8,), "bool"), C: T.Buffer((8,), "bool"), B: T.Buffer((4, 8), "int32")):
    T.device_entry()
    tx = T.thread_id([8])
    B[0, tx] = T.cast(A[tx] + C[tx], "int32")
    B[1, tx] = T.cast(A[tx] - C[tx] - A[tx], "int32")
    B[2, tx] = T.cast(A[tx] * C[tx], "int32")
    B[3, tx] = T.Select((A[tx] + C[tx]) == T.bool(True), 5, 7)


@T.prim_func
def of_lanes(A: T.Buffer((8,), "boolx4"), C: T.Buffer((8,), "boolx4"), B: T.Buffer((8,), "boolx4")):
    T.device_entry()
    tx = T.thread_id([8])
    B[tx] = A[tx] + C[tx] * A[7 - tx]
