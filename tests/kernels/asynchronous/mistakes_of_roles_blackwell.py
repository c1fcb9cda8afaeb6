# test: target sm_100a
# Tensor memory between warpgroups, right and with one mistake each: the report names what is missing.
from tvm.script import tirx as T


# Two halves of tensor memory: a warp's rows go there and come back in the other warpgroup's order.
# sim: columns
#   A: float32[128x8] = i * 8 + j
#   B: float32[128x8] = 0 -> A[i][j] + 1
#   seeds: 4
@T.prim_func
def columns(A: T.Buffer((128, 8), "float32"), B: T.Buffer((128, 8), "float32")):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([256])
    warp = T.warp_id([8])
    slot = T.alloc_shared((1,), "uint32")
    r = T.alloc_local((8,), "float32")
    if warp == 0:
        T.ptx.tcgen05.alloc(T.address_of(slot[0]), n_cols=32, cta_group=1)
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cta_sync()
    T.ptx.tcgen05.fence.after_thread_sync()
    if tx < 128:
        for k in T.unroll(8):
            r[k] = A[tx, k]
        T.ptx.tcgen05.st(slot[0], *[r[k] for k in range(8)], shape="32x32b", num=8, row=warp * 32)
        T.ptx.tcgen05.wait.st()
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cta_sync()
    T.ptx.tcgen05.fence.after_thread_sync()
    if tx >= 128:
        T.ptx.tcgen05.ld(slot[0], *[r[k] for k in range(8)], shape="32x32b", num=8, row=warp % 4 * 32)
        T.ptx.tcgen05.wait.ld()
        for k in T.unroll(8):
            B[tx - 128, k] = r[k] + T.float32(1)
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cta_sync()
    if warp == 0:
        T.ptx.tcgen05.relinquish_alloc_permit(cta_group=1)
        T.ptx.tcgen05.dealloc(slot[0], n_cols=32, cta_group=1)

# The address is read before the allocation is done.
# variant: columns_unallocated of columns
#   without 1: "T.cuda.cta_sync()"
#   fault: reads `slot[0]`, which thread (0, 0, 0) wrote, and no barrier orders the two

# The stores are under way.
# variant: columns_unwritten of columns
#   without: "T.ptx.tcgen05.wait.st()"
#   fault: that a tcgen05.st of warp 0 is still writing: tcgen05.wait::st is missing between them

# The other warpgroup does not wait.
# variant: columns_unordered of columns
#   without 2: "T.cuda.cta_sync()"
#   fault: column 0 of tensor memory, which thread (0, 0, 0) wrote, and no barrier orders the two

# The loads are under way when the columns are freed.
# variant: columns_freed_early of columns
#   without: "T.ptx.tcgen05.wait.ld()"
#   without 3: "T.cuda.cta_sync()"
#   fault: column 0 of tensor memory, which thread (0, 0, 0) freed, and no barrier orders the two

# Another number of columns is freed.
# variant: columns_freed_in_part of columns
#   replace: "dealloc(slot[0], n_cols=32" -> "dealloc(slot[0], n_cols=64"
#   fault: tcgen05.dealloc of 64 columns at 0x0, but 32 are allocated

# Nobody frees them.
# variant: columns_kept of columns
#   without: "T.ptx.tcgen05.dealloc"
#   fault: the block ends with 32 columns of tensor memory allocated: tcgen05.dealloc is missing

# A warp reads another warp's lanes.
# variant: columns_of_another_warp of columns
#   replace: "row=warp % 4 * 32" -> "row=(warp + 1) % 4 * 32"
#   fault: but warp 4 may access lanes 0 to 31 (those of its number in the warpgroup)


# Two stores to the same columns, each waited for: without the first wait either may be performed last.
# sim: written_twice
#   B: float32[128] = 0 -> 2
#   seeds: 3
@T.prim_func
def written_twice(B: T.Buffer((128,), "float32")):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([128])
    warp = T.warp_id([4])
    slot = T.alloc_shared((1,), "uint32")
    r = T.alloc_local((3,), "float32")
    if warp == 0:
        T.ptx.tcgen05.alloc(T.address_of(slot[0]), n_cols=32, cta_group=1)
    T.cuda.cta_sync()
    r[0] = 1
    r[1] = 2
    T.ptx.tcgen05.st(slot[0], r[0], shape="32x32b", num=1, row=warp * 32)
    T.ptx.tcgen05.wait.st()
    T.ptx.tcgen05.st(slot[0], r[1], shape="32x32b", num=1, row=warp * 32)
    T.ptx.tcgen05.wait.st()
    T.ptx.tcgen05.ld(slot[0], r[2], shape="32x32b", num=1, row=warp * 32)
    T.ptx.tcgen05.wait.ld()
    B[tx] = r[2]
    T.cuda.cta_sync()
    if warp == 0:
        T.ptx.tcgen05.relinquish_alloc_permit(cta_group=1)
        T.ptx.tcgen05.dealloc(slot[0], n_cols=32, cta_group=1)


# variant: written_twice_at_once of written_twice
#   without 1: "T.ptx.tcgen05.wait.st()"
#   fault: tcgen05.st writes columns of tensor memory that a tcgen05.st of this warp is still writing: tcgen05.wait::st is missing
