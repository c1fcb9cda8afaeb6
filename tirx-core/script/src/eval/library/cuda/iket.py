"""Events for NVIDIA's IKET profiler. They are recorded in programs that run under it; elsewhere they cost nothing."""

import tvm

from tvm.script import tirx as T


class IketProfiler:
    """Events and ranges by name, each with an optional value."""

    def mark(self, name, payload=None):
        T.evaluate(T.cuda.iket.mark(name) if payload is None else T.cuda.iket.mark(name, payload))

    def range_start(self, name, payload=None):
        return T.cuda.iket.range_start(name) if payload is None else T.cuda.iket.range_start(name, payload)

    def range_end(self, token, payload=None):
        T.evaluate(T.cuda.iket.range_end(token) if payload is None else T.cuda.iket.range_end(token, payload))

    def range_push(self, name, payload=None):
        T.evaluate(T.cuda.iket.range_push(name) if payload is None else T.cuda.iket.range_push(name, payload))

    def range_pop(self):
        T.evaluate(T.cuda.iket.range_pop())

    def sentinel_token(self, name):
        return T.cuda.iket.sentinel_token(name)

    def compile(self, mod, target=None, *, tir_pipeline="tirx"):
        return tvm.compile(mod, target=target, tir_pipeline=tir_pipeline)
