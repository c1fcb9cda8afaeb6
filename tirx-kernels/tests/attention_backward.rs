//! Gradients of attention on the simulator, with all its checks, against float64. `TIRX_TEST_DEVICE=cuda` runs it on the first GPU.

#![cfg(feature = "attention")]

use proptest::prelude::*;
use tirx_kernels::attention::{self, BackwardPlan, Options, Sequences};
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
    head: usize,
    head_of_v: usize,
    options: Options,
}

fn dot(one: &[bf16], other: &[bf16]) -> f64 {
    one.iter().zip(other).map(|(x, y)| x.to_f64() * y.to_f64()).sum()
}

/// Q, K, V and dO of packed rows `[rows, heads, head]`.
struct Inputs {
    q: Vec<bf16>,
    k: Vec<bf16>,
    v: Vec<bf16>,
    d_o: Vec<bf16>,
}

/// Rows of queries and of keys that belong together.
struct Part {
    queries: std::ops::Range<usize>,
    keys: std::ops::Range<usize>,
}

/// dQ, dK and dV in plain Rust.
fn expected(case: &Case, inputs: &Inputs, parts: &[Part]) -> [Vec<f64>; 3] {
    let Case {
        heads_of_k,
        group,
        head,
        head_of_v,
        options,
        ..
    } = *case;
    let heads = heads_of_k * group;
    let mut dq = vec![0.0; inputs.q.len()];
    let mut dk = vec![0.0; inputs.k.len()];
    let mut dv = vec![0.0; inputs.v.len()];
    let scale = options.scale.map_or(1.0 / (head as f64).sqrt(), f64::from);
    for part in parts {
        for (h, i) in (0..heads).flat_map(|h| part.queries.clone().map(move |i| (h, i))) {
            let last = (i - part.queries.start + part.keys.len()) as i64 - part.queries.len() as i64;
            let q_at = (i * heads + h) * head;
            let d_o = &inputs.d_o[(i * heads + h) * head_of_v..][..head_of_v];
            // The key's row, its bounded score and the derivative of the bound.
            let seen: Vec<(usize, f64, f64)> = part
                .keys
                .clone()
                .enumerate()
                .filter(|(j, _)| {
                    let j = *j as i64;
                    (!options.causal || j <= last)
                        && options.window.is_none_or(|window| j > last - window as i64)
                })
                .map(|(_, row)| {
                    let row = row * heads_of_k + h / group;
                    let score = scale * dot(&inputs.q[q_at..][..head], &inputs.k[row * head..][..head]);
                    match options.cap.map(f64::from) {
                        Some(cap) => {
                            let tanh = (score / cap).tanh();
                            (row, cap * tanh, 1.0 - tanh * tanh)
                        }
                        None => (row, score, 1.0),
                    }
                })
                .collect();
            let top = seen.iter().map(|seen| seen.1).fold(f64::NEG_INFINITY, f64::max);
            let total: f64 = seen.iter().map(|seen| (seen.1 - top).exp()).sum();
            let weight = |score: f64| (score - top).exp() / total;
            let of_weight = |row: usize| dot(d_o, &inputs.v[row * head_of_v..][..head_of_v]);
            let delta: f64 = seen
                .iter()
                .map(|&(row, score, _)| weight(score) * of_weight(row))
                .sum();
            for &(row, score, derivative) in &seen {
                let ds = weight(score) * (of_weight(row) - delta) * derivative * scale;
                for d in 0..head {
                    dq[q_at + d] += ds * inputs.k[row * head + d].to_f64();
                    dk[row * head + d] += ds * inputs.q[q_at + d].to_f64();
                }
                for d in 0..head_of_v {
                    dv[row * head_of_v + d] += weight(score) * d_o[d].to_f64();
                }
            }
        }
    }
    [dq, dk, dv]
}

/// Weights and gradients of scores are rounded to 8 bits of mantissa, and the sums of many such products differ accordingly.
fn compare(name: &str, found: &[bf16], exact: &[f64]) {
    assert_eq!(found.len(), exact.len());
    let scale = exact.iter().fold(0.0f64, |most, x| most.max(x.abs())).max(1.0);
    for (index, (found, exact)) in found.iter().zip(exact).enumerate() {
        let found = found.to_f64();
        assert!(
            (found - exact).abs() <= 0.015 * scale,
            "{name}, element {index}: {found}, not {exact}"
        );
    }
}

fn inputs(case: &Case, queries: usize, keys: usize) -> Inputs {
    let heads = case.heads_of_k * case.group;
    Inputs {
        q: numbers(queries * heads * case.head, 1),
        k: numbers(keys * case.heads_of_k * case.head, 2),
        v: numbers(keys * case.heads_of_k * case.head_of_v, 3),
        d_o: numbers(queries * heads * case.head_of_v, 4),
    }
}

