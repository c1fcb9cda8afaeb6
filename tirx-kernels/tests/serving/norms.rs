//! RMSNorm and LayerNorm.

use tirx_kernels::norm::{self, Options};
use tirx_kernels::quantize;
use tirx_rt::{Tensor, bf16, f8e4m3, f16};

use crate::data::{CASES, Number, Rows, close, numbers, stream};
use crate::for_each_type;

const EPS: f64 = 1e-5;

fn exact(row: &[f64], weight: &[f64], bias: Option<&[f64]>, offset: f64) -> Vec<f64> {
    let count = row.len() as f64;
    let mean = if bias.is_some() {
        row.iter().sum::<f64>() / count
    } else {
        0.0
    };
    let squares = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
    let factor = 1.0 / (squares + EPS).sqrt();
    let bias = |i: usize| bias.map_or(0.0, |bias| bias[i]);
    row.iter()
        .enumerate()
        .map(|(i, x)| (x - mean) * factor * (weight[i] + offset) + bias(i))
        .collect()
}

fn check<T: Number>(shape: &[usize], gaps: [usize; 2], layer: bool, residual: bool) {
    let stream = stream();
    let columns = *shape.last().unwrap();
    let count = shape.iter().product();
    let (x, r) = (numbers(count, 1), numbers(count, 2));
    let (w, b) = (numbers(columns, 3), numbers(columns, 4));
    let to = |values: &[f64]| {
        let values: Vec<T> = values.iter().map(|v| T::round(*v)).collect();
        Tensor::from_slice(&stream, &values, [columns]).unwrap()
    };
    let (weight, bias) = (to(&w), to(&b));
    let of_x = Rows::<T>::new(&stream, &x, shape, gaps);
    let mut of_r = Rows::<T>::new(&stream, &r, shape, gaps);
    let mut of_y = Rows::<T>::new(&stream, &vec![7.0; count], shape, gaps);
    let options = Options::eps(EPS as f32).weight_offset(1.0);
    {
        let (x, mut r, mut y) = (of_x.view(), of_r.view_mut(), of_y.view_mut());
        match (layer, residual) {
            (false, false) => norm::rms_norm(&stream, &x, &weight, &mut y, options),
            (false, true) => norm::add_rms_norm(&stream, &x, &mut r, &weight, &mut y, options),
            (true, false) => norm::layer_norm(&stream, &x, &weight, &bias, &mut y, options),
            (true, true) => norm::add_layer_norm(&stream, &x, &mut r, &weight, &bias, &mut y, options),
        }
        .unwrap_or_else(|e| panic!("{e}"));
    }
    assert_eq!(of_x.values(), x);
    let rows = match residual {
        true => {
            let sums = of_r.values();
            close(&sums, |i| (x[i] + r[i], 0.0), T::UNIT);
            sums
        }
        false => x,
    };
    let exact: Vec<f64> = rows
        .chunks(columns)
        .flat_map(|row| exact(row, &w, layer.then_some(&b[..]), 1.0))
        .collect();
    // A row of one element is its own mean: its variance is rounding, and eps bounds the factor.
    close(&of_y.values(), |i| (exact[i], 1.0), T::UNIT);
}

#[test]
fn norms_of_rows_agree_with_float64() {
    for (shape, gaps) in CASES {
        for_each_type!(check(shape, *gaps, false, false));
        check::<bf16>(shape, *gaps, true, false);
        check::<f32>(shape, *gaps, true, true);
        check::<f16>(shape, *gaps, false, true);
    }
}

/// The norm in 8 bits is the norm, quantized.
fn quantizes<T: Number + norm::QuantizeTo<Q> + quantize::QuantizeTo<Q>, Q: tirx_rt::Element + Default>(
    shape: &[usize],
    gaps: [usize; 2],
    bits: fn(Q) -> u8,
) {
    let stream = stream();
    let (columns, outer) = shape.split_last().unwrap();
    let count = shape.iter().product();
    let of = |seed| {
        let values: Vec<T> = numbers(*columns, seed).iter().map(|v| T::round(*v)).collect();
        Tensor::from_slice(&stream, &values, [*columns]).unwrap()
    };
    let (weight, bias) = (of(3), of(4));
    let of_x = Rows::<T>::new(&stream, &numbers(count, 1), shape, gaps);
    let options = Options::eps(EPS as f32).weight_offset(1.0);
    let x = of_x.view();
    for (layer, residual) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut sums = [(); 2].map(|()| Rows::<T>::new(&stream, &numbers(count, 2), shape, gaps));
        let [first, second] = &mut sums;
        let mut y = Tensor::<T>::zeros(&stream, shape).unwrap();
        let (mut r, mut s) = (first.view_mut(), second.view_mut());
        match (layer, residual) {
            (false, false) => norm::rms_norm(&stream, &x, &weight, &mut y, options),
            (false, true) => norm::add_rms_norm(&stream, &x, &mut r, &weight, &mut y, options),
            (true, false) => norm::layer_norm(&stream, &x, &weight, &bias, &mut y, options),
            (true, true) => norm::add_layer_norm(&stream, &x, &mut r, &weight, &bias, &mut y, options),
        }
        .unwrap();
        let outputs = || {
            let scales = Tensor::<f32>::full(&stream, 7.0, outer).unwrap();
            (Tensor::<Q>::zeros(&stream, shape).unwrap(), scales)
        };
        let (mut expected, mut expected_scales) = outputs();
        quantize::rows(&stream, &y, &mut expected, &mut expected_scales).unwrap();
        let (mut q, mut scales) = outputs();
        match (layer, residual) {
            (false, false) => norm::rms_norm_quantized(&stream, &x, &weight, &mut q, &mut scales, options),
            (false, true) => {
                norm::add_rms_norm_quantized(&stream, &x, &mut s, &weight, &mut q, &mut scales, options)
            }
            (true, false) => {
                norm::layer_norm_quantized(&stream, &x, &weight, &bias, &mut q, &mut scales, options)
            }
            (true, true) => norm::add_layer_norm_quantized(
                &stream,
                &x,
                &mut s,
                &weight,
                &bias,
                &mut q,
                &mut scales,
                options,
            ),
        }
        .unwrap_or_else(|e| panic!("{e}"));
        drop((r, s));
        assert_eq!(scales.to_vec().unwrap(), expected_scales.to_vec().unwrap());
        let bytes = |t: &Tensor<Q>| t.to_vec().unwrap().into_iter().map(bits).collect::<Vec<_>>();
        assert_eq!(bytes(&q), bytes(&expected));
        assert_eq!(first.values(), second.values());
    }
}

