# error: unknown name "T.cuda.cta_snyc"
# error: --> error_unknown_member.py:11:12
# error: did you mean "cta_sync"?
# A function that a namespace of T lacks.

@T.prim_func
def kernel(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float16")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    T.cuda.cta_snyc()
