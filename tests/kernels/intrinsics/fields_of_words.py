# test: compile sm_90a
# Instructions that choose, insert and compare parts of words, by their mnemonics.
from tvm.script import tirx as T


# The bytes are 0x10 to 0x17; the mode says which four follow the two lowest bits of the selector.
# sim: chosen_bytes
#   C: uint32[6x4] = 0 -> [[0x13121110, 0x14131211, 0x15141312, 0x16151413], [0x15161710, 0x16171011, 0x17101112, 0x10111213], [0x10101010, 0x11111111, 0x12121212, 0x13131313], [0x13121110, 0x13121111, 0x13121212, 0x13131313], [0x10101010, 0x11111110, 0x12121110, 0x13121110], [0x11101110, 0x13121312, 0x11101110, 0x13121312]][i][j]
@T.prim_func
def chosen_bytes(C: T.Buffer((6, 4), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    if tx < 4:
        a: T.let = T.uint32(0x13121110)
        b: T.let = T.uint32(0x17161514)
        T.ptx.prmt.b32.f4e(C[0, tx], a, b, T.uint32(tx))
        T.ptx.prmt.b32.b4e(C[1, tx], a, b, T.uint32(tx + 4))
        T.ptx.prmt.b32.rc8(C[2, tx], a, b, T.uint32(tx))
        T.ptx.prmt.b32.ecl(C[3, tx], a, b, T.uint32(tx))
        T.ptx.prmt.b32.ecr(C[4, tx], a, b, T.uint32(tx))
        T.ptx.prmt.b32.rc16(C[5, tx], a, b, T.uint32(tx))


# Eight bits from bit 4 i on of a pattern, the same with the sign; no bits; bits beyond the end; eight bits put in their place.
# sim: fields
#   A: uint64[20] = 0x8123456789abcdef
#   U: uint64[2x20] = 0 -> [0x8123456789abcdef >> 4 * j & 255 if j < 16 else 0, (0x8123456789abcdef & ~(255 << 4 * j) | 0x5a << 4 * j) & 2**64 - 1 if j < 16 else 0x8123456789abcdef][i]
#   S: int64[2x20] = 0 -> [((0x8123456789abcdef - 2**64 >> 4 * j & 255) + 128) % 256 - 128 if j < 16 else -1, 0][i]
#   W: int32[20] = 0 -> ((0x8abcdef1 - 2**32 >> 4 * i & 255) + 128) % 256 - 128 if i < 8 else -1
@T.prim_func
def fields(A: T.Buffer((20,), "uint64"), U: T.Buffer((2, 20), "uint64"), S: T.Buffer((2, 20), "int64"), W: T.Buffer((20,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    if tx < 20:
        T.ptx.bfe.u64(U[0, tx], A[tx], T.uint32(tx * 4), T.uint32(8))
        T.ptx.bfi.b64(U[1, tx], T.uint64(0x5A), A[tx], T.uint32(tx * 4), T.uint32(8))
        T.ptx.bfe.s64(S[0, tx], T.reinterpret("int64", A[tx]), T.uint32(tx * 4), T.uint32(8))
        T.ptx.bfe.s64(S[1, tx], T.reinterpret("int64", A[tx]), T.uint32(tx), T.uint32(0))
        T.ptx.bfe.s32(W[tx], T.reinterpret("int32", T.uint32(0x8ABCDEF1)), T.uint32(tx * 4), T.uint32(8))


# sim: upper_halves
#   A: int64[32] = (i - 16) * 2**58 + 12345
#   S: int64[2x32] = 0 -> [((j - 16) * 2**58 + 12345) * -1234567890123456789 >> 64, (((j - 16) * 2**58 + 12345) * 1000000007 >> 64) + j][i]
#   U: uint64[32] = 0 -> ((i - 16) * 2**58 + 12345) % 2**64 * 0x7edcba9876543210 >> 64
@T.prim_func
def upper_halves(A: T.Buffer((32,), "int64"), S: T.Buffer((2, 32), "int64"), U: T.Buffer((32,), "uint64")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    T.ptx.mul.hi.s64(S[0, tx], A[tx], T.int64(-1234567890123456789))
    T.ptx.mad.hi.s64(S[1, tx], A[tx], T.int64(1000000007), T.int64(tx))
    T.ptx.mul.hi.u64(U[tx], T.reinterpret("uint64", A[tx]), T.uint64(0x7EDCBA9876543210))


# Halves (1, i), as numbers and as truth, against (1, 8).
# sim: compared_pairs
#   A: float16[32x2] = [1, i][j]
#   B: uint32[5x32] = 0 -> [0x3c00 + 0x3c000000 * (j < 8), 0x3f80, 0xffff + 0xffff0000 * (j >= 8), 1, 10 * (j != 8)][i]
@T.prim_func
def compared_pairs(A: T.Buffer((32, 2), "float16"), B: T.Buffer((5, 32), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    pair: T.uint32
    first: T.bool
    second: T.bool
    T.ptx.ld.global_.u32(pair, A.ptr_to([tx, 0]))
    limit: T.let = T.uint32(0x48003C00)
    T.ptx["set.le.f16x2.f16x2"](B[0, tx], pair, limit - T.uint32(0x00010000))
    # The first is 1, the second is NaN.
    T.ptx["set.ge.bf16x2.bf16x2"](B[1, tx], T.uint32(0x7FC03F80), T.uint32(0x00003F80))
    T.ptx["set.ge.u32.f16x2"](B[2, tx], pair, limit)
    T.ptx["setp.ne.and.f16x2"](first, second, pair, limit, T.ptx.pred(tx + 1))
    B[3, tx] = T.uint32(1) - T.cast(first, "uint32")
    B[4, tx] = T.cast(second, "uint32") * T.uint32(10)


# Whether a AND b has bits, or the predicate holds; normal numbers, zero among them, and subnormal ones.
# sim: tested
#   F: float32[32] = [0.0, 1e-40, -1e-40, 1.5, -1e30, 1e-37, 1.0, 2.0][i % 8]
#   B: uint32[4x32] = 0 -> [j & 5, 1 if j & 5 != 0 or j == 0 else 0, 1 if j % 8 >= 3 or j % 8 == 0 else 0, 1 if j % 8 == 1 or j % 8 == 2 else 0][i]
@T.prim_func
def tested(F: T.Buffer((32,), "float32"), B: T.Buffer((4, 32), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    holds: T.bool
    T.ptx.lop3.or_.b32(B[0, tx], holds, T.uint32(tx), T.uint32(5), T.uint32(0), 0xC0, T.ptx.pred(T.uint32(tx == 0)))
    B[1, tx] = T.cast(holds, "uint32")
    T.ptx.testp.normal.f32(holds, F[tx])
    B[2, tx] = T.cast(holds, "uint32")
    T.ptx.testp.subnormal.f32(holds, F[tx])
    B[3, tx] = T.cast(holds, "uint32")
