# test: cuda sm_90a
# Predicates of instructions (`pred=`), which are branches where an operand reads memory, and a word of 64 bits replaced.
from tvm.script import tirx as T


# sim: predicated
#   A: uint32[64] = i * 3
#   B: uint32[64] = 7 -> i * 3 if i % 2 == 0 else 7
#   C: uint32[64] = 0 -> i * 3 if i < 32 else 0
@T.prim_func
def predicated(A: T.Buffer((64,), "uint32"), B: T.Buffer((64,), "uint32"), C: T.Buffer((64,), "uint32")):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([64])
    value = T.alloc_local((1,), "uint32")
    T.ptx.ld.global_.b32(value[0], A.ptr_to([tx]))
    T.ptx.st.global_.b32(B.ptr_to([tx]), value[0], pred=tx % 2 == 0)
    # The element is read only where the predicate holds.
    T.ptx.st.global_.b32(C.ptr_to([tx]), A[tx], pred=tx < 32)


# sim: predicated_loads
#   A: int32[128] = i * 3
#   B: int32[64] = 0 -> i * 3 if i < 40 else -1
#   C: int32[128] = 0 -> i * 3 if i // 2 % 2 == 0 else 9
@T.prim_func
def predicated_loads(A: T.Buffer((128,), "int32"), B: T.Buffer((64,), "int32"), C: T.Buffer((128,), "int32")):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([64])
    one = T.alloc_local((1,), "int32")
    one[0] = -1
    T.ptx.ld.global_.b32(one[0], A.ptr_to([tx]), pred=tx < 40, preserve_dst=True)
    B[tx] = one[0]
    two = T.alloc_local((2,), "int32")
    two[0] = 9
    two[1] = 9
    T.ptx.ld.global_.v2.b32(two[0], two[1], A.ptr_to([tx * 2]), pred=tx % 2 == 0, preserve_dst=True)
    C[tx * 2] = two[0]
    C[tx * 2 + 1] = two[1]


# sim: low_words
#   A: uint64[64] = i * 4294967296 + 5
#   B: uint64[64] = 0 -> i * 4294967296 + 5 + i
@T.prim_func
def low_words(A: T.Buffer((64,), "uint64"), B: T.Buffer((64,), "uint64")):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([64])
    high = T.meta_var(T.bitwise_and(A[tx], T.uint64(0xFFFFFFFF00000000)))
    B[tx] = T.bitwise_or(high, T.Cast("uint64", T.Cast("uint32", A[tx]) + T.Cast("uint32", tx)))


# The operand reads what the predicate reads: the store is predicated, not a branch.
# sim: stores_what_it_asked
#   A: int32[32] = i - 16
#   B: int32[32] = 7 -> A[i] * A[i] if A[i] > 0 else 7
@T.prim_func
def stores_what_it_asked(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([32])
    T.ptx["st.global.b32"](B.ptr_to([tx]), A[tx] * A[tx], pred=A[tx] > 0)
