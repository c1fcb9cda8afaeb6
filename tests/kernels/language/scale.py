# test: parse
# test: lower LowerTIRx
# test: lower SplitHostDevice
# test: cuda sm_90a
# test: compile sm_100a
# The first kernel.

@T.prim_func
def scale(A_ptr: T.handle, B_ptr: T.handle):
    A = T.match_buffer(A_ptr, (256,), "float32")
    B = T.match_buffer(B_ptr, (256,), "float32")
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([256])
    B[tx] = A[tx] * T.float32(2.0)
