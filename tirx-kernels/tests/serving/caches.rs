//! Caches: tokens are stored in their pages, pages are copied.

use tirx_kernels::paged::{self, Cached, Heads, Norms, Options, Rope, Workspace};
use tirx_kernels::rope::{self, Pairs};
use tirx_rt::{Tensor, bf16, f8e4m3, f16};

use crate::data::{Number, Rows, close, numbers, stream};
use crate::pages::{Both, Stored};

fn copies<C: paged::CacheElement + Stored>([pages, page, heads, head]: [usize; 4]) {
    let stream = stream();
    let row = page * heads * head;
    let fill = |seed: usize| -> Vec<f64> {
        let number = |i: usize| C::of_number((i * 7 + seed * 3) as f64 % 16.0).number();
        (0..pages * row).map(number).collect()
    };
    let tensor = |values: &[f64]| {
        let values: Vec<C> = values.iter().map(|x| C::of_number(*x)).collect();
        Tensor::from_slice(&stream, &values, [pages, page, heads, head]).unwrap()
    };
    let numbers = |t: &Tensor<C>| -> Vec<f64> { t.to_vec().unwrap().iter().map(|x| x.number()).collect() };
    // Two pairs have a page outside.
    let count = pages as i32;
    let pairs = [count - 1, 0, 1, 2, -1, 1, 0, count];
    let of_pairs = Tensor::from_slice(&stream, &pairs, [4, 2]).unwrap();
    let apply = |from: &[f64], to: &mut Vec<f64>| {
        for [a, b] in [[pages - 1, 0], [1, 2]] {
            to[b * row..(b + 1) * row].copy_from_slice(&from[a * row..(a + 1) * row]);
        }
    };
    let (from, mut exact) = (fill(1), fill(2));
    let (source, mut cache) = (tensor(&from), tensor(&exact));
    paged::copy_pages(&stream, &source, &mut cache, &of_pairs).unwrap();
    apply(&from, &mut exact);
    assert_eq!(numbers(&cache), exact);
    paged::copy_pages_within(&stream, &mut cache, &of_pairs).unwrap();
    apply(&exact.clone(), &mut exact);
    assert_eq!(numbers(&cache), exact);
}

#[test]
fn pages_are_copied_between_caches_and_within_one() {
    copies::<bf16>([4, 16, 2, 64]);
    copies::<f16>([5, 3, 1, 7]);
    copies::<f8e4m3>([4, 5, 3, 96]);
    let stream = stream();
    let pairs = Tensor::<i32>::zeros(&stream, [1, 2]).unwrap();
    let cache = |page: usize| Tensor::<bf16>::zeros(&stream, [2, page, 1, 8]).unwrap();
    let error = paged::copy_pages(&stream, &cache(4), &mut cache(5), &pairs);
    assert!(
        error
            .unwrap_err()
            .to_string()
            .starts_with("caches have the shape [pages, rows of a page")
    );
    let wrong = Tensor::<i32>::zeros(&stream, [2, 3]).unwrap();
    let error = paged::copy_pages_within(&stream, &mut cache(4), &wrong);
    assert_eq!(
        error.unwrap_err().to_string(),
        "pairs of pages have the shape [count, 2], not [2, 3]"
    );
}

