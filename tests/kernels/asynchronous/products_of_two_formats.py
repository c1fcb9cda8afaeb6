# test: compile sm_90a
# wgmma by its mnemonics: A and B have formats of their own, and integers of 8 bits. A is in registers; its only number in row r is
# in column r % 32, so that D is B, turned.
from tvm.script import tirx as T


@T.inline
def product(A, B, D, mnemonic, dtype):
    bx = T.cta_id([1])
    warp = T.warp_id([4])
    lane = T.lane_id([32])
    tx = T.thread_id([128])
    # Core matrices of 8 rows by 16 bytes, one behind the other.
    S = T.alloc_shared((2, 8, 16), "uint8", align=128)
    a = T.alloc_local((4,), "uint32")
    d = T.alloc_local((4,), dtype)
    for k in T.unroll(2):
        S[k, tx // 16, tx % 16] = B[tx // 16, k * 16 + tx % 16]
    for r in T.unroll(4):
        row: T.let = (warp * 16 + lane // 4 + r % 2 * 8) % 32
        byte: T.let = row - (lane % 4 * 4 + r // 2 * 16)
        a[r] = T.if_then_else(T.And(byte >= 0, byte < 4), T.cast(A[0], "uint32") << T.uint32(T.max(byte, 0) * 8), T.uint32(0))
        d[r] = T.cast(0, dtype)
    T.ptx["fence.proxy.async.shared::cta"]()
    T.cuda.cta_sync()
    desc: T.let = T.cast(T.shift_right(T.cuda.cvta_generic_to_shared(S.ptr_to([0, 0, 0])), T.uint32(4)), "uint64") | T.uint64(0x800080000)
    T.ptx.wgmma.fence.sync.aligned()
    if dtype == "uint32":
        T.ptx[mnemonic](*[d[i] for i in range(4)], *[a[i] for i in range(4)], desc, T.bool(True))
    else:
        T.ptx[mnemonic](*[d[i] for i in range(4)], *[a[i] for i in range(4)], desc, T.bool(True), 1, -1)
    T.ptx.wgmma.commit_group.sync.aligned()
    T.ptx.wgmma.wait_group.sync.aligned(0)
    for r in T.unroll(4):
        D[warp * 16 + lane // 4 + r // 2 * 8, lane % 4 * 2 + r % 2] = d[r]


# -1 of int8 times numbers of uint8.
# sim: signed_by_unsigned
#   A: uint8[1] = 255
#   B: uint8[8x32] = i * 32 + j
#   D: uint32[64x8] = 0 -> (-(j * 32 + i % 32)) % 2**32
@T.prim_func
def signed_by_unsigned(A: T.Buffer((1,), "uint8"), B: T.Buffer((8, 32), "uint8"), D: T.Buffer((64, 8), "uint32")):
    T.device_entry()
    product(A, B, D, "wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.u8", "uint32")


# 2 of float8_e5m2 times numbers of float8_e4m3fn, subtracted.
# sim: two_floats
#   A: uint8[1] = 0x40
#   B: uint8[8x32] = [0x38, 0x40, 0xb8, 0x30][(i + j) % 4]
#   D: float32[64x8] = 0 -> -2 * [1, 2, -1, 0.5][(i + j) % 4]
@T.prim_func
def two_floats(A: T.Buffer((1,), "uint8"), B: T.Buffer((8, 32), "uint8"), D: T.Buffer((64, 8), "float32")):
    T.device_entry()
    product(A, B, D, "wgmma.mma_async.sync.aligned.m64n8k32.f32.e5m2.e4m3", "float32")
