"""Barriers in shared memory and the state of a ring of buffers."""

from tvm.script import tirx as T


@T.meta_class
class PipelineState:
    """The next slot of a ring, and the parity of its barrier."""

    def __init__(self, depth, phase=None):
        self.stage = T.local_scalar("int32")
        self.phase = T.local_scalar("int32")
        self.depth = depth
        if phase is not None:
            self.init(phase)

    @T.inline
    def init(self, phase):
        self.stage = 0
        self.phase = phase

    @T.inline
    def advance(self):
        if self.depth == 1:
            # Every step goes around the ring once.
            self.phase = self.phase ^ 1
        else:
            self.stage = self.stage + 1
            if self.stage == self.depth:
                self.stage = 0
                self.phase = self.phase ^ 1


@T.meta_class
class MBarrier:
    """An array of mbarriers, one per slot; threads arrive at them."""

    def __init__(self, pool, depth, phase_offset=0, leader=None):
        self.buf = pool.alloc((depth,), "uint64", align=8)
        self._remote_cta_id = None
        self.depth = depth
        self.phase_offset = phase_offset
        self.leader = (T.cuda.thread_rank() == 0) if leader is None else leader

    def _require_local(self, what):
        if self._remote_cta_id is not None:
            raise ValueError(f"MBarrier.remote_view() cannot be {what}")

    def init(self, count):
        self._require_local("initialized")
        self._emit_init(count)

    @T.inline
    def _emit_init(self, count):
        if self.leader:
            for slot in T.unroll(self.depth):
                T.ptx.mbarrier.init(self.buf.ptr_to([slot]), count)

    def wait(self, stage, phase):
        self._require_local("waited on")
        self._emit_wait(stage, phase)

    @T.inline
    def _emit_wait(self, stage, phase):
        T.ptx.mbarrier.try_wait(self.buf.ptr_to([stage]), phase ^ self.phase_offset)

    def _slot(self, stage, remote):
        """The barrier that an arrival names, and the block whose barrier at that address is meant."""
        if self._remote_cta_id is not None and remote is not None:
            kind = type(self).__name__
            raise ValueError(f"{kind}.remote_view().arrive() cannot also specify remote")
        return self.buf.ptr_to([stage]), remote

    def arrive(self, stage, remote=None, pred=None, count=None):
        bar, remote = self._slot(stage, remote)
        self._emit_arrive(bar, remote, pred, count)

    @T.inline
    def _emit_arrive(self, bar, remote=None, pred=None, count=None):
        if self._remote_cta_id is not None:
            # The addresses of a view are mapped already.
            T.ptx.mbarrier.arrive(bar, space="shared::cluster", pred=pred, count=count)
        elif remote is None:
            T.ptx.mbarrier.arrive(bar)
        else:
            T.ptx.mbarrier.arrive(bar, remote=remote, pred=True if pred is None else pred, count=count)

    def ptr_to(self, idx):
        return self.buf.ptr_to(idx)

    def remote_view(self, rank):
        """The barriers of another block of the cluster."""
        if self._remote_cta_id is not None:
            raise ValueError("MBarrier.remote_view() cannot be applied to a remote view")
        pointer = T.handle("uint64", "shared")
        mapped = T.ptx.map_shared_rank(self.buf.ptr_to([0]), rank)
        remote_mbar_ptr = T.Bind(T.reinterpret(pointer.ty, mapped), var=pointer)
        if remote_mbar_ptr is None:
            remote_mbar_ptr = pointer
        view = object.__new__(type(self))
        view.buf = T.decl_buffer([self.depth], "uint64", data=remote_mbar_ptr, scope="shared")
        view._remote_cta_id = rank
        view.depth = self.depth
        view.phase_offset = self.phase_offset
        return view


class TMABar(MBarrier):
    """Mbarriers that wait for the bytes of asynchronous copies."""

    def arrive(self, stage, tx_count=None, remote=None, pred=None):
        bar, remote = self._slot(stage, remote)
        self._emit_arrive_tx(bar, tx_count, remote, pred)

    @T.inline
    def _emit_arrive_tx(self, bar, tx_count=None, remote=None, pred=None):
        if tx_count is None:
            self._emit_arrive(bar, remote, pred)
        elif self._remote_cta_id is not None:
            T.ptx.mbarrier.arrive.expect_tx(bar, tx_count, space="shared::cluster", pred=pred)
        elif remote is None:
            T.ptx.mbarrier.arrive.expect_tx(bar, tx_count)
        else:
            T.ptx.mbarrier.arrive.expect_tx(bar, tx_count, remote=remote, pred=True if pred is None else pred)


def _is_several_blocks(cta_mask):
    """Whether a commit names the blocks that it arrives at: a mask of at most one needs no operand."""
    if isinstance(cta_mask, T.IntImm):
        cta_mask = cta_mask.value
    return cta_mask is not None and not (isinstance(cta_mask, int) and bin(cta_mask).count("1") <= 1)


class TCGen05Bar(MBarrier):
    """Mbarriers that `tcgen05.commit` arrives at. One thread calls `arrive`, or a warp by `pred`, which holds in one."""

    def arrive(self, stage, cta_group=1, cta_mask=None, pred=None):
        if pred is None:
            self._emit_commit(stage, cta_group, cta_mask)
            return
        commit = f"tcgen05.commit.cta_group::{cta_group}.mbarrier::arrive::one.shared::cluster"
        bar = self.buf.ptr_to([stage])
        if _is_several_blocks(cta_mask):
            T.ptx[f"{commit}.multicast::cluster.b64"](bar, T.cast(cta_mask, "uint16"), pred=pred)
        else:
            T.ptx[f"{commit}.b64"](bar, pred=pred)

    @T.inline
    def _emit_commit(self, stage, cta_group, cta_mask):
        if cta_group == 1 and cta_mask is None:
            T.ptx.tcgen05.commit(self.buf.ptr_to([stage]))
        else:
            T.ptx.tcgen05.commit(self.buf.ptr_to([stage]), cta_group=cta_group, cta_mask=cta_mask)


_KINDS = {"mbar": MBarrier, "tma": TMABar, "tcgen05": TCGen05Bar}


def _kind(tag):
    if tag not in _KINDS:
        names = ", ".join(repr(name) for name in _KINDS)
        raise ValueError(f"Pipeline: no kind of barrier is called {tag!r}; there are {names}")
    return _KINDS[tag]


@T.meta_class
class Pipeline:
    """Two arrays of barriers over a ring of buffers: `full` and `empty` slots."""

    def __init__(
        self,
        pool,
        stages,
        *,
        full,
        empty,
        init_full=1,
        init_empty=1,
        empty_phase_offset=0,
        leader=None,
    ):
        self.stages = stages
        self.full = _kind(full)(pool, stages, leader=leader)
        self.full.init(init_full)
        self.empty = _kind(empty)(pool, stages, phase_offset=empty_phase_offset, leader=leader)
        self.empty.init(init_empty)