/// On a GPU the last page lies behind 2^31 elements; on the simulator the cache is small.
#[test]
fn pages_behind_two_to_the_31_elements() {
    let stream = stream();
    let (page, head, tokens) = (16, 128, 5);
    let pages = match stream.device().is_simulator() {
        true => 6,
        false => (1 << 31) / (page * head) + 2,
    };
    let random = |seed: u64, shape: [usize; 3]| {
        let values: Vec<bf16> = numbers(shape.iter().product(), seed)
            .into_iter()
            .map(bf16::from_f64)
            .collect();
        Tensor::from_slice(&stream, &values, shape).unwrap()
    };
    let (k, v) = (random(1, [tokens, 1, head]), random(2, [tokens, 1, head]));
    let q = random(3, [1, 2, head]);
    let mut caches = [0, 1].map(|_| Tensor::<bf16>::zeros(&stream, [pages, page, 1, head]).unwrap());
    let last = pages as i32 - 1;
    let of_page = |page: i32| Tensor::full(&stream, page, [1, 1]).unwrap();
    {
        let [k_cache, v_cache] = &mut caches;
        let sequences = Tensor::<i32>::zeros(&stream, [tokens]).unwrap();
        let positions = Tensor::from_slice(&stream, &[0, 1, 2, 3, 4], [tokens]).unwrap();
        paged::append(
            &stream,
            &k,
            &v,
            k_cache,
            v_cache,
            &of_page(last),
            &sequences,
            &positions,
            None,
        )
        .unwrap();
        let pair = Tensor::from_slice(&stream, &[last, 0], [1, 2]).unwrap();
        for cache in [k_cache, v_cache] {
            paged::copy_pages_within(&stream, cache, &pair).unwrap();
        }
    }
    let [k_cache, v_cache] = &caches;
    let stored = k_cache.slice(0, 0..1).unwrap().to_vec().unwrap();
    assert_eq!(stored[..tokens * head], k.to_vec().unwrap());
    let lengths = Tensor::full(&stream, tokens as i32, [1]).unwrap();
    let options = Options::default();
    let [near, far] = [0, last].map(|page| {
        let mut o = Tensor::<bf16>::zeros(&stream, [1, 2, head]).unwrap();
        let table = of_page(page);
        let mut workspace = Workspace::for_decode(&stream, &q, k_cache, &table, options).unwrap();
        paged::decode(
            &stream,
            &q,
            k_cache,
            v_cache,
            &table,
            &lengths,
            &mut o,
            &mut workspace,
            options,
        )
        .unwrap();
        o.to_vec().unwrap()
    });
    assert_eq!(near, far);
    assert!(near.iter().any(|x| x.to_f64() != 0.0));
}

/// Queries and keys of five tokens, normalized and turned in one launch. The third token has no page.
fn check_queries<T: Both, C: Cached<T> + Stored>(
    [heads, heads_of_k, head, frequencies]: [usize; 4],
    pairs: Option<Pairs>,
    with_norms: bool,
    gap: usize,
) {
    let stream = stream();
    let (tokens, page) = (5, 2);
    let positions = [3, 0, 9, 1, 2];
    let rows = [3, 0, -1, 1, 2];
    let q = numbers(tokens * heads * head, 1);
    let k = numbers(tokens * heads_of_k * head, 2);
    let v = numbers(tokens * heads_of_k * head, 3);
    let weights = [numbers(head, 4), numbers(head, 5)];
    let of_weights = [0, 1].map(|i| {
        let numbers: Vec<T> = weights[i].iter().map(|x| T::round(*x)).collect();
        Tensor::from_slice(&stream, &numbers, [head]).unwrap()
    });
    let of_q = Rows::<T>::new(&stream, &q, &[tokens, heads, head], [gap, gap]);
    let mut of_y = Rows::<T>::new(&stream, &vec![7.0; q.len()], &[tokens, heads, head], [gap, gap]);
    let of_k = Rows::<T>::new(&stream, &k, &[tokens, heads_of_k, head], [gap, gap]);
    let of_v = Rows::<T>::new(&stream, &v, &[tokens, heads_of_k, head], [gap, gap]);
    let mut caches =
        [0, 1].map(|_| Tensor::full(&stream, C::of_number(0.0), [2, page, heads_of_k, head]).unwrap());
    let [k_cache, v_cache] = &mut caches;
    let table = Tensor::from_slice(&stream, &[0, 1], [1, 2]).unwrap();
    let sequences = Tensor::from_slice(&stream, &[0; 5], [tokens]).unwrap();
    let of_positions = Tensor::from_slice(&stream, &positions, [tokens]).unwrap();
    let all = &rope::frequencies(10_000.0, head)[..frequencies];
    let of_frequencies = Tensor::from_slice(&stream, all, [frequencies]).unwrap();
    let eps = 1e-2;
    paged::append_queries(
        &stream,
        &of_q.view(),
        &of_k.view(),
        &of_v.view(),
        &mut of_y.view_mut(),
        k_cache,
        v_cache,
        &table,
        &sequences,
        &of_positions,
        Heads {
            rope: pairs.map(|pairs| Rope {
                frequencies: &of_frequencies,
                pairs,
            }),
            norms: with_norms.then_some(Norms {
                of_q: &of_weights[0],
                of_k: &of_weights[1],
                eps,
            }),
            ..Heads::default()
        },
    )
    .unwrap_or_else(|e| panic!("{e}"));
    let exact = |head_of: &[f64], weights: &[f64], position: i32| -> Vec<f64> {
        let mut y = head_of.to_vec();
        if with_norms {
            let mean = y.iter().map(|x| x * x).sum::<f64>() / head as f64;
            let inverse = 1.0 / (mean + f64::from(eps)).sqrt();
            y.iter_mut().zip(weights).for_each(|(x, w)| *x *= inverse * w);
        }
        for (p, frequency) in all.iter().enumerate().filter(|_| pairs.is_some()) {
            let (one, two) = match pairs {
                Some(Pairs::Interleaved) => (2 * p, 2 * p + 1),
                _ => (p, p + frequencies),
            };
            let angle = f64::from(position) * f64::from(*frequency);
            let (a, b) = (y[one], y[two]);
            y[one] = a * angle.cos() - b * angle.sin();
            y[two] = b * angle.cos() + a * angle.sin();
        }
        y
    };
    let all_of = |numbers: &[f64], of_token: usize, weights: &[f64]| -> Vec<f64> {
        let by_head = numbers.chunks(head).enumerate();
        by_head
            .flat_map(|(i, numbers)| exact(numbers, weights, positions[i / of_token]))
            .collect()
    };
    let exact_y = all_of(&q, heads, &weights[0]);
    close(&of_y.values(), |i| (exact_y[i], 0.01), <T as Number>::UNIT);
    let exact_k = all_of(&k, heads_of_k, &weights[1]);
    for (cache, exact) in [(&*k_cache, exact_k), (&*v_cache, v)] {
        let found: Vec<f64> = cache.to_vec().unwrap().iter().map(|x| x.number()).collect();
        let of_token = heads_of_k * head;
        let mut stored = vec![0.0; found.len()];
        for (token, row) in rows.iter().enumerate().filter(|(_, row)| **row >= 0) {
            let from = &exact[token * of_token..(token + 1) * of_token];
            stored[*row as usize * of_token..][..of_token].copy_from_slice(from);
        }
        close(&found, |i| (stored[i], 0.01), C::UNIT);
    }
}

