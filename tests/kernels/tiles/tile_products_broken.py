# Products of a warpgroup as tile primitives, each with one mistake that the simulator reports.
import _fragments as fragments
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx


# sim: right
#   A: float16[64x64] = 2 * (j == i) + (j == (i * 5 + 17) % 64)
#   B: float16[32x64] = (i * 2 + j) % 5 - 2
#   C: float32[64x32] = 0 -> 2 * B[j][i] + B[j][(i * 5 + 17) % 64]
@T.prim_func
def right(A: T.Buffer((64, 64), "float16"), B: T.Buffer((32, 64), "float16"), C: T.Buffer((64, 32), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    pool = T.SMEMPool()
    As = pool.alloc_tcgen05_mma_AB((64, 64), "float16")
    Bs = pool.alloc_tcgen05_mma_AB((32, 64), "float16")
    pool.commit()
    Tx.cta.copy(As, A)
    Tx.cta.copy(Bs, B)
    T.ptx.fence.proxy_async("shared::cta")
    T.cuda.cta_sync()
    sums = T.alloc_buffer((64, 32), "float32", scope="local", layout=fragments.sums(64, 32))
    Tx.wg.gemm_async(sums, As, Bs)
    T.ptx.wgmma.commit_group()
    T.ptx.wgmma.wait_group(0)
    Tx.wg.copy(C, sums)

# The sums are read while the product is under way.
# variant: without_a_wait of right
#   without: 'T.ptx.wgmma.wait_group(0)'
#   fault: wgmma.wait_group is missing

# The wait is for groups, and the product is in none.
# variant: without_a_commit of right
#   without: 'T.ptx.wgmma.commit_group()'
#   fault: wgmma

# What the threads stored is not visible to the tensor cores.
# variant: without_a_proxy_fence of right
#   without: 'T.ptx.fence.proxy_async("shared::cta")'
#   fault: fence.proxy

# Other threads may not have stored yet.
# variant: without_a_barrier of right
#   without: 'T.cuda.cta_sync()'
#   fault: lets the tensor core read `Bs[0, 0]`
