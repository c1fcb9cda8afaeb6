D = Derived(2, 1)
@T.prim_func
def inheritc(A: T.Buffer((128,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    A[D.offset(tx)] = 1.0
    A[D(tx) + D.two() - 1] = T.float32(f"{D.m}" == "1")
import math
from enum import Enum
from dataclasses import dataclass
from functools import partial
