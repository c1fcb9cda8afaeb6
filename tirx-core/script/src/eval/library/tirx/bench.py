"""Events of a kernel's threads with their times, written to a buffer."""

from tvm.script import tirx as T


@T.meta_class
class CudaProfiler:
    """Begins and ends of events: of each group of threads, where `leader` holds."""

    def __init__(self, profiler_buffer, write_stride, num_groups, default_leader=None, profiler_enabled=True):
        self.buffer = profiler_buffer
        self.write_stride = write_stride
        self.num_groups = num_groups
        self.default_leader = default_leader
        enabled = profiler_enabled
        self.profiler_enabled = T.bool(enabled) if isinstance(enabled, bool) else enabled
        self.profiler_tag = T.alloc_buffer([1], "uint64", scope="local", align=8)
        self.profiler_write_offset = T.alloc_buffer([1], "uint32", scope="local", align=8)

    def _leader(self, leader):
        chosen = self.default_leader if leader is None else leader
        if chosen is None:
            return T.bool(True)
        return T.bool(chosen) if isinstance(chosen, bool) else chosen

    @T.inline
    def init(self, group_id):
        if self.profiler_enabled:
            T.cuda.timer_init(
                self.buffer.data,
                self.profiler_tag.data,
                self.profiler_write_offset.data,
                self.num_groups,
                group_id,
            )

    @T.inline
    def start(self, event_type, leader=None):
        if self.profiler_enabled:
            T.cuda.timer_start(
                event_type,
                self.buffer.data,
                self.profiler_tag.data,
                self.profiler_write_offset.data,
                self.write_stride,
                self._leader(leader),
            )

    @T.inline
    def end(self, event_type, leader=None):
        if self.profiler_enabled:
            T.cuda.timer_end(
                event_type,
                self.buffer.data,
                self.profiler_tag.data,
                self.profiler_write_offset.data,
                self.write_stride,
                self._leader(leader),
            )

    @T.inline
    def finalize(self, leader=None):
        if self.profiler_enabled:
            T.cuda.timer_finalize(
                self.buffer.data,
                self.profiler_tag.data,
                self.profiler_write_offset.data,
                self.write_stride,
                self._leader(leader),
            )