/// Batches in tensors `[batch, rows, heads, head]`, which the calls get as views.
fn check(case: Case, queries: usize, keys: usize) {
    let Case {
        batch,
        heads_of_k,
        group,
        head,
        head_of_v,
        options,
    } = case;
    let heads = heads_of_k * group;
    let inputs = inputs(&case, batch * queries, batch * keys);
    let parts: Vec<Part> = (0..batch)
        .map(|b| Part {
            queries: b * queries..(b + 1) * queries,
            keys: b * keys..(b + 1) * keys,
        })
        .collect();
    let [dq_exact, dk_exact, dv_exact] = expected(&case, &inputs, &parts);
    let stream = stream();
    let turn = [0, 2, 1, 3];
    let tensor = |values: &[bf16], rows, heads, head| {
        Tensor::from_slice(&stream, values, [batch, rows, heads, head]).unwrap()
    };
    let nines =
        |rows, heads, head| Tensor::full(&stream, bf16::from_f32(9.0), [batch, rows, heads, head]).unwrap();
    let (q, k, v, d_o) = (
        tensor(&inputs.q, queries, heads, head),
        tensor(&inputs.k, keys, heads_of_k, head),
        tensor(&inputs.v, keys, heads_of_k, head_of_v),
        tensor(&inputs.d_o, queries, heads, head_of_v),
    );
    let (q, k, v, d_o) = (
        q.permute(&turn).unwrap(),
        k.permute(&turn).unwrap(),
        v.permute(&turn).unwrap(),
        d_o.permute(&turn).unwrap(),
    );
    let mut o = nines(queries, heads, head_of_v);
    let mut lse = Tensor::zeros(&stream, [batch, heads, queries]).unwrap();
    let mut o_view = o.permute_mut(&turn).unwrap();
    attention::forward_with_lse(&stream, &q, &k, &v, &mut o_view, &mut lse, options)
        .unwrap_or_else(|e| panic!("{e}"));
    let needed = attention::backward_workspace(&q).unwrap();
    for plan in BackwardPlan::candidates(&stream.device(), &q, &k, &v, &o_view).unwrap() {
        let (mut dq, mut dk, mut dv) = (
            nines(queries, heads, head),
            nines(keys, heads_of_k, head),
            nines(keys, heads_of_k, head_of_v),
        );
        let mut workspace = Tensor::full(&stream, f32::NAN, [needed]).unwrap();
        plan.run(
            &stream,
            &q,
            &k,
            &v,
            &o_view,
            &d_o,
            &lse,
            &mut dq.permute_mut(&turn).unwrap(),
            &mut dk.permute_mut(&turn).unwrap(),
            &mut dv.permute_mut(&turn).unwrap(),
            &mut workspace,
            options,
        )
        .unwrap_or_else(|e| panic!("{plan}: {e}"));
        compare(&format!("{plan}: dQ"), &dq.to_vec().unwrap(), &dq_exact);
        compare(&format!("{plan}: dK"), &dk.to_vec().unwrap(), &dk_exact);
        compare(&format!("{plan}: dV"), &dv.to_vec().unwrap(), &dv_exact);
    }
}

fn check_packed(case: Case, lengths: &[(usize, usize)]) {
    let Case {
        heads_of_k,
        group,
        head,
        head_of_v,
        options,
        ..
    } = case;
    let heads = heads_of_k * group;
    let (mut queries, mut keys) = (0, 0);
    let (mut of_q, mut of_k) = (vec![0], vec![0]);
    let mut parts = Vec::new();
    for &(of_query, of_key) in lengths {
        parts.push(Part {
            queries: queries..queries + of_query,
            keys: keys..keys + of_key,
        });
        queries += of_query;
        keys += of_key;
        of_q.push(queries as i32);
        of_k.push(keys as i32);
    }
    let inputs = inputs(&case, queries, keys);
    let [dq_exact, dk_exact, dv_exact] = expected(&case, &inputs, &parts);
    let stream = stream();
    let tensor = |values: &[bf16], rows, heads, head| {
        Tensor::from_slice(&stream, values, [rows, heads, head]).unwrap()
    };
    let nines = |rows, heads, head| Tensor::full(&stream, bf16::from_f32(9.0), [rows, heads, head]).unwrap();
    let (q, k, v, d_o) = (
        tensor(&inputs.q, queries, heads, head),
        tensor(&inputs.k, keys, heads_of_k, head),
        tensor(&inputs.v, keys, heads_of_k, head_of_v),
        tensor(&inputs.d_o, queries, heads, head_of_v),
    );
    let (of_q, of_k) = (
        Tensor::from_slice(&stream, &of_q, [of_q.len()]).unwrap(),
        Tensor::from_slice(&stream, &of_k, [of_k.len()]).unwrap(),
    );
    let sequences = Sequences::from_offsets(&of_q, &of_k);
    let mut o = nines(queries, heads, head_of_v);
    let mut lse = Tensor::zeros(&stream, [heads, queries]).unwrap();
    attention::forward_packed(&stream, &q, &k, &v, &mut o, Some(&mut lse), sequences, options)
        .unwrap_or_else(|e| panic!("{e}"));
    let needed = attention::backward_workspace(&q).unwrap();
    for plan in BackwardPlan::packed_candidates(&stream.device(), &q, &k, &v, &o, sequences).unwrap() {
        let (mut dq, mut dk, mut dv) = (
            nines(queries, heads, head),
            nines(keys, heads_of_k, head),
            nines(keys, heads_of_k, head_of_v),
        );
        let mut workspace = Tensor::full(&stream, f32::NAN, [needed + 3]).unwrap();
        plan.run_packed(
            &stream,
            &q,
            &k,
            &v,
            &o,
            &d_o,
            &lse,
            &mut dq,
            &mut dk,
            &mut dv,
            &mut workspace,
            sequences,
            options,
        )
        .unwrap_or_else(|e| panic!("{plan}: {e}"));
        compare(&format!("{plan}: dQ"), &dq.to_vec().unwrap(), &dq_exact);
        compare(&format!("{plan}: dK"), &dk.to_vec().unwrap(), &dk_exact);
        compare(&format!("{plan}: dV"), &dv.to_vec().unwrap(), &dv_exact);
    }
}

