# test: cuda sm_90a
# A library around the builder: it asks for the classes of values and types, emits what is called for its effect, and takes annotations
# that a function has been given.
import inspect

import tvm
from tvm.backend.cuda.lang import SMEMPool
from tvm.backend.cuda.tile_primitive.layout_utils import recompose_swizzle, strip_swizzle_to_tile
from tvm.backend.cuda.tile_primitive.tma_utils import SwizzleMode, mma_shared_layout
from tvm.script import tirx as T
from tvm.script.ir_builder import IRBuilder
from tvm.tirx.analysis import undefined_vars
from tvm.tirx.layout import ComposeLayout, S, TileLayout
from tvm.tirx.script.builder import ir as I
from tvm.tirx.script.builder.frame import ForFrame, IfFrame


class Statements:
    """The functions of a namespace; a call without a value is a statement."""

    def __init__(self, functions):
        self.functions = functions

    def __getattr__(self, name):
        return Statements(getattr(self.functions, name))

    def __call__(self, *args, **kwargs):
        result = self.functions(*args, **kwargs)
        if isinstance(result, tvm.ir.Expr) and isinstance(result.ty, tvm.ir.PrimType) and str(result.ty.dtype) == "":
            I.evaluate(result)
            return None
        return result


cuda = Statements(T.cuda)


def grid_extent(extent):
    if isinstance(extent, int):
        return extent
    if not isinstance(extent, tvm.ir.Expr) or not isinstance(extent.ty, tvm.ir.PrimType):
        raise TypeError("a grid has integers as extents")
    if not tvm.DataType(str(extent.ty.dtype)).is_integer:
        raise TypeError(f"a grid has integers as extents, not {extent.ty.dtype}")
    return extent


def kernel(threads, grid):
    def decorate(function):
        with IRBuilder() as builder:
            with I.prim_func():
                I.func_name(function.__name__)
                values = {}
                for name, parameter in inspect.signature(function).parameters.items():
                    kind = parameter.annotation
                    declared = I.buffer(*kind) if isinstance(kind, tuple) else getattr(I, kind)()
                    values[name] = I.arg(name, declared)
                extents = [grid_extent(extent) for extent in grid(values)]
                I.device_entry()
                blocks = I.cta_id(extents)
                function.ids = (blocks, I.thread_id([threads]))
                function(**values)
        return builder.get()

    return decorate


def reversed_rows(width):
    def each_row(A, B, rows):
        block, tx = each_row.ids  # type: ignore
        shared = SMEMPool()
        row = shared.alloc((width,), "float32")
        shared.commit()
        I.buffer_store(row, A[block, tx], [tx])
        cuda.cta_sync()
        I.buffer_store(B, row[width - 1 - tx], [block, tx])

    each_row.__annotations__ = {"A": ((8, width), "float32"), "B": ((8, width), "float32"), "rows": "int32"}
    return kernel(width, lambda values: [values["rows"] * 2])(each_row)


# sim: reverse
#   A: float32[8x64] = i * 64 + j
#   B: float32[8x64] = 0 -> (i * 64 + 63 - j if i < 6 else 0)
#   rows = 3
reverse = reversed_rows(64)


def swizzled(rows, columns):
    layout = mma_shared_layout("float16", SwizzleMode.SWIZZLE_128B_ATOM, (rows, columns))
    tile = strip_swizzle_to_tile(layout, lambda: (rows, columns))
    assert isinstance(layout, ComposeLayout) and not isinstance(layout, TileLayout)
    assert isinstance(tile, TileLayout) and not isinstance(tile, ComposeLayout)
    assert strip_swizzle_to_tile(tile, lambda: None) is not None
    assert isinstance(recompose_swizzle(layout, tile), ComposeLayout) and isinstance(recompose_swizzle(tile, tile), TileLayout)
    return layout, tile


def place(tile, columns, row, column):
    return int(tile.apply(row * columns + column)["m"])


# A second panel of 64 columns begins behind all rows of the first.
panels = swizzled(16, 128)[1]
assert place(panels, 128, 1, 0) == 64 and place(panels, 128, 0, 64) == 16 * 64
# A swizzle alone permutes 512 elements: of 1024 the tile is that of the extents, of 512 its own.
alone = ComposeLayout(3, 3, 3, TileLayout(S[(512,)]))
assert int(strip_swizzle_to_tile(alone, lambda: (16, 64)).size()) == 1024
assert [int(part.extent) for part in strip_swizzle_to_tile(alone, lambda: (16, 64)).shard] == [16, 64]
assert [int(part.extent) for part in strip_swizzle_to_tile(alone, lambda: (8, 64)).shard] == [512]


def symbolic():
    with IRBuilder() as builder:
        with I.prim_func():
            I.func_name("period")
            A = I.arg("A", I.buffer((64,), "int32"))
            n = I.arg("n", I.int32())
            I.device_entry()
            tx = I.thread_id([64])
            # Of extents that only the launch knows there is the period's tile.
            tile = strip_swizzle_to_tile(alone, lambda: (n, 64))
            I.buffer_store(A, tx + int(tile.size()), [tx])
    return builder.get()


# sim: period
#   A: int32[64] = 0 -> i + 512
#   n = 3
period = symbolic()


def loops_around(value):
    """How many loops are open, and whether a value may change in them."""
    loops = [frame for frame in IRBuilder.current().frames if isinstance(frame, ForFrame)]
    return len(loops), not isinstance(value, int) and len(undefined_vars(value)) > 0


def nested(rows):
    with IRBuilder() as builder:
        with I.prim_func():
            I.func_name("nested")
            A = I.arg("A", I.buffer((rows, 32), "int32"))
            n = I.arg("n", I.int32())
            I.device_entry()
            tx = I.thread_id([32])
            with I.If(tx >= n), I.Then():
                assert isinstance(builder.frames[1], IfFrame) and loops_around(n) == (0, True)
                I.Return(I.int32(0))
            with I.serial(rows) as i:
                I.serial(1).__enter__()
                assert loops_around(i) == (2, True) and loops_around(3) == (2, False)
                I.buffer_store(A, i + tx, [i, tx])
            assert loops_around(T.int32(5)) == (0, False)
    return builder.get()


# sim: returning
#   A: int32[2x32] = 0 -> (i + j if j < 20 else 0)
#   n = 20
returning = nested(2)
