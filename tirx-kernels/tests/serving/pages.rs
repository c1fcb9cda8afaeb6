//! Attention to keys and values in pages.

use tirx_kernels::paged::{self, Cached, Factors, Options, Rope, Workspace};
use tirx_kernels::rope::{self, Pairs};
use tirx_rt::{Stream, Tensor, bf16, f8e4m3, f16};

use crate::data::{Number, Rows, close, numbers, stream};

/// The shapes of a call.
#[derive(Clone, Copy, Debug)]
struct Case {
    queries: usize,
    heads: usize,
    heads_of_k: usize,
    head: usize,
    page: usize,
    lengths: &'static [i32],
    gap: usize,
}

const PLAIN: Case = Case {
    queries: 1,
    heads: 4,
    heads_of_k: 1,
    head: 64,
    page: 16,
    lengths: &[33, 0, 1, 150],
    gap: 0,
};

/// A page table whose pages are in an order that looks random, without a page in common. Unused entries are no pages.
fn table(lengths: &[i32], page: usize, width: usize) -> (Vec<i32>, usize) {
    let used: usize = lengths.iter().map(|l| (*l.max(&0) as usize).div_ceil(page)).sum();
    let pages = used + 3;
    let step = (1..).map(|s| s * 2 + 5).find(|s| gcd(*s, pages) == 1).unwrap();
    let mut next = (0..pages).map(|i| (i * step % pages) as i32);
    let mut table = vec![-7; lengths.len() * width];
    for (row, length) in table.chunks_mut(width).zip(lengths) {
        for entry in row.iter_mut().take((*length.max(&0) as usize).div_ceil(page)) {
            *entry = next.next().unwrap();
        }
    }
    (table, pages)
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

pub(crate) trait Both: Number + paged::Element {}
impl Both for bf16 {}
impl Both for f16 {}

/// An element type of a cache, with the largest relative error of its rounding.
pub(crate) trait Stored: tirx_rt::Element {
    const UNIT: f64;
    fn of_number(x: f64) -> Self;
    fn number(self) -> f64;
}

macro_rules! stored {
    ($($ty:ident $unit:expr;)*) => {$(
        impl Stored for $ty {
            const UNIT: f64 = $unit;
            fn of_number(x: f64) -> $ty {
                $ty::from_f64(x)
            }
            fn number(self) -> f64 {
                self.to_f64()
            }
        }
    )*};
}

stored! { bf16 1.0 / 256.0; f16 1.0 / 2048.0; f8e4m3 1.0 / 16.0; }

fn check<T: Both + Cached<T> + Stored>(case: Case, options: Options, pairs: Option<Pairs>) {
    check_cached::<T, T>(case, options, pairs);
}

fn check_cached<T: Both, C: Cached<T> + Stored>(case: Case, options: Options, pairs: Option<Pairs>) {
    let stream = stream();
    let Case {
        queries,
        heads,
        heads_of_k,
        head,
        page,
        lengths,
        gap,
    } = case;
    let batch = lengths.len();
    let width = lengths
        .iter()
        .map(|l| (*l.max(&0) as usize).div_ceil(page))
        .max()
        .unwrap()
        + 1;
    let (table, pages) = table(lengths, page, width);
    let of_table = Tensor::from_slice(&stream, &table, [batch, width]).unwrap();
    let of_lengths = Tensor::from_slice(&stream, lengths, [batch]).unwrap();

    // All keys and values of all sequences, stored by one call.
    let sequences: Vec<i32> = (0..batch)
        .flat_map(|b| vec![b as i32; lengths[b].max(0) as usize])
        .collect();
    let positions: Vec<i32> = lengths.iter().flat_map(|l| 0..*l.max(&0)).collect();
    let tokens = positions.len();
    let (k, v) = (
        numbers(tokens * heads_of_k * head, 1),
        numbers(tokens * heads_of_k * head, 2),
    );
    let shape = [tokens, heads_of_k, head];
    let of_k = Rows::<T>::new(&stream, &k, &shape, [gap, gap]);
    let of_v = Rows::<T>::new(&stream, &v, &shape, [gap, gap]);
    let cache = vec![C::of_number(3.0); pages * page * heads_of_k * head];
    let cache =
        |stream: &Stream| Tensor::from_slice(stream, &cache, [pages, page, heads_of_k, head]).unwrap();
    let (mut k_cache, mut v_cache) = (cache(&stream), cache(&stream));
    let frequencies = rope::frequencies(10_000.0, head);
    let of_frequencies = Tensor::from_slice(&stream, &frequencies, [head / 2]).unwrap();
    let by = |values: &[i32]| Tensor::from_slice(&stream, values, [tokens]).unwrap();
    paged::append_scaled(
        &stream,
        &of_k.view(),
        &of_v.view(),
        &mut k_cache,
        &mut v_cache,
        &of_table,
        &by(&sequences),
        &by(&positions),
        pairs.map(|pairs| Rope {
            frequencies: &of_frequencies,
            pairs,
        }),
        options.factors,
    )
    .unwrap_or_else(|e| panic!("{e}"));

    // The caches hold the rows at their places, and nothing else.
    let place = |token: usize| {
        let position = positions[token] as usize;
        let entry = table[sequences[token] as usize * width + position / page];
        entry as usize * page + position % page
    };
    let row = heads_of_k * head;
    let [of_k, of_v] = [options.factors.k, options.factors.v].map(f64::from);
    let mut exact_k = vec![3.0 * of_k; pages * page * row];
    let mut exact_v = vec![3.0 * of_v; pages * page * row];
    for token in 0..tokens {
        let at = place(token) * row;
        exact_v[at..at + row].copy_from_slice(&v[token * row..(token + 1) * row]);
        for (i, x) in k[token * row..(token + 1) * row].iter().enumerate() {
            exact_k[at + i] = *x;
        }
        if let Some(pairs) = pairs {
            for h in 0..heads_of_k {
                for (p, frequency) in frequencies.iter().enumerate() {
                    let (one, two) = match pairs {
                        Pairs::Halves => (p, p + head / 2),
                        Pairs::Interleaved => (2 * p, 2 * p + 1),
                    };
                    let (one, two) = (at + h * head + one, at + h * head + two);
                    let angle = f64::from(positions[token]) * f64::from(*frequency);
                    let (a, b) = (exact_k[one], exact_k[two]);
                    exact_k[one] = a * angle.cos() - b * angle.sin();
                    exact_k[two] = b * angle.cos() + a * angle.sin();
                }
            }
        }
    }
    let stored = |t: &Tensor<C>, factor: f64| -> Vec<f64> {
        let numbers = t.to_vec().unwrap();
        numbers.iter().map(|x| x.number() * factor).collect()
    };
    let (found_k, found_v) = (stored(&k_cache, of_k), stored(&v_cache, of_v));
    close(&found_k, |i| (exact_k[i], 0.1), C::UNIT);
    close(&found_v, |i| (exact_v[i], 0.0), C::UNIT);

    let q = numbers(batch * queries * heads * head, 3);
    let shape = [batch, queries, heads * head];
    let of_q = Rows::<T>::new(&stream, &q, &shape, [gap, gap]);
    let mut of_o = Rows::<T>::new(&stream, &vec![7.0; q.len()], &shape, [gap, gap]);
    // Rows with gaps between the tokens, as heads: a view of one more dimension has no gaps.
    let four = [batch, queries, heads, head];
    let contiguous =
        Tensor::from_slice(&stream, &q.iter().map(|x| T::round(*x)).collect::<Vec<_>>(), four).unwrap();
    let mut o = Tensor::<T>::full(&stream, T::round(7.0), four).unwrap();
    let mut workspace = Workspace::for_decode(&stream, &contiguous, &k_cache, &of_table, options).unwrap();
    let mut run = |q: &Tensor<T>, o: &mut Tensor<T>| {
        paged::decode(
            &stream,
            q,
            &k_cache,
            &v_cache,
            &of_table,
            &of_lengths,
            o,
            &mut workspace,
            options,
        )
        .unwrap_or_else(|e| panic!("{case:?}: {e}"));
    };
    // Twice: the first call leaves the workspace as it was.
    run(&contiguous, &mut o);
    run(&contiguous, &mut o);
    let found: Vec<f64> = o.to_vec().unwrap().iter().map(|x| x.value()).collect();
    if heads == 1 {
        run(&of_q.view(), &mut of_o.view_mut());
        assert_eq!(of_o.values(), found);
    }

    let scale = f64::from(options.scale.unwrap_or(1.0 / (head as f32).sqrt()));
    for (b, length) in lengths.iter().enumerate() {
        let length = i64::from(*length.max(&0));
        for n in 0..queries {
            let end = length - queries as i64 + n as i64 + 1;
            let begin = options.window.map_or(0, |window| (end - window as i64).max(0));
            for h in 0..heads {
                let query = &q[((b * queries + n) * heads + h) * head..][..head];
                let hk = h / (heads / heads_of_k);
                let places: Vec<usize> = (begin..end.max(0))
                    .map(|j| {
                        let entry = table[b * width + j as usize / page] as usize;
                        ((entry * page + j as usize % page) * heads_of_k + hk) * head
                    })
                    .collect();
                let scores: Vec<f64> = places
                    .iter()
                    .map(|at| {
                        let score = (0..head).map(|d| query[d] * found_k[at + d]).sum::<f64>() * scale;
                        options
                            .cap
                            .map_or(score, |cap| f64::from(cap) * (score / f64::from(cap)).tanh())
                    })
                    .collect();
                let most = scores.iter().fold(f64::MIN, |m, s| m.max(*s));
                let total: f64 = scores.iter().map(|s| (s - most).exp()).sum();
                for d in 0..head {
                    let exact: f64 = places
                        .iter()
                        .zip(&scores)
                        .map(|(at, s)| (s - most).exp() * found_v[at + d] / total.max(1e-300))
                        .sum();
                    let found = found[((b * queries + n) * heads + h) * head + d];
                    assert!(
                        (found - exact).abs() <= T::UNIT * (exact.abs() + 0.5),
                        "{case:?}, {options:?}: sequence {b}, query {n}, head {h}, element {d}: {found}, not {exact}"
                    );
                }
            }
        }
    }
}

#[test]
fn groups_heads_and_pages_of_any_size() {
    let options = Options::default();
    check::<bf16>(PLAIN, options, None);
    check::<f16>(PLAIN, options, Some(Pairs::Halves));
    for (heads, heads_of_k) in [(1, 1), (6, 2), (8, 1), (16, 1), (20, 1)] {
        check::<bf16>(
            Case {
                heads,
                heads_of_k,
                ..PLAIN
            },
            options,
            None,
        );
    }
    for page in [1, 5, 64, 256] {
        check::<f16>(
            Case {
                page,
                head: 128,
                ..PLAIN
            },
            options,
            None,
        );
    }
    check::<bf16>(
        Case {
            head: 256,
            heads_of_k: 2,
            ..PLAIN
        },
        options,
        Some(Pairs::Interleaved),
    );
    check::<bf16>(
        Case {
            heads: 1,
            gap: 8,
            ..PLAIN
        },
        options,
        Some(Pairs::Halves),
    );
}

#[test]
fn ranges_of_keys_are_combined() {
    for splits in [1, 2, 3, 9] {
        let case = Case {
            lengths: &[700, 5, 64, 0],
            head: 128,
            heads: 8,
            ..PLAIN
        };
        check::<bf16>(case, Options::default().splits(splits), None);
    }
    check::<f16>(
        Case {
            lengths: &[300, 1],
            heads: 18,
            ..PLAIN
        },
        Options::default().splits(4),
        None,
    );
}

#[test]
fn several_queries_windows_and_bounded_scores() {
    for queries in [2, 3, 7] {
        check::<bf16>(
            Case {
                queries,
                heads_of_k: 2,
                ..PLAIN
            },
            Options::default(),
            None,
        );
        check::<bf16>(
            Case {
                queries,
                heads: 9,
                ..PLAIN
            },
            Options::default().splits(3).window(20),
            None,
        );
    }
    check::<f16>(PLAIN, Options::default().window(1), None);
    check::<f16>(PLAIN, Options::default().window(100).cap(0.5).scale(1.5), None);
}

#[test]
fn heads_of_96_elements() {
    let case = Case { head: 96, ..PLAIN };
    check::<bf16>(case, Options::default(), Some(Pairs::Halves));
    let case = Case {
        heads: 12,
        heads_of_k: 1,
        lengths: &[300, 17],
        ..case
    };
    check::<f16>(case, Options::default().splits(3), None);
}

#[test]
fn caches_of_float8() {
    let options = Options::default();
    let scaled = options.factors(Factors { k: 0.5, v: 0.125 });
    for head in [64, 96, 128, 256] {
        let case = Case { head, ..PLAIN };
        check_cached::<bf16, f8e4m3>(case, options, None);
        let case = Case {
            heads: 20,
            heads_of_k: 2,
            page: 5,
            lengths: &[300, 1, 79],
            ..case
        };
        check_cached::<f16, f8e4m3>(case, scaled.splits(2), Some(Pairs::Halves));
    }
    let case = Case {
        queries: 3,
        heads: 9,
        ..PLAIN
    };
    check_cached::<bf16, f8e4m3>(case, scaled.window(20).cap(0.5), Some(Pairs::Interleaved));
    let stream = stream();
    let (q, k) = (
        Tensor::<bf16>::zeros(&stream, [1, 1, 64]).unwrap(),
        Tensor::<bf16>::zeros(&stream, [1, 4, 1, 64]).unwrap(),
    );
    let (table, lengths) = (
        Tensor::<i32>::zeros(&stream, [1, 1]).unwrap(),
        Tensor::<i32>::zeros(&stream, [1]).unwrap(),
    );
    let mut workspace = Workspace::for_decode(&stream, &q, &k, &table, options).unwrap();
    let mut run = |options: Options| {
        let mut o = Tensor::zeros(&stream, [1, 1, 64]).unwrap();
        paged::decode(
            &stream,
            &q,
            &k,
            &k,
            &table,
            &lengths,
            &mut o,
            &mut workspace,
            options,
        )
        .unwrap_err()
        .to_string()
    };
    assert_eq!(run(scaled), "factors belong to caches of float8");
    assert_eq!(
        run(options.factors(Factors { k: 0.0, v: 1.0 })),
        "the factors of a cache are positive and finite, not 0 and 1"
    );
}

#[derive(Clone, Copy, Debug)]
struct Latent {
    queries: usize,
    heads: usize,
    page: usize,
    lengths: &'static [i32],
}

/// Latent attention: keys of 576 elements, the first 512 of which are the value.
fn check_latent<T: Both>(case: Latent, options: Options) {
    let stream = stream();
    let Latent {
        queries,
        heads,
        page,
        lengths,
    } = case;
    let batch = lengths.len();
    let width = lengths
        .iter()
        .map(|l| (*l as usize).div_ceil(page))
        .max()
        .unwrap()
        + 1;
    let (table, pages) = table(lengths, page, width);
    let of_table = Tensor::from_slice(&stream, &table, [batch, width]).unwrap();
    let of_lengths = Tensor::from_slice(&stream, lengths, [batch]).unwrap();
    let sequences: Vec<i32> = (0..batch)
        .flat_map(|b| vec![b as i32; lengths[b] as usize])
        .collect();
    let positions: Vec<i32> = lengths.iter().flat_map(|l| 0..*l).collect();
    let tokens = positions.len();
    let keys = numbers(tokens * 576, 1);
    let to = |values: &[f64], shape: &[usize]| {
        let values: Vec<T> = values.iter().map(|x| T::round(*x)).collect();
        Tensor::from_slice(&stream, &values, shape).unwrap()
    };
    let mut cache = Tensor::<T>::full(&stream, T::round(3.0), [pages, page, 576]).unwrap();
    let by = |values: &[i32]| Tensor::from_slice(&stream, values, [tokens]).unwrap();
    paged::append_latent(
        &stream,
        &to(&keys, &[tokens, 576]),
        &mut cache,
        &of_table,
        &by(&sequences),
        &by(&positions),
    )
    .unwrap_or_else(|e| panic!("{e}"));
    let q = numbers(batch * queries * heads * 576, 3);
    let of_q = to(&q, &[batch, queries, heads, 576]);
    let mut o = Tensor::<T>::full(&stream, T::round(7.0), [batch, queries, heads, 512]).unwrap();
    let mut workspace = Workspace::for_latent(&stream, &of_q, &cache, &of_table, options).unwrap();
    for _ in 0..2 {
        paged::decode_latent(
            &stream,
            &of_q,
            &cache,
            &of_table,
            &of_lengths,
            &mut o,
            &mut workspace,
            options,
        )
        .unwrap_or_else(|e| panic!("{case:?}: {e}"));
    }
    let found = o.to_vec().unwrap();
    let scale = f64::from(options.scale.unwrap_or(1.0 / 192f32.sqrt()));
    let mut first = 0;
    for (b, length) in lengths.iter().enumerate() {
        let length = *length as usize;
        let keys = &keys[first * 576..(first + length) * 576];
        first += length;
        for n in 0..queries {
            let end = (length + n + 1).saturating_sub(queries);
            for h in 0..heads {
                let row = (b * queries + n) * heads + h;
                let query = &q[row * 576..][..576];
                let keys: Vec<&[f64]> = keys.chunks(576).take(end).collect();
                let scores: Vec<f64> = keys
                    .iter()
                    .map(|key| key.iter().zip(query).map(|(k, q)| k * q).sum::<f64>() * scale)
                    .collect();
                let most = scores.iter().fold(f64::MIN, |m, s| m.max(*s));
                let total: f64 = scores.iter().map(|s| (s - most).exp()).sum();
                for d in 0..512 {
                    let sum: f64 = keys
                        .iter()
                        .zip(&scores)
                        .map(|(key, s)| (s - most).exp() * key[d])
                        .sum();
                    let exact = sum / total.max(1e-300);
                    let found = found[row * 512 + d].value();
                    assert!(
                        (found - exact).abs() <= <T as Number>::UNIT * (exact.abs() + 0.5),
                        "{case:?}: sequence {b}, query {n}, head {h}, element {d}: {found}, not {exact}"
                    );
                }
            }
        }
    }
}

#[test]
fn latent_attention_agrees_with_float64() {
    let case = Latent {
        queries: 1,
        heads: 16,
        page: 16,
        lengths: &[33, 0, 1, 100],
    };
    let options = Options::default();
    check_latent::<bf16>(case, options);
    check_latent::<f16>(
        Latent {
            heads: 5,
            page: 7,
            ..case
        },
        options.splits(3),
    );
    let case = Latent {
        lengths: &[70, 3],
        ..case
    };
    check_latent::<bf16>(Latent { heads: 70, ..case }, options.splits(2).scale(0.1));
    check_latent::<f16>(
        Latent {
            queries: 3,
            heads: 24,
            page: 64,
            ..case
        },
        options,
    );
    let stream = stream();
    let zeros = |shape: &[usize]| Tensor::<bf16>::zeros(&stream, shape).unwrap();
    let (q, cache) = (zeros(&[1, 4, 576]), zeros(&[2, 4, 576]));
    let (table, lengths) = (
        Tensor::<i32>::zeros(&stream, [1, 1]).unwrap(),
        Tensor::<i32>::zeros(&stream, [1]).unwrap(),
    );
    let mut workspace = Workspace::for_latent(&stream, &q, &cache, &table, options).unwrap();
    let mut run = |o: &[usize], options: Options| {
        let mut o = zeros(o);
        paged::decode_latent(
            &stream,
            &q,
            &cache,
            &table,
            &lengths,
            &mut o,
            &mut workspace,
            options,
        )
        .unwrap_err()
        .to_string()
    };
    assert_eq!(
        run(&[1, 4, 576], options),
        "expected O of shape [1, 4, 512], that of Q with the elements of a value; the shape is [1, 4, 576]"
    );
    assert_eq!(
        run(&[1, 4, 512], options.window(3)),
        "latent attention takes no window, no bound of scores and no factors"
    );
}

#[test]
fn wrong_calls_are_refused() {
    let stream = stream();
    let zeros = |shape: &[usize]| Tensor::<bf16>::zeros(&stream, shape).unwrap();
    let ints = |shape: &[usize]| Tensor::<i32>::zeros(&stream, shape).unwrap();
    let message = |q: &[usize], k: &[usize], table: &[usize], lengths: &[usize]| {
        let (q, k, table) = (zeros(q), zeros(k), ints(table));
        let mut o = zeros(q.shape());
        Workspace::for_decode(&stream, &q, &k, &table, Options::default())
            .and_then(|mut workspace| {
                let options = Options::default();
                paged::decode(
                    &stream,
                    &q,
                    &k,
                    &k,
                    &table,
                    &ints(lengths),
                    &mut o,
                    &mut workspace,
                    options,
                )
            })
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        message(&[2, 3, 64], &[4, 16, 2, 64], &[2, 4], &[2]),
        "the heads of Q share the heads of K evenly; there are 3 and 2"
    );
    assert_eq!(
        message(&[2, 4, 64], &[4, 16, 2, 64], &[2, 4], &[3]),
        "expected the lengths of shape [2], one for each sequence; the shape is [3]"
    );
    assert_eq!(
        message(&[2, 4, 72], &[4, 16, 2, 72], &[2, 4], &[2]),
        "heads have 64, 96, 128 or 256 elements; they have 72"
    );
    let (q, k, table) = (zeros(&[2, 4, 64]), zeros(&[40, 16, 2, 64]), ints(&[2, 20]));
    let mut workspace = Workspace::for_decode(&stream, &q, &k, &table, Options::default().splits(1)).unwrap();
    let options = Options::default().splits(2);
    let error = paged::decode(
        &stream,
        &q,
        &k,
        &k,
        &table,
        &ints(&[2]),
        &mut zeros(&[2, 4, 64]),
        &mut workspace,
        options,
    );
    let error = error.unwrap_err().to_string();
    assert!(
        error.starts_with("the workspace has 0 numbers and 4 counters; this call needs"),
        "{error}"
    );
}

#[test]
fn scores_that_are_no_numbers_give_none() {
    let stream = stream();
    let mut values = [1.0f32; 2 * 64];
    values[3] = f32::NAN;
    let q = Tensor::from_slice(&stream, &values.map(bf16::from_f32), [1, 2, 64]).unwrap();
    let k = Tensor::full(&stream, bf16::ONE, [3, 4, 1, 64]).unwrap();
    let table = Tensor::from_slice(&stream, &[0, 1], [1, 2]).unwrap();
    let lengths = Tensor::from_slice(&stream, &[5], [1]).unwrap();
    let mut o = q.zeros_like(&stream).unwrap();
    let mut decode = |options| {
        let mut workspace =
            Workspace::for_decode(&stream, &q, &k, &table, Options::default().splits(2)).unwrap();
        let w = &mut workspace;
        paged::decode(&stream, &q, &k, &k, &table, &lengths, &mut o, w, options)?;
        Ok::<_, tirx_kernels::Error>(o.to_vec().unwrap())
    };
    for splits in [1, 2] {
        let o = decode(Options::default().splits(splits)).unwrap();
        assert!(o[..64].iter().all(|o| o.is_nan()) && o[64..].iter().all(|o| *o == bf16::ONE));
    }
    let mut refusal = |options| decode(options).unwrap_err().to_string();
    for scale in [f32::NAN, f32::INFINITY, -1e30] {
        let message = refusal(Options::default().scale(scale));
        assert!(
            message.starts_with("the factor of scores is a number from -1e20 to 1e20"),
            "{message}"
        );
    }
    for cap in [f32::NAN, f32::INFINITY, 0.0, -1.0] {
        let message = refusal(Options::default().cap(cap));
        assert!(
            message.starts_with("the bound of scores is a number from 1e-20 to 1e20"),
            "{message}"
        );
    }
}
