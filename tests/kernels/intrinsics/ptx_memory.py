# test: parse
# test: cuda sm_90a
# test: sim
# Loads, stores and atomics of PTX in all their forms, barriers of some threads, fences.
from tvm.script import tirx as T


@T.prim_func
def loads(A: T.Buffer((8,), "uint32"), B: T.Buffer((9, 8), "uint32"), C: T.Buffer((8,), "int64"), D: T.Buffer((8,), "uint8")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([8])
    B[0, tx] = T.ptx.ld(A.ptr_to([tx]), "uint32", "u32")
    B[1, tx] = T.ptx.ld(A.ptr_to([7 - tx]), "uint32", "b32", weak=True, cop="cg")
    B[2, tx] = T.ptx.ld_global_nc(A.ptr_to([tx]), "uint32", "u32", l1_evict="L1::no_allocate", prefetch_size="L2::128B")
    B[3, tx] = T.ptx.ld_relaxed(A.ptr_to([tx]), "uint32", "u32", scope="sys")
    B[4, tx] = T.ptx.ld_acquire(A.ptr_to([tx]), "uint32", "b32")
    B[5, tx] = T.ptx.ld_volatile(A.ptr_to([tx]), "uint32", "u32")
    B[6, tx] = T.ptx.ld_mmio(A.ptr_to([tx]), "uint32", "u32")
    C[tx] = T.ptx.ld(C.ptr_to([tx]), "int64", "b64", cache_hint="evict_first") + T.int64(1)
    B[7, tx] = T.ptx.ld(D.ptr_to([tx]), "uint32", "u8")
    if tx % 4 == 0:
        pair = T.alloc_local((4,), "uint32")
        T.ptx.ld(A.ptr_to([tx]), "uint32", "u32", dst=pair.ptr_to([0]), vec="v4")
        for i in T.unroll(4):
            B[8, tx + i] = pair[3 - i]


@T.prim_func
def scattered(A: T.Buffer((8,), "float32"), B: T.Buffer((3, 8), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([4])
    T.ptx.ld_global_nc(A.ptr_to([tx * 2]), "float32", "f32", dst=[B.ptr_to([0, tx]), B.ptr_to([0, tx + 4])], vec="v2")
    T.ptx.ld_acquire(A.ptr_to([tx * 2]), "float32", "f32", dst=B.ptr_to([1, tx * 2]), vec="v2", scope="gpu")
    T.ptx.ld_relaxed(A.ptr_to([tx]), "float32", "f32", dst=B.ptr_to([2, tx]))


@T.prim_func
def stores(A: T.Buffer((8,), "uint32"), B: T.Buffer((5, 8), "uint32"), C: T.Buffer((8,), "uint8"), D: T.Buffer((8,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([8])
    S = T.alloc_shared((8,), "uint32")
    T.ptx.st(S.ptr_to([7 - tx]), A[tx], ptx_type="u32")
    T.cuda.cta_sync()
    T.ptx.st(B.ptr_to([0, tx]), S[tx], ptx_type="b32", space="global", weak=True, cop="cs")
    T.ptx.st_relaxed(B.ptr_to([1, tx]), A[tx], ptx_type="u32", scope="cta")
    T.ptx.st_release(B.ptr_to([2, tx]), A[tx] + T.uint32(1), ptx_type="u32", scope="sys")
    T.ptx.st_volatile(B.ptr_to([3, tx]), A[tx] + T.uint32(2), ptx_type="u32")
    T.ptx.st_mmio(B.ptr_to([4, tx]), A[tx] + T.uint32(3), ptx_type="u32")
    T.ptx.st(C.ptr_to([tx]), A[tx], ptx_type="u8", space="global")
    if tx % 4 == 0:
        T.ptx.st(D.ptr_to([tx]), src=A.ptr_to([4 - tx]), ptx_type="u32", vec="v4", space="global", cache_hint="evict_last")


@T.prim_func
def updates(A: T.Buffer((32,), "uint32"), B: T.Buffer((10,), "uint32"), C: T.Buffer((2,), "int32"), D: T.Buffer((2,), "float32"), E: T.Buffer((1,), "uint64"), P: T.Buffer((32,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((1,), "uint32")
    if tx == 0:
        S[0] = T.uint32(0)
    T.cuda.cta_sync()
    P[tx] = T.ptx.atom_scalar(B.ptr_to([0]), A[tx], op="add", ptx_type="u32", sem="acq_rel", scope="gpu")
    T.ptx.red_scalar(B.ptr_to([1]), A[tx], op="min", ptx_type="u32", sem="relaxed", scope="gpu")
    T.ptx.red_scalar(B.ptr_to([2]), A[tx], op="max", ptx_type="u32")
    T.ptx.red_scalar(B.ptr_to([3]), A[tx], op="and", ptx_type="b32")
    T.ptx.red_scalar(B.ptr_to([4]), A[tx], op="or", ptx_type="b32")
    T.ptx.red_scalar(B.ptr_to([5]), A[tx], op="xor", ptx_type="b32")
    T.ptx.red_scalar(B.ptr_to([6]), T.uint32(9), op="inc", ptx_type="u32")
    T.ptx.red_scalar(B.ptr_to([7]), T.uint32(9), op="dec", ptx_type="u32")
    old: T.let = T.ptx.atom_scalar(B.ptr_to([8]), A[tx], op="exch", ptx_type="b32")
    T.ptx.red_scalar(S.ptr_to([0]), A[tx], op="add", ptx_type="u32", space="shared")
    T.ptx.red_scalar(C.ptr_to([0]), T.cast(A[tx], "int32") - 50, op="min", ptx_type="s32")
    T.ptx.red_scalar(C.ptr_to([1]), T.cast(A[tx], "int32") - 50, op="max", ptx_type="s32")
    T.ptx.red_scalar(D.ptr_to([0]), T.cast(A[tx], "float32"), op="add", ptx_type="f32")
    T.ptx.red_scalar(E.ptr_to([0]), T.cast(A[tx], "uint64") * T.uint64(4294967296), op="max", ptx_type="u64", scope="sys", sem="release")
    T.cuda.cta_sync()
    if tx == 0:
        B[9] = S[0]
        D[1] = T.cast(old, "float32") * T.float32(0)


@T.prim_func
def barriers(A: T.Buffer((128,), "int32"), B: T.Buffer((128,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([128])
    S = T.alloc_shared((128,), "int32")
    S[tx] = A[tx]
    if tx < 64:
        T.ptx.bar.sync(1, 64)
        B[tx] = S[63 - tx]
    else:
        T.ptx.barrier.sync(2, 64)
        B[tx] = S[191 - tx]
    T.ptx.fence("acq_rel", "gpu")


@T.prim_func
def flags(A: T.Buffer((64,), "float32"), F: T.Buffer((1,), "uint32"), B: T.Buffer((64,), "float32")):
    T.device_entry()
    bx = T.cta_id([2])
    tx = T.thread_id([64])
    if bx == 0:
        A[tx] = A[tx] * T.float32(2)
        T.cuda.cta_sync()
        if tx == 0:
            T.ptx.st_release(F.ptr_to([0]), T.uint32(1), ptx_type="u32")
    else:
        if tx == 0:
            while T.ptx.ld_acquire(F.ptr_to([0]), "uint32", "u32") == T.uint32(0):
                T.cuda.nano_sleep(T.uint64(20))
        T.cuda.cta_sync()
        B[tx] = A[63 - tx]


@T.prim_func
def conversions(A: T.Buffer((8,), "float32"), H: T.Buffer((8,), "float16"), G: T.Buffer((8,), "float32"), K: T.Buffer((2,), "float16")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([1])
    T.cuda.float8tohalf8(A.ptr_to([0]), H.ptr_to([0]))
    T.cuda.half8tofloat8(H.ptr_to([0]), G.ptr_to([0]))
    T.cuda.float22half2(K.ptr_to([0]), A.ptr_to([6]))


@T.prim_func
def arrives(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "uint32"), M: T.Buffer((64,), "uint64")):
    T.device_entry()
    cbx = T.cta_id_in_cluster([2])
    bx = T.cta_id([2])
    tx = T.thread_id([64])
    S = T.alloc_shared((64,), "int32")
    if tx < 32:
        S[tx] = A[tx]
        T.ptx.bar.arrive(1, 64)
    else:
        T.ptx.bar.sync(1, 64)
        A[tx] = S[tx - 32]
    M[tx] = T.ptx.mapa(S.ptr_to([5]), 1 - cbx) - T.ptx.map_shared_rank(S.ptr_to([1]), 1 - cbx)
    B[tx] = T.ptx.mapa(S.ptr_to([3]), 0, "shared::cluster", "u32", "uint32") - T.ptx.mapa(S.ptr_to([0]), 0, "shared::cluster", "u32", "uint32") + T.cuda.cvta_generic_to_shared(S.ptr_to([2])) - T.cuda.cvta_generic_to_shared(S.ptr_to([0]))


# A cache policy is a value of 64 bits: of a variable, of memory, of a scalar parameter.
# sim: policies_of_variables
#   A: uint32[32] = i * 3
#   P: uint64[1] = 1526726656
#   B: uint32[4x32] = 0 -> A[j]
#   q = 1526726656
@T.prim_func
def policies_of_variables(
    A: T.Buffer((32,), "uint32"), P: T.Buffer((1,), "uint64"), B: T.Buffer((4, 32), "uint32"), q: T.uint64
):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    p: T.uint64 = P[0]
    r = T.alloc_local((1,), "uint64")
    r[0] = p
    B[0, tx] = T.ptx.ld(A.ptr_to([tx]), "uint32", "u32", space="global", cache_policy=p)
    B[1, tx] = T.ptx.ld(A.ptr_to([tx]), "uint32", "u32", space="global", cache_policy=r[0])
    B[2, tx] = T.ptx.ld(A.ptr_to([tx]), "uint32", "u32", space="global", cache_policy=P[0])
    T.ptx.st(B.ptr_to([3, tx]), A[tx], ptx_type="u32", space="global", cache_policy=q)
