//! Shadows through tensor cores and tensor memory, against products in double precision of the values before they were narrowed.

use tirx_core::transform::Target;

use crate::{Ran, Shape, bytes_of, numbers, run_shaped};

/// What a kernel multiplies: a row of A and a row of B, without rounding.
type Operand = fn(&[f32], usize) -> Vec<f64>;

struct Product {
    name: &'static str,
    text: &'static str,
    target: &'static str,
    blocks: u32,
    threads: u32,
    /// Rows of A, rows of B, and k.
    extents: [usize; 3],
    /// Tensors between A, B and C.
    more: fn() -> Vec<Vec<u8>>,
    a: Operand,
    b: Operand,
    /// The text of the line that multiplies.
    line: &'static str,
    /// The rounding of a narrowed operand: half a unit of its last place.
    unit: f64,
}

fn plain(values: &[f32], k: usize, row: usize) -> Vec<f64> {
    values[row * k..(row + 1) * k]
        .iter()
        .copied()
        .map(f64::from)
        .collect()
}

fn none() -> Vec<Vec<u8>> {
    Vec::new()
}

/// A column of tensor memory, with what comes before and after the product in it.
macro_rules! in_tensor_memory {
    ($begin:expr, $multiply:expr) => {
        concat!(
            $begin,
            "
    if warp == 0:
        T.ptx.tcgen05.alloc(T.address_of(slot[0]), n_cols=64, cta_group=1)
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.ptx.fence.proxy_async('shared::cta')
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cta_sync()
    T.ptx.tcgen05.fence.after_thread_sync()
",
            $multiply,
            "
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    T.ptx.tcgen05.fence.after_thread_sync()
    T.ptx.tcgen05.ld(slot[0], *[r[i] for i in range(16)], shape='32x32b', num=16, row=warp * 32)
    T.ptx.tcgen05.wait.ld()
    for i in T.unroll(16):
        C[tx, i] = r[i]
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cta_sync()
    if warp == 0:
        T.ptx.tcgen05.dealloc(slot[0], n_cols=64, cta_group=1)
"
        )
    };
}

