//! Sampling, against the same choice by a sort in float64.

use tirx_kernels::sampling::{self, Options, Parameters};
use tirx_rt::{Tensor, bf16, f16};

use crate::data::{Number, Rows, numbers, stream};
use crate::for_each_type;

/// Philox4x32-10.
fn philox(mut c: [u32; 4], mut k: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let (a, b) = (u64::from(c[0]) * 0xd251_1f53, u64::from(c[2]) * 0xcd9e_8d57);
        c = [
            (b >> 32) as u32 ^ c[1] ^ k[0],
            b as u32,
            (a >> 32) as u32 ^ c[3] ^ k[1],
            a as u32,
        ];
        k = [k[0].wrapping_add(0x9e37_79b9), k[1].wrapping_add(0xbb67_ae85)];
    }
    c
}

/// The tokens that a choice may give: more than one only if rounding decides between them.
fn exact(logits: &[f64], counts: &[i32], options: Options, counter: i32) -> Vec<usize> {
    let mut z = logits.to_vec();
    for (z, count) in z.iter_mut().zip(counts).filter(|(_, count)| **count > 0) {
        let repetition = f64::from(options.repetition);
        *z = if *z > 0.0 {
            *z / repetition
        } else {
            *z * repetition
        };
        *z -= f64::from(options.presence) + f64::from(options.frequency) * f64::from(*count);
    }
    if options.temperature > 0.0 {
        z.iter_mut().for_each(|z| *z /= f64::from(options.temperature));
    }
    let most = z.iter().fold(f64::MIN, |m, z| m.max(*z));
    if options.temperature == 0.0 {
        return (0..z.len()).filter(|i| z[*i] >= most - 1e-6).collect();
    }
    let mut kept: Vec<usize> = (0..z.len()).collect();
    kept.sort_by(|i, j| z[*j].total_cmp(&z[*i]));
    // Keys have steps of 2^-27.
    let until = |kept: &mut Vec<usize>, limit: f64| kept.retain(|i| z[*i] >= limit - 1e-6);
    if options.min_p > 0.0 {
        until(&mut kept, most + f64::from(options.min_p).ln());
    }
    if (1..kept.len()).contains(&options.top_k) {
        let limit = z[kept[options.top_k - 1]];
        until(&mut kept, limit);
    }
    if options.top_p < 1.0 {
        let total: f64 = kept.iter().map(|i| (z[*i] - most).exp()).sum();
        let mut sum = 0.0;
        let last = kept.iter().find(|i| {
            sum += (z[**i] - most).exp();
            sum >= total * f64::from(options.top_p) - 1e-7
        });
        let limit = z[*last.unwrap_or(&kept[0])];
        until(&mut kept, limit);
    }
    let scores: Vec<f64> = kept
        .iter()
        .map(|i| {
            let words = philox(
                [(i / 4) as u32, counter as u32, 0, 0],
                [options.seed as u32, (options.seed >> 32) as u32],
            );
            let u = (f64::from(words[i % 4] >> 8) + 0.5) / f64::from(1 << 24);
            z[*i] - most - (-u.ln()).ln()
        })
        .collect();
    let best = scores.iter().fold(f64::MIN, |m, s| m.max(*s));
    (0..kept.len())
        .filter(|i| scores[*i] >= best - 1e-4)
        .map(|i| kept[i])
        .collect()
}

fn choices() -> Vec<Options> {
    let seed = |options: Options, seed: u64| options.seed(seed.wrapping_mul(0x1234_5678_9abc_def1));
    vec![
        Options::greedy(),
        seed(Options::temperature(1.0), 1),
        seed(Options::temperature(0.7).top_k(40), 2),
        seed(Options::temperature(1.0).top_p(0.9), 3),
        seed(Options::temperature(1.3).top_k(50).top_p(0.8), 4),
        seed(Options::temperature(1.0).min_p(0.05), 5),
        seed(Options::temperature(1.0).top_k(1), 6),
        seed(Options::temperature(5.0).top_p(0.5).min_p(0.01), 7),
        seed(Options::temperature(3.0).top_k(2500), 8),
        seed(Options::temperature(3.0).top_k(2500).top_p(0.97), 9),
    ]
}

