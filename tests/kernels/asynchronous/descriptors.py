# Descriptors and tensor maps that contradict the tile, the instruction or the tensor: reported where the tensor core or the copy
# engine reads.
from tvm.script import tirx as T


def dot(a, b):
    return sum([x * y for x, y in zip(a, b)])


# Two tiles with rows of 128 bytes.
# sim: product
#   A: float16[64x64] = (i * 3 + j) % 7 - 3
#   B: float16[64x64] = (i + j * 5) % 5 - 2
#   C: float32[64x64] = 0 -> dot(A[i], B[j])
@T.prim_func
def product(A: T.Buffer((64, 64), "float16"), B: T.Buffer((64, 64), "float16"), C: T.Buffer((64, 64), "float32")):
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    B_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float16", 2, A.data, 64, 64, 128, 64, 64, 1, 1, 0, 3, 2, 0)
    T.call_packed("runtime.cuTensorMapEncodeTiled", B_map, "float16", 2, B.data, 64, 64, 128, 64, 64, 1, 1, 0, 3, 2, 0)
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([128])
    space = T.alloc_shared((9216,), "float16", align=1024)
    full = T.alloc_shared((1,), "uint64")
    acc = T.alloc_local((32,), "float32")
    a: T.uint64
    b: T.uint64
    if tx == 0:
        T.ptx.mbarrier.init(full.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.mbarrier.arrive.expect_tx(full.ptr_to([0]), 16384)
        T.ptx.cp_async.bulk.tensor.g2s_cta(2, space.ptr_to([0]), full.ptr_to([0]), T.address_of(A_map), 1, "", 0, 0)
        T.ptx.cp_async.bulk.tensor.g2s_cta(2, space.ptr_to([4096]), full.ptr_to([0]), T.address_of(B_map), 1, "", 0, 0)
    T.ptx.mbarrier.try_wait(full.ptr_to([0]), 0)
    T.ptx.wgmma.encode_matrix_descriptor(T.address_of(a), space.ptr_to([0]), 1, 64, 3)
    T.ptx.wgmma.encode_matrix_descriptor(T.address_of(b), space.ptr_to([4096]), 1, 64, 3)
    T.ptx.wgmma.fence()
    for k in T.unroll(4):
        T.ptx.wgmma.mma_async.ss(a + T.uint64(k * 2), b + T.uint64(k * 2), *[acc[i] for i in range(32)], M=64, N=64, K=16,
                                 in_dtype="float16", out_dtype="float32", transA=False, transB=False, scaleA=1.0, scaleB=1.0,
                                 scaleD=1 if k > 0 else 0)
    T.ptx.wgmma.commit_group()
    T.ptx.wgmma.wait_group(0)
    for c in T.unroll(32):
        C[tx // 32 * 16 + tx % 32 // 4 + c // 2 % 2 * 8, c // 4 * 8 + tx % 4 * 2 + c % 2] = acc[c]

# The groups of eight rows overlap.
# variant: product_of_short_strides of product
#   replace: "space.ptr_to([4096]), 1, 64, 3)" -> "space.ptr_to([4096]), 1, 32, 3)"
#   fault: reads operand B by a descriptor with a swizzle of 128 bytes, a leading offset of 16 bytes and a stride offset of 512, by which row 4 (16 bytes 0 along k) and row 8 (16 bytes 0 along k) are the same bytes

# Every second group.
# variant: product_of_long_strides of product
#   replace: "space.ptr_to([0]), 1, 64, 3)" -> "space.ptr_to([0]), 1, 128, 3)"
#   fault: a stride offset of 2048, by which row 7 is at byte 0 of row 7 of the box and row 8 at byte 0 of row 16 of the box: the tensor copy has filled the tile with rows of 128 bytes

# Leading and stride offset are exchanged.
# variant: product_of_exchanged_offsets of product
#   replace: "space.ptr_to([4096]), 1, 64, 3)" -> "space.ptr_to([4096]), 64, 1, 3)"
#   fault: are the same bytes

# A tile that begins 128 bytes behind a multiple of 1,024.
# variant: product_off_the_pattern of product
#   replace: "T.ptx.cp_async.bulk.tensor.g2s_cta(2, space.ptr_to([4096])" -> "T.ptx.cp_async.bulk.tensor.g2s_cta(2, space.ptr_to([4160])"
#   replace: "T.address_of(b), space.ptr_to([4096])" -> "T.address_of(b), space.ptr_to([4160])"
#   fault: with a swizzle of 128 bytes that begins at 0x2080 of shared memory, 128 bytes behind a multiple of 1024, with base offset 0: a tile of this swizzle begins at a multiple of 1024

# The map's rows overlap.
# variant: product_of_a_short_map of product
#   replace: "A.data, 64, 64, 128, 64" -> "A.data, 64, 64, 64, 64"
#   fault: has as many elements as its tensor, and does not describe each of them: with a stride of 64 bytes its rows of 128 bytes overlap

# The map leaves the tensor.
# variant: product_of_a_long_map of product
#   replace: "B.data, 64, 64, 128, 64" -> "B.data, 64, 64, 256, 64"
#   fault: (64, 64) and strides (256) bytes (the innermost dimension first) describes 16256 bytes from byte 0 of its tensor on, whose memory has 8192

# variant: product_of_a_tall_map of product
#   replace: "B.data, 64, 64, 128, 64" -> "B.data, 64, 65, 128, 64"
#   fault: describes 8320 bytes


# The same tiles without swizzle: a box has eight columns, 16 bytes, of all rows.
# sim: plain
#   A: float16[64x64] = (i * 3 + j) % 7 - 3
#   B: float16[64x64] = (i + j * 5) % 5 - 2
#   C: float32[64x64] = 0 -> dot(A[i], B[j])
@T.prim_func
def plain(A: T.Buffer((64, 64), "float16"), B: T.Buffer((64, 64), "float16"), C: T.Buffer((64, 64), "float32")):
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    B_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float16", 2, A.data, 64, 64, 128, 8, 64, 1, 1, 0, 0, 2, 0)
    T.call_packed("runtime.cuTensorMapEncodeTiled", B_map, "float16", 3, B.data, 8, 64, 8, 128, 16, 8, 64, 8, 1, 1, 1, 0, 0, 2, 0)
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([128])
    As = T.alloc_shared((8, 64, 8), "float16", align=1024)
    Bs = T.alloc_shared((8, 64, 8), "float16", align=1024)
    full = T.alloc_shared((1,), "uint64")
    acc = T.alloc_local((32,), "float32")
    a: T.uint64
    b: T.uint64
    if tx == 0:
        T.ptx.mbarrier.init(full.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.mbarrier.arrive.expect_tx(full.ptr_to([0]), 16384)
        for c in T.serial(8):
            T.ptx.cp_async.bulk.tensor.g2s_cta(2, As.ptr_to([c, 0, 0]), full.ptr_to([0]), T.address_of(A_map), 1, "", c * 8, 0)
        T.ptx.cp_async.bulk.tensor.g2s_cta(3, Bs.ptr_to([0, 0, 0]), full.ptr_to([0]), T.address_of(B_map), 1, "", 0, 0, 0)
    T.ptx.mbarrier.try_wait(full.ptr_to([0]), 0)
    T.ptx.wgmma.fence()
    for k in T.unroll(4):
        # Eight columns on are 64 rows of 16 bytes: 64 units; eight rows on are 8.
        T.ptx.wgmma.encode_matrix_descriptor(T.address_of(a), As.ptr_to([k * 2, 0, 0]), 64, 8, 0)
        T.ptx.wgmma.encode_matrix_descriptor(T.address_of(b), Bs.ptr_to([k * 2, 0, 0]), 64, 8, 0)
        T.ptx.wgmma.mma_async.ss(a, b, *[acc[i] for i in range(32)], M=64, N=64, K=16,
                                 in_dtype="float16", out_dtype="float32", transA=False, transB=False, scaleA=1.0, scaleB=1.0,
                                 scaleD=1 if k > 0 else 0)
    T.ptx.wgmma.commit_group()
    T.ptx.wgmma.wait_group(0)
    for c in T.unroll(32):
        C[tx // 32 * 16 + tx % 32 // 4 + c // 2 % 2 * 8, c // 4 * 8 + tx % 4 * 2 + c % 2] = acc[c]

# variant: plain_exchanged_in_boxes of plain
#   replace: "As.ptr_to([k * 2, 0, 0]), 64, 8, 0)" -> "As.ptr_to([k * 2, 0, 0]), 8, 64, 0)"
#   fault: reads operand A by a descriptor with no swizzle

# variant: plain_exchanged_in_a_box of plain
#   replace: "Bs.ptr_to([k * 2, 0, 0]), 64, 8, 0)" -> "Bs.ptr_to([k * 2, 0, 0]), 8, 64, 0)"
#   fault: reads operand B by a descriptor with no swizzle


# K is not innermost in B: a line is one k, of 64 columns; the other 64 are another box.
# sim: turned
#   A: float16[64x16] = (i * 3 + j) % 7 - 3
#   B: float16[16x128] = (i + j * 5) % 5 - 2
#   C: float32[64x128] = 0 -> dot(A[i], [B[k][j] for k in range(16)])
@T.prim_func
def turned(A: T.Buffer((64, 16), "float16"), B: T.Buffer((16, 128), "float16"), C: T.Buffer((64, 128), "float32")):
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    B_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float16", 2, A.data, 16, 64, 32, 16, 64, 1, 1, 0, 1, 2, 0)
    T.call_packed("runtime.cuTensorMapEncodeTiled", B_map, "float16", 2, B.data, 128, 16, 256, 64, 16, 1, 1, 0, 3, 2, 0)
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([128])
    As = T.alloc_shared((64, 16), "float16", align=1024)
    Bs = T.alloc_shared((2, 16, 64), "float16", align=1024)
    full = T.alloc_shared((1,), "uint64")
    acc = T.alloc_local((64,), "float32")
    a: T.uint64
    b: T.uint64
    if tx == 0:
        T.ptx.mbarrier.init(full.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.mbarrier.arrive.expect_tx(full.ptr_to([0]), 2048 + 4096)
        T.ptx.cp_async.bulk.tensor.g2s_cta(2, As.ptr_to([0, 0]), full.ptr_to([0]), T.address_of(A_map), 1, "", 0, 0)
        for n in T.serial(2):
            T.ptx.cp_async.bulk.tensor.g2s_cta(2, Bs.ptr_to([n, 0, 0]), full.ptr_to([0]), T.address_of(B_map), 1, "", n * 64, 0)
    T.ptx.mbarrier.try_wait(full.ptr_to([0]), 0)
    # Rows of 32 bytes, eight of them 16 units. In B 64 columns on are 128 units, eight k on are 64.
    T.ptx.wgmma.encode_matrix_descriptor(T.address_of(a), As.ptr_to([0, 0]), 1, 16, 1)
    T.ptx.wgmma.encode_matrix_descriptor(T.address_of(b), Bs.ptr_to([0, 0, 0]), 128, 64, 3)
    T.ptx.wgmma.fence()
    T.ptx.wgmma.mma_async.ss(a, b, *[acc[i] for i in range(64)], M=64, N=128, K=16, in_dtype="float16", out_dtype="float32",
                             transA=False, transB=True, scaleA=1.0, scaleB=1.0, scaleD=0)
    T.ptx.wgmma.commit_group()
    T.ptx.wgmma.wait_group(0)
    for c in T.unroll(64):
        C[tx // 32 * 16 + tx % 32 // 4 + c // 2 % 2 * 8, c // 4 * 8 + tx % 4 * 2 + c % 2] = acc[c]

# variant: turned_with_a_short_leading_offset of turned
#   replace: "Bs.ptr_to([0, 0, 0]), 128, 64, 3)" -> "Bs.ptr_to([0, 0, 0]), 64, 64, 3)"
#   fault: are the same bytes

# variant: turned_with_exchanged_offsets of turned
#   replace: "Bs.ptr_to([0, 0, 0]), 128, 64, 3)" -> "Bs.ptr_to([0, 0, 0]), 64, 128, 3)"
#   fault: reads operand B by a descriptor with a swizzle of 128 bytes, a leading offset of 1024 bytes and a stride offset of 2048

# variant: not_turned of turned
#   replace: "transB=True" -> "transB=False"
#   fault: the descriptor of B
