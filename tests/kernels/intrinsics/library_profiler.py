# test: sim
# The profiler of the kernel language's library: records of events, and one that is off.
from enum import Enum

from tvm.script import tirx as T
from tvm.tirx.bench import CudaProfiler


class Event(Enum):
    Load = 0
    Work = 1


@T.prim_func
def profiled(A: T.Buffer((64,), "float32"), P: T.Buffer((33,), "uint64"), R: T.Buffer((4,), "uint64")):
    T.device_entry()
    bx = T.cta_id([2])
    tx = T.thread_id([32])
    profiler = CudaProfiler(P, write_stride=2, num_groups=1, default_leader=tx == 0)
    profiler.init(0)
    profiler.start(Event.Load)
    value: T.float32 = A[bx * 32 + tx]
    profiler.end(Event.Load)
    profiler.start(Event.Work)
    A[bx * 32 + tx] = value * T.float32(2)
    profiler.end(Event.Work)
    profiler.finalize()
    if tx == 0:
        # Tags without times: block << 12 | event << 2 | what.
        R[bx * 2] = P[1 + bx] & T.uint64(0xFFFFFFFF)
        R[bx * 2 + 1] = P[7 + bx] & T.uint64(0xFFFFFFFF)
        for i in range(5):
            P[1 + bx + i * 2] = T.uint64(0)


@T.prim_func
def silent(A: T.Buffer((32,), "float32"), P: T.Buffer((33,), "uint64")):
    T.device_entry()
    tx = T.thread_id([32])
    profiler = CudaProfiler(P, 2, 1, profiler_enabled=False)
    profiler.init(0)
    profiler.start(Event.Load)
    A[tx] = T.float32(1)
    profiler.end(Event.Load)
    profiler.finalize()
