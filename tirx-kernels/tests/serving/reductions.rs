//! Softmax, cross-entropy, quantization.

use tirx_kernels::quantize::{self, QuantizeTo};
use tirx_kernels::{loss, softmax};
use tirx_rt::{Tensor, bf16, f8e4m3, f16};

use crate::data::{CASES, Number, Rows, close, numbers, stream};
use crate::for_each_type;

fn softmaxes<T: Number>(shape: &[usize], gaps: [usize; 2], scale: f64) {
    let stream = stream();
    let columns = *shape.last().unwrap();
    let x = numbers(shape.iter().product(), 1);
    let of_x = Rows::<T>::new(&stream, &x, shape, gaps);
    let mut of_y = Rows::<T>::new(&stream, &vec![7.0; x.len()], shape, gaps);
    softmax::softmax(&stream, &of_x.view(), &mut of_y.view_mut(), scale as f32)
        .unwrap_or_else(|e| panic!("{e}"));
    let exact: Vec<f64> = x
        .chunks(columns)
        .flat_map(|row| {
            let most = row.iter().fold(f64::MIN, |m, x| m.max(x * scale));
            let total: f64 = row.iter().map(|x| (x * scale - most).exp()).sum();
            row.iter()
                .map(move |x| (x * scale - most).exp() / total)
                .collect::<Vec<_>>()
        })
        .collect();
    close(&of_y.values(), |i| (exact[i], 1e-5 * scale.abs()), T::UNIT);
}

#[test]
fn softmax_agrees_with_float64() {
    for (shape, gaps) in CASES {
        for_each_type!(softmaxes(shape, *gaps, 1.0));
        softmaxes::<f32>(shape, *gaps, -3.0);
    }
    softmaxes::<f32>(&[3, 50], [0, 0], 1000.0);
}

fn losses<T: Number>(rows: usize, columns: usize, gaps: [usize; 2]) {
    let stream = stream();
    let x = numbers(rows * columns, 1)
        .iter()
        .map(|x| x * 8.0)
        .collect::<Vec<_>>();
    let of_x = Rows::<T>::new(&stream, &x, &[rows, columns], gaps);
    let targets: Vec<i32> = (0..rows).map(|r| (r * 7919 % (columns + 1)) as i32 - 1).collect();
    let of_targets = Tensor::from_slice(&stream, &targets, [rows]).unwrap();
    let mut found = Tensor::<f32>::full(&stream, 7.0, [rows]).unwrap();
    loss::cross_entropy(&stream, &of_x.view(), &of_targets, &mut found).unwrap_or_else(|e| panic!("{e}"));
    let exact: Vec<f64> = (0..rows)
        .map(|r| match usize::try_from(targets[r]) {
            Ok(target) => {
                let row = &x[r * columns..(r + 1) * columns];
                row.iter().map(|x| x.exp()).sum::<f64>().ln() - row[target]
            }
            Err(_) => 0.0,
        })
        .collect();
    let found: Vec<f64> = found.to_vec().unwrap().iter().map(|x| f64::from(*x)).collect();
    close(&found, |i| (exact[i], 1.0), 2e-6);
}

#[test]
fn cross_entropy_agrees_with_float64() {
    for (rows, columns, gaps) in [
        (1, 1, [0, 0]),
        (5, 37, [0, 3]),
        (3, 4096, [0, 0]),
        (2, 5001, [1, 0]),
    ] {
        for_each_type!(losses(rows, columns, gaps));
    }
}

fn quantizes<T: Number + QuantizeTo<i8> + QuantizeTo<f8e4m3>>(shape: &[usize], gaps: [usize; 2]) {
    let stream = stream();
    let (columns, outer) = shape.split_last().unwrap();
    let mut x = numbers(shape.iter().product(), 1);
    let zeros = if outer.first().is_some_and(|n| *n > 2) {
        *columns
    } else {
        0
    };
    x[..zeros].fill(0.0);
    let of_x = Rows::<T>::new(&stream, &x, shape, gaps);
    let mut scales = Tensor::<f32>::full(&stream, 7.0, outer).unwrap();
    let mut bytes = Tensor::<i8>::zeros(&stream, shape).unwrap();
    quantize::rows(&stream, &of_x.view(), &mut bytes, &mut scales).unwrap_or_else(|e| panic!("{e}"));
    let check = |scales: Vec<f32>, values: Vec<f64>, largest: f64, step: &dyn Fn(f64) -> f64| {
        for (r, row) in x.chunks(*columns).enumerate() {
            let most = row.iter().fold(0f64, |m, x| m.max(x.abs()));
            let scale = if most == 0.0 { 1.0 } else { most / largest };
            assert!(
                (f64::from(scales[r]) - scale).abs() <= scale * 1e-6,
                "row {r}: {} is not {scale}",
                scales[r]
            );
            for (c, x) in row.iter().enumerate() {
                let value = values[r * columns + c];
                let bound = step(x / scale) * 0.5001 + 1e-4;
                assert!(
                    (value - x / scale).abs() <= bound,
                    "row {r}, column {c}: {value}, not {}",
                    x / scale
                );
            }
        }
    };
    let values = bytes.to_vec().unwrap().iter().map(|q| f64::from(*q)).collect();
    check(scales.to_vec().unwrap(), values, 127.0, &|_| 1.0);
    let mut floats = Tensor::<f8e4m3>::zeros(&stream, shape).unwrap();
    quantize::rows(&stream, &of_x.view(), &mut floats, &mut scales).unwrap_or_else(|e| panic!("{e}"));
    let values = floats
        .to_vec()
        .unwrap()
        .iter()
        .map(|q| f64::from(q.to_f32()))
        .collect();
    // Three bits of mantissa; denormals below 2^-6.
    check(scales.to_vec().unwrap(), values, 448.0, &|x| {
        2f64.powi(x.abs().log2().floor().max(-6.0) as i32 - 3)
    });
}

#[test]
fn quantization_to_8_bits_is_within_half_a_step() {
    for (shape, gaps) in CASES {
        quantizes::<bf16>(shape, *gaps);
        quantizes::<f32>(shape, *gaps);
    }
    quantizes::<f16>(&[4, 130], [0, 0]);
}
