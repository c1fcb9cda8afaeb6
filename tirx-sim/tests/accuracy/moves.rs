//! Values keep their shadows on every way between memories: asynchronous copies and reductions, tensor memory, multicast windows, the
//! shared memory of another block.

use tirx_core::transform::Target;

use crate::{Shape, bytes_of, near, numbers, run_shaped};

/// A kernel of 128 threads that computes thirds of A and moves them to C, and what an element of C is exactly.
struct Move {
    name: &'static str,
    body: &'static str,
    blocks: u32,
    exact: fn(&[f64], usize) -> f64,
}

const TENSOR_MEMORY: &str = "
    slot = T.alloc_shared((1,), 'uint32'); bar = T.alloc_shared((1,), 'uint64')
    if warp == 0:
        T.ptx.tcgen05.alloc(T.address_of(slot[0]), n_cols=64, cta_group=1)
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
";

const FREE: &str = "
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cta_sync()
    if warp == 0:
        T.ptx.tcgen05.dealloc(slot[0], n_cols=64, cta_group=1)
";

const MOVES: &[Move] = &[
    Move {
        name: "tcgen05.st, tcgen05.shift and tcgen05.ld",
        body: "
    for k in T.unroll(16):
        r[k] = A[tx, k % 4] / T.float32(3)
    T.ptx.tcgen05.st(slot[0], *[r[k] for k in range(16)], shape='32x32b', num=16, row=warp * 32)
    T.ptx.tcgen05.wait.st()
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cta_sync()
    T.ptx.tcgen05.fence.after_thread_sync()
    if tx == 0:
        T.ptx.tcgen05.shift(slot[0])
        T.ptx.tcgen05.commit(bar.ptr_to([0]))
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    T.ptx.tcgen05.fence.after_thread_sync()
    T.ptx.tcgen05.ld(slot[0], *[r[k] for k in range(16)], shape='32x32b', num=16, row=warp * 32)
    T.ptx.tcgen05.wait.ld()
    for k in T.unroll(4):
        C[tx, k] = r[k]",
        blocks: 1,
        // Rows move to the next one.
        exact: |thirds, i| if i < 4 { thirds[i] } else { thirds[i - 4] },
    },
    Move {
        name: "tcgen05.cp from shared memory",
        body: "
    desc: T.uint64
    for k in T.unroll(4):
        S[tx * 4 + k] = A[tx, k] / T.float32(3)
    T.ptx.fence.proxy_async('shared::cta')
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.tcgen05.encode_matrix_descriptor(T.address_of(desc), S.ptr_to([0]), 1, 8, 0)
        T.ptx.tcgen05.cp(slot[0], desc, shape='128x128b', cta_group=1)
        T.ptx.tcgen05.commit(bar.ptr_to([0]))
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    T.ptx.tcgen05.fence.after_thread_sync()
    T.ptx.tcgen05.ld(slot[0], *[r[k] for k in range(4)], shape='32x32b', num=4, row=warp * 32)
    T.ptx.tcgen05.wait.ld()
    for k in T.unroll(4):
        C[tx, k] = r[k]",
        blocks: 1,
        exact: |thirds, i| thirds[i],
    },
    Move {
        name: "halves of registers, unpacked to columns and packed again",
        body: "
    h = T.alloc_local((4,), 'float16')
    for k in T.unroll(4):
        h[k] = T.cast(A[tx, k] / T.float32(3), 'float16')
    T.ptx.tcgen05.st(slot[0], *[h[2 * k] for k in range(2)], shape='32x32b', num=2, row=warp * 32, unpack=True)
    T.ptx.tcgen05.wait.st()
    T.ptx.tcgen05.ld(slot[0], *[h[2 * k] for k in range(2)], shape='32x32b', num=2, row=warp * 32, pack=True)
    T.ptx.tcgen05.wait.ld()
    for k in T.unroll(4):
        C[tx, k] = T.cast(h[k], 'float32')",
        blocks: 1,
        exact: |thirds, i| thirds[i],
    },
    Move {
        name: "shuffles: of groups of lanes, of equal bits, of bits, of one lane for all",
        body: "
    for k in T.unroll(4):
        r[k] = A[tx, k] / T.float32(3)
    C[tx, 0] = T.cuda.warp_reduce(r[0], 'sum', width=4)
    C[tx, 1] = T.tvm_warp_shuffle_xor(T.uint32(0xffffffff), T.cast(T.cast(r[1], 'float8_e4m3fn'), 'float32'), 1, 32, 32)
    C[tx, 2] = T.reinterpret('float32', T.tvm_warp_shuffle_xor(T.uint32(0xffffffff), T.reinterpret('uint32', r[2]), 2, 32, 32))
    C[tx, 3] = T.tvm_warp_shuffle(T.uint32(0xffffffff), r[3], 5, 32, 32)",
        blocks: 1,
        exact: |thirds, i| {
            let (lane, k) = (i / 4, i % 4);
            let of = |lane: usize| thirds[lane * 4 + k];
            match k {
                0 => (0..4).map(|j| of(lane / 4 * 4 + j)).sum(),
                1 => of(lane ^ 1),
                2 => of(lane ^ 2),
                _ => of(lane / 32 * 32 + 5),
            }
        },
    },
    Move {
        name: "two float32 in a register: arithmetic, and a store to local and shared memory",
        body: "
    q = T.alloc_local((2,), 'uint64')
    P = T.alloc_shared((256,), 'uint64', align=16)
    for k in T.unroll(2):
        q[0] = T.cuda.make_float2(A[tx, 2 * k] / T.float32(3), A[tx, 2 * k + 1] / T.float32(3))
        q[1] = T.ptx.fma_f32x2(q[0], T.cuda.make_float2(T.float32(3), T.float32(5)), q[0], dps=False)
        T.ptx.add_f32x2(P.ptr_to([tx * 2 + k]), q[1], q[0])
        q[0] = P[tx * 2 + k]
        C[tx, 2 * k] = T.cuda.float2_x(q[0])
        C[tx, 2 * k + 1] = T.cuda.float2_y(q[0])",
        blocks: 1,
        exact: |thirds, i| thirds[i] * if i % 2 == 0 { 5.0 } else { 7.0 },
    },
    Move {
        name: "a bulk reduction",
        body: "
    for k in T.unroll(4):
        S[tx * 4 + k] = A[tx, k] / T.float32(3)
        C[tx, k] = A[tx, k] / T.float32(3)
    T.ptx['fence.proxy.async.shared::cta']()
    T.ptx['fence.proxy.async.global']()
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx['cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32'](C.ptr_to([0, 0]), S.ptr_to([0]), T.uint32(2048))
        T.ptx['cp.async.bulk.commit_group']()
        T.ptx['cp.async.bulk.wait_group'](0)",
        blocks: 1,
        exact: |thirds, i| 2.0 * thirds[i],
    },
    Move {
        name: "bulk copies, where equal bits have different shadows",
        body: "
    for k in T.unroll(4):
        S[tx * 4 + k] = T.cast(T.cast(A[tx, k] / T.float32(3), 'float8_e4m3fn'), 'float32')
    T.ptx['fence.proxy.async.shared::cta']()
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx['cp.async.bulk.global.shared::cta.bulk_group'](C.ptr_to([0, 0]), S.ptr_to([0]), T.uint32(2048))
        T.ptx['cp.async.bulk.commit_group']()
        T.ptx['cp.async.bulk.wait_group'](0)",
        blocks: 1,
        exact: |thirds, i| thirds[i],
    },
    Move {
        name: "multimem: a reduction, a load of all parts, a store",
        body: "
    for k in T.unroll(4):
        C[tx, k] = A[tx, k] / T.float32(3)
        T.ptx['multimem.red.relaxed.gpu.global.add.f32'](C.ptr_to([tx, k]), A[tx, k] / T.float32(3))
        T.ptx['multimem.ld_reduce.relaxed.gpu.global.add.f32'](r[k], C.ptr_to([tx, k]))
        T.ptx['multimem.st.relaxed.gpu.global.f32'](C.ptr_to([tx, k]), r[k] * T.float32(2))",
        blocks: 1,
        exact: |thirds, i| 4.0 * thirds[i],
    },
    Move {
        name: "asynchronous stores to the other block of a cluster",
        body: "
    bar = T.alloc_shared((1,), 'uint64')
    there: T.uint32
    full: T.uint32
    if tx == 0:
        T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), T.uint32(1))
        T.ptx.fence.mbarrier_init.release.cluster()
    T.cuda.cluster_sync()
    if tx == 0:
        T.ptx['mbarrier.arrive.expect_tx.shared::cta.b64'](bar.ptr_to([0]), T.uint32(2048))
    T.ptx['mapa.shared::cluster.u32'](full, T.cuda.cvta_generic_to_shared(bar.ptr_to([0])), T.uint32(1 - rank))
    for k in T.unroll(4):
        T.ptx['mapa.shared::cluster.u32'](there, T.cuda.cvta_generic_to_shared(S.ptr_to([tx * 4 + k])), T.uint32(1 - rank))
        T.ptx['st.async.shared::cluster.mbarrier::complete_tx::bytes.f32'](there, A[tx, k] / T.float32(3) + T.cast(rank, 'float32'), full)
    T.cuda.mbarrier_wait(bar.ptr_to([0]), 0)
    if rank == 1:
        for k in T.unroll(4):
            C[tx, k] = S[tx * 4 + k]
    T.cuda.cluster_sync()",
        blocks: 2,
        exact: |thirds, i| thirds[i],
    },
];

