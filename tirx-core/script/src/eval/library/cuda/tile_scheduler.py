"""Which tile a block works on next.

A scheduler keeps a place in a sequence of tiles (`linear_idx`) and turns it into coordinates of the tile. `init` sets the
place, `next_tile` moves it, `valid` says whether there is a tile.
"""

from tvm.backend.cuda.lang.pipeline import Pipeline, PipelineState
from tvm.script import tirx as T


def _is_zero(value):
    return isinstance(value, int) and value == 0


@T.meta_class
class BaseTileScheduler:
    """The state common to all schedulers. A subclass defines `update_current_m_n_idx`."""

    def __init__(self, prefix):
        self.m_idx = T.local_scalar("int32")
        self.n_idx = T.local_scalar("int32")
        self.linear_idx = T.local_scalar("int32")

    @T.inline
    def update_current_m_n_idx(self, linear_idx):
        pass

    @T.inline
    def init(self, linear_init):
        self.linear_idx = linear_init
        self.update_current_m_n_idx(linear_init)

    @T.inline
    def next_tile(self, step):
        self.linear_idx = self.linear_idx + step
        self.update_current_m_n_idx(self.linear_idx)

    def valid(self, total_tiles):
        return self.linear_idx < total_tiles


class ClusterPersistentScheduler2D(BaseTileScheduler):
    """Tiles of two dimensions for clusters that stay: groups of `l2_group_size` rows, each column after column.

    With `serpentine`, squares of `l2_group_size` tiles: down one column of squares, up the next.
    """

    def __init__(
        self,
        prefix,
        num_m_tiles,
        num_n_tiles,
        num_clusters,
        l2_group_size=8,
        cluster_m=1,
        cluster_n=1,
        serpentine=False,
    ):
        super().__init__(prefix)
        self._num_m_tiles = num_m_tiles
        self._num_n_tiles = num_n_tiles
        self._num_clusters = num_clusters
        self._l2_group_size = l2_group_size
        self._cluster_m = cluster_m
        self._cluster_n = cluster_n
        self._serpentine = serpentine
        self.work_idx = self.linear_idx
        self.tile_count = T.local_scalar("int32")
        self.tile_idx = self.tile_count

        def quotient(a, b):
            return a // b if isinstance(a, int) else T.truncdiv(a, b)

        columns = (num_n_tiles + cluster_n - 1) // cluster_n
        rows = quotient(num_m_tiles + cluster_m - 1, cluster_m)
        self._N_TILE_COLS = columns
        self._M_TILE_ROWS = rows
        self._FULL_GROUPS = quotient(rows, l2_group_size)
        self._TAIL_ROWS = rows - self._FULL_GROUPS * l2_group_size
        self._TOTAL_TILES = rows * columns * cluster_m * cluster_n
        if serpentine:
            self._N_BLOCKS = columns // l2_group_size
            self._M_BLOCKS = quotient(rows, l2_group_size)
            self._BLOCK_SIZE = l2_group_size * l2_group_size
            self._FULL_BLOCK_TILES = self._M_BLOCKS * self._N_BLOCKS * self._BLOCK_SIZE
            self._RESIDUAL_N = columns - self._N_BLOCKS * l2_group_size
            self._RESIDUAL_M = rows - self._M_BLOCKS * l2_group_size

    @T.inline
    def update_current_m_n_idx(self, work_idx):
        # Within a cluster of tiles first.
        row_in_cluster = T.meta_var(work_idx % self._cluster_m)
        rest = T.meta_var(work_idx // self._cluster_m)
        column_in_cluster = T.meta_var(rest % self._cluster_n)
        tile_linear = T.meta_var(rest // self._cluster_n)

        @T.inline
        def place(tile_row, tile_col):
            self.m_idx = tile_row * self._cluster_m + row_in_cluster
            self.n_idx = tile_col * self._cluster_n + column_in_cluster

        if self._serpentine:
            self._by_squares(tile_linear, place)
        else:
            self._by_groups(tile_linear, place)

    def _by_groups(self, tile_linear, place):
        # A branch that is known not to be taken is left out.
        if _is_zero(self._FULL_GROUPS) and _is_zero(self._TAIL_ROWS):
            place(0, 0)
        elif _is_zero(self._FULL_GROUPS):
            self._tail_or_nothing(tile_linear, place)
        elif _is_zero(self._TAIL_ROWS):
            self._groups_or_nothing(tile_linear, place)
        else:
            self._groups_or_tail(tile_linear, place)

    @T.inline
    def _in_group(self, tile_linear, place):
        span = T.meta_var(self._l2_group_size * self._N_TILE_COLS)
        group_id: T.let = tile_linear // span
        within_group: T.let = tile_linear % span
        tile_row: T.let = group_id * self._l2_group_size + (within_group % self._l2_group_size)
        tile_col: T.let = within_group // self._l2_group_size
        place(tile_row, tile_col)

    @T.inline
    def _in_tail(self, tile_linear, place):
        span = T.meta_var(self._l2_group_size * self._N_TILE_COLS)
        rem: T.let = tile_linear - self._FULL_GROUPS * span
        tile_row: T.let = self._FULL_GROUPS * self._l2_group_size + (rem % self._TAIL_ROWS)
        tile_col: T.let = rem // self._TAIL_ROWS
        place(tile_row, tile_col)

    def _is_in_groups(self, tile_linear):
        span = self._l2_group_size * self._N_TILE_COLS
        return (self._FULL_GROUPS > 0) & (tile_linear < self._FULL_GROUPS * span)

    @T.inline
    def _groups_or_nothing(self, tile_linear, place):
        if self._is_in_groups(tile_linear):
            self._in_group(tile_linear, place)
        else:
            place(0, 0)

    @T.inline
    def _tail_or_nothing(self, tile_linear, place):
        if self._TAIL_ROWS > 0:
            self._in_tail(tile_linear, place)
        else:
            place(0, 0)

    @T.inline
    def _groups_or_tail(self, tile_linear, place):
        if self._is_in_groups(tile_linear):
            self._in_group(tile_linear, place)
        elif self._TAIL_ROWS > 0:
            self._in_tail(tile_linear, place)
        else:
            place(0, 0)

    @T.inline
    def _by_squares(self, tile_linear, place):
        side = T.meta_var(self._l2_group_size)
        covered = T.meta_var(self._N_BLOCKS * self._l2_group_size)
        if (self._M_BLOCKS > 0) & (self._N_BLOCKS > 0) & (tile_linear < self._FULL_BLOCK_TILES):
            square: T.let = tile_linear // self._BLOCK_SIZE
            within: T.let = tile_linear % self._BLOCK_SIZE
            square_col: T.let = square // self._M_BLOCKS
            down: T.let = square % self._M_BLOCKS
            # Every other column of squares goes up.
            square_row: T.let = T.Select(square_col % 2 == 0, down, self._M_BLOCKS - 1 - down)
            tile_row: T.let = square_row * side + within // side
            tile_col: T.let = square_col * side + within % side
            place(tile_row, tile_col)
        elif self._RESIDUAL_N > 0:
            # The columns right of the squares, in their whole height.
            rem: T.let = tile_linear - self._FULL_BLOCK_TILES
            if rem < self._M_TILE_ROWS * self._RESIDUAL_N:
                tile_row: T.let = rem // self._RESIDUAL_N
                tile_col: T.let = covered + (rem % self._RESIDUAL_N)
                place(tile_row, tile_col)
            else:
                place(0, 0)
        elif self._RESIDUAL_M > 0:
            # The rows below the squares.
            rem: T.let = tile_linear - self._FULL_BLOCK_TILES
            if rem < self._RESIDUAL_M * covered:
                tile_row: T.let = self._M_BLOCKS * side + (rem % self._RESIDUAL_M)
                tile_col: T.let = rem // self._RESIDUAL_M
                place(tile_row, tile_col)
            else:
                place(0, 0)
        else:
            place(0, 0)

    @T.inline
    def init(self, cluster_id):
        self.linear_idx = cluster_id
        self.tile_count = 0
        self.update_current_m_n_idx(cluster_id)

    @T.inline
    def next_tile(self):
        self.next_tile_stride(self._num_clusters)

    @T.inline
    def next_tile_stride(self, stride):
        self.linear_idx = self.linear_idx + stride
        self.tile_count = self.tile_count + 1
        self.update_current_m_n_idx(self.linear_idx)

    def valid(self):
        return self.linear_idx < self._TOTAL_TILES


class GroupMajor3D(BaseTileScheduler):
    """Tiles of three dimensions: groups of `group_rows` rows, in each the rows first, then columns, then `k`."""

    def __init__(self, prefix, m_tiles, n_tiles, k_tiles, group_rows, step=1):
        super().__init__(prefix)
        self._step = step
        self.tile_idx = T.local_scalar("int32")
        self.k_idx = T.local_scalar("int32")
        self._G = group_rows
        self._N = n_tiles
        self._K = k_tiles
        if isinstance(m_tiles, int):
            self._GROUPS = m_tiles // group_rows
            self._FINAL_ROWS = m_tiles - self._GROUPS * group_rows
            self._SAFE_FINAL_ROWS = max(self._FINAL_ROWS, 1)
        else:
            self._GROUPS = T.truncdiv(m_tiles, group_rows)
            self._FINAL_ROWS = m_tiles - self._GROUPS * group_rows
            self._SAFE_FINAL_ROWS = T.max(self._FINAL_ROWS, 1)
        self._GROUP_SIZE = group_rows * n_tiles * k_tiles
        self._TOTAL = m_tiles * n_tiles * k_tiles
        self._FULL_BOUND = self._GROUPS * self._GROUP_SIZE
        self._HAS_FULL = self._GROUPS > 0
        self._HAS_TAIL = self._FINAL_ROWS > 0

    @T.inline
    def update_current_m_n_idx(self, linear_idx):
        full_m: T.let = T.floordiv(linear_idx, self._GROUP_SIZE) * self._G + T.floormod(linear_idx, self._G)
        full_n: T.let = T.floormod(T.floordiv(linear_idx, self._G), self._N)
        full_k: T.let = T.floordiv(T.floormod(linear_idx, self._GROUP_SIZE), self._G * self._N)
        rem: T.let = linear_idx - self._FULL_BOUND
        tail_m: T.let = self._GROUPS * self._G + T.floormod(rem, self._SAFE_FINAL_ROWS)
        tail_n: T.let = T.floormod(T.floordiv(rem, self._SAFE_FINAL_ROWS), self._N)
        tail_k: T.let = T.floordiv(rem, self._SAFE_FINAL_ROWS * self._N)
        if self._HAS_FULL & (linear_idx < self._FULL_BOUND):
            self.m_idx = full_m
            self.n_idx = full_n
            self.k_idx = full_k
        elif self._HAS_TAIL:
            self.m_idx = tail_m
            self.n_idx = tail_n
            self.k_idx = tail_k
        else:
            self.m_idx = 0
            self.n_idx = 0
            self.k_idx = 0

    @T.inline
    def init(self, linear_init):
        self.linear_idx = linear_init
        self.tile_idx = 0
        self.update_current_m_n_idx(linear_init)

    @T.inline
    def next_tile(self):
        self.next_tile_stride(self._step)

    @T.inline
    def next_tile_stride(self, stride):
        self.linear_idx = self.linear_idx + stride
        self.tile_idx = self.tile_idx + 1
        self.update_current_m_n_idx(self.linear_idx)

    def valid(self):
        return self.linear_idx < self._TOTAL


class RankAwareGroupMajorTileScheduler(BaseTileScheduler):
    """Groups of rows that begin behind the rows of this process, so that what others need is made first."""

    def __init__(self, prefix, m_clusters, n_clusters, group_size, world_size):
        super().__init__(prefix)
        self._m_clusters = m_clusters
        self._n_clusters = n_clusters
        self._group_size = group_size
        self._world_size = world_size

    @T.inline
    def update_current_m_n_idx(self, linear_idx):
        own = T.meta_var(self._m_clusters // self._world_size)
        remote = T.meta_var(self._m_clusters - own)
        group_rows = T.meta_var((remote // self._group_size) * self._group_size)
        span = T.meta_var(self._group_size * self._n_clusters)
        my_rank: T.let = T.nvshmem.my_pe()
        first_row: T.let = (my_rank + 1) * self._m_clusters // self._world_size
        if linear_idx < group_rows * self._n_clusters:
            row: T.let = (linear_idx // span) * self._group_size + linear_idx % self._group_size
            self.m_idx = (row + first_row) % self._m_clusters
            self.n_idx = (linear_idx % span) // self._group_size
        elif linear_idx < remote * self._n_clusters:
            # The rows that fill no group.
            rows = T.meta_var(max(remote - group_rows, 1))
            rest: T.let = linear_idx - group_rows * self._n_clusters
            self.m_idx = (group_rows + rest % rows + first_row) % self._m_clusters
            self.n_idx = rest // rows
        else:
            rest: T.let = linear_idx - remote * self._n_clusters
            self.m_idx = (remote + rest % own + first_row) % self._m_clusters
            self.n_idx = rest // own

    @T.inline
    def next_tile(self, stride):
        self.linear_idx = self.linear_idx + stride
        self.update_current_m_n_idx(self.linear_idx)

    def valid(self):
        return self.linear_idx < self._m_clusters * self._n_clusters


class IndexedTripleTileScheduler(BaseTileScheduler):
    """Tiles from lists: of each place a batch, a head and a query; `tiles_indptr` says which places a block has."""

    def __init__(self, prefix, b_indices, h_indices, q_indices, tiles_indptr):
        super().__init__(prefix)
        self.b_indices = b_indices
        self.h_indices = h_indices
        self.q_indices = q_indices
        self.tiles_indptr = tiles_indptr
        self.q_idx = T.local_scalar("int32")
        self.h_idx = T.local_scalar("int32")
        self.b_idx = T.local_scalar("int32")
        self.linear_lim = T.local_scalar("int32")

    @T.inline
    def _read(self):
        self.q_idx = self.q_indices[self.linear_idx]
        self.h_idx = self.h_indices[self.linear_idx]
        self.b_idx = self.b_indices[self.linear_idx]

    @T.inline
    def init(self, sm):
        self.linear_idx = self.tiles_indptr[sm]
        self.linear_lim = self.tiles_indptr[sm + 1]
        self._read()

    @T.inline
    def next_tile(self):
        self.linear_idx = self.linear_idx + 1
        self._read()

    def valid(self):
        return self.linear_idx < self.linear_lim


class _AttentionScheduler(BaseTileScheduler):
    """Tasks of attention: a batch, a head and a block of queries."""

    def __init__(self, prefix, num_batches, num_heads, num_m_blocks, num_ctas):
        super().__init__(prefix)
        self._num_batches = num_batches
        self._num_heads = num_heads
        self._num_m_blocks = num_m_blocks
        self._num_ctas = num_ctas
        self._total_tasks = num_batches * num_heads * num_m_blocks
        self.batch_idx = T.local_scalar("int32")
        self.head_idx = T.local_scalar("int32")
        self.m_block_idx = T.local_scalar("int32")

    @T.inline
    def init(self, cta_id):
        self.linear_idx = cta_id
        self.update_current_m_n_idx(cta_id)

    def valid(self):
        return self.linear_idx < self._total_tasks


class FlashAttentionLinearScheduler(_AttentionScheduler):
    """Blocks of queries first, then heads, then batches; for attention without a mask."""

    @T.inline
    def update_current_m_n_idx(self, linear_idx):
        tasks_of_batch = T.meta_var(self._num_heads * self._num_m_blocks)
        self.batch_idx = linear_idx // tasks_of_batch
        self.head_idx = (linear_idx % tasks_of_batch) // self._num_m_blocks
        self.m_block_idx = linear_idx % self._num_m_blocks

    @T.inline
    def next_tile(self):
        self.linear_idx = self.linear_idx + self._num_ctas
        self.update_current_m_n_idx(self.linear_idx)


class FlashAttentionLPTScheduler(_AttentionScheduler):
    """Long tasks first, for attention with a causal mask; `l2_swizzle` heads at a time share the cache."""

    def __init__(self, prefix, num_batches, num_heads, num_m_blocks, l2_swizzle, num_ctas=None):
        super().__init__(prefix, num_batches, num_heads, num_m_blocks, num_ctas)
        self._l2_swizzle = l2_swizzle
        self._num_hb = num_batches * num_heads
        self._l2_major = l2_swizzle * num_m_blocks
        self._num_hb_quotient = self._num_hb // l2_swizzle

    @T.inline
    def update_current_m_n_idx(self, linear_idx):
        section: T.let = linear_idx // self._l2_major
        within: T.let = linear_idx % self._l2_major
        # The last section has fewer heads.
        remainder: T.let = T.max(self._num_hb % self._l2_swizzle, 1)
        is_full = T.meta_var(section < self._num_hb_quotient)
        block: T.let = T.Select(is_full, within // self._l2_swizzle, within // remainder)
        residual: T.let = T.Select(is_full, within % self._l2_swizzle, within % remainder)
        head_of_batch: T.let = section * self._l2_swizzle + residual
        self.batch_idx = head_of_batch // self._num_heads
        self.head_idx = head_of_batch % self._num_heads
        # Later blocks of queries look at more keys.
        self.m_block_idx = (self._num_m_blocks - 1) - block

    @T.inline
    def next_tile(self):
        if self._num_ctas is None:
            # One task per block.
            self.linear_idx = self._total_tasks
        else:
            self.linear_idx = self.linear_idx + self._num_ctas
            self.update_current_m_n_idx(self.linear_idx)


class _CLCWorker(ClusterPersistentScheduler2D):
    """What one role of a block does with the tiles that the scheduling warp takes over."""

    def __init__(self, clc, prefix):
        super().__init__(
            prefix,
            num_m_tiles=clc._num_m_tiles,
            num_n_tiles=clc._num_n_tiles,
            num_clusters=clc._num_m_tiles * clc._num_n_tiles,
            l2_group_size=clc._l2_group_size,
        )
        self._clc = clc
        self._sa = PipelineState(1, 0)
        self._done = T.local_scalar("int32")
        self._nxt = T.local_scalar("uint32")

    @T.inline
    def reset(self):
        self._done = 0

    @T.inline
    def init(self, cluster_id):
        ClusterPersistentScheduler2D.init(self, cluster_id)
        self._done = 0

    def valid(self):
        return self._done == 0

    @T.inline
    def _read_handle(self):
        self._clc.sched_arr.full.wait(0, self._sa.phase)
        self._sa.advance()
        self._nxt = T.ptx.clc_query_cancel(T.address_of(self._clc.clc_handle[0]))

    @T.inline
    def consume(self):
        """By one elected thread."""
        self._read_handle()
        self._clc.sched_fin.empty.arrive(0, remote=0, pred=True)

    @T.inline
    def consume_wg(self, wg_id, warp_id, lane_id):
        """By all threads of a warpgroup; one of them releases the slot."""
        self._read_handle()
        T.cuda.warpgroup_sync(wg_id + 1)
        if (warp_id == 0) & (lane_id == 0):
            self._clc.sched_fin.empty.arrive(0, remote=0, pred=True)

    @T.inline
    def advance_coords(self):
        if self._nxt != 0xFFFFFFFF:
            self.update_current_m_n_idx(self._nxt // self._clc._cta_group)

    @T.inline
    def mark_done_if_drained(self):
        if self._nxt == 0xFFFFFFFF:
            self._done = 1


@T.meta_class
class ClusterLaunchControlScheduler:
    """Tiles by cluster launch control: one warp takes over clusters that have not begun, the others work on them."""

    def __init__(self, pool, num_m_tiles, num_n_tiles, l2_group_size, cta_group, finish_arrivals):
        self._num_m_tiles = num_m_tiles
        self._num_n_tiles = num_n_tiles
        self._l2_group_size = l2_group_size
        self._cta_group = cta_group
        self.sched_arr = Pipeline(pool, 1, full="tma", empty="mbar", init_empty=1)
        self.sched_fin = Pipeline(pool, 1, full="mbar", empty="mbar", init_empty=finish_arrivals)
        self.clc_handle = pool.alloc((4,), "uint32", align=16)
        self._s_done = T.local_scalar("int32")
        self._s_nxt = T.local_scalar("uint32")

    def worker(self, prefix):
        return _CLCWorker(self, prefix)

    @T.inline
    def run_scheduler(self, cbx):
        if T.ptx.elect_sync():
            arrived = PipelineState(1, 0)
            finished = PipelineState(1, 1)
            self._s_done = 0
            while self._s_done == 0:
                # The first block of the cluster asks; every block gets the 16 bytes of the answer.
                if cbx == 0:
                    self.sched_fin.empty.wait(0, finished.phase)
                    finished.advance()
                    T.ptx.clc_try_cancel(
                        T.address_of(self.clc_handle[0]), T.address_of(self.sched_arr.full.buf[0])
                    )
                self.sched_arr.full.arrive(0, 16)
                self.sched_arr.full.wait(0, arrived.phase)
                arrived.advance()
                self._s_nxt = T.ptx.clc_query_cancel(T.address_of(self.clc_handle[0]))
                self.sched_fin.empty.arrive(0, remote=0, pred=True)
                if self._s_nxt == 0xFFFFFFFF:
                    self._s_done = 1
