# test: target sm_107a
# A block uses as much shared memory as its GPU has.
from tvm.script import tirx as T


# 327 KiB: no GPU before Rubin has them.
# sim: most_of_rubin
#   B: int32[2] = 0 -> 7 + i
@T.prim_func
def most_of_rubin(B: T.Buffer((2,), "int32")):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([32])
    pool = T.SMEMPool()
    a = pool.alloc((83711,), "int32")
    last = pool.alloc((1,), "int32")
    pool.commit()
    if tx == 0:
        a[83710] = 7
        last[0] = 8
        B[0] = a[83710]
        B[1] = last[0]


# 227 KiB of Hopper and Blackwell.
# sim: most_of_hopper on sm_90a, sm_100a, sm_107a
#   B: int32[1] = 0 -> 7
@T.prim_func
def most_of_hopper(B: T.Buffer((1,), "int32")):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([32])
    pool = T.SMEMPool()
    a = pool.alloc((58112,), "int32")
    pool.commit()
    if tx == 0:
        a[58111] = 7
        B[0] = a[58111]
