@T.prim_func
def inlinelate(A: T.Buffer((128,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([128])
    x: T.float32 = 1.0
    @T.inline
    def bump():
        x += 1.0
    bump()
    for i in T.unroll(2):
        bump()
    A[tx] = x
import math
from enum import Enum
from dataclasses import dataclass
from functools import partial
