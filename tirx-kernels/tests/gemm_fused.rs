//! Products with scales, bias, activation, residual and other element types on the simulator, with all its checks, against float64.
//! `TIRX_TEST_DEVICE=cuda` runs them on the first GPU.

#![cfg(feature = "gemm")]

mod numbers;

use numbers::{Number, blackwell, error_of_term, numbers, stream};
use proptest::prelude::*;
use tirx_kernels::gemm::{Activation, Input, Matmul};
use tirx_rt::{Stream, Tensor, bf16, f8e4m3, f8e5m2, f16};

/// The form of a product.
#[derive(Clone, Copy, Debug)]
struct FusedForm {
    batch: usize,
    m: usize,
    n: usize,
    k: usize,
    /// B is contiguous along K.
    by_k: bool,
    /// Elements behind each row of A, B, C and the residual.
    gap: usize,
    bias: bool,
    activation: Option<Activation>,
    residual: bool,
    scale: f32,
    /// Scales of A and B: none, one number, or one for each row or column.
    scales: [u8; 2],
}

const PLAIN: FusedForm = FusedForm {
    batch: 1,
    m: 40,
    n: 72,
    k: 96,
    by_k: true,
    gap: 0,
    bias: false,
    activation: None,
    residual: false,
    scale: 1.0,
    scales: [0, 0],
};

fn activated(activation: Option<Activation>, x: f64) -> f64 {
    match activation {
        None => x,
        Some(Activation::Relu) => x.max(0.0),
        Some(Activation::Gelu) => 0.5 * x * (1.0 + erf(x / std::f64::consts::SQRT_2)),
        Some(Activation::GeluTanh) => {
            0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3))).tanh())
        }
        Some(Activation::Silu) => x / (1.0 + (-x).exp()),
        Some(other) => panic!("no reference of {other:?}"),
    }
}

/// The error function by its power series, or 1 for numbers with which the series is inexact.
fn erf(x: f64) -> f64 {
    if x.abs() > 4.0 {
        return x.signum();
    }
    let mut term = x;
    let mut sum = x;
    for n in 1..200 {
        let n = f64::from(n);
        term *= -x * x / n;
        sum += term / (2.0 * n + 1.0);
    }
    2.0 / std::f64::consts::PI.sqrt() * sum
}

/// The rounded values, and a tensor `[outer, inner]` of them with a gap behind each row.
fn rows<T: Number>(values: &[f64], inner: usize, gap: usize) -> (Vec<f64>, Vec<T>) {
    let rounded: Vec<T> = values.iter().map(|x| T::round(*x)).collect();
    let mut all = Vec::new();
    for row in rounded.chunks(inner.max(1)) {
        all.extend_from_slice(row);
        all.extend(std::iter::repeat_n(T::round(1.5), gap));
    }
    (rounded.into_iter().map(T::value).collect(), all)
}

/// A matrix of a batch in the other order.
fn turned(values: &[f64], batch: usize, rows: usize, columns: usize) -> Vec<f64> {
    let mut to = vec![0.0; values.len()];
    for b in 0..batch {
        for i in 0..rows {
            for j in 0..columns {
                to[(b * columns + j) * rows + i] = values[(b * rows + i) * columns + j];
            }
        }
    }
    to
}

