//! Products with a gate and products by groups of rows on the simulator, with all its checks, against float64. `TIRX_TEST_DEVICE=cuda` runs
//! them on the first GPU.

#![cfg(feature = "gemm")]

mod numbers;

use numbers::{Number, error_of_term, numbers, stream};
use proptest::prelude::*;
use tirx_kernels::gemm::{self, Activation, GatedInput, GroupedInput, Matmul};
use tirx_rt::{Stream, Tensor, bf16, f8e4m3, f16};

/// A tensor of rounded numbers and their values; with `turned`, a view of matrices whose rows and columns are exchanged in memory.
struct Matrices<T: Number> {
    tensor: Tensor<T>,
    values: Vec<f64>,
    turned: bool,
    columns: usize,
}

impl<T: Number> Matrices<T> {
    fn new(stream: &Stream, shape: [usize; 3], turned: bool, seed: u64) -> Matrices<T> {
        let [count, rows, columns] = shape;
        let elements: Vec<T> = numbers(count * rows * columns, seed)
            .into_iter()
            .map(T::round)
            .collect();
        let shape = if turned { [count, columns, rows] } else { shape };
        Matrices {
            tensor: Tensor::from_slice(stream, &elements, shape).unwrap(),
            values: elements.into_iter().map(T::value).collect(),
            turned,
            columns: shape[2],
        }
    }

    fn order(&self) -> [usize; 3] {
        if self.turned { [0, 2, 1] } else { [0, 1, 2] }
    }

    fn at(&self, matrix: usize, row: usize, column: usize) -> f64 {
        let (row, column) = if self.turned { (column, row) } else { (row, column) };
        let rows = self.tensor.shape()[1];
        self.values[(matrix * rows + row) * self.columns + column]
    }
}

fn silu(x: f64) -> f64 {
    x / (1.0 + (-x).exp())
}

fn close<T: Number, O: Number>(found: O, exact: f64, size: f64, place: &str) {
    let bound = O::UNIT * exact.abs() + (size + 4.0) * 200.0 * error_of_term::<T>();
    let found = found.value();
    assert!((found - exact).abs() <= bound, "{place}: {found}, not {exact}");
}

/// Groups of these sizes; rows behind the last group stay as they are.
fn check_groups<T: Number + GroupedInput<O>, O: Number>(
    sizes: &[usize],
    behind: usize,
    n: usize,
    k: usize,
    turned: bool,
) {
    let stream = stream();
    let rows = sizes.iter().sum::<usize>() + behind;
    let mut offsets = vec![0];
    for size in sizes {
        offsets.push(offsets[offsets.len() - 1] + *size as i32);
    }
    let a = Matrices::<T>::new(&stream, [1, rows, k], false, 1);
    let b = Matrices::<T>::new(&stream, [sizes.len(), k, n], turned, 2);
    let bias = Matrices::<O>::new(&stream, [1, sizes.len(), n], false, 3);
    let scales: Vec<f32> = (0..sizes.len()).map(|e| 0.5 + e as f32).collect();
    let of_b = Tensor::from_slice(&stream, &scales, [sizes.len()]).unwrap();
    let ends = Tensor::from_slice(&stream, &offsets, [offsets.len()]).unwrap();
    let mut c = Tensor::from_slice(&stream, &vec![O::round(64.0); rows * n], [rows, n]).unwrap();
    Matmul::new()
        .bias(&bias.tensor.reshape([sizes.len(), n]).unwrap())
        .scale_b(&of_b)
        .activation(Activation::Relu)
        .run_grouped(
            &stream,
            &a.tensor.reshape([rows, k]).unwrap(),
            &b.tensor.permute(&b.order()).unwrap(),
            &ends,
            &mut c,
        )
        .unwrap();
    let found = c.to_vec().unwrap();
    for (e, size) in sizes.iter().enumerate() {
        for row in offsets[e] as usize..offsets[e] as usize + size {
            for j in 0..n {
                let terms = (0..k).map(|q| a.at(0, row, q) * b.at(e, q, j));
                let (sum, size) = terms.fold((0.0, 0.0), |(sum, size), x| (sum + x, size + x.abs()));
                let factor = f64::from(scales[e]);
                let exact = (sum * factor + bias.at(0, e, j)).max(0.0);
                close::<T, O>(
                    found[row * n + j],
                    exact,
                    size * factor,
                    &format!("{sizes:?} {n} {k} {turned}: group {e}, row {row}, column {j}"),
                );
            }
        }
    }
    let rest = &found[(rows - behind) * n..];
    assert!(
        rest.iter().all(|x| x.value() == 64.0),
        "{sizes:?}: rows behind the last group were written"
    );
}

