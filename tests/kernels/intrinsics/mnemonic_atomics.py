# test: compile sm_90a
# Atomics by their mnemonics that are no rows: compare-and-swap, sums of narrow floats, vectors.
from tvm.script import tirx as T


# The first lane to come takes each slot; the others see that it is taken.
# sim: compares
#   A: uint32[2] = 0 -> [32, 7][i]
#   B: uint64[1] = 5 -> 6
#   C: uint32[32] = 0 -> 1 if i == 0 else 0
#   seeds: 3
@T.prim_func
def compares(A: T.Buffer((2,), "uint32"), B: T.Buffer((1,), "uint64"), C: T.Buffer((32,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    old: T.uint32
    seen: T.uint32
    before: T.uint64
    old = T.uint32(0)
    seen = T.uint32(1)
    while old != seen:
        seen = old
        T.ptx.atom.acq_rel.gpu.global_.cas.b32(old, A.ptr_to([0]), seen, seen + T.uint32(1))
    T.ptx.atom.relaxed.cta.global_.cas.b32(A.ptr_to([1]), T.uint32(0), T.uint32(7))
    if tx == 0:
        T.ptx.atom.global_.cas.b64(before, B.ptr_to([0]), T.uint64(5), T.uint64(6))
        C[0] = T.cast(before, "uint32") - T.uint32(4)


# sim: narrow
#   H: float16[4] = i -> [32, 33, 2, 3][i]
#   F: float32[4] = i -> [32, 65, 98, 131][i]
#   O: float32[4] = 0 -> i
#   seeds: 2
@T.prim_func
def narrow(H: T.Buffer((4,), "float16"), F: T.Buffer((4,), "float32"), O: T.Buffer((4,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    v = T.alloc_local((4,), "float32")
    # A pair of ones.
    T.ptx.red.relaxed.gpu.global_.add.noftz.f16x2(H.ptr_to([0]), T.uint32(0x3C003C00))
    if tx > 0:
        T.ptx.red.relaxed.gpu.global_.add.v4.f32(F.ptr_to([0]), T.float32(1), T.float32(2), T.float32(3), T.float32(4))
    T.cuda.warp_sync()
    T.ptx.fence.acq_rel.gpu()
    if tx == 0:
        T.ptx.atom.relaxed.gpu.global_.add.v4.f32(
            v[0], v[1], v[2], v[3], F.ptr_to([0]), T.float32(1), T.float32(2), T.float32(3), T.float32(4)
        )
        for i in T.unroll(4):
            O[i] = v[i] - T.float32(31) * T.float32(i + 1)


# The halves of a warp meet by themselves.
# sim: halves
#   A: float32[32] = i
#   B: float32[32] = 0 -> i // 16 * 16 + 15 - i % 16
#   seeds: 3
@T.prim_func
def halves(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((32,), "float32")
    S[tx] = A[tx]
    if tx < 16:
        T.ptx.bar.warp.sync(T.uint32(0xFFFF))
        B[tx] = S[15 - tx]
    else:
        T.ptx.bar.warp.sync(T.uint32(0xFFFF0000))
        B[tx] = S[47 - tx]

# The other half is not ordered.
# variant: halves_mixed of halves
#   replace: "S[47 - tx]" -> "S[31 - tx]"
#   fault: race

# A lane that waits is one of the mask.
# variant: halves_of_others of halves
#   replace: "T.uint32(0xFFFF0000)" -> "T.uint32(0xFFFF)"
#   fault: which does not name it
