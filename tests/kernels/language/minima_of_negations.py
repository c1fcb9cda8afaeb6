# test: compile sm_90a
# test: compile sm_100a
# Negations in several forms, as one of three numbers of which the least is taken: ptxas loses the sign of a plain one.
from tvm.script import tirx as T


# sim: least
#   A: int32[4x32] = (i * 37 + j * 11) % 41 - 20
#   B: int32[7x32] = 0 -> min(A[0][j], A[1][j], [-2 * A[2][j], -A[2][j], -4 * A[2][j], -(A[2][j] // 2) if A[2][j] >= 0 else -A[2][j] // 2, -A[2][j], -A[2][j] - 2 * A[3][j], -A[2][j]][i])
@T.prim_func
def least(A: T.Buffer((4, 32), "int32"), B: T.Buffer((7, 32), "int32")):
    T.device_entry()
    tx = T.thread_id([32])
    a: T.let = A[0, tx]
    b: T.let = A[1, tx]
    x: T.int32 = A[2, tx]
    y: T.int32 = A[3, tx]
    B[0, tx] = T.min(T.min(a, x - x * 3), b)
    B[1, tx] = T.min(T.min(a, y - (x + y)), b)
    B[2, tx] = T.min(T.min(a, x * -4), b)
    B[3, tx] = T.min(T.min(a, T.truncdiv(x, -2)), b)
    B[4, tx] = T.min(T.min(a, ~x + 1), b)
    B[5, tx] = T.min(T.min(a, x * -1 + y * -2), b)
    B[6, tx] = T.min(T.min(a, 0 - x), b)


# As tile operations write them, through arrays in registers.
# sim: through_registers
#   A: int32[64x2] = (i * 37 + j * 11) % 41 - 20
#   B: int32[64x2] = 0 -> min(A[i][0], -2 * A[i][0], -2 * A[i][1]) if j == 0 else -2 * A[i][1]
@T.prim_func
def through_registers(A: T.Buffer((64, 2), "int32"), B: T.Buffer((64, 2), "int32")):
    T.device_entry()
    tx = T.thread_id([64])
    s = T.alloc_local((2,), "int32")
    r = T.alloc_local((2,), "int32")
    for k in T.serial(2):
        s[k] = A[tx, k]
        r[k] = A[tx, k]
    for k in T.serial(2):
        s[k] = s[k] - s[k] * 3
    for k in T.serial(2):
        r[0] = T.min(r[0], s[k])
    B[tx, 0] = r[0]
    B[tx, 1] = s[1]