fn check_gate<T: Number + GatedInput>(batch: usize, m: usize, n: usize, k: usize, turned: bool) {
    let stream = stream();
    let a = Matrices::<T>::new(&stream, [batch, m, k], false, 1);
    let [gate, up] = [2, 3].map(|seed| Matrices::<T>::new(&stream, [batch, k, n], turned, seed));
    let mut c = Tensor::zeros(&stream, [batch, m, n]).unwrap();
    let (of_gate, of_up) = (
        gate.tensor.permute(&gate.order()).unwrap(),
        up.tensor.permute(&up.order()).unwrap(),
    );
    gemm::swiglu(&stream, &a.tensor, &of_gate, &of_up, &mut c).unwrap();
    let found = c.to_vec().unwrap();
    for p in 0..batch {
        for i in 0..m {
            for j in 0..n {
                let by = |b: &Matrices<T>| (0..k).map(|q| a.at(p, i, q) * b.at(p, q, j)).sum::<f64>();
                let (x, y) = (by(&gate), by(&up));
                close::<T, T>(
                    found[(p * m + i) * n + j],
                    silu(x) * y,
                    x.abs() + y.abs(),
                    &format!("{p}, {i}, {j}"),
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn groups_of_bfloat16(
        sizes in prop::collection::vec(prop_oneof![Just(0usize), 1..20usize, 100..150usize], 1..6),
        behind in 0..9usize, n in 1..30usize, k in 1..20usize, turned in any::<bool>(),
    ) {
        check_groups::<bf16, bf16>(&sizes, behind, n * 8, k * 8, turned);
    }

    #[test]
    fn gates_of_float16(batch in 1..3usize, m in 1..140usize, n in 1..30usize, k in 1..20usize, turned in any::<bool>()) {
        check_gate::<f16>(batch, m, n * 8, k * 8, turned);
    }
}

#[test]
fn groups_of_other_forms() {
    check_groups::<f16, f16>(&[0, 1, 130, 0], 0, 264, 64, false);
    check_groups::<f8e4m3, bf16>(&[3, 0, 140], 2, 280, 144, true);
    check_groups::<bf16, bf16>(&[0, 0], 3, 40, 64, true);
    // N has no multiple of eight elements.
    check_groups::<bf16, bf16>(&[5, 4], 0, 37, 40, true);
    check_gate::<bf16>(1, 1, 3, 8, true);
}

#[test]
fn groups_with_gates() {
    let stream = stream();
    let (rows, n, k) = (150, 136, 72);
    let a = Matrices::<bf16>::new(&stream, [1, rows, k], false, 1);
    let [gate, up] = [2, 3].map(|seed| Matrices::<bf16>::new(&stream, [3, k, n], true, seed));
    let ends = Tensor::from_slice(&stream, &[0, 140, 140, 150], [4]).unwrap();
    let residual = Matrices::<bf16>::new(&stream, [1, rows, n], false, 4);
    let mut c = Tensor::zeros(&stream, [rows, n]).unwrap();
    Matmul::new()
        .activation(Activation::Silu)
        .residual(&residual.tensor.reshape([rows, n]).unwrap())
        .run_grouped_gated(
            &stream,
            &a.tensor.reshape([rows, k]).unwrap(),
            &gate.tensor.permute(&gate.order()).unwrap(),
            &up.tensor.permute(&up.order()).unwrap(),
            &ends,
            &mut c,
        )
        .unwrap();
    let found = c.to_vec().unwrap();
    for row in 0..rows {
        let e = if row < 140 { 0 } else { 2 };
        for j in 0..n {
            let by = |b: &Matrices<bf16>| (0..k).map(|q| a.at(0, row, q) * b.at(e, q, j)).sum::<f64>();
            let (x, y) = (by(&gate), by(&up));
            close::<bf16, bf16>(
                found[row * n + j],
                silu(x) * y + residual.at(0, row, j),
                x.abs() + y.abs(),
                &format!("{row}, {j}"),
            );
        }
    }
}

// Offsets that are wrong on the device write nothing outside of C.
#[test]
fn offsets_beyond_the_rows_stay_inside() {
    let stream = stream();
    let ones = |shape: &[usize]| Tensor::full(&stream, bf16::ONE, shape).unwrap();
    let ends = Tensor::from_slice(&stream, &[-5, 9, 4, 1000], [4]).unwrap();
    let mut c = Tensor::zeros(&stream, [10, 8]).unwrap();
    gemm::grouped(&stream, &ones(&[10, 8]), &ones(&[3, 8, 8]), &ends, &mut c).unwrap();
    assert_eq!(c.to_vec().unwrap(), [bf16::from_f32(8.0); 80]);
}

#[test]
fn wrong_operands_are_refused() {
    let stream = stream();
    let zeros = |shape: &[usize]| Tensor::<bf16>::zeros(&stream, shape).unwrap();
    let offsets = |count: usize| Tensor::<i32>::zeros(&stream, [count]).unwrap();
    let refused = |result: tirx_kernels::Result<()>, text: &str| {
        let error = result.unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    };
    let (a, b, mut c) = (zeros(&[8, 16]), zeros(&[3, 16, 24]), zeros(&[8, 24]));
    refused(
        gemm::grouped(&stream, &a, &b, &offsets(3), &mut c),
        "the offsets [3] and C [8, 24]",
    );
    refused(
        gemm::grouped(&stream, &a, &zeros(&[0, 16, 24]), &offsets(1), &mut c),
        "with at least one group",
    );
    let odd = zeros(&[3, 16, 25]);
    let odd = odd.slice(2, 0..24).unwrap();
    refused(
        gemm::grouped(&stream, &a, &odd, &offsets(4), &mut c),
        "B is contiguous along K or N, and its other strides",
    );
    let (gate, up) = (zeros(&[16, 24]), zeros(&[24, 16]));
    refused(
        gemm::swiglu(&stream, &a, &gate, &up, &mut c),
        "both matrices of a gate have one shape, not [16, 24] and [24, 16]",
    );
    refused(
        gemm::swiglu(&stream, &a, &gate, &up.permute(&[1, 0]).unwrap(), &mut c),
        "both matrices of a gate are contiguous along the same dimension",
    );
    let bias = zeros(&[24]);
    let gated = Matmul::new()
        .bias(&bias)
        .run_gated(&stream, &a, &gate, &gate, &mut c);
    refused(gated, "a product with a gate takes no bias and no scale of B");
}