#[test]
fn queries_are_normalized_and_turned_with_the_keys() {
    for pairs in [None, Some(Pairs::Halves), Some(Pairs::Interleaved)] {
        for with_norms in [false, true] {
            check_queries::<bf16, bf16>([4, 2, 64, 32], pairs, with_norms, 0);
            check_queries::<f16, f16>([5, 1, 24, 7], pairs, with_norms, 3);
            check_queries::<bf16, f8e4m3>([1, 3, 10, 5], pairs, with_norms, 1);
            check_queries::<f16, f16>([2, 2, 264, 100], pairs, with_norms, 8);
        }
    }
}

#[test]
fn tokens_without_a_page_are_left_out() {
    let stream = stream();
    let k = Tensor::from_slice(&stream, &[bf16::ONE; 6 * 8], [6, 1, 8]).unwrap();
    let mut caches = [0, 1].map(|_| Tensor::<bf16>::zeros(&stream, [2, 4, 1, 8]).unwrap());
    let [k_cache, v_cache] = &mut caches;
    let table = Tensor::from_slice(&stream, &[1, 9], [1, 2]).unwrap();
    let sequences = Tensor::from_slice(&stream, &[0, 0, 0, 0, 1, -1], [6]).unwrap();
    let positions = Tensor::from_slice(&stream, &[2, -1, 5, 8, 0, 0], [6]).unwrap();
    paged::append(
        &stream, &k, &k, k_cache, v_cache, &table, &sequences, &positions, None,
    )
    .unwrap();
    let stored = k_cache.to_vec().unwrap();
    let rows: Vec<usize> = stored
        .chunks(8)
        .enumerate()
        .filter(|(_, row)| row[0] == bf16::ONE)
        .map(|(i, _)| i)
        .collect();
    assert_eq!(rows, [6]);
}
