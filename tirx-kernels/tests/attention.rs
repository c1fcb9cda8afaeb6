//! Attention of generated extents on the simulator, with all its checks, against float64. `TIRX_TEST_DEVICE=cuda` runs it on the first
//! GPU.

#![cfg(feature = "attention")]

use proptest::prelude::*;
use tirx_kernels::attention::{self, Options};
use tirx_rt::{Device, Stream, Tensor, bf16};

fn stream() -> Stream {
    match std::env::var("TIRX_TEST_DEVICE").as_deref() {
        Ok("cuda") => Device::cuda(0).expect("a GPU").default_stream(),
        _ => Device::new_simulator().default_stream(),
    }
}

fn numbers(count: usize, seed: u64) -> Vec<bf16> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f64 / f64::from(1 << 24) * 4.0 - 2.0
    };
    (0..count).map(|_| bf16::from_f64(next())).collect()
}

#[derive(Clone, Copy, Debug)]
struct Case {
    batch: usize,
    heads_of_k: usize,
    group: usize,
    queries: usize,
    keys: usize,
    head: usize,
    head_of_v: usize,
    options: Options,
}

/// The output and the logarithms, as plain Rust computes them.
fn expected(case: &Case, q: &[bf16], k: &[bf16], v: &[bf16]) -> (Vec<f64>, Vec<f64>) {
    let Case {
        batch,
        heads_of_k,
        group,
        queries,
        keys,
        head,
        head_of_v,
        options,
    } = *case;
    let heads = heads_of_k * group;
    let (mut output, mut logarithms) = (Vec::new(), Vec::new());
    for (b, h, i) in
        (0..batch).flat_map(|b| (0..heads).flat_map(move |h| (0..queries).map(move |i| (b, h, i))))
    {
        let of_k = (b * heads_of_k + h / group) * keys;
        let last = (i + keys) as i64 - queries as i64;
        let sees = |j: usize| {
            (!options.causal || j as i64 <= last) && options.window.is_none_or(|w| j as i64 > last - w as i64)
        };
        let scale = options.scale.map_or(1.0 / (head as f64).sqrt(), f64::from);
        let scores: Vec<Option<f64>> = (0..keys)
            .map(|j| {
                let row = &q[((b * heads + h) * queries + i) * head..][..head];
                let column = &k[(of_k + j) * head..][..head];
                let score = scale
                    * row
                        .iter()
                        .zip(column)
                        .map(|(x, y)| x.to_f64() * y.to_f64())
                        .sum::<f64>();
                let score = options
                    .cap
                    .map_or(score, |cap| f64::from(cap) * (score / f64::from(cap)).tanh());
                sees(j).then_some(score)
            })
            .collect();
        let top = scores.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = scores
            .iter()
            .map(|s| s.map_or(0.0, |s| (s - top).exp()))
            .collect();
        let total: f64 = weights.iter().sum();
        logarithms.push(top + total.ln());
        for d in 0..head_of_v {
            let sum: f64 = (0..keys)
                .map(|j| weights[j] * v[(of_k + j) * head_of_v + d].to_f64())
                .sum();
            output.push(if total > 0.0 { sum / total } else { 0.0 });
        }
    }
    (output, logarithms)
}

