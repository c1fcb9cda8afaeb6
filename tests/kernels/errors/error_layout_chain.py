# error: the layout is ill-formed: the axes laneid, wgid do not lead from one scope to the next
from tvm.script import tirx as T
from tvm.tirx.layout import S, TileLayout, laneid, wgid

TileLayout(S[(8, 4) : (1 @ laneid, 1 @ wgid)]).get_scope()


@T.prim_func
def nothing():
    T.device_entry()
    T.thread_id([32])