fn check<T: Number + Input<O>, O: Number>(stream: &Stream, form: FusedForm) {
    let FusedForm {
        batch, m, n, k, gap, ..
    } = form;
    let (a, a_memory) = rows::<T>(&numbers(batch * m * k, 1), k, gap);
    let (b, b_memory) = match form.by_k {
        true => {
            let (b, memory) = rows::<T>(&numbers(batch * n * k, 2), k, gap);
            (turned(&b, batch, n, k), memory)
        }
        false => rows::<T>(&numbers(batch * k * n, 2), n, gap),
    };
    let (bias, bias_memory) = rows::<O>(&numbers(batch * n, 3), n, 0);
    let (residual, residual_memory) = rows::<O>(&numbers(batch * m * n, 4), n, gap);
    let count = |kind: u8, extent: usize| match kind {
        0 => 0,
        1 => 1,
        _ => extent,
    };
    let scale_a: Vec<f32> = (0..count(form.scales[0], batch * m))
        .map(|i| 0.5 + (i % 5) as f32)
        .collect();
    let scale_b: Vec<f32> = (0..count(form.scales[1], batch * n))
        .map(|i| 0.25 + (i % 7) as f32)
        .collect();

    let tensor = |memory: &[T], outer: usize, inner: usize| {
        Tensor::from_slice(stream, memory, [batch, outer, inner + gap]).unwrap()
    };
    let a_all = tensor(&a_memory, m, k);
    let a_view = a_all.slice(2, 0..k).unwrap();
    let (outer, inner) = if form.by_k { (n, k) } else { (k, n) };
    let b_all = tensor(&b_memory, outer, inner);
    let b_inner = b_all.slice(2, 0..inner).unwrap();
    let order = if form.by_k { [0, 2, 1] } else { [0, 1, 2] };
    let b_view = b_inner.permute(&order).unwrap();
    let residual_all = Tensor::from_slice(stream, &residual_memory, [batch, m, n + gap]).unwrap();
    let residual_view = residual_all.slice(2, 0..n).unwrap();
    let bias_all = Tensor::from_slice(stream, &bias_memory, [batch, n]).unwrap();
    let of = |scale: &[f32], kind: u8, extent: usize| match kind {
        2 => Tensor::from_slice(stream, scale, [batch, extent]).unwrap(),
        _ => Tensor::from_slice(stream, scale, [scale.len()]).unwrap(),
    };
    let (of_a, of_b) = (of(&scale_a, form.scales[0], m), of(&scale_b, form.scales[1], n));
    let mut c_all = Tensor::from_slice(
        stream,
        &vec![O::round(1.5); batch * m * (n + gap)],
        [batch, m, n + gap],
    )
    .unwrap();

    let mut product = Matmul::new().scale(form.scale);
    if form.bias {
        product = product.bias(&bias_all);
    }
    if let Some(activation) = form.activation {
        product = product.activation(activation);
    }
    if form.residual {
        product = product.residual(&residual_view);
    }
    if form.scales[0] > 0 {
        product = product.scale_a(&of_a);
    }
    if form.scales[1] > 0 {
        product = product.scale_b(&of_b);
    }
    if form.bias {
        product = product.constant_b();
    }
    let mut c_view = c_all.slice_mut(2, 0..n).unwrap();
    product
        .run(stream, &a_view, &b_view, &mut c_view)
        .unwrap_or_else(|e| panic!("{form:?}: {e}"));

    let found = c_all.to_vec().unwrap();
    for p in 0..batch {
        for i in 0..m {
            for j in 0..n {
                let terms = (0..k).map(|q| a[(p * m + i) * k + q] * b[(p * k + q) * n + j]);
                let (sum, size) = terms.fold((0.0, 0.0), |(sum, size), x| (sum + x, size + x.abs()));
                let mut factor = f64::from(form.scale);
                match form.scales[0] {
                    0 => {}
                    1 => factor *= f64::from(scale_a[0]),
                    _ => factor *= f64::from(scale_a[p * m + i]),
                }
                match form.scales[1] {
                    0 => {}
                    1 => factor *= f64::from(scale_b[0]),
                    _ => factor *= f64::from(scale_b[p * n + j]),
                }
                let mut exact = sum * factor;
                if form.bias {
                    exact += bias[p * n + j];
                }
                exact = activated(form.activation, exact);
                if form.residual {
                    exact += residual[(p * m + i) * n + j];
                }
                let bound = O::UNIT * exact.abs()
                    + (size * factor.abs() + 4.0) * (k + 8) as f64 * error_of_term::<T>();
                let at = (p * m + i) * (n + gap) + j;
                let value = found[at].value();
                assert!(
                    (value - exact).abs() <= bound,
                    "{form:?}, {p}, {i}, {j}: {value}, not {exact}"
                );
            }
            let behind = &found[(p * m + i) * (n + gap) + n..][..gap];
            assert!(
                behind.iter().all(|x| x.value() == O::round(1.5).value()),
                "{form:?}: row {i} was written behind its end"
            );
        }
    }
}

