# error: the columns of the layout (8:1 @ P, 700:1 @ F) do not fall into banks of 512 elements
from tvm.script import tirx as T
from tvm.tirx.layout import F, P, S, TileLayout

TileLayout(S[(8, 700) : (1 @ P, 1 @ F)]).to_psum()


@T.prim_func
def nothing():
    T.device_entry()
    T.thread_id([32])
