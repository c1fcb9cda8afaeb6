"""The tile under a swizzled layout, and the swizzle over another tile."""

from tvm.tirx.layout import ComposeLayout, S, TileLayout


def recompose_swizzle(original_layout, transformed_tile):
    """The tile with the swizzle of a layout; the tile alone where that has none."""
    if not isinstance(original_layout, ComposeLayout):
        return transformed_tile
    swizzle = (original_layout.per_element, original_layout.swizzle_len, original_layout.atom_len)
    return ComposeLayout(*swizzle, transformed_tile, original_layout.swizzle_inner)


def strip_swizzle_to_tile(layout, get_extents):
    """The layout before the swizzle. A swizzle alone permutes a period of memory, which may be shorter than what it is for: then it is
    the row-major tile of the extents, that `get_extents()` gives, and that of the period where they are no constants."""
    if not isinstance(layout, ComposeLayout):
        return layout
    tile = layout.tile_layout
    if not tile.is_trivial():
        return tile
    elements = 1
    try:
        period = int(tile.size())
        extents = tuple(get_extents())
        for extent in extents:
            elements = elements * int(extent)
    except (TypeError, ValueError):
        return tile
    return tile if elements == period else TileLayout(S[extents])