fn check<T: Number>(columns: usize, gaps: [usize; 2], size: f64, penalized: bool) {
    let stream = stream();
    let mut choices = choices();
    if penalized {
        for (i, options) in choices.iter_mut().enumerate() {
            *options = options
                .repetition(1.0 + i as f32 * 0.25)
                .presence_and_frequency(0.25, 0.125);
        }
    }
    let rows = choices.len();
    let logits: Vec<f64> = numbers(rows * columns, columns as u64)
        .iter()
        .zip(numbers(rows * columns, 99))
        .map(|(a, b)| T::round((a + a * b) * size).value())
        .collect();
    let of_logits = Rows::<T>::new(&stream, &logits, &[rows, columns], gaps);
    let parameters = Parameters::from_rows(&stream, &choices).unwrap();
    let counters: Vec<i32> = (0..rows as i32).map(|i| i * 1_000_003).collect();
    let of_counters = Tensor::from_slice(&stream, &counters, [rows]).unwrap();
    let counts: Vec<i32> = (0..rows * columns).map(|i| [0, 0, 3, 0, 1][i * 7 % 5]).collect();
    let mut of_counts = Tensor::from_slice(&stream, &counts, [rows, columns]).unwrap();
    let mut tokens = Tensor::full(&stream, -5, [rows]).unwrap();
    if penalized {
        sampling::sample_with_counts(
            &stream,
            &of_logits.view(),
            &parameters,
            &of_counters,
            &mut of_counts,
            &mut tokens,
        )
    } else {
        sampling::sample(&stream, &of_logits.view(), &parameters, &of_counters, &mut tokens)
    }
    .unwrap_or_else(|e| panic!("{e}"));
    let tokens = tokens.to_vec().unwrap();
    let mut expected_counts = counts.clone();
    for (r, token) in tokens.iter().enumerate() {
        let row = r * columns..(r + 1) * columns;
        let counts = if penalized { &counts[row.clone()] } else { &[] };
        let allowed = exact(&logits[row], counts, choices[r], counters[r]);
        assert!(
            allowed.contains(&(*token as usize)),
            "{columns} columns, {:?}: {token} is none of {allowed:?}",
            choices[r]
        );
        expected_counts[r * columns + *token as usize] += i32::from(penalized);
    }
    assert_eq!(of_counts.to_vec().unwrap(), expected_counts);
}

#[test]
fn sampling_agrees_with_a_sort() {
    for (columns, gaps) in [(1, [0, 0]), (37, [0, 0]), (1000, [8, 8]), (1003, [1, 0])] {
        for_each_type!(check(columns, gaps, 6.0, false));
    }
    check::<f32>(9001, [0, 0], 2.0, false);
    check::<bf16>(9001, [0, 0], 6.0, true);
    check::<f32>(777, [0, 0], 6.0, true);
    check::<bf16>(64, [3, 0], 6.0, true);
}

#[test]
fn random_choices_follow_the_probabilities() {
    let stream = stream();
    let rows = 400;
    let logits = Tensor::from_slice(&stream, &[0f32, 3f32.ln()].repeat(rows), [rows, 2]).unwrap();
    let parameters = Parameters::from_rows(&stream, &vec![Options::temperature(1.0).seed(11); rows]).unwrap();
    let counters = Tensor::from_slice(&stream, &(0..rows as i32).collect::<Vec<_>>(), [rows]).unwrap();
    let mut tokens = Tensor::zeros(&stream, [rows]).unwrap();
    sampling::sample(&stream, &logits, &parameters, &counters, &mut tokens).unwrap();
    let ones: i32 = tokens.to_vec().unwrap().iter().sum();
    // 300 expected; the standard deviation is 8.7.
    assert!((265..=335).contains(&ones), "{ones}");
}

