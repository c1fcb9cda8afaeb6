# A tensor core reads a tile with the swizzle and as the type with which a tensor copy has filled it.
from tvm.script import tirx as T


def dot(a, b):
    return sum([x * y for x, y in zip(a[:16], b[:16])])


def row(i, j):
    return i // 32 * 16 + i % 32 // 4 + j // 2 * 8


# sim: as_filled
#   A: float16[64x32] = (i + j) % 5
#   B: float32[128x4] = 0 -> dot(A[row(i, j)], A[i % 4 * 2 + j % 2])
#   seeds: 2
@T.prim_func
def as_filled(A: T.Buffer((64, 32), "float16"), B: T.Buffer((128, 4), "float32")):
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float16", 2, A.data, 32, 64, 64, 32, 64, 1, 1, 0, 2, 0, 0)
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([128])
    S = T.alloc_shared((2048,), "float16", align=1024)
    full = T.alloc_shared((1,), "uint64")
    acc = T.alloc_local((4,), "float32")
    a: T.uint64
    if tx == 0:
        T.ptx.mbarrier.init(full.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.mbarrier.arrive.expect_tx(full.ptr_to([0]), 4096)
        T.ptx.cp_async.bulk.tensor.g2s_cluster(2, S.ptr_to([0]), full.ptr_to([0]), T.address_of(A_map), 0, 1, "", 0, 0)
    T.ptx.mbarrier.try_wait(full.ptr_to([0]), 0)
    T.ptx.wgmma.encode_matrix_descriptor(T.address_of(a), S.ptr_to([0]), 1, 32, 2)
    T.ptx.wgmma.fence()
    T.ptx.wgmma.mma_async.ss(a, a, acc[0], acc[1], acc[2], acc[3], M=64, N=8, K=16, in_dtype="float16", out_dtype="float32",
                             transA=False, transB=False, scaleA=1.0, scaleB=1.0, scaleD=False)
    T.ptx.wgmma.commit_group()
    T.ptx.wgmma.wait_group(0)
    for k in T.serial(4):
        B[tx, k] = acc[k]

# The descriptor has another swizzle than the tensor map.
# variant: other_swizzle of as_filled
#   replace: "), 1, 32, 2)" -> "), 1, 64, 3)"
#   fault: by a descriptor with a swizzle of 128 bytes, and the tensor copy has filled the tile with a swizzle of 64 bytes

# The tensor map has no swizzle.
# variant: no_swizzle_in_map of as_filled
#   replace: "1, 0, 2, 0, 0" -> "1, 0, 0, 0, 0"
#   fault: by a descriptor with a swizzle of 64 bytes, and the tensor copy has filled the tile with no swizzle

# The product is of another type than what was copied.
# variant: other_type of as_filled
#   replace: 'in_dtype="float16",' -> 'in_dtype="bfloat16",'
#   fault: as bf16, and the tensor copy has filled the tile with elements of float16

