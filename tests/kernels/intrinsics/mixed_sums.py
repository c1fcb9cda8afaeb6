# test: compile sm_100a
# Sums and products of float32 with halves, which are rounded in each direction.
from tvm.script import tirx as T


# 1 + 2^-24 lies in the middle of 1 and the next float32, 1 + 2^-23: to nearest even and down it is 1, up it is 1 + 2^-23; 2^-24 - 1 is exact.
# 3 * 2^-12 * 2^-12 + 1 = 1 + 3 * 2^-24 lies in the middle of 1 + 2^-23 and 1 + 2^-22, which is the even one.
# 2^-26 is smaller than half of the distance of 1 to its neighbors: only the direction of rounding decides.
# sim: rounded_each_way
#   H: float16[2] = [2**-24, 2**-12][i]
#   B: bfloat16[1] = 2**-26
#   F: float32[12] = 0 -> [1, 1, 1, 1 + 2**-23, 2**-24 - 1, 1 + 2**-22, 1 + 2**-23, 1 + 2**-22, 1, 1 + 2**-23, -1, 2**-24 - 1][i]
@T.prim_func
def rounded_each_way(H: T.Buffer((2,), "float16"), B: T.Buffer((1,), "bfloat16"), F: T.Buffer((12,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    if tx == 0:
        one: T.let = T.float32(1.0)
        T.ptx["add.rn.f32.f16"](F[0], H[0], one)
        T.ptx["add.rz.f32.f16"](F[1], H[0], one)
        T.ptx["add.rm.f32.f16"](F[2], H[0], one)
        T.ptx["add.rp.f32.f16"](F[3], H[0], one)
        T.ptx["sub.rz.f32.f16"](F[4], H[0], one)
        T.ptx["fma.rn.f32.f16"](F[5], H[1], H[1] * T.float16(3.0), one)
        T.ptx["fma.rz.f32.f16"](F[6], H[1], H[1] * T.float16(3.0), one)
        T.ptx["fma.rp.f32.f16"](F[7], H[1], H[1] * T.float16(3.0), one)
        T.ptx["fma.rp.sat.f32.f16"](F[8], H[1], H[1] * T.float16(3.0), one)
        T.ptx["add.rp.f32.bf16"](F[9], B[0], one)
        T.ptx["sub.rm.f32.bf16"](F[10], B[0], one)
        T.ptx["sub.rp.f32.bf16"](F[11], B[0], one)
