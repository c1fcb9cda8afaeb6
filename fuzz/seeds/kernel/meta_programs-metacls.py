@T.meta_class
class Acc:
    def __init__(self, n):
        self.n = n
        self.buf = T.alloc_local((n,), "float32")
        self.s = T.local_scalar("float32")
    @T.inline
    def clear(self):
        for i in T.unroll(self.n):
            self.buf[i] = 0.0
        self.s = 0.0
    @T.inline
    def add(self, i, v):
        self.buf[i] += v
        self.s += v
@T.prim_func
def metacls(A: T.Buffer((128,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    acc = T.meta_var(Acc(4))
    acc.clear()
    for i in T.unroll(4):
        acc.add(i, A[tx * 4 + i])
    for i in T.unroll(4):
        A[tx * 4 + i] = acc.buf[3 - i] / acc.s
import math
from enum import Enum
from dataclasses import dataclass
from functools import partial
