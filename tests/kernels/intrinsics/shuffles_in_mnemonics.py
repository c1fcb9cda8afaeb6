# As in `shuffles_in_operands.py`: an operand is computed once, whatever the instruction does with it: a shuffle runs in all lanes, also in those whose other operand is no number.
from __future__ import annotations
from tvm.script import tirx as T


# sim: greatest
#   A: float32[32] = i
#   B: float32[32] = 0 -> 99 if i // 2 == 1 else i // 2 * 2 + 1
@T.prim_func
def greatest(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    T.device_entry()
    tx = T.thread_id([32])
    x: T.float32 = A[tx]
    if tx == 2:
        x = T.float32("nan")
    y: T.float32 = 0.0
    T.ptx["max.NaN.f32"](y, x, T.tvm_warp_shuffle_xor(0xFFFFFFFF, x, 1, 32, 32))
    B[tx] = T.if_then_else(T.isnan(y), T.float32(99), y)