fn check(case: Case) {
    let Case {
        batch,
        heads_of_k,
        group,
        queries,
        keys,
        head,
        head_of_v,
        options,
    } = case;
    let heads = heads_of_k * group;
    let stream = stream();
    let q = numbers(batch * heads * queries * head, 1);
    let (k, v) = (
        numbers(batch * heads_of_k * keys * head, 2),
        numbers(batch * heads_of_k * keys * head_of_v, 3),
    );
    let tensor = |values: &[bf16], shape| Tensor::from_slice(&stream, values, shape).unwrap();
    let on_device = (
        tensor(&q, [batch, heads, queries, head]),
        tensor(&k, [batch, heads_of_k, keys, head]),
        tensor(&v, [batch, heads_of_k, keys, head_of_v]),
    );
    // O is `[batch, queries, heads, head]` in memory.
    let mut o =
        Tensor::<bf16>::full(&stream, bf16::from_f32(9.0), [batch, queries, heads, head_of_v]).unwrap();
    let mut lse = Tensor::<f32>::zeros(&stream, [batch, heads, queries]).unwrap();
    let mut view = o.permute_mut(&[0, 2, 1, 3]).unwrap();
    attention::forward_with_lse(
        &stream,
        &on_device.0,
        &on_device.1,
        &on_device.2,
        &mut view,
        &mut lse,
        options,
    )
    .unwrap_or_else(|e| panic!("{e}"));
    let mut plain = Tensor::<bf16>::zeros(&stream, [batch, heads, queries, head_of_v]).unwrap();
    attention::forward(
        &stream,
        &on_device.0,
        &on_device.1,
        &on_device.2,
        &mut plain,
        options,
    )
    .unwrap_or_else(|e| panic!("{e}"));
    let (values, logarithms) = expected(&case, &q, &k, &v);
    let (o, plain, lse) = (
        o.to_vec().unwrap(),
        plain.to_vec().unwrap(),
        lse.to_vec().unwrap(),
    );
    for (index, exact) in values.iter().enumerate() {
        let (row, d) = (index / head_of_v, index % head_of_v);
        let (b, h, i) = (row / (heads * queries), row / queries % heads, row % queries);
        let found = o[((b * queries + i) * heads + h) * head_of_v + d];
        assert_eq!(found, plain[index]);
        let found = found.to_f64();
        assert!(
            (found - exact).abs() <= 0.02,
            "batch {b}, head {h}, query {i}, element {d}: {found}, not {exact}"
        );
    }
    for (found, exact) in lse.iter().zip(&logarithms) {
        let found = f64::from(*found);
        assert!(
            found == *exact || (found - exact).abs() < 1e-3,
            "a logarithm of {found}, not {exact}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn attention_is_right(
        batch in 1..3usize, heads_of_k in 1..3usize, group in 1..3usize, queries in 1..150usize, keys in 1..200usize, head in 1..9usize,
        causal in any::<bool>(), window in prop_oneof![Just(None), (1..100usize).prop_map(Some)],
        cap in prop_oneof![Just(None), Just(Some(3.0f32))],
    ) {
        let mut options = Options::default();
        (options.causal, options.window, options.cap) = (causal, window, cap);
        let head = head * 8;
        check(Case { batch, heads_of_k, group, queries, keys, head, head_of_v: head, options });
    }
}

#[test]
fn wide_heads_are_right() {
    let case = Case {
        batch: 1,
        heads_of_k: 1,
        group: 2,
        queries: 70,
        keys: 90,
        head: 128,
        head_of_v: 128,
        options: Options::causal(),
    };
    check(case);
    check(Case {
        head: 256,
        head_of_v: 256,
        ..case
    });
    check(Case {
        head: 192,
        head_of_v: 128,
        ..case
    });
    check(Case {
        head: 72,
        head_of_v: 40,
        options: Options::default().scale(0.3),
        ..case
    });
}

#[test]
fn unsupported_tensors_are_refused() {
    let stream = stream();
    let zeros = |shape: &[usize]| Tensor::<bf16>::zeros(&stream, shape).unwrap();
    let refusal = |q: &[usize], k: &[usize], v: &[usize], o: &[usize]| {
        let error = attention::forward(
            &stream,
            &zeros(q),
            &zeros(k),
            &zeros(v),
            &mut zeros(o),
            Options::default(),
        );
        error.unwrap_err().to_string()
    };
    let message = refusal(&[1, 2, 4, 16], &[1, 2, 8, 16], &[1, 2, 8, 16], &[1, 2, 4]);
    assert!(
        message.starts_with("attention takes Q [batch, heads, queries, head]"),
        "{message}"
    );
    let message = refusal(&[1, 3, 4, 16], &[1, 2, 8, 16], &[1, 2, 8, 16], &[1, 3, 4, 16]);
    assert!(
        message.starts_with("3 heads of Q share the heads of K evenly"),
        "{message}"
    );
    let message = refusal(&[1, 2, 4, 20], &[1, 2, 8, 20], &[1, 2, 8, 20], &[1, 2, 4, 20]);
    assert!(
        message.starts_with("heads have a multiple of 8 elements"),
        "{message}"
    );
}
