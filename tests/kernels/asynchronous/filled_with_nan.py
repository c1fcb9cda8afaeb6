# test: compile sm_90a
# What a tensor copy puts beyond the edge of a tensor is one NaN, of which a product by `fma.rn.oob` is zero; other NaNs stay.
import math

from tvm.script import tirx as T


# sim: products
#   A: float16[6x16] = math.nan if i == 4 and j == 3 else i * 16 + j
#   B: float32[8x16] = -1 -> 0 if i >= 4 else 2 * A[i + 2][j] + 1
#   C: uint16[8x16] = 0 -> 0x7ff7 if i >= 4 else 0
#   D: float32[8x16] = -1 -> 0 if i >= 4 else 2 * A[i + 2][j] + 1
@T.prim_func
def products(
    A: T.Buffer((6, 16), "float16"), B: T.Buffer((8, 16), "float32"), C: T.Buffer((8, 16), "uint16"), D: T.Buffer((8, 16), "float32")
):
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float16", 2, A.data, 16, 6, 32, 16, 8, 1, 1, 0, 0, 0, 1)
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((8, 16), "float16", align=128)
    bar = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), T.uint32(1))
        T.ptx.fence.mbarrier_init.release.cluster()
        T.ptx["mbarrier.arrive.expect_tx.shared::cta.b64"](bar.ptr_to([0]), T.uint32(256))
        T.ptx["cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes"](
            S.ptr_to([0, 0]), T.address_of(A_map), 0, 2, bar.ptr_to([0])
        )
    T.cuda.cta_sync()
    T.cuda.mbarrier_wait(bar.ptr_to([0]), 0)
    pair = T.alloc_local((1,), "uint32")
    for i in T.serial(8):
        if tx < 16:
            product: T.float16 = T.float16(0)
            T.ptx.fma.rn.oob.f16(product, S[i, tx], T.float16(2), T.float16(1))
            B[i, tx] = T.float32(product)
            bits: T.uint16 = T.reinterpret("uint16", S[i, tx])
            C[i, tx] = T.if_then_else(i >= 4, bits, T.uint16(0))
            one: T.float16x2 = T.broadcast(T.float16(1), 2)
            two: T.float16x2 = T.broadcast(T.float16(2), 2)
            T.ptx.fma.rn.oob.f16x2(pair[0], T.reinterpret("uint32", two), T.reinterpret("uint32", T.broadcast(S[i, tx], 2)), T.reinterpret("uint32", one))
            D[i, tx] = T.float32(T.reinterpret("float16", T.cast(pair[0] >> T.uint32(16), "uint16")))
