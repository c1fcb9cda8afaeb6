# test: lower LowerTIRx
# test: cuda sm_90a
# test: compile sm_100a
# test: sim
# The program of the page on elementwise operations in shared memory: one round of vectors of four.
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx
from tvm.tirx.layout import TileLayout, S
s_layout = TileLayout(S[(32, 32)]); full = (slice(0, 32), slice(0, 32))

@T.prim_func
def unary_op(A_ptr: T.handle):
    A = T.match_buffer(A_ptr, (32, 32), "float32", layout=s_layout)
    T.device_entry(); T.cta_id([1]); T.warp_id([8]); T.lane_id([32]); T.thread_id([256])
    A_smem = T.alloc_buffer((32, 32), "float32", scope="shared", layout=s_layout)
    Tx.cta.copy(A_smem[full], A[full])
    Tx.cta.sqrt(A_smem[full], A_smem[full])   # elementwise smem dispatch
    Tx.cta.copy(A[full], A_smem[full])
