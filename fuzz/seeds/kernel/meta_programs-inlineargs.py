@T.inline
def acc_all(dst, *vals, scale=1.0):
    for k in T.unroll(len(vals)):
        dst[0] += vals[0] * scale
@T.prim_func
def inlineargs(A: T.Buffer((128,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([128])
    r = T.alloc_local((1,), "float32")
    r[0] = 0.0
    acc_all(r, A[tx], 2.0, scale=3.0)
    A[tx] = r[0]
import math
from enum import Enum
from dataclasses import dataclass
from functools import partial
