# Parts of direct sums whose threads are counted along several axes: the sum has them as one, and its parts are found all the same.
from tvm.script import tirx as T
from tvm.tirx.layout import S, TileLayout, laneid, tx, warpid

WARPS = TileLayout(S[(3,) : (2 @ warpid,)] + 5 @ laneid)
ROWS = TileLayout(S[(6,) : (1,)])
SUM = WARPS.direct_sum(ROWS, [2, 3], [3, 1])
assert SUM == TileLayout(S[(2, 3, 3) : (3, 64 @ tx, 1)] + 5 @ tx)
assert WARPS.is_direct_sum_right(SUM, [2, 3, 3, 1], [3, 1]).canonicalize() == ROWS


@T.prim_func
def nothing():
    T.device_entry()
    T.thread_id([32])
