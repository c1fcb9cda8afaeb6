# test: parse
# test: sim
# test: cuda sm_90a
# Schedulers of the kernel language's library.
from tvm.backend.cuda.lang import ClusterPersistentScheduler2D, FlashAttentionLinearScheduler
from tvm.backend.cuda.lang import FlashAttentionLPTScheduler, GroupMajor3D, IndexedTripleTileScheduler
from tvm.backend.cuda.lang.tile_scheduler import BaseTileScheduler
from tvm.script import tirx as T


@T.prim_func
def group_major(O: T.Buffer((3, 20, 2), "int32")):
    T.device_entry()
    bx = T.cta_id([3])
    tx = T.thread_id([32])
    sched = ClusterPersistentScheduler2D("sched", num_m_tiles=5, num_n_tiles=4, num_clusters=3, l2_group_size=2)
    if tx == 0:
        sched.init(bx)
        while sched.valid():
            O[bx, sched.tile_count, 0] = sched.m_idx
            O[bx, sched.tile_count, 1] = sched.n_idx
            sched.next_tile()


@T.prim_func
def serpentine(O: T.Buffer((16, 2), "int32")):
    T.device_entry()
    tx = T.thread_id([32])
    sched = ClusterPersistentScheduler2D("sched", 4, 4, 1, l2_group_size=2, serpentine=True)
    if tx == 0:
        sched.init(0)
        while sched.valid():
            O[sched.tile_idx, 0] = sched.m_idx
            O[sched.tile_idx, 1] = sched.n_idx
            sched.next_tile()


@T.prim_func
def runtime_rows(O: T.Buffer((12, 2), "int32"), m: T.int32):
    T.device_entry()
    tx = T.thread_id([32])
    sched = ClusterPersistentScheduler2D("sched", m, 4, 1, l2_group_size=2)
    if tx == 0:
        sched.init(0)
        while sched.valid():
            O[sched.tile_idx, 0] = sched.m_idx
            O[sched.tile_idx, 1] = sched.n_idx
            sched.next_tile()


@T.prim_func
def three_dimensions(O: T.Buffer((12, 3), "int32")):
    T.device_entry()
    tx = T.thread_id([32])
    sched = GroupMajor3D("sched", 3, 2, 2, group_rows=2)
    if tx == 0:
        sched.init(0)
        while sched.valid():
            O[sched.tile_idx, 0] = sched.m_idx
            O[sched.tile_idx, 1] = sched.n_idx
            O[sched.tile_idx, 2] = sched.k_idx
            sched.next_tile()


@T.prim_func
def indexed(B: T.Buffer((4,), "int32"), H: T.Buffer((4,), "int32"), Q: T.Buffer((4,), "int32"),
            P: T.Buffer((3,), "int32"), O: T.Buffer((4,), "int32")):
    T.device_entry()
    bx = T.cta_id([2])
    tx = T.thread_id([32])
    sched = IndexedTripleTileScheduler("sched", B, H, Q, P)
    if tx == 0:
        sched.init(bx)
        while sched.valid():
            O[sched.linear_idx] = sched.b_idx * 100 + sched.h_idx * 10 + sched.q_idx
            # The lists end with the last tile.
            if sched.linear_idx < 3:
                sched.next_tile()
            else:
                sched.linear_idx = sched.linear_lim


@T.prim_func
def attention(O: T.Buffer((12,), "int32"), L: T.Buffer((12,), "int32")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([32])
    linear = FlashAttentionLinearScheduler("linear", 1, 3, 4, num_ctas=4)
    longest = FlashAttentionLPTScheduler("longest", 1, 3, 4, l2_swizzle=2, num_ctas=4)
    if tx == 0:
        linear.init(bx)
        while linear.valid():
            O[linear.linear_idx] = linear.batch_idx * 100 + linear.head_idx * 10 + linear.m_block_idx
            linear.next_tile()
        longest.init(bx)
        while longest.valid():
            L[longest.linear_idx] = longest.batch_idx * 100 + longest.head_idx * 10 + longest.m_block_idx
            longest.next_tile()


class Strided(BaseTileScheduler):
    """A scheduler of a kernel's own."""

    @T.inline
    def update_current_m_n_idx(self, linear_idx):
        self.m_idx = linear_idx // 3
        self.n_idx = linear_idx % 3


@T.prim_func
def own_scheduler(O: T.Buffer((6,), "int32")):
    T.device_entry()
    bx = T.cta_id([2])
    tx = T.thread_id([32])
    sched = Strided("sched")
    if tx == 0:
        sched.init(bx)
        while sched.valid(6):
            O[sched.linear_idx] = sched.m_idx * 10 + sched.n_idx
            sched.next_tile(2)
