# test: target sm_100a
# Bulk copies that combine what they bring with what is there, and bulk copies of some of the bytes.
from tvm.script import tirx as T


# Four blocks add to the same place.
# sim: sums
#   B: float32[32] = i -> 5 * i + 6
#   seeds: 3
@T.prim_func
def sums(B: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([32])
    S = T.alloc_shared((32,), "float32", align=128)
    S[tx] = T.cast(tx + bx, "float32")
    T.ptx.fence.proxy.async_.shared__cta()
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx["cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32"](B.ptr_to([0]), S.ptr_to([0]), T.uint32(128))
        T.ptx.cp.async_.bulk.commit_group()
        T.ptx.cp.async_.bulk.wait_group(0)

# variant: sums_overwritten of sums
#   replace: "        T.ptx.cp.async_.bulk.commit_group()\n" -> "        S[0] = T.float32(0)\n        T.ptx.cp.async_.bulk.commit_group()\n"
#   fault: race

# variant: sums_without_fence of sums
#   without: "T.ptx.fence.proxy.async_.shared__cta()"
#   fault: no fence.proxy.async makes it visible


# Halves, sizes of integers, bits.
# sim: of_other_types
#   H: float16[16] = i -> i + 0.5
#   M: int32[16] = 8 - i -> max(8 - i, i - 4)
#   X: uint32[16] = i -> i ^ 5
@T.prim_func
def of_other_types(H: T.Buffer((16,), "float16"), M: T.Buffer((16,), "int32"), X: T.Buffer((16,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    SH = T.alloc_shared((16,), "float16", align=128)
    SM = T.alloc_shared((16,), "int32", align=128)
    SX = T.alloc_shared((16,), "uint32", align=128)
    if tx < 16:
        SH[tx] = T.float16(0.5)
        SM[tx] = tx - 4
        SX[tx] = T.uint32(5)
    T.ptx.fence.proxy.async_.shared__cta()
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx["cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16"](H.ptr_to([0]), SH.ptr_to([0]), T.uint32(32))
        T.ptx["cp.reduce.async.bulk.global.shared::cta.bulk_group.max.s32"](M.ptr_to([0]), SM.ptr_to([0]), T.uint32(64))
        T.ptx["cp.reduce.async.bulk.global.shared::cta.bulk_group.xor.b32"](X.ptr_to([0]), SX.ptr_to([0]), T.uint32(64))
        T.ptx.cp.async_.bulk.commit_group()
        T.ptx.cp.async_.bulk.wait_group(0)


# Into the shared memory of another block, which waits for the bytes.
# sim: in_another_block
#   B: uint32[4] = 0 -> 17 + i
#   seeds: 3
@T.prim_func
def in_another_block(B: T.Buffer((4,), "uint32")):
    T.device_entry()
    T.cluster_id([1])
    rank = T.cta_id_in_cluster([2])
    tx = T.thread_id([32])
    S = T.alloc_shared((4,), "uint32", align=16)
    D = T.alloc_shared((4,), "uint32", align=16)
    bar = T.alloc_shared((1,), "uint64")
    to = T.alloc_local((2,), "uint32")
    if tx < 4:
        S[tx] = T.uint32(tx)
        D[tx] = T.uint32(17)
    if tx == 0:
        T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init.release.cluster()
    T.ptx.fence.proxy.async_()
    T.cuda.cluster_sync()
    if tx == 0:
        if rank == 0:
            T.ptx.mapa.shared__cluster.u32(to[0], T.cuda.cvta_generic_to_shared(D.ptr_to([0])), T.uint32(1))
            T.ptx.mapa.shared__cluster.u32(to[1], T.cuda.cvta_generic_to_shared(bar.ptr_to([0])), T.uint32(1))
            T.ptx["cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32"](
                to[0], S.ptr_to([0]), T.uint32(16), to[1])
        else:
            T.ptx.mbarrier.arrive.expect_tx.shared.b64(bar.ptr_to([0]), 16)
            T.cuda.mbarrier_wait(bar.ptr_to([0]), 0)
            for k in range(4):
                B[k] = D[k]
    T.cuda.cluster_sync()

# variant: in_another_block_unwaited of in_another_block
#   without: "T.cuda.mbarrier_wait(bar.ptr_to([0]), 0)"
#   fault: race


# The bytes 4 to 11 of each 16.
# sim: some_bytes
#   B: uint8[32] = 99 -> i if 4 <= i % 16 < 12 else 99
@T.prim_func
def some_bytes(B: T.Buffer((32,), "uint8")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((32,), "uint8", align=16)
    S[tx] = T.cast(tx, "uint8")
    T.ptx.fence.proxy.async_.shared__cta()
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx["cp.async.bulk.global.shared::cta.bulk_group.cp_mask"](B.ptr_to([0]), S.ptr_to([0]), T.uint32(32), T.uint16(0x0FF0))
        T.ptx.cp.async_.bulk.commit_group()
        T.ptx.cp.async_.bulk.wait_group(0)

# Bytes that are not copied may be written meanwhile.
# variant: beside_some_bytes of some_bytes
#   replace: "        T.ptx.cp.async_.bulk.commit_group()\n" -> "        B[2] = T.uint8(99)\n        T.ptx.cp.async_.bulk.commit_group()\n"

# variant: over_some_bytes of some_bytes
#   replace: "        T.ptx.cp.async_.bulk.commit_group()\n" -> "        B[5] = T.uint8(99)\n        T.ptx.cp.async_.bulk.commit_group()\n"
#   fault: race