fn case(head: usize, head_of_v: usize, options: Options) -> Case {
    Case {
        batch: 1,
        heads_of_k: 1,
        group: 2,
        head,
        head_of_v,
        options,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn gradients_are_right(
        batch in 1..3usize, heads_of_k in 1..3usize, group in 1..3usize, queries in 1..140usize, keys in 1..200usize, head in 1..9usize,
        causal in any::<bool>(), window in prop_oneof![Just(None), (1..100usize).prop_map(Some)],
        cap in prop_oneof![Just(None), Just(Some(3.0f32))],
    ) {
        let mut options = Options::default();
        (options.causal, options.window, options.cap) = (causal, window, cap);
        let head = head * 8;
        check(Case { batch, heads_of_k, group, head, head_of_v: head, options }, queries, keys);
    }
}

#[test]
fn gradients_of_wide_heads_are_right() {
    check(case(128, 128, Options::causal()), 70, 140);
    check(case(128, 128, Options::causal().window(20)), 140, 70);
    check(case(72, 104, Options::default().scale(0.2).cap(2.0)), 67, 30);
}

#[test]
fn gradients_of_packed_sequences_are_right() {
    let lengths = [(3, 70), (0, 5), (80, 130), (7, 0), (1, 1)];
    check_packed(case(64, 64, Options::causal()), &lengths);
    check_packed(case(128, 128, Options::default().window(40)), &lengths[2..]);
}

#[test]
fn gradients_of_empty_tensors_are_zeros() {
    check(case(64, 64, Options::default()), 0, 9);
    check(
        Case {
            heads_of_k: 2,
            ..case(64, 64, Options::default())
        },
        0,
        9,
    );
    check(case(64, 64, Options::default()), 9, 0);
    check_packed(case(64, 64, Options::default()), &[(0, 4), (0, 0)]);
    check_packed(case(64, 64, Options::default()), &[]);
}

#[test]
fn wrong_gradients_and_workspaces_are_refused() {
    let stream = stream();
    let zeros = |heads, head| Tensor::<bf16>::zeros(&stream, [1, heads, 8, head]).unwrap();
    let refusal = |head: usize, of_dk: usize, workspace: usize| {
        let (q, k) = (zeros(2, head), zeros(1, head));
        let lse = Tensor::<f32>::zeros(&stream, [1, 2, 8]).unwrap();
        let mut workspace = Tensor::zeros(&stream, [workspace]).unwrap();
        attention::backward(
            &stream,
            &q,
            &k,
            &k,
            &q,
            &q,
            &lse,
            &mut zeros(2, head),
            &mut zeros(of_dk, head),
            &mut zeros(1, head),
            &mut workspace,
            Options::default(),
        )
        .unwrap_err()
        .to_string()
    };
    let message = refusal(64, 2, 10_000);
    assert!(
        message.starts_with("a gradient has the shape of its tensor")
            && message.contains("dK has [1, 2, 8, 64]"),
        "{message}"
    );
    let message = refusal(64, 1, 100);
    assert!(
        message.starts_with("the workspace has at least 1056 elements"),
        "{message}"
    );
    let message = refusal(136, 1, 10_000);
    assert!(
        message.starts_with("the backward pass takes heads of up to 128"),
        "{message}"
    );
}
