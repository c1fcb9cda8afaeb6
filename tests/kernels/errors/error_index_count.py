# error: A has 1 dimension but 2 indices were given
# error: --> error_index_count.py:10:5
# More indices than dimensions.

@T.prim_func
def kernel(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float16")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    A[tx, 0] = 1.0
