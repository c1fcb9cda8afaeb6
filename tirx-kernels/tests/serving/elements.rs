//! Activations, casts, rows of a table, rotary embedding.

use tirx_kernels::activation::{self, Function};
use tirx_kernels::cast::{self, CastTo};
use tirx_kernels::embedding;
use tirx_kernels::rope::{self, Pairs};
use tirx_rt::{Tensor, bf16, f16};

use crate::data::{CASES, Number, Rows, close, numbers, stream};
use crate::for_each_type;

/// erf by its series: x is small in these tests.
fn erf(x: f64) -> f64 {
    let mut term = x;
    let mut sum = x;
    for n in 1..60 {
        term *= -x * x / f64::from(n);
        sum += term / f64::from(2 * n + 1);
    }
    sum * std::f64::consts::FRAC_2_SQRT_PI
}

fn exact(function: Function, x: f64) -> f64 {
    match function {
        Function::Silu => x / (1.0 + (-x).exp()),
        Function::GeluTanh => {
            let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3));
            0.5 * x * (1.0 + inner.tanh())
        }
        Function::Gelu => 0.5 * x * (1.0 + erf(x / 2f64.sqrt())),
        _ => x.max(0.0),
    }
}

fn activations<T: Number>(shape: &[usize], gaps: [usize; 2], function: Function, gated: bool) {
    let stream = stream();
    let count = shape.iter().product();
    let (g, u) = (
        numbers(count, 1).iter().map(|x| x * 4.0).collect::<Vec<_>>(),
        numbers(count, 2),
    );
    let of_g = Rows::<T>::new(&stream, &g, shape, gaps);
    let of_u = Rows::<T>::new(&stream, &u, shape, gaps);
    let mut of_y = Rows::<T>::new(&stream, &vec![7.0; count], shape, gaps);
    match (function, gated) {
        (Function::Silu, true) => {
            activation::swiglu(&stream, &of_g.view(), &of_u.view(), &mut of_y.view_mut())
        }
        (Function::GeluTanh, true) => {
            activation::geglu(&stream, &of_g.view(), &of_u.view(), &mut of_y.view_mut())
        }
        (function, true) => activation::gated(
            &stream,
            function,
            &of_g.view(),
            &of_u.view(),
            &mut of_y.view_mut(),
        ),
        (function, false) => activation::apply(&stream, function, &of_g.view(), &mut of_y.view_mut()),
    }
    .unwrap_or_else(|e| panic!("{e}"));
    let factor = |i: usize| if gated { u[i] } else { 1.0 };
    close(
        &of_y.values(),
        |i| (exact(function, g[i]) * factor(i), 0.01),
        T::UNIT,
    );
}

#[test]
fn activations_agree_with_float64() {
    for (shape, gaps) in CASES {
        for_each_type!(activations(shape, *gaps, Function::Silu, true));
        activations::<bf16>(shape, *gaps, Function::GeluTanh, true);
    }
    for function in [Function::Silu, Function::GeluTanh, Function::Gelu, Function::Relu] {
        for gated in [false, true] {
            for_each_type!(activations(&[3, 45], [0, 0], function, gated));
        }
    }
}

#[test]
fn activations_of_large_numbers_and_none() {
    let stream = stream();
    let values = [f32::NAN, f32::INFINITY, 1e30, -1e30, -100.0, 0.0, -0.5];
    for (function, columns) in [Function::Silu, Function::GeluTanh, Function::Gelu, Function::Relu]
        .into_iter()
        .flat_map(|function| [(function, 7), (function, 4)])
    {
        let x = Tensor::from_slice(&stream, &values[..columns], [1, columns]).unwrap();
        let mut y = x.zeros_like(&stream).unwrap();
        activation::apply(&stream, function, &x, &mut y).unwrap();
        let y = y.to_vec().unwrap();
        assert!(y[0].is_nan(), "{function:?} of NaN is {}", y[0]);
        assert_eq!((y[1], y[2], y[3]), (f32::INFINITY, 1e30, 0.0), "{function:?}");
    }
}

fn casts<S: Number + CastTo<T>, T: Number>(shape: &[usize], gaps: [usize; 2]) {
    let stream = stream();
    let x = numbers(shape.iter().product(), 5)
        .iter()
        .map(|x| x * 3.3)
        .collect::<Vec<_>>();
    let of_x = Rows::<S>::new(&stream, &x, shape, gaps);
    let mut of_y = Rows::<T>::new(&stream, &vec![7.0; x.len()], shape, gaps);
    cast::cast(&stream, &of_x.view(), &mut of_y.view_mut()).unwrap_or_else(|e| panic!("{e}"));
    let expected: Vec<f64> = x.iter().map(|x| T::round(S::round(*x).value()).value()).collect();
    assert_eq!(of_y.values(), expected);
}

#[test]
fn casts_round_to_the_nearest() {
    for (shape, gaps) in CASES {
        casts::<f32, bf16>(shape, *gaps);
        casts::<bf16, f32>(shape, *gaps);
        casts::<f16, f16>(shape, *gaps);
    }
    casts::<f32, f16>(&[3, 37], [0, 0]);
    casts::<f16, bf16>(&[3, 37], [0, 0]);
    casts::<bf16, f16>(&[3, 37], [0, 0]);
    casts::<f16, f32>(&[3, 37], [0, 0]);
}

