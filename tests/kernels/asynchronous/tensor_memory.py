# test: parse
# test: cuda sm_100a
# Tensor memory: buffers at columns of it, and the pool that allocates columns.
from tvm.backend.cuda.tile_primitive.tma_utils import SwizzleMode, mma_shared_layout
from tvm.script import tirx as T
from tvm.tirx.layout import S, TCol, TileLayout, TLane, tmem_datapath_layout


@T.prim_func
def declared(B: T.Buffer((128,), "float32")):
    T.device_entry()
    tx = T.thread_id([128])
    acc = T.decl_buffer((128, 64), "float32", scope="tmem", allocated_addr=0,
                        layout=TileLayout(S[(128, 64) : (1 @ TLane, 1 @ TCol)]))
    half = T.decl_buffer((64, 32), "float32", scope="tmem", allocated_addr=64, layout=tmem_datapath_layout("F", 64, 32))
    B[tx] = T.float32(acc.allocated_addr[0] + half.allocated_addr[0])


@T.prim_func
def pool_of_columns(B: T.Buffer((128,), "float32")):
    T.device_entry()
    warp_id = T.warp_id([4])
    lane_id = T.lane_id([32])
    pool = T.SMEMPool()
    tmem_addr = pool.alloc((1,), "uint32", align=4)
    A = pool.alloc_tcgen05_mma_AB((2, 128, 64), "float16")
    W = pool.alloc_tcgen05_mma_AB((128, 128), "float16", swizzle_mode=SwizzleMode.SWIZZLE_64B_ATOM)
    P = pool.alloc_tcgen05_mma_AB((128, 64), "float16", swizzle_mode="none")
    tmem_pool = T.TMEMPool(pool, total_cols=512, cta_group=1, tmem_addr=tmem_addr)
    acc = tmem_pool.alloc((128, 256), "float32")
    packed = tmem_pool.alloc((128, 64), "float16")
    scales = tmem_pool.alloc_sf((128, 4), "float8_e8m0fnu", sf_per_mma=1)
    result = tmem_pool.alloc_tcgen05_mma_D((64, 64), M=64, cta_group=1)
    pool.commit()
    tmem_pool.commit()
    T.cuda.cta_sync()
    B[warp_id * 32 + lane_id] = T.float32(packed.allocated_addr[0])
    T.cuda.cta_sync()
    tmem_pool.dealloc()
