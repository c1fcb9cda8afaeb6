import math
from enum import Enum
from dataclasses import dataclass
from functools import partial
@T.prim_func
def hint(A: T.Buffer((128,), "float32")):
    T.device_entry()
    bx = T.cta_id([1]); tx = T.thread_id([128])
    with T.hint("hello", x=1):
        A[tx] = 1.0
