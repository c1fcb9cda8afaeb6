# test: compile sm_90a
# Sums that saturate, numbers of fewer bits, and a leader among some lanes, by their mnemonics.
from tvm.script import tirx as T


# mad.hi adds the upper half of the product: 2^30 * 2^i / 2^32 = 2^(i - 2). mad24.hi adds bits 16 to 47 of the product of 24-bit numbers:
# -2^23 * 2^i / 2^16 = -2^(7 + i). Both sums stop at the least and the greatest int32.
# sim: saturated_sums
#   M: int32[2x31] = 0 -> [min(2**31 - 1, (2**(30 + j) >> 32) + 0x7fffff00), max(-(2**31), -(2**(30 + j)) // 2**32 - 0x7fffff00)][i]
#   P: int32[2x22] = 0 -> [max(-(2**31), -(2**(7 + j)) - 0x7ffffe00), -(2**(7 + j)) + 0x7fffffff][i]
@T.prim_func
def saturated_sums(M: T.Buffer((2, 31), "int32"), P: T.Buffer((2, 22), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    if tx < 31:
        power: T.let = T.shift_left(T.int32(1), tx)
        T.ptx.mad.hi.sat.s32(M[0, tx], T.int32(0x40000000), power, T.int32(0x7FFFFF00))
        T.ptx.mad.hi.sat.s32(M[1, tx], T.int32(-0x40000000), power, T.int32(-0x7FFFFF00))
    if tx < 22:
        factor: T.let = T.shift_left(T.int32(1), tx)
        T.ptx.mad24.hi.sat.s32(P[0, tx], T.int32(-0x800000), factor, T.int32(-0x7FFFFE00))
        T.ptx.mad24.hi.sat.s32(P[1, tx], T.int32(-0x800000), factor, T.int32(0x7FFFFFFF))


# The lower i bits of 0xa5a5a5a5, as a number without and with a sign. From 32 bits on `clamp` keeps all of them, `wrap` counts modulo 32.
# sim: fewer_bits
#   U: uint32[2x40] = 0 -> [0xa5a5a5a5 & 2**min(j, 32) - 1, 0xa5a5a5a5 & 2**(j % 32) - 1][i]
#   S: int32[2x40] = 0 -> [((0xa5a5a5a5 & 2**min(j, 32) - 1) + 2**(min(j, 32) - 1)) % 2**min(j, 32) - 2**(min(j, 32) - 1) if j > 0 else 0, ((0xa5a5a5a5 & 2**(j % 32) - 1) + 2**(j % 32 - 1)) % 2**(j % 32) - 2**(j % 32 - 1) if j % 32 > 0 else 0][i]
@T.prim_func
def fewer_bits(U: T.Buffer((2, 40), "uint32"), S: T.Buffer((2, 40), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    if tx < 40:
        T.ptx.szext.clamp.u32(U[0, tx], T.uint32(0xA5A5A5A5), T.uint32(tx))
        T.ptx.szext.wrap.u32(U[1, tx], T.uint32(0xA5A5A5A5), T.uint32(tx))
        T.ptx.szext.clamp.s32(S[0, tx], T.reinterpret("int32", T.uint32(0xA5A5A5A5)), T.uint32(tx))
        T.ptx.szext.wrap.s32(S[1, tx], T.reinterpret("int32", T.uint32(0xA5A5A5A5)), T.uint32(tx))


# The lanes from 8 to 15 choose lane 8.
# sim: leader_of_some_lanes
#   B: uint32[2x8] = 9 -> [8, 1 if j == 0 else 0][i]
@T.prim_func
def leader_of_some_lanes(B: T.Buffer((2, 8), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    leader: T.uint32
    chosen: T.bool
    if tx >= 8:
        if tx < 16:
            T.ptx["elect.sync"](leader, chosen, T.uint32(0x0000FF00))
            B[0, tx - 8] = leader
            B[1, tx - 8] = T.cast(chosen, "uint32")
