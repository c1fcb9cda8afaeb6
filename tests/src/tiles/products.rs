//! Random programs of products: in registers, by shared memory on Hopper and Blackwell, by two blocks, with scales of blocks.

use tirx_core::ir::{DType, TypeCode};

use super::TileProgram;
use super::engines::{BLACKWELL, E2M1, HOPPER, Tensor, program};
use crate::generator::random::Random;

const E4M3: DType = DType::scalar(TypeCode::Float8_e4m3fn, 8);
const E5M2: DType = DType::scalar(TypeCode::Float8_e5m2, 8);
const E8M0: DType = DType::scalar(TypeCode::Float8_e8m0fnu, 8);

/// `sum over k of a(i, k) * b(k, j)`.
fn product(sizes: [usize; 3], a: impl Fn(usize, usize) -> i64, b: impl Fn(usize, usize) -> i64) -> Vec<i64> {
    let [rows, columns, depth] = sizes;
    let element = |at: usize| (0..depth).map(|k| a(at / columns, k) * b(k, at % columns)).sum();
    (0..rows * columns).map(element).collect()
}

/// `mma` with its operands in registers, `D = A B + C`.
pub(super) fn of_a_warp(random: &mut Random) -> TileProgram {
    let dtype = *random.pick(&[DType::FLOAT16, DType::BFLOAT16]);
    let (m, n, k) = (
        *random.pick(&[16, 32]),
        8 * (1 + random.below(4)),
        16 * (1 + random.below(3)),
    );
    let a = Tensor::input("A", dtype, &[m, k], random);
    let b = Tensor::input("B", dtype, &[k, n], random);
    let c = Tensor::input("C", DType::FLOAT32, &[m, n], random);
    let adds = random.chance(50);
    let mut after = product([m, n, k], |i, l| a.before[i * k + l], |l, j| b.before[l * n + j]);
    if adds {
        after.iter_mut().zip(&c.before).for_each(|(sum, c)| *sum += c);
    }
    let d = Tensor::output("D", DType::FLOAT32, &[m, n], -1, after);
    let beta = if adds { "1.0" } else { "0.0" };
    let lines = format!(
        "a = T.alloc_buffer(({m}, {k}), \"{dtype}\", scope=\"local\", layout=fragments({m}, {k}, 2))
b = T.alloc_buffer(({k}, {n}), \"{dtype}\", scope=\"local\", layout=columns_of_b({k}, {n}))
c = T.alloc_buffer(({m}, {n}), \"float32\", scope=\"local\", layout=fragments({m}, {n}, 2))
Tx.warp.copy(a, A)
Tx.warp.copy(b, B)
Tx.warp.copy(c, C)
Tx.warp.gemm(c, a, b, c, alpha=1.0, beta={beta})
Tx.warp.copy(D, c)"
    );
    let arch = *random.pick(&[HOPPER, BLACKWELL]);
    program(arch, 32, &[a, b, c, d], &lines)
}

/// The shape of an operand.
fn stored(rows: usize, k: usize, turned: bool) -> [usize; 2] {
    if turned { [k, rows] } else { [rows, k] }
}

/// The operands of a product by shared memory, `C = A Bᵀ`, where each may be stored with its dimensions exchanged; twice, where it
/// is added to itself.
struct Product {
    sizes: [usize; 3],
    dtype: DType,
    /// Whether A is K x M, B is K x N.
    turned: [bool; 2],
    twice: bool,
    tensors: [Tensor; 3],
}

impl Product {
    fn random(random: &mut Random, rows: &[usize], columns: usize, dtypes: &[DType]) -> Product {
        let dtype = *random.pick(dtypes);
        let integers = dtype == DType::INT8;
        let depth = (128 / dtype.bytes()) * (1 + random.below(2));
        let sizes = [
            *random.pick(rows),
            columns * (1 + random.below(128 / columns)),
            depth,
        ];
        // A swizzled row of 128 bytes lies along the rows of the product.
        let line = 128 / dtype.bytes();
        let turned = [sizes[0], sizes[1]]
            .map(|rows| dtype.bytes() == 2 && rows.is_multiple_of(line) && random.chance(40));
        let twice = random.chance(40);
        let [m, n, k] = sizes;
        let a = Tensor::input("A", dtype, &stored(m, k, turned[0]), random);
        let b = Tensor::input("B", dtype, &stored(n, k, turned[1]), random);
        let of_a = |i: usize, l: usize| a.before[if turned[0] { l * m + i } else { i * k + l }];
        let of_b = |l: usize, j: usize| b.before[if turned[1] { l * n + j } else { j * k + l }];
        let mut after = product(sizes, of_a, of_b);
        after.iter_mut().for_each(|sum| *sum *= if twice { 2 } else { 1 });
        let results = if integers { DType::INT32 } else { DType::FLOAT32 };
        let c = Tensor::output("C", results, &[m, n], -1, after);
        Product {
            sizes,
            dtype,
            turned,
            twice,
            tensors: [a, b, c],
        }
    }

    /// The calls, each of which begins with this text.
    fn calls(&self, begin: &str) -> String {
        let option = |name: &str, on: bool| {
            if on {
                format!(", {name}=True")
            } else {
                String::new()
            }
        };
        let turned = option("transA", self.turned[0]) + &option("transB", self.turned[1]);
        let mut calls = format!("{begin}{turned})");
        if self.twice {
            calls += &format!("\n{begin}{turned}, accum=True)");
        }
        calls
    }

    /// The lines that allocate the operands.
    fn operands(&self) -> String {
        let ([m, n, k], dtype) = (self.sizes, self.dtype);
        let ([a, c], [b, d]) = (stored(m, k, self.turned[0]), stored(n, k, self.turned[1]));
        format!(
            "As = pool.alloc_tcgen05_mma_AB(({a}, {c}), \"{dtype}\")
Bs = pool.alloc_tcgen05_mma_AB(({b}, {d}), \"{dtype}\")"
        )
    }
}

pub(super) fn on_hopper(random: &mut Random) -> TileProgram {
    let dtypes = [DType::FLOAT16, DType::BFLOAT16, DType::INT8];
    let this = Product::random(random, &[64, 128], 8, &dtypes);
    let ([m, n, _], results) = (this.sizes, this.tensors[2].dtype);
    let (operands, calls) = (this.operands(), this.calls("Tx.wg.gemm_async(c, As, Bs"));
    let lines = format!(
        "pool = T.SMEMPool()
{operands}
pool.commit()
Tx.cta.copy(As, A)
Tx.cta.copy(Bs, B)
T.ptx.fence.proxy_async(\"shared::cta\")
T.cuda.cta_sync()
c = T.alloc_buffer(({m}, {n}), \"{results}\", scope=\"local\", layout=sums({m}, {n}))
{calls}
T.ptx.wgmma.commit_group()
T.ptx.wgmma.wait_group(0)
Tx.wg.copy(C, c)"
    );
    program(HOPPER, 128, &this.tensors, &lines)
}

pub(super) fn on_blackwell(random: &mut Random) -> TileProgram {
    let dtypes = [DType::FLOAT16, DType::BFLOAT16, E4M3, E5M2];
    let this = Product::random(random, &[128], 16, &dtypes);
    let n = this.sizes[1];
    let allocated = n.next_power_of_two().max(32);
    let (operands, calls) = (
        this.operands(),
        this.calls("Tx.gemm_async(sums, As, Bs")
            .replace('\n', "\n        "),
    );
    let lines = format!(
        "pool = T.SMEMPool()
tmem_pool = T.TMEMPool(pool, total_cols={allocated})
bar = pool.alloc((1,), \"uint64\", align=8)
{operands}
pool.commit()
sums = tmem_pool.alloc((128, {n}), \"float32\")
tmem_pool.commit()
Tx.cta.copy(As, A)
Tx.cta.copy(Bs, B)
begin(bar, tx)
turn()
if warp == 0:
    if T.ptx.elect_sync():
        {calls}
        T.ptx.tcgen05.commit(bar.ptr_to([0]))
T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
T.ptx.tcgen05.fence.after_thread_sync()
r = T.wg_reg_tile({n})
Tx.wg.copy_async(r, sums)
T.ptx.tcgen05.wait.ld()
Tx.wg.copy(C, r)
end(tmem_pool)"
    );
    program(BLACKWELL, 128, &this.tensors, &lines)
}

/// A product of two blocks of a cluster: each has its rows of A and C, and half of the rows of B.
pub(super) fn of_pairs(random: &mut Random) -> TileProgram {
    let dtype = *random.pick(&[DType::FLOAT16, DType::BFLOAT16]);
    let (rows, k) = (*random.pick(&[64, 128]), *random.pick(&[64, 128]));
    let n = 32 * (1 + random.below(4));
    let (m, half) = (2 * rows, n / 2);
    let a = Tensor::input("A", dtype, &[m, k], random);
    let b = Tensor::input("B", dtype, &[n, k], random);
    let after = product([m, n, k], |i, l| a.before[i * k + l], |l, j| b.before[j * k + l]);
    let c = Tensor::output("C", DType::FLOAT32, &[m, n], -1, after);
    let allocated = n.next_power_of_two();
    // 64 rows of a block have the right half of the columns in the upper lanes.
    let held = match rows {
        64 => format!(
            "T.alloc_buffer((64, {n}), \"float32\", scope=\"local\", \
             layout=TileLayout(S[(64, 2, {half}) : (1 @ tid_in_wg, 64 @ tid_in_wg, 1)]))"
        ),
        _ => format!("T.wg_reg_tile({n})"),
    };
    let lines = format!(
        "rank = T.cta_id_in_cluster([2])
pool = T.SMEMPool()
tmem_pool = T.TMEMPool(pool, total_cols={allocated}, cta_group=2)
bar = pool.alloc((1,), \"uint64\", align=8)
As = pool.alloc_tcgen05_mma_AB(({rows}, {k}), \"{dtype}\")
Bs = pool.alloc_tcgen05_mma_AB(({half}, {k}), \"{dtype}\")
pool.commit()
sums = tmem_pool.alloc_tcgen05_mma_D(({rows}, {n}), \"float32\", M={m}, cta_group=2)
tmem_pool.commit()
Tx.cta.copy(As, A[rank * {rows} : rank * {rows} + {rows}, :])
Tx.cta.copy(Bs, B[rank * {half} : rank * {half} + {half}, :])
begin(bar, tx)
T.ptx.tcgen05.fence.before_thread_sync()
T.cuda.cluster_sync()
T.ptx.tcgen05.fence.after_thread_sync()
if (warp == 0) & (rank == 0):
    if T.ptx.elect_sync():
        Tx.gemm_async(sums, As, Bs, cta_group=2)
        T.ptx.tcgen05.commit(bar.ptr_to([0]), cta_group=2, cta_mask=3)
T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
T.ptx.tcgen05.fence.after_thread_sync()
r = {held}
Tx.wg.copy_async(r, sums)
T.ptx.tcgen05.wait.ld()
Tx.wg.copy(C[rank * {rows} : rank * {rows} + {rows}, :], r)
T.ptx.tcgen05.fence.before_thread_sync()
T.cuda.cluster_sync()
tmem_pool.dealloc()"
    );
    program(BLACKWELL, 128, &[a, b, c], &lines)
}

/// A product whose elements are scaled by blocks of k: of 32 elements of 8 or 4 bits, or of 16 of 4 bits.
pub(super) fn scaled(random: &mut Random) -> TileProgram {
    let (dtype, factors, block, per_mma) =
        *random.pick(&[(E4M3, E8M0, 32, 1), (E2M1, E8M0, 32, 2), (E2M1, E4M3, 16, 4)]);
    let k = 128 * 8 / usize::from(dtype.bits) * (1 + random.below(2));
    let (m, n) = (128, 32 * (1 + random.below(4)));
    let count = k / block;
    let a = Tensor::input("A", dtype, &[m, k], random);
    let b = Tensor::input("B", dtype, &[n, k], random);
    let mut scales = |name| {
        let mut scales = Tensor::input(name, factors, &[128, count], random);
        for value in scales.before.iter_mut().chain(&mut scales.after) {
            *value = [1, 2, 4][(*value + 3) as usize % 3];
        }
        scales
    };
    let (sa, sb) = (scales("SA"), scales("SB"));
    let after = product(
        [m, n, k],
        |i, l| a.before[i * k + l] * sa.before[i * count + l / block],
        |l, j| b.before[j * k + l] * sb.before[j * count + l / block],
    );
    let c = Tensor::output("C", DType::FLOAT32, &[m, n], -1, after);
    let of_factors = |name: &str| {
        format!(
            "{name} = pool.alloc((128, {count}), \"{factors}\", layout=sf_smem_layout(128, {count}, {per_mma}), align=128)"
        )
    };
    let (of_a, of_b) = (of_factors("FA"), of_factors("FB"));
    let lines = format!(
        "pool = T.SMEMPool()
tmem_pool = T.TMEMPool(pool, total_cols=256)
bar = pool.alloc((1,), \"uint64\", align=8)
As = pool.alloc_tcgen05_mma_AB(({m}, {k}), \"{dtype}\")
Bs = pool.alloc_tcgen05_mma_AB(({n}, {k}), \"{dtype}\")
{of_a}
{of_b}
pool.commit()
sums = tmem_pool.alloc((128, {n}), \"float32\")
TA = tmem_pool.alloc_sf((128, {count}), \"{factors}\", sf_per_mma={per_mma})
TB = tmem_pool.alloc_sf((128, {count}), \"{factors}\", sf_per_mma={per_mma})
tmem_pool.commit()
Tx.cta.copy(As, A)
Tx.cta.copy(Bs, B)
Tx.cta.copy(FA, SA)
Tx.cta.copy(FB, SB)
begin(bar, tx)
turn()
if warp == 0:
    if T.ptx.elect_sync():
        Tx.copy_async(TA, FA)
        Tx.copy_async(TB, FB)
        Tx.gemm_async(sums, As, Bs, SFA=TA, SFB=TB)
        T.ptx.tcgen05.commit(bar.ptr_to([0]))
T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
T.ptx.tcgen05.fence.after_thread_sync()
r = T.wg_reg_tile({n})
Tx.wg.copy_async(r, sums)
T.ptx.tcgen05.wait.ld()
Tx.wg.copy(C, r)
end(tmem_pool)"
    );
    program(BLACKWELL, 128, &[a, b, sa, sb, c], &lines)
}
