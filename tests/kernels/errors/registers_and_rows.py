# Operands of tensor cores that are not where they must be: each fault names the array, in its own elements, and the cause.
from tvm.script import tirx as T


# sim: a_row_that_is_not_aligned
#   B: uint32[32] = 0
#   fault: reads 16 bytes at `S[4:12]`, whose address (0x8) is no multiple of 16
@T.prim_func
def a_row_that_is_not_aligned(B: T.Buffer((32,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((512,), "float16", align=128)
    r = T.alloc_local((4,), "uint32")
    for i in range(16):
        S[tx * 16 + i] = T.float16(1)
    T.cuda.cta_sync()
    T.ptx.ldmatrix(False, 4, ".b16", S.ptr_to([tx * 8 + 4]), *[r.ptr_to([k]) for k in range(4)])
    B[tx] = r[0]

# variant: a_row_past_the_end of a_row_that_is_not_aligned
#   replace: "tx * 8 + 4" -> "tx * 8 + 272"
#   fault: reads shared `S[512:520]`, which has 512 elements (1024 bytes)


# sim: sums_of_float16_one_by_one
#   B: float32[128] = 0
#   fault: the operand at byte 2 of local `acc` begins within a register: registers have 32 bits, and hold two elements of 16 bits
@T.prim_func
def sums_of_float16_one_by_one(B: T.Buffer((128,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([128])
    S = T.alloc_shared((2048,), "float16", align=1024)
    acc = T.alloc_local((4,), "float16")
    T.ptx.wgmma.fence()
    T.ptx.wgmma.mma_async.ss(T.uint64(0), T.uint64(0), acc[0], acc[1], M=64, N=8, K=16, in_dtype="float16",
                             out_dtype="float16", transA=False, transB=False, scaleA=1, scaleB=1, scaleD=0)
    T.ptx.wgmma.commit_group()
    T.ptx.wgmma.wait_group(0)
    B[tx] = T.cast(acc[0], "float32")

# variant: sums_past_the_array of sums_of_float16_one_by_one
#   replace: "acc[0], acc[1], M" -> "acc[2], acc[tx // 128 + 4], M"
#   fault: the operand is register 2 of local `acc`, which has 2 registers of 32 bits (8 bytes)


# sim: a_load_after_a_store_that_is_not_waited_for
#   B: uint32[128] = 0
#   fault: reads columns of tensor memory that a tcgen05.st of this warp is still writing: tcgen05.wait::st is missing between them
@T.prim_func
def a_load_after_a_store_that_is_not_waited_for(B: T.Buffer((128,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([128])
    warp = T.warp_id([4])
    slot = T.alloc_shared((1,), "uint32")
    r = T.alloc_local((1,), "uint32")
    r[0] = T.uint32(tx)
    if warp == 0:
        T.ptx.tcgen05.alloc(T.address_of(slot[0]), n_cols=32, cta_group=1)
    T.cuda.cta_sync()
    T.ptx.tcgen05.st(slot[0], r[0], shape="32x32b", num=1, row=warp * 32)
    T.ptx.tcgen05.ld(slot[0], r[0], shape="32x32b", num=1, row=warp * 32)
    T.ptx.tcgen05.wait.ld()
    B[tx] = r[0]
