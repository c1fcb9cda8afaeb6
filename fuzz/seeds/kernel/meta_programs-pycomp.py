import math
from enum import Enum
from dataclasses import dataclass
from functools import partial
class Op(Enum):
    ADD = 0
    MUL = 1
CFG = Cfg(n=4)
def apply(op, a, b):
    return a + b if op == Op.ADD else a * b
@T.prim_func
def pycomp(A: T.Buffer((128,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([CFG.total])
    offs = T.meta_var([i * i for i in range(4) if i != 2])
    g = T.meta_var(partial(apply, Op.MUL))
    A[tx] = apply(Op.ADD, A[tx], g(A[tx], T.float32(math.sqrt(CFG.scale) + sum(offs))))
