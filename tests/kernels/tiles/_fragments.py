# How the registers of a warpgroup hold the tiles of `wgmma`.
from tvm.tirx.layout import S, TileLayout, laneid, wid_in_wg


def sums(rows, columns, lane=laneid, warp=1 @ wid_in_wg):
    """The fragments of an accumulator: 64 rows after one another, registers by eights of columns."""
    shape = (rows // 64, 4, 2, 8, columns // 8, 4, 2)
    return TileLayout(S[shape : (columns // 2, warp, 2, 4 @ lane, 4, 1 @ lane, 1)])


def left(columns, per_word):
    """The fragments of A: a lane has `per_word` neighbours of a row, and those half an instruction further on."""
    shape = (4, 2, 8, columns // (8 * per_word), 2, 4, per_word)
    places = (1 @ wid_in_wg, per_word, 4 @ laneid, 4 * per_word, 2 * per_word, 1 @ laneid, 1)
    return TileLayout(S[shape:places])
