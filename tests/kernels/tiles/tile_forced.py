# test: compile sm_90a
# test: compile sm_100a
# Copies by a selected variant: vectors of each width with cache hints, and the other variants by name.
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx


# sim: widths
#   A: uint8[32x32] = i * 7 + j
#   B: uint8[32x32] = 0 -> A[i][j] if j < 30 else 0
@T.prim_func
def widths(A: T.Buffer((32, 32), "uint8"), B: T.Buffer((32, 32), "uint8")):
    T.device_entry()
    T.cta_id([1])
    t = T.thread_id([32])
    r = T.alloc_local((32,), "uint8")
    s = T.alloc_buffer((32, 32), "uint8", scope="shared")
    Tx.copy(r[0:16], A[t, 0:16], dispatch="vec_128b", l1_evict="L1::evict_last", prefetch_size="L2::128B")
    Tx.copy(r[16:24], A[t, 16:24], dispatch="vec_64b", cache="nc", l1_evict="L1::no_allocate")
    Tx.copy(r[24:28], A[t, 24:28], dispatch="vec_32b", cache="nc")
    Tx.copy(r[28:30], A[t, 28:30], dispatch="vec_16b")
    Tx.copy(s[t, 0:16], r[0:16], dispatch="vec_128b")
    Tx.copy(s[t, 16:24], A[t, 16:24], dispatch="vec_64b")
    Tx.copy(B[t, 0:16], s[t, 0:16], dispatch="vec_128b")
    Tx.copy(B[t, 16:24], s[t, 16:24], dispatch="vec_64b")
    Tx.copy(B[t, 24:28], r[24:28], dispatch="vec_32b")
    Tx.copy(B[t, 28:30], r[28:30], dispatch="vec_16b")


# sim: by_name
#   A: float32[16x16] = i * 16 + j
#   B: float32[16x16] = 0 -> A[i][j] * 2
@T.prim_func
def by_name(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([64])
    s = T.alloc_buffer((16, 16), "float32", scope="shared")
    Tx.cta.copy(s[0:8, 0:16], A[0:8, 0:16], dispatch="gmem_smem")
    Tx.cta.copy(s[8:12, 0:16], A[8:12, 0:16], dispatch="vec_auto")
    Tx.cta.copy(s[12:16, 0:16], A[12:16, 0:16], dispatch="fallback")
    T.cuda.cta_sync()
    Tx.cta.add(s, s, s, dispatch="smem")
    Tx.cta.copy(B, s)


# sim: direct
#   A: float16[64x8] = i * 8 + j
#   B: float16[64x8] = 0 -> A[i][j]
@T.prim_func
def direct(A: T.Buffer((64, 8), "float16"), B: T.Buffer((64, 8), "float16")):
    T.device_entry()
    T.cta_id([1])
    t = T.thread_id([64])
    s = T.alloc_buffer((64, 8), "float16", scope="shared")
    Tx.copy_async(s[t, 0:8], A[t, 0:8], dispatch="ldgsts", direct=True)
    T.ptx.cp_async.commit_group()
    T.ptx.cp_async.wait_group(0)
    T.cuda.cta_sync()
    Tx.cta.copy(B, s)
