//! Products of floats of 8 bits with scales of blocks on the simulator, with all its checks, against float64. `TIRX_TEST_DEVICE=cuda` runs
//! them on the first GPU.

#![cfg(feature = "gemm")]

mod numbers;

use numbers::{Number, error_of_term, numbers, stream};
use proptest::prelude::*;
use tirx_kernels::gemm::{Activation, GroupedInput, Input, Matmul};
use tirx_rt::{Stream, Tensor, bf16, f8e4m3};

fn rounded<T: Number>(count: usize, seed: u64) -> Vec<T> {
    numbers(count, seed).into_iter().map(T::round).collect()
}

/// Scales between 0.5 and 2.
fn scales(stream: &Stream, shape: [usize; 3], seed: u64) -> (Vec<f32>, Tensor<f32>) {
    let scale = |x: f64| (x / 2.0).exp2() as f32;
    let values: Vec<f32> = numbers(shape.iter().product(), seed)
        .into_iter()
        .map(scale)
        .collect();
    let tensor = Tensor::from_slice(stream, &values, shape).unwrap();
    (values, tensor)
}

fn exact<T: Number, O: Number>(found: O, exact: f64, size: f64, place: &str) {
    // Sums of 128 products are added in float32.
    let bound = O::UNIT * exact.abs() + (size + 4.0) * 128.0 * error_of_term::<T>();
    assert!(
        (found.value() - exact).abs() <= bound,
        "{place}: {found:?}, not {exact}"
    );
}

fn check<T: Number + Input<O>, O: Number>(batch: usize, m: usize, n: usize, k: usize, parts: bool) {
    let stream = stream();
    let (a, b) = (rounded::<T>(batch * m * k, 1), rounded::<T>(batch * n * k, 2));
    let (blocks, steps) = (n.div_ceil(128), k.div_ceil(128));
    let (sa, of_a) = scales(&stream, [batch, m, steps], 3);
    let (sb, of_b) = scales(&stream, [batch, blocks, steps], 4);
    let bias = rounded::<O>(batch * n, 5);
    let of_bias = Tensor::from_slice(&stream, &bias, [batch, n]).unwrap();
    let tensor_a = Tensor::from_slice(&stream, &a, [batch, m, k]).unwrap();
    let tensor_b = Tensor::from_slice(&stream, &b, [batch, n, k]).unwrap();
    let mut c = Tensor::<O>::zeros(&stream, [batch, m, n]).unwrap();
    let mut product = Matmul::new().block_scales(&of_a, &of_b);
    if parts {
        product = product.bias(&of_bias).activation(Activation::Relu).scale(0.5);
    }
    product
        .run(&stream, &tensor_a, &tensor_b.permute(&[0, 2, 1]).unwrap(), &mut c)
        .unwrap();
    let found = c.to_vec().unwrap();
    for p in 0..batch {
        for i in 0..m {
            for j in 0..n {
                let term = |q: usize| {
                    let scale =
                        sa[(p * m + i) * steps + q / 128] * sb[(p * blocks + j / 128) * steps + q / 128];
                    a[(p * m + i) * k + q].value() * b[(p * n + j) * k + q].value() * f64::from(scale)
                };
                let (sum, size) = (0..k)
                    .map(term)
                    .fold((0.0, 0.0), |(sum, size), x| (sum + x, size + x.abs()));
                let value = match parts {
                    true => (0.5 * sum + bias[p * n + j].value()).max(0.0),
                    false => sum,
                };
                exact::<T, O>(
                    found[(p * m + i) * n + j],
                    value,
                    size,
                    &format!("{batch} {m} {n} {k}: {p}, {i}, {j}"),
                );
            }
        }
    }
}

