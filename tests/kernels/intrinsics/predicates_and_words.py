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
