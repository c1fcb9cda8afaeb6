# error: index 32 is out of range for dimension 0 of A
# error: --> error_index_range.py:12:5
# error: the extent is 32: valid are 0 to 31
# error: "A" is declared here
# A constant index beyond the extent; the declaration is shown.

@T.prim_func
def kernel(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float16")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    A[32] = 1.0
