//! The vector, reduction and matrix kernels.

use tirx_rt::{Stream, Tensor, f16};

use crate::report::{Report, relative_error, time, worst_error};
use crate::{Error, kernels, reference};

/// Numbers from -1 to below 1 that look random and are the same on every run (a linear congruential generator).
pub(crate) fn numbers(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

fn exact(values: impl IntoIterator<Item = f32>) -> Vec<f64> {
    values.into_iter().map(f64::from).collect()
}

/// Runs and checks them all.
pub(crate) fn run(stream: &Stream, report: &mut Report) -> Result<(), Error> {
    elementwise(stream, report)?;
    reductions(stream, report)?;
    matrices(stream, report)
}

fn elementwise(stream: &Stream, report: &mut Report) -> Result<(), Error> {
    let (x, y) = (numbers(256, 1), numbers(256, 2));
    let a = Tensor::from_slice(stream, &x, [256])?;
    let b = Tensor::from_slice(stream, &y, [256])?;
    let mut out = Tensor::zeros(stream, [256])?;

    let spent = time(stream, || kernels::scale(stream, &a, &mut out))?;
    report.add(
        "scale",
        spent,
        worst_error(&out.to_vec()?, &exact(x.iter().map(|v| v * 2.0))),
        0.0,
    );

    let spent = time(stream, || kernels::scal(stream, &a, &mut out, 3.5))?;
    report.add(
        "scal",
        spent,
        worst_error(&out.to_vec()?, &exact(x.iter().map(|v| v * 3.5))),
        0.0,
    );

    let spent = time(stream, || kernels::add::n256(stream, &a, &b, &mut out))?;
    report.add(
        "add",
        spent,
        worst_error(&out.to_vec()?, &exact(x.iter().zip(&y).map(|(a, b)| a + b))),
        0.0,
    );

    let spent = time(stream, || kernels::relu(stream, &a, &mut out))?;
    report.add(
        "relu",
        spent,
        worst_error(&out.to_vec()?, &exact(x.iter().map(|v| v.max(0.0)))),
        0.0,
    );

    let long = numbers(10_000, 3);
    let a = Tensor::from_slice(stream, &long, [10_000])?;
    let mut out = Tensor::zeros(stream, [10_000])?;
    let expected = exact(long.iter().map(|v| v * 2.0));
    let spent = time(stream, || kernels::scale_dyn(stream, &a, &mut out))?;
    report.add("scale_dyn", spent, worst_error(&out.to_vec()?, &expected), 0.0);
    let mut out = Tensor::zeros(stream, [10_000])?;
    let spent = time(stream, || kernels::scale_blocks(stream, &a, &mut out))?;
    report.add("scale_blocks", spent, worst_error(&out.to_vec()?, &expected), 0.0);
    Ok(())
}

fn reductions(stream: &Stream, report: &mut Report) -> Result<(), Error> {
    let mut a = Tensor::zeros(stream, [32])?;
    let spent = time(stream, || kernels::warp_reduce(stream, &mut a))?;
    report.add("warp_reduce", spent, worst_error(&a.to_vec()?, &[496.0; 32]), 0.0);

    let x = numbers(100_000, 4);
    let blocks = x.len().div_ceil(256);
    let a = Tensor::from_slice(stream, &x, [x.len()])?;
    let mut sums = Tensor::zeros(stream, [blocks])?;
    let spent = time(stream, || kernels::block_sum(stream, &a, &mut sums))?;
    let expected: Vec<f64> = x.chunks(256).map(|c| c.iter().map(|v| *v as f64).sum()).collect();
    report.add("block_sum", spent, worst_error(&sums.to_vec()?, &expected), 1e-5);

    let (rows, columns) = (37, 300);
    let x = numbers(rows * columns, 5);
    let a = Tensor::from_slice(stream, &x, [rows, columns])?;
    let mut sums = Tensor::zeros(stream, [rows])?;
    let spent = time(stream, || kernels::row_sums::tuned(stream, &a, &mut sums))?;
    let row = |row: &[f32]| row.iter().map(|v| *v as f64).sum();
    let expected: Vec<f64> = x.chunks(columns).map(row).collect();
    report.add("row_sums", spent, worst_error(&sums.to_vec()?, &expected), 1e-5);
    let mut out = Tensor::zeros(stream, [rows, columns])?;
    let spent = time(stream, || kernels::softmax(stream, &a, &mut out))?;
    report.add(
        "softmax",
        spent,
        relative_error(&out.to_vec()?, &reference::softmax(&x, columns)),
        1e-6,
    );

    let (rows, d) = (64, 2048);
    let halves = |values: Vec<f32>| -> Vec<f16> { values.into_iter().map(f16::from_f32).collect() };
    let (x, w) = (halves(numbers(rows * d, 6)), halves(numbers(d, 7)));
    let a = Tensor::from_slice(stream, &x, [rows, d])?;
    let weights = Tensor::from_slice(stream, &w, [d])?;
    let mut out = Tensor::zeros(stream, [rows, d])?;
    let spent = time(stream, || {
        kernels::rmsnorm::rows64_d2048(stream, &a, &weights, &mut out, 1e-5)
    })?;
    let floats = |values: &[f16]| values.iter().map(|v| v.to_f32()).collect::<Vec<_>>();
    let expected = reference::rmsnorm(&floats(&x), &floats(&w), 1e-5);
    // Half precision keeps 11 bits.
    report.add(
        "rmsnorm",
        spent,
        relative_error(&floats(&out.to_vec()?), &expected),
        1e-3,
    );
    Ok(())
}

fn matrices(stream: &Stream, report: &mut Report) -> Result<(), Error> {
    let (m, n) = (70, 100);
    let x = numbers(m * n, 8);
    let a = Tensor::from_slice(stream, &x, [m, n])?;
    let mut out = Tensor::zeros(stream, [n, m])?;
    let spent = time(stream, || kernels::transpose(stream, &a, &mut out))?;
    let expected: Vec<f64> = (0..n)
        .flat_map(|j| (0..m).map(move |i| (i, j)))
        .map(|(i, j)| x[i * n + j] as f64)
        .collect();
    report.add("transpose", spent, worst_error(&out.to_vec()?, &expected), 0.0);

    let size = 256;
    let (x, y) = (numbers(size * size, 9), numbers(size * size, 10));
    let a = Tensor::from_slice(stream, &x, [size, size])?;
    let b = Tensor::from_slice(stream, &y, [size, size])?;
    let mut out = Tensor::zeros(stream, [size, size])?;
    let spent = time(stream, || {
        kernels::matmul::m256_n256_k256(stream, &a, &b, &mut out)
    })?;
    report.add(
        "matmul",
        spent,
        relative_error(&out.to_vec()?, &reference::matmul(&x, &y, size, size)),
        1e-6,
    );
    Ok(())
}
