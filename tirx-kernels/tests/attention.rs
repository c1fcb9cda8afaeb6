//! Attention of generated extents on the simulator, with all its checks, against float64. `TIRX_TEST_DEVICE=cuda` runs it on the first
//! GPU.

#![cfg(feature = "attention")]

use proptest::prelude::*;
use tirx_kernels::attention::{self, Options, Plan, Sequences};
use tirx_rt::{Device, Stream, Tensor, bf16};

use Simulated::{B200, H100};

/// The GPU that a simulator stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Simulated {
    H100,
    B200,
}

impl Simulated {
    fn stream(self) -> Stream {
        let device = match std::env::var("TIRX_TEST_DEVICE").as_deref() {
            Ok("cuda") => Device::cuda(0).expect("a GPU"),
            _ => Device::new_simulator(),
        };
        match self {
            Simulated::H100 => device.default_stream(),
            Simulated::B200 => device.simulated_arch("sm_100a").default_stream(),
        }
    }

    /// The kernels to test on it: those for every GPU run on an H100 alone.
    fn plans(self, mut plans: Vec<Plan>) -> Vec<Plan> {
        if self == Simulated::B200 && plans.len() > 1 {
            plans.pop();
        }
        plans
    }
}

fn stream() -> Stream {
    Simulated::H100.stream()
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

fn check(gpu: Simulated, case: Case) {
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
    let stream = gpu.stream();
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
    let (q_, k_, v_) = &on_device;
    let device = stream.device();
    let mut plain = Tensor::<bf16>::zeros(&stream, [batch, heads, queries, head_of_v]).unwrap();
    let (values, logarithms) = expected(&case, &q, &k, &v);
    for plan in gpu.plans(Plan::candidates(&device, q_, k_, v_, &plain, options).unwrap()) {
        let mut view = o.permute_mut(&[0, 2, 1, 3]).unwrap();
        plan.run_with_lse(&stream, q_, k_, v_, &mut view, &mut lse, options)
            .unwrap_or_else(|e| panic!("{plan}: {e}"));
        plan.run(&stream, q_, k_, v_, &mut plain, options)
            .unwrap_or_else(|e| panic!("{plan}: {e}"));
        let (o, plain) = (o.to_vec().unwrap(), plain.to_vec().unwrap());
        let turned: Vec<bf16> = (0..plain.len())
            .map(|index| {
                let (row, d) = (index / head_of_v, index % head_of_v);
                let (b, h, i) = (row / (heads * queries), row / queries % heads, row % queries);
                o[((b * queries + i) * heads + h) * head_of_v + d]
            })
            .collect();
        assert_eq!(turned, plain, "{plan}: two launches");
        compare(
            &plan,
            &plain,
            &lse.to_vec().unwrap(),
            &values,
            &logarithms,
            head_of_v,
        );
    }
}

fn compare(plan: &Plan, output: &[bf16], lse: &[f32], values: &[f64], logarithms: &[f64], head_of_v: usize) {
    assert_eq!((output.len(), lse.len()), (values.len(), logarithms.len()));
    for (index, (found, exact)) in output.iter().zip(values).enumerate() {
        let found = found.to_f64();
        assert!(
            (found - exact).abs() <= 0.02,
            "{plan}: row {}, element {}: {found}, not {exact}",
            index / head_of_v,
            index % head_of_v
        );
    }
    for (index, (found, exact)) in lse.iter().zip(logarithms).enumerate() {
        let found = f64::from(*found);
        assert!(
            found == *exact || (found - exact).abs() < 1e-3,
            "{plan}: row {index} has a logarithm of {found}, not {exact}"
        );
    }
}

/// Attention of sequences with these numbers of queries and keys; the packed tensors have `unused` rows behind them.
fn check_packed(gpu: Simulated, case: Case, lengths: &[(usize, usize)], unused: usize) {
    let Case {
        heads_of_k,
        group,
        head,
        head_of_v,
        options,
        ..
    } = case;
    let heads = heads_of_k * group;
    let stream = gpu.stream();
    let offsets = |length: fn(&(usize, usize)) -> usize| {
        let mut offsets = vec![0];
        offsets.extend(lengths.iter().scan(0, |end, lengths| {
            *end += length(lengths);
            Some(*end)
        }));
        offsets
    };
    let (of_q, of_k) = (offsets(|l| l.0), offsets(|l| l.1));
    let (queries, keys) = (of_q[lengths.len()] + unused, of_k[lengths.len()] + unused);
    let (q, k, v) = (
        numbers(queries * heads * head, 1),
        numbers(keys * heads_of_k * head, 2),
        numbers(keys * heads_of_k * head_of_v, 3),
    );
    let tensor = |values: &[bf16], shape: [usize; 3]| Tensor::from_slice(&stream, values, shape).unwrap();
    let on_device = (
        tensor(&q, [queries, heads, head]),
        tensor(&k, [keys, heads_of_k, head]),
        tensor(&v, [keys, heads_of_k, head_of_v]),
    );
    let of_device = |offsets: &[usize]| {
        let offsets: Vec<i32> = offsets.iter().map(|&offset| offset as i32).collect();
        Tensor::from_slice(&stream, &offsets, [offsets.len()]).unwrap()
    };
    let (starts_of_q, starts_of_k) = (of_device(&of_q), of_device(&of_k));
    let sequences = Sequences::from_offsets(&starts_of_q, &starts_of_k);
    let (q_, k_, v_) = &on_device;
    let nine = bf16::from_f32(9.0);
    let shape = [queries, heads, head_of_v];
    let model = Tensor::full(&stream, nine, shape).unwrap();
    let plans = Plan::packed_candidates(&stream.device(), q_, k_, v_, &model, sequences, options).unwrap();
    for plan in gpu.plans(plans) {
        let mut o = Tensor::full(&stream, nine, shape).unwrap();
        let mut lse = Tensor::full(&stream, 9.0f32, [heads, queries]).unwrap();
        plan.run_packed(&stream, q_, k_, v_, &mut o, Some(&mut lse), sequences, options)
            .unwrap_or_else(|e| panic!("{plan}: {e}"));
        let (o, lse) = (o.to_vec().unwrap(), lse.to_vec().unwrap());
        for (i, &(queries_here, keys_here)) in lengths.iter().enumerate() {
            // The rows of a sequence as `[heads, rows, head]`.
            let part = |all: &[bf16], heads: usize, head: usize, begin: usize, rows: usize| -> Vec<bf16> {
                (0..heads * rows * head)
                    .map(|x| {
                        let (h, row, d) = (x / (rows * head), x / head % rows, x % head);
                        all[((begin + row) * heads + h) * head + d]
                    })
                    .collect()
            };
            let one = Case {
                batch: 1,
                queries: queries_here,
                keys: keys_here,
                ..case
            };
            let (values, logarithms) = expected(
                &one,
                &part(&q, heads, head, of_q[i], queries_here),
                &part(&k, heads_of_k, head, of_k[i], keys_here),
                &part(&v, heads_of_k, head_of_v, of_k[i], keys_here),
            );
            let found = part(&o, heads, head_of_v, of_q[i], queries_here);
            let lse: Vec<f32> = (0..heads)
                .flat_map(|h| lse[h * queries + of_q[i]..][..queries_here].to_vec())
                .collect();
            compare(&plan, &found, &lse, &values, &logarithms, head_of_v);
        }
        assert!(
            o[of_q[lengths.len()] * heads * head_of_v..]
                .iter()
                .all(|&x| x == nine),
            "{plan}: a row of no sequence was written"
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
        check(H100, Case { batch, heads_of_k, group, queries, keys, head, head_of_v: head, options });
    }
}

fn small() -> Case {
    Case {
        batch: 1,
        heads_of_k: 2,
        group: 2,
        queries: 5,
        keys: 9,
        head: 64,
        head_of_v: 64,
        options: Options::default(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn attention_in_tensor_memory_is_right(
        batch in 1..3usize, heads_of_k in 1..3usize, group in 1..3usize, queries in 1..300usize, keys in 1..300usize, head in 1..17usize,
        causal in any::<bool>(), window in prop_oneof![Just(None), (1..200usize).prop_map(Some)],
        cap in prop_oneof![Just(None), Just(Some(3.0f32))],
    ) {
        let mut options = Options::default();
        (options.causal, options.window, options.cap) = (causal, window, cap);
        let head = head * 8;
        check(B200, Case { batch, heads_of_k, group, queries, keys, head, head_of_v: head, options });
    }

    #[test]
    fn packed_sequences_in_tensor_memory_are_right(
        lengths in proptest::collection::vec((prop_oneof![Just(0), 1..300usize], prop_oneof![Just(0), 1..300usize]), 1..6),
        heads_of_k in 1..3usize, head in 1..9usize, unused in 0..3usize, causal in any::<bool>(),
        window in prop_oneof![Just(None), (1..100usize).prop_map(Some)],
    ) {
        let mut options = Options::default();
        (options.causal, options.window) = (causal, window);
        let head = head * 8;
        check_packed(B200, Case { heads_of_k, group: 1, head, head_of_v: head, options, ..small() }, &lengths, unused);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn packed_sequences_are_right(
        lengths in proptest::collection::vec((prop_oneof![Just(0), 1..150usize], prop_oneof![Just(0), 1..150usize]), 1..6),
        heads_of_k in 1..3usize, group in 1..3usize, head in 1..9usize, unused in 0..3usize,
        causal in any::<bool>(), window in prop_oneof![Just(None), (1..100usize).prop_map(Some)],
        cap in prop_oneof![Just(None), Just(Some(3.0f32))],
    ) {
        let mut options = Options::default();
        (options.causal, options.window, options.cap) = (causal, window, cap);
        let head = head * 8;
        check_packed(H100, Case { heads_of_k, group, head, head_of_v: head, options, ..small() }, &lengths, unused);
    }
}

#[test]
fn packed_sequences_of_wide_heads_are_right() {
    let lengths = [(3, 70), (0, 5), (140, 130), (7, 0), (1, 1)];
    for (head, head_of_v) in [(128, 128), (256, 256), (192, 128)] {
        let case = Case {
            heads_of_k: 1,
            head,
            head_of_v,
            options: Options::causal(),
            ..small()
        };
        check_packed(H100, case, &lengths, 1);
    }
}

#[test]
fn empty_tensors_give_zeros_or_nothing() {
    check(H100, Case { keys: 0, ..small() });
    check(
        H100,
        Case {
            queries: 0,
            ..small()
        },
    );
    check(H100, Case { batch: 0, ..small() });
    check_packed(H100, small(), &[], 3);
    check(B200, Case { keys: 0, ..small() });
    check_packed(B200, small(), &[], 3);
}

#[test]
fn scores_that_are_no_numbers_give_none() {
    for gpu in [H100, B200] {
        let stream = gpu.stream();
        for head in [64, 128, 256] {
            let mut values = vec![bf16::ONE; 2 * 3 * head];
            values[head + 1] = bf16::NAN;
            let q = Tensor::from_slice(&stream, &values, [1, 2, 3, head]).unwrap();
            let k = Tensor::full(&stream, bf16::ONE, [1, 1, 9, head]).unwrap();
            let mut o = Tensor::zeros(&stream, [1, 2, 3, head]).unwrap();
            let mut lse = Tensor::zeros(&stream, [1, 2, 3]).unwrap();
            let options = Options::causal();
            for plan in gpu.plans(Plan::candidates(&stream.device(), &q, &k, &k, &o, options).unwrap()) {
                plan.run_with_lse(&stream, &q, &k, &k, &mut o, &mut lse, options)
                    .unwrap();
                let (o, lse) = (o.to_vec().unwrap(), lse.to_vec().unwrap());
                for (row, (o, lse)) in o.chunks(head).zip(lse).enumerate() {
                    let none = row == 1;
                    assert!(
                        lse.is_nan() == none && o.iter().all(|o| o.is_nan() == none),
                        "{plan}, row {row}"
                    );
                }
            }
        }
    }
}

#[test]
fn wrong_options_and_offsets_are_refused() {
    let stream = stream();
    let zeros = |shape: &[usize]| Tensor::<bf16>::zeros(&stream, shape).unwrap();
    let (q, k) = (zeros(&[1, 2, 4, 16]), zeros(&[1, 2, 8, 16]));
    let refusal = |options| {
        attention::forward(&stream, &q, &k, &k, &mut zeros(&[1, 2, 4, 16]), options)
            .unwrap_err()
            .to_string()
    };
    let message = refusal(Options::default().window(0));
    assert!(message.starts_with("a window has at least one key"), "{message}");
    for scale in [0.0, -1.0, f32::NAN, f32::INFINITY] {
        let message = refusal(Options::default().scale(scale));
        assert!(
            message.starts_with("the factor of scores is a number"),
            "{message}"
        );
        let message = refusal(Options::default().cap(scale));
        assert!(
            message.starts_with("the bound of scores is a number"),
            "{message}"
        );
    }
    let (q, k) = (zeros(&[4, 2, 16]), zeros(&[8, 2, 16]));
    let offsets = |count| Tensor::<i32>::zeros(&stream, [count]).unwrap();
    let refusal = |of_q, of_k, lse: [usize; 2]| {
        let (of_q, of_k) = (offsets(of_q), offsets(of_k));
        let mut lse = Tensor::zeros(&stream, lse).unwrap();
        let sequences = Sequences::from_offsets(&of_q, &of_k);
        let options = Options::default();
        attention::forward_packed(
            &stream,
            &q,
            &k,
            &k,
            &mut zeros(&[4, 2, 16]),
            Some(&mut lse),
            sequences,
            options,
        )
        .map_err(|e| e.to_string())
    };
    assert_eq!(refusal(3, 3, [2, 4]), Ok(()));
    let message = refusal(3, 4, [2, 4]).unwrap_err();
    assert!(
        message.starts_with("the offsets of queries and keys"),
        "{message}"
    );
    let message = refusal(0, 0, [2, 4]).unwrap_err();
    assert!(
        message.starts_with("the offsets of queries and keys"),
        "{message}"
    );
    let message = refusal(3, 3, [4, 2]).unwrap_err();
    assert!(message.starts_with("the logarithms of O"), "{message}");
}

/// Offsets that are beyond the tensors, or decrease, never reach memory outside of them.
#[test]
fn wrong_offsets_stay_in_the_tensors() {
    for gpu in [H100, B200] {
        wrong_offsets(gpu);
    }
}

fn wrong_offsets(gpu: Simulated) {
    let stream = gpu.stream();
    let zeros = |shape: [usize; 3]| Tensor::<bf16>::zeros(&stream, shape).unwrap();
    let (q, k) = (zeros([70, 2, 64]), zeros([80, 2, 64]));
    for offsets in [
        [0, 1000, 2000, 3000],
        [-5, 90, 20, 70],
        [60, 10, 0, -9],
        [i32::MIN, 3, i32::MAX, 4],
    ] {
        let offsets = Tensor::from_slice(&stream, &offsets, [4]).unwrap();
        let sequences = Sequences::from_offsets(&offsets, &offsets);
        let mut o = zeros([70, 2, 64]);
        let plans =
            Plan::packed_candidates(&stream.device(), &q, &k, &k, &o, sequences, Options::causal()).unwrap();
        for plan in gpu.plans(plans) {
            plan.run_packed(&stream, &q, &k, &k, &mut o, None, sequences, Options::causal())
                .unwrap_or_else(|e| panic!("{plan}: {e}"));
        }
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
    check(H100, case);
    check(
        H100,
        Case {
            head: 256,
            head_of_v: 256,
            ..case
        },
    );
    check(
        H100,
        Case {
            head: 192,
            head_of_v: 128,
            ..case
        },
    );
    let narrow = Case {
        head: 72,
        head_of_v: 40,
        options: Options::default().scale(0.3),
        ..case
    };
    check(H100, narrow);
    check(B200, narrow);
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
