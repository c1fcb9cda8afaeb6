# test: target sm_100a
# test: compile sm_100a
# Copies between registers, shared and tensor memory, by each shape; what is read too early is reported.
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx
from tvm.tirx.layout import R, S, TCol, TileLayout, TLane, laneid, wid_in_wg


@T.inline
def turn():
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cta_sync()
    T.ptx.tcgen05.fence.after_thread_sync()


@T.inline
def end(tmem_pool):
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cta_sync()
    tmem_pool.dealloc()


# Stored in one shape, loaded in the others; 24 columns are two instructions, of 16 and of 8.
# sim: shapes
#   A: float32[128x24] = i * 100 + j
#   B: float32[4x128x24] = 0 -> j * 100 + k
@T.prim_func
def shapes(A: T.Buffer((128, 24), "float32"), B: T.Buffer((4, 128, 24), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    pool = T.SMEMPool()
    tmem_pool = T.TMEMPool(pool, total_cols=32)
    pool.commit()
    cells = tmem_pool.alloc((128, 32), "float32")
    tmem_pool.commit()
    turn()
    r = T.wg_reg_tile(24)
    Tx.wg.copy(r, A)
    Tx.wg.copy_async(cells[:, 4:28], r)
    T.ptx.tcgen05.wait.st()
    Tx.wg.fill(r, 0.0)
    Tx.wg.copy_async(r, cells[:, 4:28])
    T.ptx.tcgen05.wait.ld()
    Tx.wg.copy(B[0, :, :], r)
    for n, shape in enumerate(("16x64b", "16x128b", "16x256b")):
        for c in range(3):
            part = T.alloc_tcgen05_ldst_frag(shape, (128, 8), "float32")
            Tx.wg.copy_async(part, cells[:, 4 + c * 8 : 12 + c * 8])
            T.ptx.tcgen05.wait.ld()
            Tx.wg.copy(B[1 + n, :, c * 8 : c * 8 + 8], part)
    end(tmem_pool)


# A view of some of the columns: what is stored through it is where the whole has them.
# sim: columns_by_a_view
#   A: float32[128x16] = i * 100 + j
#   B: float32[128x16] = 0 -> i * 100 + j
@T.prim_func
def columns_by_a_view(A: T.Buffer((128, 16), "float32"), B: T.Buffer((128, 16), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    pool = T.SMEMPool()
    tmem_pool = T.TMEMPool(pool, total_cols=64)
    pool.commit()
    tmem_pool.alloc((128, 8), "float32")
    cells = tmem_pool.alloc((128, 32), "float32")
    tmem_pool.commit()
    turn()
    r = T.wg_reg_tile(16)
    Tx.wg.copy(r, A)
    Tx.wg.copy_async(cells.sub[:, 8:24], r)
    T.ptx.tcgen05.wait.st()
    Tx.wg.fill(r, 0.0)
    Tx.wg.copy_async(r, cells[:, 8:24])
    T.ptx.tcgen05.wait.ld()
    Tx.wg.copy(B, r)
    end(tmem_pool)


# A view of lanes that do not start at 0: the lower half of each warp's lanes, in the fragments of 16 rows of a product's sums.
# Its address has its columns, its layout its lanes.
# sim: lanes_by_a_view
#   A: float32[128x16] = i * 100 + j
#   B: float32[4x32x8] = -1 -> ((i * 32 + j) * 100 + k + 8 + 0.5 if j >= 16 else -1)
#   C: float32[128x16] = 0 -> i * 100 + j + (0.5 if i % 32 >= 16 and j >= 8 else 0)
@T.prim_func
def lanes_by_a_view(A: T.Buffer((128, 16), "float32"), B: T.Buffer((4, 32, 8), "float32"), C: T.Buffer((128, 16), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    pool = T.SMEMPool()
    tmem_pool = T.TMEMPool(pool, total_cols=32)
    pool.commit()
    tmem_pool.alloc((128, 8), "float32")
    cells = tmem_pool.alloc((4, 32, 16), "float32",
                            layout=TileLayout(S[(4, 32, 16) : (32 @ TLane, 1 @ TLane, 1 @ TCol)]), cols=16)
    tmem_pool.commit()
    turn()
    whole = T.wg_reg_tile(16)
    Tx.wg.copy(whole, A)
    Tx.wg.copy_async(cells.view(128, 16, layout=TileLayout(S[(128, 16) : (1 @ TLane, 1 @ TCol)])), whole)
    T.ptx.tcgen05.wait.st()
    half = cells.sub[:, 16:32, 8:16]
    T.static_assert(half.allocated_addr[0] == 16)
    part = T.alloc_buffer((4, 16, 8), "float32", scope="local",
                          layout=TileLayout(S[(4, 2, 8, 4, 2) : (1 @ wid_in_wg, 2, 4 @ laneid, 1 @ laneid, 1)]))
    Tx.wg.copy_async(part, half)
    T.ptx.tcgen05.wait.ld()
    Tx.wg.add(part, part, T.float32(0.5))
    Tx.wg.copy(B[:, 16:32, :], part)
    Tx.wg.copy_async(half, part)
    T.ptx.tcgen05.wait.st()
    Tx.wg.copy_async(whole, cells.view(128, 16, layout=TileLayout(S[(128, 16) : (1 @ TLane, 1 @ TCol)])))
    T.ptx.tcgen05.wait.ld()
    Tx.wg.copy(C, whole)
    end(tmem_pool)


# Each warp reaches its own lanes: two of the warpgroup load theirs, without the others.
# sim: two_warps
#   A: float32[128x16] = i * 100 + j
#   B: float32[128x16] = 0 -> (i * 100 + j if i < 64 else -1)
@T.prim_func
def two_warps(A: T.Buffer((128, 16), "float32"), B: T.Buffer((128, 16), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    warp = T.warp_id([4])
    pool = T.SMEMPool()
    tmem_pool = T.TMEMPool(pool, total_cols=32)
    pool.commit()
    cells = tmem_pool.alloc((128, 32), "float32")
    tmem_pool.commit()
    turn()
    r = T.wg_reg_tile(16)
    Tx.wg.copy(r, A)
    Tx.wg.copy_async(cells[:, 0:16], r)
    T.ptx.tcgen05.wait.st()
    Tx.wg.fill(r, -1.0)
    if warp < 2:
        Tx.wg.copy_async(r, cells[:, 0:16])
        T.ptx.tcgen05.wait.ld()
    Tx.wg.copy(B, r)
    end(tmem_pool)


# Two elements in a cell, and one in the lower half of each cell.
# sim: sixteen_bits
#   A: float16[128x16] = i * 10 + j
#   B: float16[2x128x16] = 0 -> j * 10 + k
@T.prim_func
def sixteen_bits(A: T.Buffer((128, 16), "float16"), B: T.Buffer((2, 128, 16), "float16")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    pool = T.SMEMPool()
    tmem_pool = T.TMEMPool(pool, total_cols=32)
    pool.commit()
    dense = tmem_pool.alloc((128, 16), "float16")
    halves = tmem_pool.alloc((128, 16), "float16", layout=TileLayout(S[(128, 16) : (1 @ TLane, 2 @ TCol)]), cols=16)
    tmem_pool.commit()
    turn()
    r = T.wg_reg_tile(16, dtype="float16")
    Tx.wg.copy(r, A)
    Tx.wg.copy_async(dense, r)
    Tx.wg.copy_async(halves, r)
    T.ptx.tcgen05.wait.st()
    part = T.alloc_tcgen05_ldst_frag("16x128b", (128, 16), "float16")
    Tx.wg.copy_async(part, dense)
    T.ptx.tcgen05.wait.ld()
    Tx.wg.copy(B[0, :, :], part)
    Tx.wg.copy_async(r, halves)
    T.ptx.tcgen05.wait.ld()
    Tx.wg.copy(B[1, :, :], r)
    end(tmem_pool)


# Eight elements of four bits share a register and a cell, and come from global memory in vectors.
# sim: four_bits
#   A: float4_e2m1fn[128x64] = (i + j) % 4
#   B: float4_e2m1fn[128x64] = 0 -> (i + j) % 4
@T.prim_func
def four_bits(A: T.Buffer((128, 64), "float4_e2m1fn"), B: T.Buffer((128, 64), "float4_e2m1fn")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    pool = T.SMEMPool()
    tmem_pool = T.TMEMPool(pool, total_cols=32)
    pool.commit()
    cells = tmem_pool.alloc((128, 64), "float4_e2m1fn")
    tmem_pool.commit()
    turn()
    r = T.wg_reg_tile(64, dtype="float4_e2m1fn")
    s = T.wg_reg_tile(64, dtype="float4_e2m1fn")
    Tx.wg.copy(r, A)
    Tx.wg.copy_async(cells, r)
    T.ptx.tcgen05.wait.st()
    Tx.wg.copy_async(s, cells)
    T.ptx.tcgen05.wait.ld()
    Tx.wg.copy(B, s)
    end(tmem_pool)


# A view of tensor memory: stages of columns.
# sim: viewed
#   A: float32[128x16] = i * 100 + j
#   B: float32[128x16] = 0 -> i * 100 + (j + 8) % 16
@T.prim_func
def viewed(A: T.Buffer((128, 16), "float32"), B: T.Buffer((128, 16), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    pool = T.SMEMPool()
    tmem_pool = T.TMEMPool(pool, total_cols=32)
    pool.commit()
    stages = tmem_pool.alloc((128, 16), "float32").rearrange("m (s n) -> s m n", s=2)
    tmem_pool.commit()
    turn()
    r = T.wg_reg_tile(8)
    for s in T.serial(2):
        Tx.wg.copy(r, A[:, s * 8 : s * 8 + 8])
        Tx.wg.copy_async(stages[s, :, :], r)
        T.ptx.tcgen05.wait.st()
    for s in T.serial(2):
        Tx.wg.copy_async(r, stages[1 - s, :, :])
        T.ptx.tcgen05.wait.ld()
        Tx.wg.copy(B[:, s * 8 : s * 8 + 8], r)
    end(tmem_pool)


# sim: loaded_too_early
#   A: float32[128x8] = i + j
#   B: float32[128x8] = 0
#   fault: wait::ld
@T.prim_func
def loaded_too_early(A: T.Buffer((128, 8), "float32"), B: T.Buffer((128, 8), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    pool = T.SMEMPool()
    tmem_pool = T.TMEMPool(pool, total_cols=32)
    pool.commit()
    cells = tmem_pool.alloc((128, 8), "float32")
    tmem_pool.commit()
    turn()
    r = T.wg_reg_tile(8)
    Tx.wg.copy(r, A)
    Tx.wg.copy_async(cells, r)
    T.ptx.tcgen05.wait.st()
    Tx.wg.copy_async(r, cells)
    Tx.wg.copy(B, r)
    end(tmem_pool)

# variant: stored_too_early of loaded_too_early
#   without: "T.ptx.tcgen05.wait.st()"
#   replace: "Tx.wg.copy_async(r, cells)" -> "Tx.wg.copy_async(r, cells)\n    T.ptx.tcgen05.wait.ld()"
#   fault: that a tcgen05.st of this warp is still writing: tcgen05.wait::st is missing between them


# From shared to tensor memory: rows of 16 and 32 bytes, one row for each warp's lanes, both halves of the lanes alike.
# sim: filled
#   A: float32[128x16] = i * 100 + j
#   B: float32[128x16] = 0 -> i * 100 + j
#   C: float32[2x128x4] = 0 -> (j % 64 if i == 0 else j // 64 * 32 + j % 32) * 100 + k
@T.prim_func
def filled(A: T.Buffer((128, 16), "float32"), B: T.Buffer((128, 16), "float32"), C: T.Buffer((2, 128, 4), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    warp = T.warp_id([4])
    pool = T.SMEMPool()
    tmem_pool = T.TMEMPool(pool, total_cols=32)
    bar = pool.alloc((1,), "uint64", align=8)
    As = pool.alloc_tcgen05_mma_AB((128, 16), "float32", swizzle_mode="none")
    pool.commit()
    cells = tmem_pool.alloc((128, 16), "float32")
    pairs = TileLayout(S[(64, 4) : (1 @ TLane, 1 @ TCol)] + R[2 : 64 @ TLane])
    neighbours = TileLayout(S[(2, 32, 4) : (64 @ TLane, 1 @ TLane, 1 @ TCol)] + R[2 : 32 @ TLane])
    twice = tmem_pool.alloc((64, 4), "float32", layout=pairs, cols=4)
    beside = tmem_pool.alloc((64, 4), "float32", layout=neighbours, cols=4)
    tmem_pool.commit()
    Tx.cta.copy(As, A)
    if warp == 0:
        if T.ptx.elect_sync():
            T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
            T.ptx.fence.mbarrier_init()
    T.ptx.fence.proxy_async("shared::cta")
    turn()
    if warp == 0:
        if T.ptx.elect_sync():
            Tx.copy_async(cells[:, 0:8], As[:, 0:8])
            Tx.copy_async(cells[:, 8:16], As[:, 8:16], shape="128x128b")
            Tx.copy_async(twice, As[0:64, 0:4])
            Tx.copy_async(beside, As[0:64, 0:4], multicast="warpx2::01_23")
            T.ptx.tcgen05.commit(bar.ptr_to([0]))
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    T.ptx.tcgen05.fence.after_thread_sync()
    r = T.wg_reg_tile(16)
    Tx.wg.copy_async(r, cells)
    T.ptx.tcgen05.wait.ld()
    Tx.wg.copy(B, r)
    all_lanes = T.decl_buffer((128, 8), "float32", scope="tmem", allocated_addr=16, layout=TileLayout(S[(128, 8) : (1 @ TLane, 1 @ TCol)]))
    for n in range(2):
        q = T.wg_reg_tile(4)
        Tx.wg.copy_async(q, all_lanes[:, n * 4 : n * 4 + 4])
        T.ptx.tcgen05.wait.ld()
        Tx.wg.copy(C[n, :, :], q)
    end(tmem_pool)


# sim: filled_too_early
#   A: float32[128x8] = i * 100 + j
#   B: float32[128x8] = 0
#   fault: race
@T.prim_func
def filled_too_early(A: T.Buffer((128, 8), "float32"), B: T.Buffer((128, 8), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    warp = T.warp_id([4])
    pool = T.SMEMPool()
    tmem_pool = T.TMEMPool(pool, total_cols=32)
    As = pool.alloc_tcgen05_mma_AB((128, 8), "float32", swizzle_mode="none")
    pool.commit()
    cells = tmem_pool.alloc((128, 8), "float32")
    tmem_pool.commit()
    zeros = T.wg_reg_tile(8)
    Tx.cta.copy(As, A)
    T.ptx.fence.proxy_async("shared::cta")
    Tx.wg.fill(zeros, 0.0)
    turn()
    Tx.wg.copy_async(cells, zeros)
    T.ptx.tcgen05.wait.st()
    turn()
    if warp == 0:
        if T.ptx.elect_sync():
            Tx.copy_async(cells, As)
    turn()
    Tx.wg.copy_async(zeros, cells)
    T.ptx.tcgen05.wait.ld()
    Tx.wg.copy(B, zeros)
    end(tmem_pool)