fn activation() -> impl Strategy<Value = Option<Activation>> {
    prop::sample::select(vec![
        None,
        Some(Activation::Relu),
        Some(Activation::Gelu),
        Some(Activation::GeluTanh),
        Some(Activation::Silu),
    ])
}

fn forms(unit: usize, gaps: Vec<usize>) -> impl Strategy<Value = FusedForm> {
    let extents = (1..3usize, 1..140usize, 1..200usize, 1..200usize);
    let parts = (any::<[bool; 3]>(), activation(), prop::sample::select(gaps));
    let scales = (prop::sample::select(vec![1.0f32, -0.5]), [0..3u8, 0..3u8]);
    (extents, parts, scales).prop_map(move |(extents, parts, scales)| {
        let (batch, m, n, k) = extents;
        let ([by_k, bias, residual], activation, gap) = parts;
        // A gap of 0 goes with extents that tensor copies take.
        let k = if gap % unit == 0 {
            k.next_multiple_of(unit)
        } else {
            k
        };
        let n = if gap % unit == 0 && !by_k {
            n.next_multiple_of(unit)
        } else {
            n
        };
        FusedForm {
            batch,
            m,
            n,
            k,
            by_k,
            gap,
            bias,
            activation,
            residual,
            scale: scales.0,
            scales: scales.1,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bfloat16(form in forms(8, vec![0, 8, 3])) {
        check::<bf16, bf16>(&stream(), form);
    }

    #[test]
    fn float16_to_float32(form in forms(8, vec![0, 8, 5])) {
        check::<f16, f32>(&stream(), form);
    }

    #[test]
    fn float32_as_tf32(form in forms(4, vec![0, 4, 3])) {
        check::<f32, f32>(&stream(), form);
    }

    #[test]
    fn bfloat16_in_tensor_memory(form in forms(8, vec![0, 8, 3])) {
        check::<bf16, bf16>(&blackwell(), form);
    }

    #[test]
    fn float16_to_float32_in_tensor_memory(form in forms(8, vec![0, 8, 5])) {
        check::<f16, f32>(&blackwell(), form);
    }

    #[test]
    fn float8_e4m3(form in forms(16, vec![0, 16])) {
        check::<f8e4m3, bf16>(&stream(), FusedForm { by_k: true, ..form });
    }

    #[test]
    fn float8_e5m2_to_float32(form in forms(16, vec![0, 16])) {
        check::<f8e5m2, f32>(&stream(), FusedForm { by_k: true, ..form });
    }
}

/// A tensor copy would store whole 16 bytes, also behind the end of these rows.
#[test]
fn rows_that_end_within_a_vector_keep_their_neighbors() {
    for (n, gap) in [(93, 3), (90, 6)] {
        let form = FusedForm {
            m: 120,
            n,
            k: 64 - gap,
            gap,
            bias: true,
            ..PLAIN
        };
        check::<bf16, bf16>(&stream(), form);
        check::<f8e4m3, bf16>(&stream(), form);
    }
}

#[test]
fn wide_tiles_and_all_parts() {
    let all = FusedForm {
        bias: true,
        residual: true,
        activation: Some(Activation::Silu),
        scale: 0.5,
        scales: [2, 2],
        ..PLAIN
    };
    check::<bf16, bf16>(
        &stream(),
        FusedForm {
            m: 300,
            n: 700,
            k: 64,
            ..all
        },
    );
    let by_n = FusedForm {
        m: 130,
        n: 264,
        k: 72,
        by_k: false,
        ..all
    };
    check::<bf16, f32>(&stream(), by_n);
    check::<bf16, f32>(&blackwell(), by_n);
    check::<f16, f16>(
        &stream(),
        FusedForm {
            m: 1,
            n: 1,
            k: 1,
            gap: 1,
            ..all
        },
    );
    check::<i8, bf16>(
        &stream(),
        FusedForm {
            m: 130,
            n: 264,
            k: 144,
            scale: 0.01,
            ..all
        },
    );
    check::<f32, f32>(
        &stream(),
        FusedForm {
            m: 130,
            n: 264,
            k: 72,
            ..all
        },
    );
    check::<i8, i32>(
        &stream(),
        FusedForm {
            m: 70,
            n: 300,
            k: 400,
            bias: true,
            residual: true,
            ..PLAIN
        },
    );
    check::<f8e4m3, f16>(
        &stream(),
        FusedForm {
            m: 300,
            n: 520,
            k: 144,
            ..all
        },
    );
}

#[test]
fn empty_extents() {
    let all = FusedForm {
        bias: true,
        residual: true,
        activation: Some(Activation::Relu),
        ..PLAIN
    };
    check::<bf16, bf16>(&stream(), FusedForm { k: 0, ..all });
    check::<bf16, bf16>(&stream(), FusedForm { m: 0, ..all });
    check::<f8e4m3, bf16>(&stream(), FusedForm { n: 0, ..all });
}

#[test]
fn wrong_operands_are_refused() {
    let stream = stream();
    let zeros = |shape: &[usize]| Tensor::<bf16>::zeros(&stream, shape).unwrap();
    let (a, b, mut c) = (zeros(&[8, 16]), zeros(&[16, 24]), zeros(&[8, 24]));
    let refused = |result: tirx_kernels::Result<()>, text: &str| {
        let error = result.unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    };
    let short = zeros(&[23]);
    refused(
        Matmul::new().bias(&short).run(&stream, &a, &b, &mut c),
        "the bias has shape [23]; it fits this product as [24] or [1, 24]",
    );
    let wrong = zeros(&[24, 8]);
    refused(
        Matmul::new().residual(&wrong).run(&stream, &a, &b, &mut c),
        "the residual has the shape of C, [1, 8, 24], not [24, 8]",
    );
    let scales = Tensor::<f32>::zeros(&stream, [7]).unwrap();
    refused(
        Matmul::new().scale_a(&scales).run(&stream, &a, &b, &mut c),
        "the scale of A has shape [7]; it fits this product as [1], [8] or [1, 8]",
    );

    let bytes = |shape: &[usize]| Tensor::<f8e4m3>::zeros(&stream, shape).unwrap();
    let by_n = bytes(&[16, 32]);
    let mut wide = zeros(&[8, 32]);
    refused(
        Matmul::new().run(&stream, &bytes(&[8, 16]), &by_n, &mut wide),
        "B of float8_e4m3fn is contiguous along K: store it as [N, K]",
    );
    let odd = bytes(&[24, 15]);
    refused(
        Matmul::new().run(&stream, &bytes(&[8, 15]), &odd.permute(&[1, 0]).unwrap(), &mut c),
        "multiples of 16 bytes (16 elements)",
    );
    refused(
        Matmul::new().run(&stream, &bytes(&[8, 0]), &bytes(&[0, 24]), &mut c),
        "K is at least 1",
    );
}

/// A product of C and a bias and residual that begin at an odd element, or of one row or column with a gap, where K is no multiple of 16 bytes.
fn begins_anywhere<T: Number + Input<O>, O: Number>(stream: &Stream, [m, n, k]: [usize; 3]) {
    let stride = k.next_multiple_of(32);
    let (a, b) = (numbers(m * stride, 1), numbers(n * stride, 2));
    let of = |values: &[f64]| values.iter().map(|x| T::round(*x)).collect::<Vec<_>>();
    let of_a = Tensor::from_slice(stream, &of(&a), [m, stride]).unwrap();
    let of_b = Tensor::from_slice(stream, &of(&b), [n, stride]).unwrap();
    let added = numbers((m + 1) * n + 1, 3);
    let of_added: Vec<O> = added.iter().map(|x| O::round(*x)).collect();
    let of_added = Tensor::from_slice(stream, &of_added, [of_added.len()]).unwrap();
    let mut c = Tensor::<O>::zeros(stream, [m * n + 1]).unwrap();
    Matmul::new()
        .bias(&of_added.slice(0, 1..n + 1).unwrap())
        .residual(&of_added.as_strided(n + 1, [m, n], [n, 1]).unwrap())
        .run(
            stream,
            &of_a.slice(1, 0..k).unwrap(),
            &of_b.slice(1, 0..k).unwrap().permute(&[1, 0]).unwrap(),
            &mut c.slice_mut(0, 1..m * n + 1).unwrap().reshape_mut([m, n]).unwrap(),
        )
        .unwrap_or_else(|e| panic!("{m} x {n} x {k}: {e}"));
    let value = |x: f64| T::round(x).value();
    for (at, found) in c.to_vec().unwrap()[1..].iter().enumerate() {
        let (i, j) = (at / n, at % n);
        let terms = (0..k).map(|q| value(a[i * stride + q]) * value(b[j * stride + q]));
        let other = O::round(added[j + 1]).value() + O::round(added[n + 1 + at]).value();
        let (exact, bound) = (terms.sum::<f64>() + other, 4.0 + k as f64);
        let bound = O::UNIT * exact.abs() + bound * (1e-6 + error_of_term::<T>() * k as f64);
        let found = found.value();
        assert!(
            (found - exact).abs() <= bound,
            "{m} x {n} x {k}, {i}, {j}: {found}, not {exact}"
        );
    }
}

#[test]
fn c_bias_and_residual_begin_anywhere() {
    for shape in [[5, 16, 32], [3, 1, 24], [1, 9, 40]] {
        begins_anywhere::<bf16, bf16>(&stream(), shape);
        begins_anywhere::<f16, f32>(&stream(), shape);
        begins_anywhere::<f8e4m3, bf16>(&stream(), shape);
        begins_anywhere::<f8e5m2, f32>(&stream(), shape);
        begins_anywhere::<i8, i32>(&stream(), shape);
        begins_anywhere::<bf16, bf16>(&blackwell(), shape);
        begins_anywhere::<f16, f32>(&blackwell(), shape);
    }
}

#[test]
fn one_row_or_column_with_a_gap() {
    for shape in [[1, 9, 3], [9, 1, 3], [1, 1, 40], [1, 9, 20]] {
        begins_anywhere::<f8e4m3, bf16>(&stream(), shape);
        begins_anywhere::<bf16, bf16>(&stream(), shape);
        begins_anywhere::<f16, f32>(&blackwell(), shape);
    }
}

#[test]
fn activations_of_large_numbers_and_none() {
    let values = [f32::NAN, f32::INFINITY, 1e30, -1e30, -1e12, -100.0, -0.5];
    for stream in [stream(), blackwell()] {
        let a = Tensor::from_slice(&stream, &values.map(bf16::from_f32), [values.len(), 1]).unwrap();
        let b = Tensor::full(&stream, bf16::ONE, [1, 1]).unwrap();
        for activation in [
            Activation::Relu,
            Activation::Gelu,
            Activation::GeluTanh,
            Activation::Silu,
        ] {
            let mut c = Tensor::<f32>::zeros(&stream, [values.len(), 1]).unwrap();
            Matmul::new()
                .activation(activation)
                .run(&stream, &a, &b, &mut c)
                .unwrap();
            let c = c.to_vec().unwrap();
            assert!(c[0].is_nan(), "{activation:?} of NaN is {}", c[0]);
            assert_eq!(c[1], f32::INFINITY, "{activation:?}");
            assert_eq!(c[2], bf16::from_f32(1e30).to_f32(), "{activation:?}");
            for (x, y) in values.iter().zip(&c).skip(3) {
                let exact = activated(Some(activation), bf16::from_f32(*x).to_f64());
                assert!(
                    (f64::from(*y) - exact).abs() < 1e-6,
                    "{activation:?} of {x} is {y}, not {exact}"
                );
            }
        }
    }
}