fn check_groups<T: Number + GroupedInput<bf16>>(sizes: &[usize], n: usize, k: usize) {
    let stream = stream();
    let rows = sizes.iter().sum::<usize>();
    let mut offsets = vec![0];
    for size in sizes {
        offsets.push(offsets[offsets.len() - 1] + *size as i32);
    }
    let groups = sizes.len();
    let (a, b) = (rounded::<T>(rows * k, 1), rounded::<T>(groups * n * k, 2));
    let (blocks, steps) = (n.div_ceil(128), k.div_ceil(128));
    let (sa, of_a) = scales(&stream, [1, rows, steps], 3);
    let (sb, of_b) = scales(&stream, [groups, blocks, steps], 4);
    let tensor_a = Tensor::from_slice(&stream, &a, [rows, k]).unwrap();
    let tensor_b = Tensor::from_slice(&stream, &b, [groups, n, k]).unwrap();
    let ends = Tensor::from_slice(&stream, &offsets, [groups + 1]).unwrap();
    let mut c = Tensor::<bf16>::zeros(&stream, [rows, n]).unwrap();
    Matmul::new()
        .block_scales(&of_a.reshape([rows, steps]).unwrap(), &of_b)
        .run_grouped(
            &stream,
            &tensor_a,
            &tensor_b.permute(&[0, 2, 1]).unwrap(),
            &ends,
            &mut c,
        )
        .unwrap();
    let found = c.to_vec().unwrap();
    for e in 0..groups {
        for i in offsets[e] as usize..offsets[e + 1] as usize {
            for j in 0..n {
                let term = |q: usize| {
                    let scale = sa[i * steps + q / 128] * sb[(e * blocks + j / 128) * steps + q / 128];
                    a[i * k + q].value() * b[(e * n + j) * k + q].value() * f64::from(scale)
                };
                let (sum, size) = (0..k)
                    .map(term)
                    .fold((0.0, 0.0), |(sum, size), x| (sum + x, size + x.abs()));
                exact::<T, bf16>(
                    found[i * n + j],
                    sum,
                    size,
                    &format!("{sizes:?}: group {e}, {i}, {j}"),
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn blocks_of_e4m3(batch in 1..3usize, m in 1..140usize, n in 1..300usize, k in 1..30usize, parts in any::<bool>()) {
        check::<f8e4m3, bf16>(batch, m, n, k * 16, parts);
    }
}

#[test]
fn other_forms() {
    check::<f8e4m3, f32>(1, 1, 129, 272, false);
    check::<f8e4m3, f32>(1, 130, 1, 16, true);
    // Three warpgroups, if two would need another wave of tiles.
    check::<f8e4m3, bf16>(132, 129, 8, 144, false);
    check::<f8e4m3, bf16>(66, 129, 136, 16, true);
    check::<f8e4m3, f32>(132, 129, 8, 16, true);
    check_groups::<f8e4m3>(&[129; 132], 8, 16);
    check_groups::<f8e4m3>(&[0, 3, 140, 0], 136, 272);
    check_groups::<f8e4m3>(&[1], 8, 16);
}

#[test]
fn wrong_operands_are_refused() {
    let stream = stream();
    let zeros = |shape: &[usize]| Tensor::<f8e4m3>::zeros(&stream, shape).unwrap();
    let floats = |shape: &[usize]| Tensor::<f32>::zeros(&stream, shape).unwrap();
    let refused = |result: tirx_kernels::Result<()>, text: &str| {
        let error = result.unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    };
    let (a, b) = (zeros(&[8, 256]), zeros(&[136, 256]));
    let b = b.permute(&[1, 0]).unwrap();
    let (of_a, of_b) = (floats(&[8, 2]), floats(&[2, 2]));
    let mut c = Tensor::<bf16>::zeros(&stream, [8, 136]).unwrap();
    let short = floats(&[8, 1]);
    let wrong = Matmul::new()
        .block_scales(&short, &of_b)
        .run(&stream, &a, &b, &mut c);
    refused(
        wrong,
        "the scales of the blocks of A have shape [8, 1]; this product takes [1, 8, 2]",
    );
    let wrong = Matmul::new()
        .block_scales(&of_a, &of_a)
        .run(&stream, &a, &b, &mut c);
    refused(
        wrong,
        "the scales of the blocks of B have shape [8, 2]; this product takes [1, 2, 2]",
    );
    let mut half = Tensor::<tirx_rt::f16>::zeros(&stream, [8, 136]).unwrap();
    let wrong = Matmul::new()
        .block_scales(&of_a, &of_b)
        .run(&stream, &a, &b, &mut half);
    refused(
        wrong,
        "scales of blocks are for A and B of float8_e4m3fn and C of bfloat16",
    );
}