fn gathers<T: Number>(entries: usize, columns: usize, gaps: [usize; 2]) {
    let stream = stream();
    let table = numbers(entries * columns, 1);
    let ids = [entries as i32 - 1, 0, -1, entries as i32, 0, i32::MIN];
    let of_table = Rows::<T>::new(&stream, &table, &[entries, columns], gaps);
    let mut y = Rows::<T>::new(
        &stream,
        &vec![7.0; ids.len() * columns],
        &[ids.len(), columns],
        gaps,
    );
    let of_ids = Tensor::from_slice(&stream, &ids, [ids.len()]).unwrap();
    embedding::gather(&stream, &of_table.view(), &of_ids, &mut y.view_mut())
        .unwrap_or_else(|e| panic!("{e}"));
    let expected: Vec<f64> = ids
        .iter()
        .flat_map(|id| match usize::try_from(*id) {
            Ok(id) if id < entries => table[id * columns..(id + 1) * columns].to_vec(),
            _ => vec![0.0; columns],
        })
        .collect();
    assert_eq!(y.values(), expected);
}

#[test]
fn rows_of_a_table_are_gathered() {
    for (entries, columns, gaps) in [
        (1, 1, [0, 0]),
        (5, 64, [0, 0]),
        (5, 64, [1, 0]),
        (3, 77, [0, 4]),
        (2, 9000, [0, 0]),
    ] {
        for_each_type!(gathers(entries, columns, gaps));
    }
    let stream = stream();
    let table = Tensor::<f32>::zeros(&stream, [4, 8]).unwrap();
    let ids = Tensor::from_slice(&stream, &[1, 2], [2]).unwrap();
    let error = embedding::gather(
        &stream,
        &table,
        &ids,
        &mut Tensor::zeros(&stream, [2, 7]).unwrap(),
    );
    let error = error.unwrap_err().to_string();
    assert_eq!(
        error,
        "expected Y of shape [2, 8], [ids, columns of the table]; the shape is [2, 7]"
    );
}

fn turns<T: Number>([tokens, heads, head]: [usize; 3], pairs: usize, gaps: [usize; 2], convention: Pairs) {
    let stream = stream();
    let x = numbers(tokens * heads * head, 1);
    let mut of_x = Rows::<T>::new(&stream, &x, &[tokens, heads, head], gaps);
    let positions: Vec<i32> = (0..tokens as i32)
        .map(|t| t * t * 1_000_003 % 1_000_000)
        .collect();
    let frequencies = rope::frequencies(10_000.0, pairs * 2);
    let of_positions = Tensor::from_slice(&stream, &positions, [tokens]).unwrap();
    let of_frequencies = Tensor::from_slice(&stream, &frequencies, [pairs]).unwrap();
    rope::apply(
        &stream,
        &mut of_x.view_mut(),
        &of_positions,
        &of_frequencies,
        convention,
    )
    .unwrap_or_else(|e| panic!("{e}"));
    let mut exact = x.clone();
    for (row, values) in exact.chunks_mut(head).enumerate() {
        for (pair, frequency) in frequencies.iter().enumerate() {
            let (one, two) = match convention {
                Pairs::Halves => (pair, pair + pairs),
                Pairs::Interleaved => (2 * pair, 2 * pair + 1),
            };
            let angle = f64::from(positions[row / heads]) * f64::from(*frequency);
            let (a, b) = (values[one], values[two]);
            values[one] = a * angle.cos() - b * angle.sin();
            values[two] = b * angle.cos() + a * angle.sin();
        }
    }
    close(&of_x.values(), |i| (exact[i], 0.1), T::UNIT);
}

#[test]
fn rotary_embedding_agrees_with_float64() {
    for convention in [Pairs::Halves, Pairs::Interleaved] {
        for (shape, pairs, gaps) in [
            ([3, 4, 64], 32, [0, 0]),
            ([2, 3, 128], 64, [8, 8]),
            ([2, 2, 128], 16, [0, 0]),
            ([2, 3, 36], 18, [0, 0]),
            ([1, 5, 10], 3, [1, 0]),
            ([2, 1, 2], 1, [0, 0]),
            ([1, 9, 512], 256, [0, 0]),
        ] {
            for_each_type!(turns(shape, pairs, gaps, convention));
        }
    }
    let stream = stream();
    let mut x = Tensor::<f32>::zeros(&stream, [2, 3, 8]).unwrap();
    let positions = Tensor::from_slice(&stream, &[0, 1], [2]).unwrap();
    let frequencies = Tensor::from_slice(&stream, &[1.0; 5], [5]).unwrap();
    let error = rope::apply(&stream, &mut x, &positions, &frequencies, Pairs::Halves);
    let error = error.unwrap_err().to_string();
    assert!(
        error.starts_with("5 frequencies turn 10 elements of a head; heads have 8"),
        "{error}"
    );
}
