//! Softmax, cross-entropy, quantization.

use tirx_kernels::quantize::{self, QuantizeTo};
use tirx_kernels::{loss, softmax};
use tirx_rt::{Tensor, bf16, f4e2m1x2, f8e4m3, f8e8m0, f16};

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

#[test]
fn softmax_of_the_largest_scores() {
    let stream = stream();
    for (scale, row) in [(1.0, f32::MAX), (1.0, f32::MIN), (-1.0, f32::MIN), (0.9, 2.5e38)] {
        for columns in [4, 5] {
            let x = Tensor::full(&stream, row, [1, columns]).unwrap();
            let mut y = x.zeros_like(&stream).unwrap();
            softmax::softmax(&stream, &x, &mut y, scale).unwrap();
            let share = 1.0 / columns as f32;
            for y in y.to_vec().unwrap() {
                assert!((y - share).abs() < 1e-6, "{columns} times {row}: {y}");
            }
        }
    }
    let x = Tensor::from_slice(&stream, &[f32::MIN, f32::MAX, f32::NEG_INFINITY, 0.0], [1, 4]).unwrap();
    let mut y = x.zeros_like(&stream).unwrap();
    softmax::softmax(&stream, &x, &mut y, 1.0).unwrap();
    assert_eq!(y.to_vec().unwrap(), [0.0, 1.0, 0.0, 0.0]);
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

/// Quantizes a row of `columns` zeros with one other number, by rows and as a block, and compares what the results stand for with `exact`.
fn quantizes_alone(columns: usize, number: f32, exact: impl Fn(f32) -> bool) {
    let stream = stream();
    let mut values = vec![0.0; columns];
    values[2] = number;
    let x = Tensor::from_slice(&stream, &values, [1, columns]).unwrap();
    let mut scales = Tensor::full(&stream, 7.0, [1]).unwrap();
    let check = |form: &str, q: Vec<f32>, scale: f32| {
        assert!(
            exact(q[2] * scale),
            "{form}, {columns} columns: {number} became {} times {scale}",
            q[2]
        );
        if number.is_finite() {
            let others = q.iter().enumerate().filter(|(at, _)| *at != 2);
            assert!(others.into_iter().all(|(_, q)| *q == 0.0), "{form}: {q:?}");
        }
    };
    let mut q = Tensor::<i8>::zeros(&stream, [1, columns]).unwrap();
    quantize::rows(&stream, &x, &mut q, &mut scales).unwrap();
    let found = q.to_vec().unwrap().iter().map(|q| f32::from(*q)).collect();
    check("int8", found, scales.to_vec().unwrap()[0]);
    let mut q = Tensor::<f8e4m3>::zeros(&stream, [1, columns]).unwrap();
    quantize::rows(&stream, &x, &mut q, &mut scales).unwrap();
    let found = q.to_vec().unwrap().iter().map(|q| q.to_f32()).collect();
    check("float8", found, scales.to_vec().unwrap()[0]);
    let mut scales = Tensor::full(&stream, 7.0, [1, columns.div_ceil(128)]).unwrap();
    quantize::blocks(&stream, &x, &mut q, &mut scales).unwrap();
    let found = q.to_vec().unwrap().iter().map(|q| q.to_f32()).collect();
    check("blocks", found, scales.to_vec().unwrap()[0]);
}

#[test]
fn the_smallest_numbers_and_none_are_quantized() {
    for columns in [11, 16, 5000] {
        for number in [1e-36f32, -1e-37, 1e-40, f32::from_bits(1), 3e38] {
            quantizes_alone(columns, number, |found| {
                (found - number).abs() <= number.abs() / 16.0 + 0.5 * f32::MIN_POSITIVE
            });
        }
        quantizes_alone(columns, f32::NAN, f32::is_nan);
    }
}

fn quantizes_blocks<T: Number>(shape: &[usize], gaps: [usize; 2]) {
    let stream = stream();
    let (rows, columns) = (shape[shape.len() - 2], shape[shape.len() - 1]);
    let mut x = numbers(shape.iter().product(), 1);
    // The first block is zero, unless it is the only one.
    if rows > 128 {
        for row in 0..128 {
            x[row * columns..][..columns.min(128)].fill(0.0);
        }
    }
    let of_x = Rows::<T>::new(&stream, &x, shape, gaps);
    let (down, across) = (rows.div_ceil(128), columns.div_ceil(128));
    let of_scales = [&shape[..shape.len() - 2], &[down, across]].concat();
    let mut scales = Tensor::<f32>::full(&stream, 7.0, &of_scales[..]).unwrap();
    let mut q = Tensor::<f8e4m3>::zeros(&stream, shape).unwrap();
    quantize::blocks(&stream, &of_x.view(), &mut q, &mut scales).unwrap_or_else(|e| panic!("{e}"));
    let (q, scales) = (q.to_vec().unwrap(), scales.to_vec().unwrap());
    let mut most = vec![0f64; scales.len()];
    let block = |i: usize| {
        let (matrix, row, column) = (i / (rows * columns), i / columns % rows, i % columns);
        (matrix * down + row / 128) * across + column / 128
    };
    for (i, x) in x.iter().enumerate() {
        most[block(i)] = most[block(i)].max(x.abs());
    }
    for (scale, most) in scales.iter().zip(&most) {
        let exact = if *most == 0.0 { 1.0 } else { most / 448.0 };
        assert!((f64::from(*scale) - exact).abs() <= exact * 1e-6);
    }
    for (i, x) in x.iter().enumerate() {
        let exact = x / f64::from(scales[block(i)]);
        let step = 2f64.powi(exact.abs().log2().floor().max(-6.0) as i32 - 3);
        let found = f64::from(q[i].to_f32());
        assert!(
            (found - exact).abs() <= step * 0.5001 + 1e-4,
            "element {i}: {found}, not {exact}"
        );
    }
}

#[test]
fn quantization_by_blocks_is_within_half_a_step() {
    for (shape, gaps) in [
        (&[1usize, 1][..], [0, 0]),
        (&[128, 128], [0, 0]),
        (&[130, 140], [0, 3]),
        (&[3, 384], [8, 8]),
        (&[2, 257, 77], [0, 0]),
    ] {
        quantizes_blocks::<bf16>(shape, gaps);
        quantizes_blocks::<f32>(shape, gaps);
    }
    quantizes_blocks::<f16>(&[300, 136], [0, 0]);
    let stream = stream();
    let error = quantize::blocks(
        &stream,
        &Tensor::<bf16>::zeros(&stream, [129, 8]).unwrap(),
        &mut Tensor::zeros(&stream, [129, 8]).unwrap(),
        &mut Tensor::zeros(&stream, [1, 1]).unwrap(),
    );
    assert_eq!(
        error.unwrap_err().to_string(),
        "expected the scales of shape [2, 1], one for each block of 128 by 128 numbers; the shape is [1, 1]"
    );
}

/// The float4 that is nearest, of two the even one, with the sign of the number.
fn float4(x: f64) -> u8 {
    const VALUES: [f64; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
    let distance = |code: u8| ((VALUES[usize::from(code)] - x.abs()).abs(), code % 2);
    let best = (0..8).min_by(|a, b| distance(*a).partial_cmp(&distance(*b)).unwrap());
    best.unwrap() | if x.is_sign_negative() { 8 } else { 0 }
}

fn quantizes_groups<T: Number>(shape: &[usize], gaps: [usize; 2]) {
    let stream = stream();
    let (columns, outer) = shape.split_last().unwrap();
    let mut x: Vec<f64> = numbers(shape.iter().product(), 1)
        .iter()
        .enumerate()
        .map(|(i, x)| T::round(x * f64::from((i / 16 % 7) as u32).exp2()).value())
        .collect();
    x[..32].fill(0.0);
    // Halves between two float4, and the largest one.
    for (x, value) in x[32..]
        .iter_mut()
        .zip([6.0, 0.25, -0.75, 1.25, -1.75, 2.5, 3.5, -5.0])
    {
        *x = value;
    }
    let of_x = Rows::<T>::new(&stream, &x, shape, gaps);
    let of_row = |count: usize| [outer, &[count]].concat();
    let mut q = Tensor::<f4e2m1x2>::zeros(&stream, &of_row(columns / 2)[..]).unwrap();
    let codes = |q: &Tensor<f4e2m1x2>| -> Vec<u8> {
        let bytes = q.to_vec().unwrap();
        bytes
            .iter()
            .flat_map(|byte| [byte.to_bits() & 15, byte.to_bits() >> 4])
            .collect()
    };
    let most = |group: &[f64]| group.iter().fold(0f64, |m, x| m.max(x.abs()));

    let mut powers = Tensor::<f8e8m0>::zeros(&stream, &of_row(columns / 32)[..]).unwrap();
    quantize::mxfp4(&stream, &of_x.view(), &mut q, &mut powers).unwrap_or_else(|e| panic!("{e}"));
    let (found, powers) = (codes(&q), powers.to_vec().unwrap());
    for (g, group) in x.chunks(32).enumerate() {
        let most = most(group);
        let power = if most == 0.0 {
            1.0
        } else {
            (most / 6.0).log2().ceil().exp2()
        };
        assert_eq!(f64::from(powers[g].to_f32()), power, "group {g}");
        for (i, x) in group.iter().enumerate() {
            assert_eq!(
                found[g * 32 + i],
                float4(x / power),
                "group {g}, element {i}: {x}"
            );
        }
    }

    let of_tensor = (most(&x) / (6.0 * 448.0)) as f32;
    let mut factors = Tensor::<f8e4m3>::zeros(&stream, &of_row(columns / 16)[..]).unwrap();
    quantize::nvfp4(&stream, &of_x.view(), &mut q, &mut factors, of_tensor).unwrap_or_else(|e| panic!("{e}"));
    let (found, factors) = (codes(&q), factors.to_vec().unwrap());
    for (g, group) in x.chunks(16).enumerate() {
        let exact = most(group) / 6.0 / f64::from(of_tensor);
        let factor = f64::from(factors[g].to_f32());
        let step = 2f64.powi(exact.log2().floor().max(-6.0) as i32 - 3);
        assert!(
            (factor - exact).abs() <= step * 0.5001,
            "group {g}: {factor}, not {exact}"
        );
        for (i, x) in group.iter().enumerate() {
            let code = found[g * 16 + i];
            let exact = x / (factor * f64::from(of_tensor));
            // The kernel multiplies by the rounded inverse, so halves may go either way.
            let fits = factor == 0.0
                || [1.0 - 1e-6, 1.0, 1.0 + 1e-6]
                    .iter()
                    .any(|by| float4(exact * by) == code);
            assert!(fits, "group {g}, element {i}: {x} is {code}");
        }
    }
}

#[test]
fn float4_with_factors_of_groups_is_the_nearest() {
    for (shape, gaps) in [
        (&[64usize][..], [0, 0]),
        (&[5, 32], [0, 0]),
        (&[3, 96], [0, 3]),
        (&[3, 64], [8, 8]),
        (&[2, 3, 160], [1, 2]),
        (&[2, 2, 2, 32], [0, 0]),
        (&[1, 4096], [0, 0]),
    ] {
        for_each_type!(quantizes_groups(shape, gaps));
    }
    let stream = stream();
    let mut values = vec![1.0f32; 96];
    (values[3], values[40]) = (f32::INFINITY, f32::NAN);
    let x = Tensor::from_slice(&stream, &values, [1, 96]).unwrap();
    let mut q = Tensor::<f4e2m1x2>::zeros(&stream, [1, 48]).unwrap();
    let mut powers = Tensor::<f8e8m0>::zeros(&stream, [1, 3]).unwrap();
    quantize::mxfp4(&stream, &x, &mut q, &mut powers).unwrap();
    let numbers: Vec<bool> = powers.to_vec().unwrap().iter().map(|p| !p.is_nan()).collect();
    assert_eq!(numbers, [false, false, true]);
    let error = quantize::mxfp4(
        &stream,
        &Tensor::<f32>::zeros(&stream, [1, 48]).unwrap(),
        &mut q,
        &mut powers,
    );
    assert_eq!(
        error.unwrap_err().to_string(),
        "X has a multiple of 32 columns, not 48"
    );
}
