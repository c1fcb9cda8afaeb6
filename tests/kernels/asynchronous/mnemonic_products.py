# test: compile sm_100a
# Products by their mnemonics: B stays in the tensor core (.ws), addresses of shared memory are numbers of 32 and of 64 bits.
from tvm.script import tirx as T


# Each row of A chooses one of 16 columns of B, whose rows are 32 bytes long.
# sim: stationary
#   A: uint16[128x16] = 0x3f80 if i % 16 == j else 0
#   B: uint16[64x16] = [0x3f80, 0x4000, 0xbf80, 0x3f00][(j * 5 + i // 3) % 4]
#   D: float32[128x64] = 0 -> [1, 2, -1, 0.5][(i % 16 * 5 + j // 3) % 4]
@T.prim_func
def stationary(A: T.Buffer((128, 16), "uint16"), B: T.Buffer((64, 16), "uint16"), D: T.Buffer((128, 64), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([128])
    warp = T.warp_id([4])
    Bs = T.alloc_shared((64, 16), "uint16", align=1024)
    slot = T.alloc_shared((1,), "uint32")
    bar = T.alloc_shared((1,), "uint64")
    a = T.alloc_local((8,), "uint32")
    r = T.alloc_local((64,), "float32")
    there = T.alloc_local((1,), "uint64")
    b_desc: T.uint64
    i_desc: T.uint32
    # Chunks of 16 bytes are exchanged in every other group of four rows.
    for e in T.vectorized(8):
        Bs[tx // 2, (tx % 2 ^ tx // 8 % 2) * 8 + e] = B[tx // 2, tx % 2 * 8 + e]
    for k in T.unroll(8):
        a[k] = T.cast(A[tx, 2 * k], "uint32") | T.cast(A[tx, 2 * k + 1], "uint32") << T.uint32(16)
    if warp == 0:
        T.ptx["tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32"](T.cuda.cvta_generic_to_shared(T.address_of(slot[0])), T.uint32(128))
    if tx == 0:
        T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), T.uint32(2))
        T.ptx.fence.mbarrier_init.release.cluster()
    T.ptx["fence.proxy.async.shared::cta"]()
    T.cuda.cta_sync()
    own: T.let = slot[0] + T.uint32(warp * 32 << 16)
    T.ptx["tcgen05.st.sync.aligned.32x32b.x8.b32"](own + T.uint32(64), *[a[k] for k in range(8)])
    T.ptx["tcgen05.wait::st.sync.aligned"]()
    T.cuda.cta_sync()
    if tx == 0:
        T.cuda.tcgen05.encode_matrix_descriptor(T.address_of(b_desc), Bs.ptr_to([0, 0]), 1, 16, 1)
        T.cuda.tcgen05.encode_instr_descriptor(T.address_of(i_desc), d_dtype="float32", a_dtype="bfloat16", b_dtype="bfloat16", M=128,
                                              N=64, K=16, trans_a=False, trans_b=False)
        T.ptx["tcgen05.mma.ws.cta_group::1.kind::f16"](slot[0], slot[0] + T.uint32(64), b_desc, i_desc, T.bool(False), T.uint64(0))
        T.ptx["tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64"](T.cuda.cvta_generic_to_shared(bar.ptr_to([0])))
        T.ptx.mapa.shared__cluster.u64(there[0], bar.ptr_to([0]), T.uint32(0))
        T.ptx.mbarrier.arrive.expect_tx.b64(there[0], T.uint32(0))
    T.cuda.mbarrier_wait(bar.ptr_to([0]), 0)
    T.ptx["tcgen05.ld.sync.aligned.32x32b.x64.b32"](*[r[k] for k in range(64)], own)
    T.ptx["tcgen05.wait::ld.sync.aligned"]()
    for k in T.unroll(64):
        D[tx, k] = r[k]
    T.cuda.cta_sync()
    if warp == 0:
        T.ptx["tcgen05.dealloc.cta_group::1.sync.aligned.b32"](slot[0], T.uint32(128))

# What the buffer of A keeps for the next product changes nothing.
# variant: collected of stationary
#   replace: 'mma.ws.cta_group::1.kind::f16"](slot[0], slot[0] + T.uint32(64), b_desc, i_desc, T.bool(False), T.uint64(0))' -> 'mma.cta_group::1.kind::f16.collector::a::lastuse"](slot[0], slot[0] + T.uint32(64), b_desc, i_desc, T.bool(False))'
