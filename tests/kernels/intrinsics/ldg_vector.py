# test: parse
# test: cuda sm_90a

# sim: vectors
#   A: float32[32x4] = i * 4 + j
#   B: float32[32x4] = 0 -> A[i][j]
@T.prim_func
def vectors(A: T.Buffer((32, 4), "float32"), B: T.Buffer((32, 4), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    r = T.alloc_local((4,), "float32")
    T.cuda.ldg(A.ptr_to([tx, 0]), "float32", dst=[r.ptr_to([0]), r.ptr_to([1]), r.ptr_to([2]), r.ptr_to([3])], vec="v4")
    for i in T.unroll(4):
        B[tx, i] = r[i]


# The forms in which TVM prints both calls, and the call nodes themselves.
# sim: printed
#   A: int32[16x4] = i * 4 + j
#   B: int32[16x4] = 0 -> A[i][j]
@T.prim_func
def printed(A: T.Buffer((16, 4), "int32"), B: T.Buffer((16, 4), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([16])
    r = T.alloc_local((2,), "int32")
    T.cuda.ldg(T.address_of(r[0]), T.address_of(r[1]), T.address_of(A[tx, 0]), "int32", "v2", 2)
    B[tx, 0] = r[0]
    B[tx, 1] = r[1]
    s = T.alloc_local((2,), "int32")
    T.evaluate(T.call_intrin("", "tirx.cuda.ldg", s.ptr_to([0]), s.ptr_to([1]), A.ptr_to([tx, 2]), "int32", "v2", 2))
    B[tx, 2] = s[0]
    B[tx, 3] = T.call_intrin("int32", "tirx.cuda.ldg", A.ptr_to([tx, 3]), "int32")


# One value of a vector type.
# sim: values_of_vector_types
#   A: float32[64] = i
#   H: float16[64] = i
#   B: float32[64] = 0 -> A[i] + H[i]
@T.prim_func
def values_of_vector_types(A: T.Buffer((64,), "float32"), H: T.Buffer((64,), "float16"), B: T.Buffer((64,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([16])
    wide = T.alloc_local((4,), "float32")
    wide.vstore([0], T.cuda.ldg(A.ptr_to([tx * 4]), "float32x4"))
    low = T.alloc_local((2,), "float16")
    high = T.alloc_local((2,), "float16")
    low.vstore([0], T.cuda.ldg(H.ptr_to([tx * 4]), "float16x2"))
    high.vstore([0], T.cuda.ldg(addr=H.ptr_to([tx * 4 + 2]), dtype="float16x2"))
    for i in T.unroll(2):
        B[tx * 4 + i] = wide[i] + T.float32(low[i])
        B[tx * 4 + 2 + i] = wide[2 + i] + T.float32(high[i])
