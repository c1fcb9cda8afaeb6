@T.meta_class
class Pipe:
    def __init__(self, depth, dtype="float32"):
        self.depth = depth
        self.stage = T.local_scalar("int32")
        self.phase = T.local_scalar("int32")
    @T.inline
    def init(self):
        self.stage = 0
        self.phase = 0
    @T.inline
    def step(self):
        self.stage += 1
        if self.stage == self.depth:
            self.stage = 0
            self.phase ^= 1
@T.prim_func
def metacls2(A: T.Buffer((16, 32), "int32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    p = Pipe(3)
    p.init()
    for i in range(16):
        A[i, tx] = p.stage * 2 + p.phase
        p.step()
import math
from enum import Enum
from dataclasses import dataclass
from functools import partial
