# test: cuda sm_90a
# Python around the kernel: inline functions, classes, comprehensions, hints.
from tvm.script import tirx as T

@T.inline
def addto(C, i, v):
    C[i] = C[i] + v
@T.prim_func
def inline1(A: T.Buffer((128,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([128])
    @T.inline
    def twice(x):
        addto(A, x, A[x])
    twice(tx)
    addto(A, tx, 1.0)

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

class Base:
    def __init__(self, n):
        self.n = n
    def offset(self, i):
        return i * self.n
class Derived(Base):
    def __init__(self, n, m):
        super().__init__(n)
        self.m = m
    def offset(self, i):
        return super().offset(i) + self.m
    @staticmethod
    def two():
        return 2
    def __call__(self, i):
        return self.offset(i)
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
class Op(Enum):
    ADD = 0
    MUL = 1
@dataclass
class Cfg:
    n: int = 4
    scale: float = 0.5
    @property
    def total(self):
        return self.n * 32
CFG = Cfg(n=4)
def apply(op, a, b):
    return a + b if op == Op.ADD else a * b
@T.prim_func
def pycomp(A: T.Buffer((128,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([CFG.total])
    offs = T.meta_var([i * i for i in range(4) if i != 2])
    g = T.meta_var(partial(apply, Op.MUL))
    A[tx] = apply(Op.ADD, A[tx], g(A[tx], T.float32(math.sqrt(CFG.scale) + sum(offs))))

@T.prim_func
def lambdaf(A: T.Buffer((128,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([128])
    f = T.meta_var(lambda x: x * x + 1.0)
    A[tx] = f(A[tx])

@T.prim_func
def hint(A: T.Buffer((128,), "float32")):
    T.device_entry()
    bx = T.cta_id([1]); tx = T.thread_id([128])
    with T.hint("hello", x=1):
        A[tx] = 1.0
