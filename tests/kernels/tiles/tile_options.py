# test: cuda sm_90a
# A variant declines a call with an option that it does not take, unless the option has the value that it has when it is left out.
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx


# sim: defaults
#   A: float32[8x128] = i * 128 + j
#   B: float32[8x128] = 0 -> A[i][j]
@T.prim_func
def defaults(A: T.Buffer((8, 128), "float32"), B: T.Buffer((8, 128), "float32")):
    T.device_entry(); T.cta_id([1]); T.thread_id([128])
    s = T.alloc_shared((8, 128), "float32")
    Tx.cta.copy_async(s, A, cta_group=1, cta_mask=0, oob="zero", prefetch_tensormap=False, mbar=None, cache_hint="", multicast=None)
    T.ptx.cp_async.commit_group()
    T.ptx.cp_async.wait_group(0)
    T.cuda.cta_sync()
    Tx.cta.copy(B, s, vec_len=2, cache="")


# Hints of a load reach the load, whoever copies.
# sim: hints
#   A: float32[8x130] = i * 130 + j
#   B: float32[8x130] = 0 -> A[i][j]
@T.prim_func
def hints(A: T.Buffer((8, 130), "float32"), B: T.Buffer((8, 130), "float32")):
    T.device_entry(); T.cta_id([1]); T.thread_id([128])
    s = T.alloc_shared((8, 130), "float32")
    Tx.cta.copy(s[:, 0:128], A[:, 0:128], cache="nc", l1_evict="L1::no_allocate")
    Tx.cta.copy(s[:, 128:130], A[:, 128:130], prefetch_size="L2::128B")
    T.cuda.cta_sync()
    Tx.cta.copy(B, s)