fn check(it: &Move) {
    let values: Vec<f32> = numbers(512).iter().map(|v| v + 2.0).collect();
    let thirds: Vec<f64> = values.iter().map(|v| f64::from(*v) / 3.0).collect();
    let tensor = it.body.contains("tcgen05");
    let blocks = match it.blocks {
        1 => "T.cta_id([1])",
        _ => "rank = T.cta_id_in_cluster([2]); T.cta_id([2])",
    };
    let text = format!(
        "
@T.prim_func
def kernel(A: T.Buffer((128, 4), 'float32'), C: T.Buffer((128, 4), 'float32')):
    T.device_entry(); {blocks}; tx = T.thread_id([128]); warp = T.warp_id([4])
    S = T.alloc_shared((512,), 'float32', align=128)
    r = T.alloc_local((16,), 'float32')
{}{}
{}",
        if tensor { TENSOR_MEMORY } else { "" },
        it.body,
        if tensor { FREE } else { "" },
    );
    let shape = Shape {
        target: Target::named("sm_100a").expect("a GPU"),
        blocks: it.blocks,
        threads: 128,
        shared_bytes: 0,
    };
    let ran = run_shaped(shape, &text, &[bytes_of(&values), vec![0; 2048]]);
    let exact = |i: usize| (it.exact)(&thirds, i);
    let inexact = (0..512)
        .filter(|i| f64::from(ran.float(1, *i)) != exact(*i))
        .count();
    for i in 0..512 {
        near(ran.shadow(1, i), exact(i));
    }
    assert!(inexact > 256, "thirds are rounded");
}

#[test]
fn values_keep_their_shadows() {
    let mut failures = Vec::new();
    for it in MOVES {
        if std::panic::catch_unwind(|| check(it)).is_err() {
            failures.push(it.name);
        }
    }
    assert!(failures.is_empty(), "{failures:?}");
}
