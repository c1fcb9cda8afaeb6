# test: parse
# test: lower LowerTIRx
# test: lower SplitHostDevice
# test: cuda sm_90a
# test: compile sm_100a
# The kernels of the documentation's page on functions and launches.

@T.prim_func
def handles(A_ptr: T.handle, B_ptr: T.handle):
    A = T.match_buffer(A_ptr, (256,), "float32", align=16)
    B = T.match_buffer(B_ptr, (256,), "float32")
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([256])
    B[tx] = A[tx]

@T.prim_func
def buffers(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([256])
    B[tx] = A[tx]

@T.prim_func
def scal(A_ptr: T.handle, B_ptr: T.handle, s: T.float32):
    A = T.match_buffer(A_ptr, (256,), "float32")
    B = T.match_buffer(B_ptr, (256,), "float32")
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([256])
    B[tx] = A[tx] * s

@T.prim_func
def scale_dyn(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    T.device_entry()
    bx = T.cta_id([1]); tx = T.thread_id([1])
    for i in range(n):
        B[i] = A[i] * T.float32(2.0)

@T.prim_func
def grid(A_ptr: T.handle):
    A = T.match_buffer(A_ptr, (6, 128), "int32")
    T.device_entry()
    bx, by = T.cta_id([2, 3])
    warp_id = T.warp_id([4])
    lane_id = T.lane_id([32])
    tx = T.thread_id([128])
    A[bx * 3 + by, tx] = warp_id * 32 + lane_id

@T.prim_func
def launch_bounds(A_ptr: T.handle, B_ptr: T.handle):
    A = T.match_buffer(A_ptr, (256,), "float32")
    B = T.match_buffer(B_ptr, (256,), "float32")
    T.device_entry()
    T.attr({"tirx.launch_bounds_min_blocks_per_sm": 2})
    bx = T.cta_id([1]); tx = T.thread_id([256])
    B[tx] = A[tx]