fn maxima<T: Number>(columns: usize, gaps: [usize; 2]) {
    let stream = stream();
    let mut logits = numbers(3 * columns, 5);
    logits[columns..2 * columns].fill(-1.0);
    let of_logits = Rows::<T>::new(&stream, &logits, &[3, columns], gaps);
    let mut tokens = Tensor::full(&stream, -5, [3]).unwrap();
    sampling::argmax(&stream, &of_logits.view(), &mut tokens).unwrap();
    for (row, token) in logits.chunks(columns).zip(tokens.to_vec().unwrap()) {
        let most = row.iter().fold(f64::MIN, |m, x| m.max(*x));
        assert_eq!(token as usize, row.iter().position(|x| *x == most).unwrap());
    }
}

#[test]
fn argmax_gives_the_first_of_the_greatest() {
    for (columns, gaps) in [(1, [0, 0]), (1000, [0, 0]), (20_001, [1, 0])] {
        for_each_type!(maxima(columns, gaps));
    }
    let stream = stream();
    let none = Tensor::full(&stream, f16::from_f32(f32::NEG_INFINITY), [2, 5]).unwrap();
    let mut tokens = Tensor::full(&stream, -5, [2]).unwrap();
    sampling::argmax(&stream, &none, &mut tokens).unwrap();
    assert_eq!(tokens.to_vec().unwrap(), [0, 0]);
}

#[test]
fn the_lowest_temperatures_choose_the_most_likely_token() {
    let stream = stream();
    let logits = Tensor::from_slice(&stream, &[-5.0f32, -1.0, -2.0, 3.0, 7.0, 1.0], [2, 3]).unwrap();
    let counters = Tensor::from_slice(&stream, &[0, 0], [2]).unwrap();
    let mut tokens = Tensor::zeros(&stream, [2]).unwrap();
    for temperature in [1e-30f32, 1e-38, f32::from_bits(1)] {
        for options in [
            Options::temperature(temperature),
            Options::temperature(temperature).top_k(2),
        ] {
            let parameters = Parameters::from_rows(&stream, &[options; 2]).unwrap();
            sampling::sample(&stream, &logits, &parameters, &counters, &mut tokens).unwrap();
            assert_eq!(tokens.to_vec().unwrap(), [1, 1], "{options:?}");
        }
    }
}

#[test]
fn rows_change_and_wrong_calls_are_refused() {
    let stream = stream();
    let logits = Tensor::from_slice(&stream, &[0.0f32, 9.0, 1.0, 8.0, 0.0, 0.0], [2, 3]).unwrap();
    let counters = Tensor::from_slice(&stream, &[0, 0], [2]).unwrap();
    let mut tokens = Tensor::zeros(&stream, [2]).unwrap();
    let mut parameters = Parameters::from_rows(&stream, &[Options::greedy(); 2]).unwrap();
    parameters
        .set(&stream, 1, Options::greedy().repetition(100.0))
        .unwrap();
    let error = sampling::sample(&stream, &logits, &parameters, &counters, &mut tokens);
    assert!(error.unwrap_err().to_string().starts_with("a row has penalties"));
    let mut counts = Tensor::from_slice(&stream, &[0, 1, 0, 1, 0, 0], [2, 3]).unwrap();
    sampling::sample_with_counts(&stream, &logits, &parameters, &counters, &mut counts, &mut tokens).unwrap();
    assert_eq!(tokens.to_vec().unwrap(), [1, 0]);
    sampling::sample_with_counts(&stream, &logits, &parameters, &counters, &mut counts, &mut tokens).unwrap();
    assert_eq!(counts.to_vec().unwrap(), [0, 3, 0, 3, 0, 0]);
    let error = parameters
        .set(&stream, 2, Options::greedy())
        .unwrap_err()
        .to_string();
    assert_eq!(error, "there are 2 rows, no row 2");
    let error = parameters
        .set(&stream, 0, Options::temperature(f32::NAN))
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("temperature and min_p are at least 0"),
        "{error}"
    );
    let three = Parameters::from_rows(&stream, &[Options::greedy(); 3]).unwrap();
    let error = sampling::sample(&stream, &logits, &three, &counters, &mut tokens);
    assert_eq!(
        error.unwrap_err().to_string(),
        "the parameters are for 3 rows; logits have 2"
    );
}
