# test: compile sm_100a
# A tensor copy of four rows by its mnemonic, in and out: the rows need not be in order.
from tvm.script import tirx as T


# sim: rows_move
#   A: float32[16x8] = i * 8 + j
#   B: float32[16x8] = -1 -> A[9][j] if i == 5 else A[2][j] if i == 0 else A[7][j] if i == 15 else A[1][j] if i == 3 else -1
#   seeds: 2
@T.prim_func
def rows_move(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16, 8), "float32")):
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float32", 2, A.data, 8, 16, 32, 8, 1, 1, 1, 0, 0, 0, 0)
    B_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", B_map, "float32", 2, B.data, 8, 16, 32, 8, 1, 1, 1, 0, 0, 0, 0)
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((32,), "float32", align=128)
    bar = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), T.uint32(1))
        T.ptx.fence.mbarrier_init.release.cluster()
        T.ptx["mbarrier.arrive.expect_tx.shared::cta.b64"](bar.ptr_to([0]), T.uint32(128))
        T.ptx["cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes"](
            S.ptr_to([0]), T.address_of(A_map), 0, 9, 2, 7, 1, bar.ptr_to([0])
        )
        T.cuda.mbarrier_wait(bar.ptr_to([0]), 0)
        T.ptx["cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group"](
            T.address_of(B_map), 0, 5, 0, 15, 3, S.ptr_to([0])
        )
        T.ptx.cp.async_.bulk.commit_group()
        T.ptx.cp.async_.bulk.wait_group(0)

# Shared memory is written again while the copy reads it.
# variant: rows_overwritten of rows_move
#   replace: "        T.ptx.cp.async_.bulk.wait_group(0)" -> "        S[0] = T.float32(0)"
#   fault: race
