"""Layouts of tiles in shared memory that bulk copies and tensor cores agree on."""

from enum import Enum

from tvm import DataType
from tvm.script import tirx as T
from tvm.tirx.layout import ComposeLayout, S, TileLayout


class SwizzleMode(Enum):
    """How 16-byte pieces of a row are permuted: not, or within 32, 64 or 128 bytes."""

    SWIZZLE_NONE = 0
    SWIZZLE_32B_ATOM = 1
    SWIZZLE_64B_ATOM = 2
    SWIZZLE_128B_ATOM = 3


def _mode(swizzle_mode):
    return SwizzleMode(swizzle_mode) if isinstance(swizzle_mode, int) else swizzle_mode


def _swizzle_parameters(dtype, mode):
    """Bits of an index within a piece, bits that are permuted, bits from those to the ones they are combined with."""
    return (128 // DataType(dtype).bits).bit_length() - 1, mode.value, 3


def mma_atom_layout(dtype, swizzle_mode):
    """The layout of the smallest tile with a swizzle: 8 rows."""
    element, length, atom = _swizzle_parameters(dtype, _mode(swizzle_mode))
    return ComposeLayout(element, length, atom, TileLayout(S[(1 << (element + length + atom),)]))


def mma_atom_shape(dtype, swizzle_mode, shape=None):
    """Rows and elements of a row of the smallest tile, with a dimension for each of `shape`."""
    mode = _mode(swizzle_mode)
    if mode == SwizzleMode.SWIZZLE_NONE:
        raise KeyError(mode)
    atom = [8, (128 << mode.value) // DataType(dtype).bits]
    return atom if shape is None else [1] * (len(shape) - 2) + atom


def _panels(lead, rows, columns, width):
    """Panels of `width` columns, one behind the other, in each all rows."""
    extents = [*lead, rows, columns // width, width]
    strides = [width, rows * width, 1]
    step = rows * columns
    for extent in reversed(lead):
        strides.insert(0, step)
        step = step * extent
    # Without extents of one, neighbours that are one iterator joined.
    joined = []
    for extent, stride in zip(extents, strides):
        if extent == 1:
            continue
        if joined and joined[-1][1] == extent * stride:
            joined[-1] = (joined[-1][0] * extent, stride)
        else:
            joined.append((extent, stride))
    if not joined:
        joined.append((1, 1))
    return TileLayout(S[tuple(e for e, _ in joined) : tuple(s for _, s in joined)])


def mma_shared_layout(dtype, swizzle_mode, shape):
    """The layout of an operand of tensor cores in shared memory: panels as wide as the swizzle, one behind the other."""
    mode = _mode(swizzle_mode)
    bits = DataType(dtype).bits
    *lead, rows, columns = [int(extent) for extent in shape]
    width = (128 << mode.value) // bits
    if mode == SwizzleMode.SWIZZLE_NONE:
        if columns % width != 0:
            return TileLayout(S[(_panel_product(shape),)])
        return _panels(lead, rows, columns, width)
    element, length, atom = _swizzle_parameters(dtype, mode)
    return ComposeLayout(element, length, atom, _panels(lead, rows, columns, width))


def _panel_product(shape):
    product = 1
    for extent in shape:
        product = product * int(extent)
    return product


def get_swizzle_mode_from_layout(layout):
    """The swizzle of a layout; `None` for one that copies do not have."""
    if isinstance(layout, TileLayout):
        return SwizzleMode.SWIZZLE_NONE
    length = layout.swizzle_len
    return SwizzleMode(length) if length in (0, 1, 2, 3) else None
