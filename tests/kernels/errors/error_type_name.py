# error: unknown dtype "flaot32"
# error: --> error_type_name.py:11:31
# error: did you mean "float32"?
# A dtype that is misspelt.

@T.prim_func
def kernel(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float16")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((32,), "flaot32")
