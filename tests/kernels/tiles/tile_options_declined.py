# test: messages
# Options that a variant does not take: it declines, so that no option of a call is dropped.
from _fragments import sums
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx


@T.prim_func
def address_alone(A: T.Buffer((8, 128), "float32")):
    T.device_entry(); T.cta_id([1]); T.thread_id([128])
    s = T.alloc_shared((8, 128), "float32")
    bar = T.alloc_shared((1,), "uint64")
    Tx.copy_async(s, A, mbarrier_addr=bar.ptr_to([0]), cta_group=2)


@T.prim_func
def foreign(A: T.Buffer((8, 128), "float32")):
    T.device_entry(); T.cta_id([1]); T.thread_id([128])
    s = T.alloc_shared((8, 128), "float32")
    Tx.cta.copy_async(s, A, cta_mask=3, oob="nan")


@T.prim_func
def forced(A: T.Buffer((8, 128), "float32")):
    T.device_entry(); T.cta_id([1]); T.thread_id([128])
    s = T.alloc_shared((8, 128), "float32")
    Tx.cta.copy_async(s, A, cta_mask=3, dispatch="ldgsts")


@T.prim_func
def of_blackwell(A: T.Buffer((64, 64), "float16"), C: T.Buffer((64, 64), "float32")):
    T.device_entry(); T.cta_id([1]); T.thread_id([128])
    pool = T.SMEMPool()
    As = pool.alloc_tcgen05_mma_AB((64, 64), "float16")
    Bs = pool.alloc_tcgen05_mma_AB((64, 64), "float16")
    pool.commit()
    acc = T.alloc_buffer((64, 64), "float32", scope="local", layout=sums(64, 64))
    Tx.wg.gemm_async(acc, As, Bs, cta_group=2)


@T.prim_func
def by_one_thread(A: T.Buffer((8, 128), "float32")):
    T.device_entry(); T.cta_id([1]); T.thread_id([128])
    s = T.alloc_shared((8, 128), "float32")
    Tx.cta.copy(s, A, cache="nc", dispatch="fallback")


@T.prim_func
def of_a_store(A: T.Buffer((8, 128), "float32")):
    T.device_entry(); T.cta_id([1]); t = T.thread_id([128])
    r = T.alloc_local((8,), "float32")
    Tx.copy(A[t % 8, 0:8], r, l1_evict="L1::no_allocate")
