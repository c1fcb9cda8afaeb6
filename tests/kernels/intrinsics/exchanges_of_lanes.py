# Exchanges between lanes by mnemonics: masks in variables, shuffles that tell what is in range, packed values.
from tvm.script import tirx as T


# Lanes with the same remainder, and with the same value.
# sim: matches
#   A: uint32[32] = i % 5
#   B: uint32[3x32] = 0 -> (sum([1 << (j % 5 + 5 * k) for k in range(7) if j % 5 + 5 * k < 32]) if i == 0 else 0xffffffff if i == 1 else 1)
@T.prim_func
def matches(A: T.Buffer((32,), "uint32"), B: T.Buffer((3, 32), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    all_lanes = T.uint32(0xFFFFFFFF)
    same = T.alloc_local((1,), "uint32")
    T.ptx.match.any.sync.b32(B[0, tx], A[tx], all_lanes)
    T.ptx.match.all.sync.b32(B[1, tx], same[0], T.uint32(7), all_lanes)
    B[2, tx] = same[0]


# Half a warp alone, with a mask that is read.
# sim: halves
#   A: uint32[32] = i
#   M: uint32[2] = [0x0000ffff, 0xffff0000][i]
#   B: uint32[2x32] = 0 -> ((120 if j < 16 else 376) if i == 0 else (0 if j < 16 else 16))
@T.prim_func
def halves(A: T.Buffer((32,), "uint32"), M: T.Buffer((2,), "uint32"), B: T.Buffer((2, 32), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    if tx < 16:
        T.ptx.redux.sync.add.u32(B[0, tx], A[tx], M[0])
        T.ptx.redux.sync.min.u32(B[1, tx], A[tx], M[0])
    else:
        T.ptx.redux.sync.add.u32(B[0, tx], A[tx], M[1])
        T.ptx.redux.sync.min.u32(B[1, tx], A[tx], M[1])

# variant: mask_of_lanes_that_are_elsewhere of halves
#   replace: "T.ptx.redux.sync.min.u32(B[1, tx], A[tx], M[0])" -> "T.ptx.redux.sync.min.u32(B[1, tx], A[tx], M[1])"
#   fault: which does not name it


# The greatest of floats, and of their sizes.
# sim: floats
#   A: float32[32] = -i
#   B: float32[3x32] = 0 -> (0 if i == 0 else 31 if i == 1 else -31)
@T.prim_func
def floats(A: T.Buffer((32,), "float32"), B: T.Buffer((3, 32), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    T.ptx.redux.sync.max.f32(B[0, tx], A[tx], T.uint32(0xFFFFFFFF))
    T.ptx.redux.sync.max.abs.f32(B[1, tx], A[tx], T.uint32(0xFFFFFFFF))
    T.ptx.redux.sync.min.NaN.f32(B[2, tx], A[tx], T.uint32(0xFFFFFFFF))


# Groups of eight lanes: what comes from outside stays, and is told.
# sim: in_range
#   A: uint32[32] = i
#   B: uint32[4x32] = 0 -> [j + 3 if j % 8 < 5 else j, 1 if j % 8 < 5 else 0, j - 2 if j % 8 >= 2 else j, 1 if j % 8 >= 2 else 0][i]
@T.prim_func
def in_range(A: T.Buffer((32,), "uint32"), B: T.Buffer((4, 32), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    told = T.alloc_local((2,), "uint32")
    T.ptx.shfl.sync.down.b32(B[0, tx], told[0], A[tx], T.uint32(3), T.uint32(0x181F), T.uint32(0xFFFFFFFF))
    B[1, tx] = told[0]
    T.ptx.shfl.sync.up.b32(B[2, tx], told[1], A[tx], T.uint32(2), T.uint32(0x1800), T.uint32(0xFFFFFFFF))
    B[3, tx] = told[1]


# Element (r, c) of 8 x 8 is 8 r + c: two of a row in each lane.
# sim: transposed
#   A: uint32[32] = 2 * i + (2 * i + 1) * 65536
#   B: uint32[32] = 0 -> 16 * (i % 4) + i // 4 + (16 * (i % 4) + 8 + i // 4) * 65536
@T.prim_func
def transposed(A: T.Buffer((32,), "uint32"), B: T.Buffer((32,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    T.ptx.movmatrix.sync.aligned.m8n8.trans.b16(B[tx], A[tx])


# sim: packed
#   A: uint32[32] = i * 65537
#   B: uint32[2x32] = 0 -> [(31 - j) * 65537, (j ^ 1) * 65537][i]
@T.prim_func
def packed(A: T.Buffer((32,), "uint32"), B: T.Buffer((2, 32), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    pair: T.let = T.reinterpret("float16x2", A[tx])
    B[0, tx] = T.reinterpret("uint32", T.cuda.__shfl_sync(T.uint32(0xFFFFFFFF), pair, 31 - tx, 32))
    B[1, tx] = T.reinterpret("uint32", T.cuda.__shfl_xor_sync(T.uint32(0xFFFFFFFF), pair, 1, 32))


# Lanes that have returned take no part, whatever the mask names: nobody waits for them.
# sim: without_the_last
#   A: uint32[32] = i * i
#   B: uint32[2x32] = 0 -> ([A[j ^ 1], A[23 - j]][i] if j < 24 else 0)
@T.prim_func
def without_the_last(A: T.Buffer((32,), "uint32"), B: T.Buffer((2, 32), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    s = T.alloc_shared((32,), "uint32")
    if tx >= 24:
        return
    B[0, tx] = T.tvm_warp_shuffle_xor(T.uint32(0xFFFFFFFF), A[tx], 1, 32, 32)
    s[tx] = A[tx]
    T.cuda.warp_sync()
    B[1, tx] = s[23 - tx]


# They have no value to give.
# variant: of_the_last of without_the_last
#   replace: "A[tx], 1, 32" -> "A[tx], 16, 32"
#   fault: reads the value of lane 24, which has ended