#[test]
fn norms_in_8_bits_are_norms_that_are_quantized() {
    for (shape, gaps) in CASES {
        quantizes::<bf16, f8e4m3>(shape, *gaps, f8e4m3::to_bits);
        quantizes::<f32, i8>(shape, *gaps, |q| q as u8);
    }
    quantizes::<f16, i8>(&[4, 130], [0, 0], |q| q as u8);
    quantizes::<f16, f8e4m3>(&[4, 2600], [0, 8], f8e4m3::to_bits);
}

#[test]
fn rows_of_one_number_far_from_zero_keep_their_variance() {
    let stream = stream();
    let values: Vec<f32> = (0..300).map(|i| 1000.0 + (i % 2) as f32).collect();
    let x = Tensor::from_slice(&stream, &values, [1, 300]).unwrap();
    let (w, b) = (
        Tensor::full(&stream, 1.0f32, [300]).unwrap(),
        Tensor::zeros(&stream, [300]).unwrap(),
    );
    let mut y = x.zeros_like(&stream).unwrap();
    norm::layer_norm(&stream, &x, &w, &b, &mut y, Options::eps(0.0)).unwrap();
    for (i, y) in y.to_vec().unwrap().iter().enumerate() {
        assert!((y.abs() - 1.0).abs() < 1e-3, "element {i} is {y}");
    }
}

#[test]
fn rows_of_one_number_have_no_deviations() {
    let stream = stream();
    for (number, columns) in [(1e6f32, 7), (123_457.0, 7), (7.7e7, 333), (1e4, 300)] {
        let x = Tensor::full(&stream, number, [1, columns]).unwrap();
        let (w, b) = (
            Tensor::full(&stream, 1.0f32, [columns]).unwrap(),
            Tensor::zeros(&stream, [columns]).unwrap(),
        );
        let mut y = Tensor::full(&stream, 7.0, [1, columns]).unwrap();
        norm::layer_norm(&stream, &x, &w, &b, &mut y, Options::eps(1e-5)).unwrap();
        assert_eq!(
            y.to_vec().unwrap(),
            vec![0.0; columns],
            "{columns} times {number}"
        );
    }
}

#[test]
fn a_row_with_nan_has_no_factor() {
    let stream = stream();
    for columns in [7, 64] {
        let mut values = vec![1.0f32; columns];
        values[3] = f32::NAN;
        let x = Tensor::from_slice(&stream, &values, [1, columns]).unwrap();
        let w = Tensor::full(&stream, 1.0f32, [columns]).unwrap();
        let mut q = Tensor::<i8>::zeros(&stream, [1, columns]).unwrap();
        let mut scales = Tensor::zeros(&stream, [1]).unwrap();
        norm::rms_norm_quantized(&stream, &x, &w, &mut q, &mut scales, Options::eps(1e-5)).unwrap();
        assert!(scales.to_vec().unwrap()[0].is_nan());
    }
}

#[test]
fn empty_tensors_and_wrong_shapes() {
    let stream = stream();
    let zeros = |shape: &[usize]| Tensor::<f32>::zeros(&stream, shape).unwrap();
    let options = Options::eps(1e-5);
    norm::rms_norm(
        &stream,
        &zeros(&[0, 8]),
        &zeros(&[8]),
        &mut zeros(&[0, 8]),
        options,
    )
    .unwrap();
    norm::rms_norm(
        &stream,
        &zeros(&[3, 0]),
        &zeros(&[0]),
        &mut zeros(&[3, 0]),
        options,
    )
    .unwrap();
    let message = |x: &[usize], w: &[usize], y: &[usize]| {
        norm::rms_norm(&stream, &zeros(x), &zeros(w), &mut zeros(y), options)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        message(&[3, 8], &[8], &[3, 9]),
        "X and Y have the same shape; they have [3, 8] and [3, 9]"
    );
    assert_eq!(
        message(&[3, 8], &[7], &[3, 8]),
        "expected the weight of shape [8], one number for each column; the shape is [7]"
    );
    let x = zeros(&[8, 3]);
    let error = norm::rms_norm(
        &stream,
        &x.permute(&[1, 0]).unwrap(),
        &zeros(&[8]),
        &mut zeros(&[3, 8]),
        options,
    );
    let error = error.unwrap_err().to_string();
    assert!(error.starts_with("the rows of X are contiguous"), "{error}");
}
