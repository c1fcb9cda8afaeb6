# test: cuda sm_90a
# Functions that Python code builds statement by statement, with the builder behind the syntax.
import inspect

from tvm.backend.cuda.lang import SMEMPool
from tvm.script import tirx as T
from tvm.script.ir_builder import IRBuilder
from tvm.tirx.script.builder import ir as I


def shifted(n):
    with IRBuilder() as builder:
        with I.prim_func():
            I.func_name("shifted")
            A = I.arg("A", I.buffer((n,), "float32"))
            B = I.arg("B", I.buffer((n,), "float32"))
            k = I.arg("k", I.int32())
            I.device_entry()
            tx = I.thread_id([n])
            with I.If(tx < k):
                with I.Then():
                    I.buffer_store(B, A[tx] + T.float32(1), [tx])
                with I.Else():
                    with I.serial(2) as i:
                        I.buffer_store(B, A[tx] * T.float32(2) + T.cast(i, "float32"), [tx])
    return builder.get()


# sim: below
#   A: float32[32] = i
#   B: float32[32] = 0 -> (i + 1 if i < 7 else 2 * i + 1)
#   k = 7
below = shifted(32)


def kernel(threads, **attrs):
    """A decorator that builds a kernel by running the function: its parameters come from the annotations."""

    def decorate(function):
        with IRBuilder() as builder:
            with I.prim_func(is_private=False):
                I.func_name(function.__name__)
                I.func_attr({"global_symbol": function.__name__})
                arguments = {}
                for name, parameter in inspect.signature(function).parameters.items():
                    if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
                        continue
                    shape, dtype = parameter.annotation
                    handle = I.arg(name, I.handle())
                    arguments[name] = I.match_buffer(handle, shape, dtype)
                I.device_entry()
                for key, value in attrs.items():
                    region = I.attr({f"tirx.{key}": value})
                    region.add_callback(lambda: region.__exit__(None, None, None))
                    region.__enter__()
                function(**arguments, thread=I.thread_id([threads]))
        return builder.get()

    return decorate


# sim: halves
#   source: float16[64] = i
#   target: float16[64] = 0 -> i / 2
@kernel(64, launch_bounds_min_blocks_per_sm=2)
def halves(source: ((64,), "float16"), target: ((64,), "float16"), *, thread):
    half = I.alloc_local((1,), "float16")
    I.buffer_store(half, source[thread] * T.float16(0.5), [0])
    I.buffer_store(target, half[0], [thread])


def flat(frame):
    """The rest of the region around it: callbacks of TVM's frames leave it where that ends."""
    frame.add_callback(lambda: frame.__exit__(None, None, None))
    frame.__enter__()


def turned():
    with IRBuilder() as builder:
        with I.prim_func():
            I.func_name("turned")
            A = I.arg("A", I.buffer((64,), "int32"))
            B = I.arg("B", I.buffer((64,), "int32"))
            I.device_entry()
            tx = I.thread_id([64])
            pool = SMEMPool()
            s = pool.alloc((64,), "int32")
            pool.commit()
            I.buffer_store(s, A[tx], [tx])
            I.evaluate(T.cuda.cta_sync())
            with I.If(tx < 32):
                with I.Then():
                    flat(I.serial(2))
                    I.buffer_store(B, s[63 - tx], [tx])
    return builder.get()


# sim: half_turned
#   A: int32[64] = i
#   B: int32[64] = 0 -> (63 - i if i < 32 else 0)
half_turned = turned()