/// Tiles in shared memory, as threads narrow them, multiplied by a tile primitive.
macro_rules! tiles {
    ($dtype:literal, $k:literal, $begin:literal, $multiply:literal) => {
        concat!(
            "from tvm.backend.cuda.tile_primitive.gemm_async.tcgen05 import sf_smem_layout
from tvm.script.tirx import tile as Tx

@T.prim_func
def kernel(A: T.Buffer((128, ",
            $k,
            "), 'float32'), B: T.Buffer((64, ",
            $k,
            "), 'float32'),",
            $begin,
            " C: T.Buffer((128, 64), 'float32')):
    T.device_entry(); T.cta_id([1]); tx = T.thread_id([128]); warp = T.warp_id([4])
    pool = T.SMEMPool()
    tmem_pool = T.TMEMPool(pool, total_cols=128)
    bar = pool.alloc((1,), 'uint64', align=8)
    As = pool.alloc_tcgen05_mma_AB((128, ",
            $k,
            "), '",
            $dtype,
            "')
    Bs = pool.alloc_tcgen05_mma_AB((64, ",
            $k,
            "), '",
            $dtype,
            "')
    for k in T.serial(",
            $k,
            "):
        As[tx, k] = T.cast(A[tx, k], '",
            $dtype,
            "')
    if tx < 64:
        for k in T.serial(",
            $k,
            "):
            Bs[tx, k] = T.cast(B[tx, k], '",
            $dtype,
            "')
",
            $multiply,
            "
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    T.ptx.tcgen05.fence.after_thread_sync()
    r = T.wg_reg_tile(64)
    Tx.wg.copy_async(r, sums)
    T.ptx.tcgen05.wait.ld()
    Tx.wg.copy(C, r)
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cta_sync()
    tmem_pool.dealloc()
"
        )
    };
}

/// The pattern of a sparse A: even rows keep the first two of four elements, odd rows the last two.
fn sparse(values: &[f32], row: usize) -> Vec<f64> {
    let held = plain(values, 16, row);
    let mut out = vec![0.0; 32];
    for (i, value) in held.into_iter().enumerate() {
        out[i / 2 * 4 + row % 2 * 2 + i % 2] = value;
    }
    out
}

/// Factors of blocks of 32, as powers of two.
fn factor(i: usize, j: usize) -> u8 {
    125 + ((i * 3 + j) % 5) as u8
}

fn factors() -> Vec<Vec<u8>> {
    let of = |shift: usize| (0..512).map(|at| factor(at / 4 + shift, at % 4)).collect();
    vec![of(0), of(1)]
}

fn scaled(values: &[f32], row: usize, shift: usize) -> Vec<f64> {
    let scale = |k: usize| 2.0f64.powi(i32::from(factor(row + shift, k / 32)) - 127);
    let row = plain(values, 128, row);
    row.iter()
        .enumerate()
        .map(|(k, value)| value * scale(k))
        .collect()
}

const PRODUCTS: &[Product] = &[
    Product {
        name: "mma.sync of float8_e4m3",
        text: "
@T.prim_func
def kernel(A: T.Buffer((16, 32), 'float32'), B: T.Buffer((8, 32), 'float32'), C: T.Buffer((16, 8), 'float32')):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    a = T.alloc_local((16,), 'float8_e4m3fn'); b = T.alloc_local((8,), 'float8_e4m3fn'); c = T.alloc_local((4,), 'float32')
    for i in range(16):
        a[i] = T.cast(A[tx // 4 + 8 * (i // 4 % 2), tx % 4 * 4 + i % 4 + 16 * (i // 8)], 'float8_e4m3fn')
    for i in range(8):
        b[i] = T.cast(B[tx // 4, tx % 4 * 4 + i % 4 + 16 * (i // 4)], 'float8_e4m3fn')
    for i in range(4):
        c[i] = T.float32(0)
    T.ptx.mma('m16n8k32', 'row', 'col', 'float32', 'float8_e4m3fn', 'float8_e4m3fn', 'float32', [c.ptr_to([i]) for i in range(4)], [a.ptr_to([4 * i]) for i in range(4)], [b.ptr_to([4 * i]) for i in range(2)], [c.ptr_to([i]) for i in range(4)])
    for i in range(4):
        C[tx // 4 + 8 * (i // 2), tx % 4 * 2 + i % 2] = c[i]
",
        target: "sm_90a",
        blocks: 1,
        threads: 32,
        extents: [16, 8, 32],
        more: none,
        a: |a, row| plain(a, 32, row),
        b: |b, row| plain(b, 32, row),
        line: "T.ptx.mma(",
        unit: 1.0 / 16.0,
    },
    Product {
        name: "wgmma of float8_e4m3, operands in shared memory with equal elements",
        text: "from tvm.script.tirx import tile as Tx
from tvm.backend.cuda.tile_primitive.tma_utils import SwizzleMode
from tvm.tirx.layout import S, TileLayout, laneid, wid_in_wg

@T.prim_func
def kernel(A: T.Buffer((64, 64), 'float32'), B: T.Buffer((64, 64), 'float32'), C: T.Buffer((64, 64), 'float32')):
    T.device_entry(); T.cta_id([1]); tx = T.thread_id([128])
    pool = T.SMEMPool()
    As = pool.alloc_tcgen05_mma_AB((64, 64), 'float8_e4m3fn', swizzle_mode=SwizzleMode.SWIZZLE_64B_ATOM)
    Bs = pool.alloc_tcgen05_mma_AB((64, 64), 'float8_e4m3fn', swizzle_mode=SwizzleMode.SWIZZLE_64B_ATOM)
    pool.commit()
    for k in T.serial(32):
        As[tx // 2, tx % 2 * 32 + k] = T.cast(A[tx // 2, tx % 2 * 32 + k], 'float8_e4m3fn')
        Bs[tx // 2, tx % 2 * 32 + k] = T.cast(B[tx // 2, tx % 2 * 32 + k], 'float8_e4m3fn')
    T.ptx.fence.proxy_async('shared::cta')
    T.cuda.cta_sync()
    c = T.alloc_buffer((64, 64), 'float32', scope='local', layout=TileLayout(S[(1, 4, 2, 8, 8, 4, 2) : (32, 1 @ wid_in_wg, 2, 4 @ laneid, 4, 1 @ laneid, 1)]))
    Tx.wg.gemm_async(c, As, Bs)
    T.ptx.wgmma.commit_group()
    T.ptx.wgmma.wait_group(0)
    Tx.wg.copy(C, c)
",
        target: "sm_90a",
        blocks: 1,
        threads: 128,
        extents: [64, 64, 64],
        more: none,
        a: |a, row| plain(a, 64, row),
        b: |b, row| plain(b, 64, row),
        line: "Tx.wg.gemm_async(c, As, Bs)",
        unit: 1.0 / 16.0,
    },
    Product {
        name: "tcgen05 of bfloat16, four instructions into one accumulator",
        text: tiles!(
            "bfloat16",
            "64",
            "",
            "    pool.commit()
    sums = tmem_pool.alloc((128, 64), 'float32')
    tmem_pool.commit()
    if warp == 0:
        if T.ptx.elect_sync():
            T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
            T.ptx.fence.mbarrier_init()
    T.ptx.fence.proxy_async('shared::cta')
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cta_sync()
    T.ptx.tcgen05.fence.after_thread_sync()
    if warp == 0:
        if T.ptx.elect_sync():
            Tx.gemm_async(sums, As, Bs)
            T.ptx.tcgen05.commit(bar.ptr_to([0]))"
        ),
        target: "sm_100a",
        blocks: 1,
        threads: 128,
        extents: [128, 64, 64],
        more: none,
        a: |a, row| plain(a, 64, row),
        b: |b, row| plain(b, 64, row),
        line: "Tx.gemm_async(sums, As, Bs)",
        unit: 1.0 / 256.0,
    },
    Product {
        name: "tcgen05 of float8_e4m3 with factors of blocks",
        text: tiles!(
            "float8_e4m3fn",
            "128",
            " B_s: T.Buffer((128, 4), 'float8_e8m0fnu'), B_t: T.Buffer((128, 4), 'float8_e8m0fnu'),",
            "    FA = pool.alloc((128, 4), 'float8_e8m0fnu', layout=sf_smem_layout(128, 4, 1), align=128)
    FB = pool.alloc((128, 4), 'float8_e8m0fnu', layout=sf_smem_layout(128, 4, 1), align=128)
    pool.commit()
    sums = tmem_pool.alloc((128, 64), 'float32')
    TA = tmem_pool.alloc_sf((128, 4), 'float8_e8m0fnu', sf_per_mma=1)
    TB = tmem_pool.alloc_sf((128, 4), 'float8_e8m0fnu', sf_per_mma=1)
    tmem_pool.commit()
    Tx.cta.copy(FA, B_s)
    Tx.cta.copy(FB, B_t)
    if warp == 0:
        if T.ptx.elect_sync():
            T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
            T.ptx.fence.mbarrier_init()
    T.ptx.fence.proxy_async('shared::cta')
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cta_sync()
    T.ptx.tcgen05.fence.after_thread_sync()
    if warp == 0:
        if T.ptx.elect_sync():
            Tx.copy_async(TA, FA)
            Tx.copy_async(TB, FB)
            Tx.gemm_async(sums, As, Bs, SFA=TA, SFB=TB)
            T.ptx.tcgen05.commit(bar.ptr_to([0]))"
        ),
        target: "sm_100a",
        blocks: 1,
        threads: 128,
        extents: [128, 64, 128],
        more: factors,
        a: |a, row| scaled(a, row, 0),
        b: |b, row| scaled(b, row, 1),
        line: "Tx.gemm_async(sums, As, Bs, SFA=TA, SFB=TB)",
        unit: 1.0 / 16.0,
    },
    Product {
        name: "tcgen05 of A in tensor memory, two bfloat16 in a register",
        text: in_tensor_memory!(
            "
@T.prim_func
def kernel(A: T.Buffer((128, 16), 'float32'), B: T.Buffer((16, 16), 'float32'), C: T.Buffer((128, 16), 'float32')):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([128]); warp = T.warp_id([4])
    Bs = T.alloc_shared((256,), 'bfloat16', align=128)
    slot = T.alloc_shared((1,), 'uint32'); bar = T.alloc_shared((1,), 'uint64')
    a = T.alloc_local((8,), 'uint32'); r = T.alloc_local((16,), 'float32')
    b_desc: T.uint64
    i_desc: T.uint32
    for e in T.serial(2):
        Bs[(tx // 8 // 8 * 2 + tx % 8 // 4) * 64 + tx // 8 % 8 * 8 + tx % 4 * 2 + e] = T.cast(B[tx // 8, tx % 8 * 2 + e], 'bfloat16')
    for k in T.unroll(8):
        a[k] = T.cuda.float22bfloat162_rn(A[tx, 2 * k], A[tx, 2 * k + 1])",
            "
    T.ptx.tcgen05.st(slot[0], *[a[k] for k in range(8)], shape='32x32b', num=8, row=warp * 32, col=16)
    T.ptx.tcgen05.wait.st()
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cta_sync()
    T.ptx.tcgen05.fence.after_thread_sync()
    if tx == 0:
        T.ptx.tcgen05.encode_matrix_descriptor(T.address_of(b_desc), Bs.ptr_to([0]), 8, 16, 0)
        T.ptx.tcgen05.encode_instr_descriptor(T.address_of(i_desc), d_dtype='float32', a_dtype='bfloat16', b_dtype='bfloat16', M=128, N=16, K=16, trans_a=False, trans_b=False)
        T.ptx.tcgen05.mma(slot[0], slot[0] + T.uint32(16), b_desc, i_desc, d_dtype='float32', a_dtype='bfloat16', b_dtype='bfloat16', use_a_tmem=True, cta_group=1, enable_input_d=False)
        T.ptx.tcgen05.commit(bar.ptr_to([0]))"
        ),
        target: "sm_100a",
        blocks: 1,
        threads: 128,
        extents: [128, 16, 16],
        more: none,
        a: |a, row| plain(a, 16, row),
        b: |b, row| plain(b, 16, row),
        line: "T.ptx.tcgen05.mma(",
        unit: 1.0 / 256.0,
    },
    Product {
        name: "tcgen05 of a sparse A in float16",
        text: in_tensor_memory!(
            "
@T.prim_func
def kernel(A: T.Buffer((128, 16), 'float32'), B: T.Buffer((16, 32), 'float32'), C: T.Buffer((128, 16), 'float32')):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([128]); warp = T.warp_id([4])
    As = T.alloc_shared((2048,), 'float16', align=128); Bs = T.alloc_shared((512,), 'float16', align=128)
    slot = T.alloc_shared((1,), 'uint32'); bar = T.alloc_shared((1,), 'uint64')
    m = T.alloc_local((1,), 'uint32'); r = T.alloc_local((16,), 'float32')
    a_desc: T.uint64
    b_desc: T.uint64
    i_desc: T.uint32
    for k in T.serial(16):
        As[(tx // 8 * 2 + k // 8) * 64 + tx % 8 * 8 + k % 8] = T.cast(A[tx, k], 'float16')
    for k in T.serial(4):
        Bs[(tx // 8 // 8 * 4 + tx // 8 % 8 // 2) * 64 + tx % 8 * 8 + tx // 8 % 2 * 4 + k] = T.cast(B[tx // 64 * 8 + tx % 8, tx // 8 % 8 * 4 + k], 'float16')",
            "
    m[0] = T.if_then_else(tx % 2 == 0, T.uint32(0x44444444), T.uint32(0xEEEEEEEE))
    T.ptx.tcgen05.st(slot[0], m[0], shape='32x32b', num=1, row=warp * 32, col=32)
    T.ptx.tcgen05.wait.st()
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cta_sync()
    T.ptx.tcgen05.fence.after_thread_sync()
    if tx == 0:
        T.ptx.tcgen05.encode_matrix_descriptor(T.address_of(a_desc), As.ptr_to([0]), 8, 16, 0)
        T.ptx.tcgen05.encode_matrix_descriptor(T.address_of(b_desc), Bs.ptr_to([0]), 8, 32, 0)
        T.ptx.tcgen05.encode_instr_descriptor(T.address_of(i_desc), d_dtype='float32', a_dtype='float16', b_dtype='float16', M=128, N=16, K=32, trans_a=False, trans_b=False, is_sparse=True)
        T.ptx.tcgen05.mma.sp(slot[0], a_desc, b_desc, T.cuda.get_tmem_addr(slot[0], 0, 32), i_desc, d_dtype='float32', a_dtype='float16', b_dtype='float16', use_a_tmem=False, cta_group=1, enable_input_d=False)
        T.ptx.tcgen05.commit(bar.ptr_to([0]))"
        ),
        target: "sm_100a",
        blocks: 1,
        threads: 128,
        extents: [128, 16, 32],
        more: none,
        a: sparse,
        b: |b, row| plain(b, 32, row),
        line: "T.ptx.tcgen05.mma.sp(",
        unit: 1.0 / 2048.0,
    },
];

/// A product's run, and the numbers of A and B.
fn ran(product: &Product) -> (Ran, Vec<f32>, Vec<f32>) {
    let [m, n, k] = product.extents;
    let held = if product.name.contains("sparse") { k / 2 } else { k };
    let all = numbers(m * held + n * k);
    let (a, b) = all.split_at(m * held);
    let mut tensors = vec![bytes_of(a), bytes_of(b)];
    tensors.extend((product.more)());
    tensors.push(vec![0; m * n * 4]);
    let shape = Shape {
        target: Target::named(product.target).expect("a GPU"),
        blocks: product.blocks,
        threads: product.threads,
        shared_bytes: 200 << 10,
    };
    (run_shaped(shape, product.text, &tensors), a.to_vec(), b.to_vec())
}

fn check(product: &Product) {
    let [m, n, k] = product.extents;
    let (ran, a, b) = ran(product);
    let c = 2 + (product.more)().len();
    let (mut largest, mut errors, mut cancelled) = (0.0f64, 0, 0.0f64);
    for row in 0..m {
        let left = (product.a)(&a, row);
        for col in 0..n {
            let right = (product.b)(&b, col);
            let terms: Vec<f64> = left.iter().zip(&right).map(|(x, y)| x * y).collect();
            let exact: f64 = terms.iter().sum();
            let scale: f64 = terms.iter().map(|term| term.abs()).sum();
            let at = row * n + col;
            let (found, shadow) = (f64::from(ran.float(c, at)), ran.shadow(c, at));
            assert!(
                (shadow - exact).abs() <= 1e-13 * scale,
                "({row}, {col}): {shadow:e} is not {exact:e}"
            );
            // Both operands are narrowed; the sum of float32 loses far less.
            let bound =
                scale * (2.0 * product.unit + product.unit * product.unit + k as f64 * 2.0f64.powi(-24));
            assert!(
                (found - exact).abs() <= bound,
                "({row}, {col}): {found:e} and {exact:e}"
            );
            errors += usize::from(found != exact);
            cancelled = cancelled.max((scale / found.abs()).log2());
            if exact != 0.0 {
                largest = largest.max(((found - exact) / exact).abs());
            }
        }
    }
    assert!(errors > m * n / 2, "narrow operands make errors");
    let line = ran.line(product.line);
    let instructions = line.results as usize / (m * n);
    assert_eq!(
        line.results as usize,
        instructions * m * n,
        "a result of each instruction"
    );
    // The terms of one instruction, which are rounded, have nearly the magnitudes of those here.
    if instructions == 1 {
        let found = f64::from(line.cancelled);
        assert!((found - cancelled).abs() <= 1.5, "{found} and {cancelled}");
    }
    // The last instruction makes the result, and the earlier ones may have had larger errors.
    assert!(
        line.total() >= largest * (1.0 - 1e-9),
        "{:e} and {largest:e}",
        line.total()
    );
    assert!(line.introduced() < 1e-3 && line.carried() > line.introduced());
}

#[test]
fn products_have_the_shadows_of_what_was_narrowed() {
    let mut failures = Vec::new();
    for product in PRODUCTS {
        if std::panic::catch_unwind(|| check(product)).is_err() {
            failures.push(product.name);
        }
    }
    assert!(failures.is_empty(), "{failures:?}");
}
