# test: parse
# test: cuda sm_100a

@T.prim_func
def memory(D_ptr: T.handle):
    D = T.match_buffer(D_ptr, (128, 16), "uint32")
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([128])
    warp = T.warp_id([4])
    slot = T.alloc_shared((1,), "uint32")
    A = T.alloc_shared((128, 64), "float16")
    bar = T.alloc_shared((1,), "uint64")
    r = T.alloc_local((16,), "uint32")
    desc: T.uint64
    for i in T.unroll(16):
        r[i] = T.cast(tx, "uint32")
    if warp == 0:
        T.ptx.tcgen05.alloc(T.address_of(slot[0]), n_cols=512, cta_group=1)
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cta_sync()
    T.ptx.tcgen05.fence.after_thread_sync()
    T.ptx.tcgen05.st(slot[0], *[r[i] for i in range(16)], shape="32x32b", num=16)
    T.ptx.tcgen05.st(slot[0], *[r[i] for i in range(4)], shape="16x128b", num=2, row=0, col=4)
    T.ptx.tcgen05.wait.st()
    T.ptx.tcgen05.encode_matrix_descriptor(T.address_of(desc), A.ptr_to([0, 0]), 1, 64, 3)
    if tx == 0:
        T.ptx.tcgen05.cp(slot[0], desc, shape="128x256b")
        T.ptx.tcgen05.cp(slot[0], desc, shape="32x128b", multicast="warpx4", col=8)
        T.ptx.tcgen05.cp(slot[0], desc, shape="64x128b", multicast="warpx2::01_23", decompress="b8x16.b4x16_p64", cta_group=1)
        T.ptx.tcgen05.commit(bar.ptr_to([0]))
        T.ptx.tcgen05.commit(bar.ptr_to([0]), 1, 0, pred=tx)
        T.ptx.tcgen05.commit(bar.ptr_to([0]), cta_group=1, cta_mask=3)
    T.ptx.tcgen05.ld(slot[0], *[r[i] for i in range(16)], shape="32x32b", num=16)
    T.ptx.tcgen05.ld(slot[0], *[r[i] for i in range(8)], shape="16x256b", num=2, row=16, col=4)
    T.ptx.tcgen05.ld(slot[0], *[r[i] for i in range(4)], shape="16x64b", num=4, pack=True)
    T.ptx.tcgen05.ld(slot[0], *[r[i] for i in range(4)], shape="16x32bx2", num=4)
    T.ptx.tcgen05.wait.ld()
    if warp == 0:
        T.ptx.tcgen05.relinquish_alloc_permit(cta_group=1)
        T.ptx.tcgen05.dealloc(T.cuda.get_tmem_addr(slot[0], 0, 0), n_cols=512, cta_group=1)
    for i in T.unroll(16):
        D[tx, i] = r[i]


@T.prim_func
def products(D_ptr: T.handle):
    D = T.match_buffer(D_ptr, (1,), "uint32")
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    A = T.alloc_shared((128, 64), "float16")
    descA: T.uint64
    descI: T.uint32
    descS: T.uint32
    tmem: T.uint32 = D[0]
    T.ptx.tcgen05.encode_matrix_descriptor(T.address_of(descA), A.ptr_to([0, 0]), 1, 64, 3)
    T.ptx.tcgen05.encode_instr_descriptor(T.address_of(descI), d_dtype="float32", a_dtype="float16", b_dtype="float16", M=128, N=128, K=16, trans_a=False, trans_b=False)
    T.ptx.tcgen05.encode_instr_descriptor_block_scaled(T.address_of(descS), d_dtype="float32", a_dtype="float8_e4m3fn", b_dtype="float8_e5m2", sfa_dtype="float8_e8m0fnu", sfb_dtype="float8_e8m0fnu", sfa_tmem_addr=tmem, sfb_tmem_addr=tmem, M=128, N=64, K=32, trans_a=False, trans_b=False)
    T.cuda.runtime_instr_desc(T.address_of(descS), 1)
    if tx == 0:
        T.ptx.tcgen05.mma(tmem, descA, descA, descI, d_dtype="float32", a_dtype="float16", b_dtype="float16", use_a_tmem=False, cta_group=1, enable_input_d=False)
        T.ptx.tcgen05.mma(tmem, tmem, descA, descI, d_dtype="float32", a_dtype="bfloat16", b_dtype="bfloat16", use_a_tmem=True, cta_group=1, scale_input_d=3)
        T.ptx.tcgen05.mma(tmem, descA, descA, descI, d_dtype="float32", a_dtype="tf32", b_dtype="tf32", use_a_tmem=False, cta_group=1, pred=tx)
        T.ptx.tcgen05.mma(tmem, descA, descA, descI, d_dtype="float32", a_dtype="float8_e4m3fn", b_dtype="float4_e2m1fn", use_a_tmem=False, cta_group=1, weight_stationary=True)
        T.ptx.tcgen05.mma.sp(tmem, descA, descA, tmem, descI, d_dtype="float32", a_dtype="float16", b_dtype="float16", use_a_tmem=False, cta_group=1)
        T.ptx.tcgen05.mma.block_scale(tmem, descA, descA, tmem, tmem, descS, d_dtype="float32", a_dtype="float8_e4m3fn", b_dtype="float8_e4m3fn", sfa_dtype="float8_e8m0fnu", sfb_dtype="float8_e8m0fnu", use_a_tmem=False, cta_group=1, enable_input_d=tx)
        T.ptx.tcgen05.mma.block_scale(tmem, descA, descA, tmem, tmem, descS, d_dtype="float32", a_dtype="float4_e2m1fn", b_dtype="float4_e2m1fn", sfa_dtype="float8_e4m3fn", sfb_dtype="float8_e4m3fn", use_a_tmem=True, cta_group=1)
        T.ptx.tcgen05.mma.sp.block_scale(tmem, descA, descA, tmem, tmem, tmem, descS, d_dtype="float32", a_dtype="float8_e4m3fn", b_dtype="float8_e4m3fn", sfa_dtype="float8_e8m0fnu", sfb_dtype="float8_e8m0fnu", use_a_tmem=False, cta_group=1)
        T.ptx.tcgen05.shift(tmem)


@T.prim_func
def pairs(D_ptr: T.handle):
    D = T.match_buffer(D_ptr, (1,), "uint32")
    T.device_entry()
    bx = T.cta_id([2])
    cx = T.cta_id_in_cluster([2])
    tx = T.thread_id([32])
    slot = T.alloc_shared((1,), "uint32")
    bar = T.alloc_shared((1,), "uint64")
    desc: T.uint64 = T.uint64(0)
    T.ptx.tcgen05.alloc(T.address_of(slot[0]), 64, 2)
    if tx == 0:
        T.ptx.tcgen05.mma(slot[0], desc, desc, D[0], d_dtype="float16", a_dtype="float16", b_dtype="float16", use_a_tmem=False, cta_group=2)
        T.ptx.tcgen05.commit(bar.ptr_to([0]), 2, 3)
        T.ptx.tcgen05.commit(bar.ptr_to([0]), 2, cx + 1, pred=tx == 0)
    T.ptx.tcgen05.dealloc(slot[0], 64, 2)
