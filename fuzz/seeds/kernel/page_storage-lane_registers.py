from tvm.tirx.layout import TileLayout, S, laneid
@T.prim_func
def lane_registers(B: T.Buffer((32, 8), "float32")):
    T.device_entry(); bx = T.cta_id([1]); w = T.warp_id([1]); lane = T.lane_id([32])
    R = T.alloc_buffer((32, 8), "float32", scope="local", layout=TileLayout(S[(32, 8) : (1 @ laneid, 1)]))
    Rl = R.local(8)
    for k in T.unroll(8):
        Rl[k] = T.cast(lane * 8 + k, "float32")
    for k in T.unroll(8):
        B[lane, k] = Rl[k]
