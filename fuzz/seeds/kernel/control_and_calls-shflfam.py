@T.prim_func
def shflfam(A: T.Buffer((32,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); w = T.warp_id([1]); l = T.lane_id([32])
    A[l] = T.tvm_warp_shuffle(0xFFFFFFFF, A[l], 0, 32, 32) + T.tvm_warp_shuffle_up(0xFFFFFFFF, A[l], 1, 32, 32) + T.tvm_warp_shuffle_down(0xFFFFFFFF, A[l], 1, 32, 32) + T.tvm_warp_shuffle_xor(T.tvm_warp_activemask(), A[l], 1, 32, 32)
