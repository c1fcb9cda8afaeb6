//! The kernels that copy and compute asynchronously. On a GPU those for its architecture run, at sizes that fill it; on the
//! simulator all of them run, at small ones.

use std::time::Duration;

use tirx_rt::{Stream, Tensor, bf16};

use crate::report::{Report, relative_error, time, worst_error};
use crate::vectors::numbers;
use crate::{Error, kernels, reference};

/// Elements of a head.
const HEAD: usize = 128;
/// bfloat16 keeps 8 bits.
const ALLOWED: f64 = 8e-3;

/// Runs and checks them.
pub(crate) fn run(stream: &Stream, report: &mut Report) -> Result<(), Error> {
    let x = numbers(1024 * 32, 20);
    let a = Tensor::from_slice(stream, &x, [1024, 32])?;
    let mut out = Tensor::zeros(stream, [1024, 32])?;
    let spent = time(stream, || kernels::scale_tma::m1024(stream, &a, &mut out, 2.5))?;
    let expected: Vec<f64> = x.iter().map(|v| f64::from(v * 2.5)).collect();
    report.add("scale_tma", spent, worst_error(&out.to_vec()?, &expected), 0.0);

    if stream.device().is_simulator() {
        let size = [256, 256, 128];
        gemm(
            stream,
            report,
            "gemm_clusters",
            size,
            kernels::gemm_clusters::m256_n256_k128_clusters1,
        )?;
        gemm(
            stream,
            report,
            "gemm_tiles",
            size,
            kernels::gemm_tiles::m256_n256_k128,
        )?;
        gemm(
            stream,
            report,
            "gemm_pairs",
            size,
            kernels::gemm_pairs::m256_n256_k128,
        )?;
        attention(
            stream,
            report,
            "hopper_attention",
            (1, 256),
            kernels::hopper_attention::h1_s256,
        )?;
        attention(
            stream,
            report,
            "blackwell_attention",
            (1, 256),
            kernels::blackwell_attention::h1_s256,
        )
    } else {
        let size = [4096; 3];
        gemm(
            stream,
            report,
            "gemm_clusters",
            size,
            kernels::gemm_clusters::m4096_n4096_k4096_clusters66,
        )?;
        gemm(
            stream,
            report,
            "gemm_tiles",
            size,
            kernels::gemm_tiles::m4096_n4096_k4096,
        )?;
        gemm(
            stream,
            report,
            "gemm_pairs",
            size,
            kernels::gemm_pairs::m4096_n4096_k4096,
        )?;
        attention(
            stream,
            report,
            "hopper_attention",
            (16, 4096),
            kernels::hopper_attention::h16_s4096,
        )?;
        attention(
            stream,
            report,
            "blackwell_attention",
            (16, 4096),
            kernels::blackwell_attention::h16_s4096,
        )
    }
}

/// Numbers in bfloat16, on the device and as they are there.
fn matrix(
    stream: &Stream,
    rows: usize,
    columns: usize,
    seed: u32,
) -> Result<(Tensor<bf16>, Vec<f32>), Error> {
    let halves: Vec<bf16> = numbers(rows * columns, seed)
        .into_iter()
        .map(bf16::from_f32)
        .collect();
    let values = halves.iter().map(|v| v.to_f32()).collect();
    Ok((Tensor::from_slice(stream, &halves, [rows, columns])?, values))
}

/// The time of a launch; none where there is no code for this GPU.
fn timed(stream: &Stream, launch: impl FnMut() -> tirx_rt::Result<()>) -> Result<Option<Duration>, Error> {
    match time(stream, launch) {
        Ok(spent) => Ok(Some(spent)),
        Err(tirx_rt::Error::NoCodeForDevice { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Compares some rows of the result.
fn compare(
    report: &mut Report,
    name: &str,
    spent: Duration,
    out: &Tensor<bf16>,
    columns: usize,
    row: impl Fn(usize) -> Vec<f64>,
) -> Result<(), Error> {
    let found = out.to_vec()?;
    let rows = found.len() / columns;
    let (mut actual, mut expected) = (Vec::new(), Vec::new());
    for at in (0..rows).step_by(rows / 16 + 1).chain([rows - 1]) {
        actual.extend(found[at * columns..(at + 1) * columns].iter().map(|v| v.to_f32()));
        expected.extend(row(at));
    }
    report.add(name, spent, relative_error(&actual, &expected), ALLOWED);
    Ok(())
}

/// C = A B^T.
fn gemm(
    stream: &Stream,
    report: &mut Report,
    name: &str,
    [m, n, k]: [usize; 3],
    launch: impl Fn(&Stream, &Tensor<bf16>, &Tensor<bf16>, &mut Tensor<bf16>) -> tirx_rt::Result<()>,
) -> Result<(), Error> {
    let (a, x) = matrix(stream, m, k, 21)?;
    let (b, y) = matrix(stream, n, k, 22)?;
    let mut out = Tensor::zeros(stream, [m, n])?;
    let Some(spent) = timed(stream, || launch(stream, &a, &b, &mut out))? else {
        return Ok(());
    };
    let row = |at: usize| {
        let left = &x[at * k..(at + 1) * k];
        let dot = |right: &[f32]| {
            left.iter()
                .zip(right)
                .map(|(a, b)| f64::from(*a) * f64::from(*b))
                .sum()
        };
        y.chunks(k).map(dot).collect()
    };
    compare(report, name, spent, &out, n, row)
}

/// O = softmax(Q K^T / sqrt(128)) V for each head.
fn attention(
    stream: &Stream,
    report: &mut Report,
    name: &str,
    (heads, length): (usize, usize),
    launch: impl Fn(
        &Stream,
        &Tensor<bf16>,
        &Tensor<bf16>,
        &Tensor<bf16>,
        &mut Tensor<bf16>,
    ) -> tirx_rt::Result<()>,
) -> Result<(), Error> {
    let rows = heads * length;
    let (q, queries) = matrix(stream, rows, HEAD, 23)?;
    let (k, keys) = matrix(stream, rows, HEAD, 24)?;
    let (v, values) = matrix(stream, rows, HEAD, 25)?;
    let mut out = Tensor::zeros(stream, [rows, HEAD])?;
    let Some(spent) = timed(stream, || launch(stream, &q, &k, &v, &mut out))? else {
        return Ok(());
    };
    let row = |at: usize| {
        let own = at / length * length * HEAD..(at / length + 1) * length * HEAD;
        reference::attention(
            &queries[at * HEAD..(at + 1) * HEAD],
            &keys[own.clone()],
            &values[own],
        )
    };
    compare(report, name, spent, &out, HEAD, row)
}
