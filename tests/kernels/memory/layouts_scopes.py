# Which scopes a layout spreads its elements over, and columns in banks. The results are TVM's.
from tvm.script import tirx as T
from tvm.tirx.layout import Axis, ComposeLayout, R, S, TileLayout
from tvm.tirx.layout import Bank, F, P, laneid, tid_in_wg, tx, warpid, wgid, wid_in_wg


def scopes(layout):
    return [scope.name for scope in layout.get_scope()]


lanes = TileLayout(S[(8, 4) : (1 @ laneid, 1)])
assert lanes.get_scope() == (T.ExecScope("thread"), T.ExecScope("warp"))
assert lanes.get_scope()[0] != T.ExecScope("warp")
assert TileLayout(S[(8, 4)]).get_scope() is None
assert TileLayout(S[(8, 4)] + R[4 : 1 @ laneid]).get_scope() is None
assert scopes(TileLayout(S[(8, 4) : (1 @ laneid, 1 @ warpid)])) == ["thread", "cta"]
assert scopes(TileLayout(S[(8, 4) : (1 @ laneid, 1)] + R[4 : 1 @ warpid])) == ["thread", "cta"]
assert scopes(TileLayout(S[(8, 4) : (1 @ laneid, 1)] + (3 @ warpid))) == ["thread", "cta"]
assert scopes(TileLayout(S[(4, 4) : (1 @ wid_in_wg, 1 @ laneid)])) == ["thread", "warpgroup"]
assert scopes(TileLayout(S[(8, 4) : (1 @ tid_in_wg, 1)])) == ["thread", "warpgroup"]
assert scopes(TileLayout(S[(8, 4) : (1 @ tx, 1)])) == ["thread", "cta"]
assert (laneid.get_scope().name, laneid.get_subscope().name) == ("warp", "thread")
assert (Axis.wgid.get_scope().name, Axis.wgid.get_subscope().name) == ("cta", "warpgroup")
assert (Axis.cbx.get_scope().name, Axis.cbx.get_subscope().name) == ("cluster", "cta")
assert Axis.m.get_scope() is None and Axis.TCol.get_subscope() is None

assert lanes.verify_well_formed() and TileLayout(S[(8, 4)]).verify_well_formed()
assert ComposeLayout(3, 3, 3, TileLayout(S[(8, 64)])).verify_well_formed()

assert TileLayout(S[(8, 512) : (1 @ P, 1 @ F)]).to_psum() == TileLayout(S[(8, 1, 512) : (1 @ P, 1 @ Bank, 1 @ F)])
assert TileLayout(S[(8, 2048) : (1 @ P, 1 @ F)]).to_psum() == TileLayout(S[(8, 4, 512) : (1 @ P, 1 @ Bank, 1 @ F)])
assert TileLayout(S[(8, 2, 512) : (1 @ P, 512 @ F, 1 @ F)]).to_psum() == TileLayout(
    S[(8, 2, 1, 512) : (1 @ P, 1 @ Bank, 1 @ Bank, 1 @ F)]
)
assert TileLayout(S[(8, 2048)]).to_psum() == TileLayout(S[(8, 2048)])


@T.prim_func
def nothing():
    T.device_entry()
    T.thread_id([32])
