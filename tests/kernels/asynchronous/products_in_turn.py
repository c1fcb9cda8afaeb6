# Products of a warpgroup that go on while the next tile is written, right and with one mistake each.
from tvm.script import tirx as T


def dot(a, b):
    return sum([x * y for x, y in zip(a, b)])


def row(i, j):
    return i // 32 * 16 + i % 32 // 4 + j // 2 * 8


# Two products in turn, the second of a tile that is written meanwhile in the other half.
# sim: products
#   A: float16[2x64x16] = (i + j + k) % 5
#   B: float32[128x4] = 0 -> sum([dot(A[t][row(i, j)], A[t][i % 4 * 2 + j % 2]) for t in range(2)])
#   seeds: 6
@T.prim_func
def products(A: T.Buffer((2, 64, 16), "float16"), B: T.Buffer((128, 4), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([128])
    S = T.alloc_shared((2, 1024), "float16", align=128)
    acc = T.alloc_local((4,), "float32")
    a: T.uint64
    for k in T.serial(8):
        S[0, (tx // 2 // 8 * 2 + tx % 2) * 64 + tx // 2 % 8 * 8 + k] = A[0, tx // 2, tx % 2 * 8 + k]
    T.ptx.fence.proxy_async("shared::cta")
    T.cuda.cta_sync()
    T.ptx.wgmma.encode_matrix_descriptor(T.address_of(a), S.ptr_to([0, 0]), 8, 16, 0)
    T.ptx.wgmma.fence()
    T.ptx.wgmma.mma_async.ss(a, a, acc[0], acc[1], acc[2], acc[3], M=64, N=8, K=16, in_dtype="float16", out_dtype="float32",
                             transA=False, transB=False, scaleA=1.0, scaleB=1.0, scaleD=False)
    T.ptx.wgmma.commit_group()
    for k in T.serial(8):
        S[1, (tx // 2 // 8 * 2 + tx % 2) * 64 + tx // 2 % 8 * 8 + k] = A[1, tx // 2, tx % 2 * 8 + k]
    T.ptx.fence.proxy_async("shared::cta")
    T.cuda.cta_sync()
    T.ptx.wgmma.mma_async.ss(a + T.uint64(128), a + T.uint64(128), acc[0], acc[1], acc[2], acc[3], M=64, N=8, K=16,
                             in_dtype="float16", out_dtype="float32", transA=False, transB=False, scaleA=1.0, scaleB=1.0, scaleD=True)
    T.ptx.wgmma.commit_group()
    T.ptx.wgmma.wait_group(0)
    for k in T.serial(4):
        B[tx, k] = acc[k]

# The second tile is written over the first, which is being read.
# variant: products_over_read_tile of products
#   replace: "S[1, (tx // 2" -> "S[0, (tx // 2"
#   replace: "a + T.uint64(128), a + T.uint64(128)" -> "a, a"
#   fault: lets the tensor core read `S`

# The second tile is not fenced.
# variant: products_without_second_fence of products
#   without 2: 'T.ptx.fence.proxy_async("shared::cta")'
#   fault: no fence.proxy.async makes it visible to the async proxy

# The second product is in no group.
# variant: products_without_second_commit of products
#   without 2: "T.ptx.wgmma.commit_group()"
#   fault: the operation is in no group, since wgmma.commit_group is missing
