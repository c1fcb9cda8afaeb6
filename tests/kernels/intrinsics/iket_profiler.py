# test: cuda sm_90a
from tvm.script import tirx as T
from tvm.tirx.cuda.iket import IketProfiler


def get_kernel():
    iket = IketProfiler()

    @T.prim_func
    def traced(A: T.Buffer((64,), "float32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        iket.mark("begin", tx)
        token = iket.sentinel_token("half")
        if tx < 32:
            token = iket.range_start("half")
        A[tx] = A[tx] + T.float32(1)
        iket.range_end(token)

    return traced


# sim: traced
#   A: float32[64] = i -> i + 1
traced = get_kernel()
