# test: parse
# Members of an IntEnum are integers wherever one is expected, next to values of the kernel too.
from enum import Enum, IntEnum
from tvm.script import tirx as T

class Mode(IntEnum):
    ADD = 1
    MUL = 3

class Kind(Enum):
    PLAIN = "plain"

@T.prim_func
def kernel(A: T.Buffer((8, Mode.MUL), "int32"), mode: T.int32):
    T.device_entry(); bx = T.cta_id([Mode.ADD]); tx = T.thread_id([8])
    if mode == Mode.MUL:
        A[tx, Mode.ADD] *= Mode.MUL
    elif Mode.ADD < mode:
        A[tx, 0] = T.int32(Mode.MUL) + Mode.ADD
    for i in range(Mode.MUL):
        if Kind.PLAIN == Kind.PLAIN and mode != Mode.ADD:
            A[tx, i] += i % Mode.MUL
