# error: the layout is ill-formed: the axes laneid and tx count threads, one within the warp and one within the cta
from tvm.script import tirx as T
from tvm.tirx.layout import S, TileLayout, laneid, tx

TileLayout(S[(8, 4) : (1 @ laneid, 1 @ tx)]).verify_well_formed()


@T.prim_func
def nothing():
    T.device_entry()
    T.thread_id([32])
