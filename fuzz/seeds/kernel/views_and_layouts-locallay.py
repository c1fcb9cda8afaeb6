from tvm.tirx.layout import TileLayout, S, laneid
@T.prim_func
def locallay(A: T.Buffer((32, 8), "float32"), B: T.Buffer((32, 8), "float32")):
    T.device_entry(); bx = T.cta_id([1]); lane = T.lane_id([32]); w = T.warp_id([1])
    R = T.alloc_buffer((32, 8), "float32", scope="local", layout=TileLayout(S[(32, 8) : (1 @ laneid, 1)]))
    Rl = R.local(8)
    for i in T.unroll(8):
        Rl[i] = A[lane, i]
    for i in T.unroll(8):
        B[lane, i] = Rl[7 - i]
