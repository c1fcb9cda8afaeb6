//! Mixtures of experts.

use tirx_kernels::experts::{self, Options, Score};
use tirx_rt::Tensor;

use crate::data::{Number, Rows, close, numbers, stream};
use crate::for_each_type;

fn routes<T: Number>([tokens, count, chosen]: [usize; 3], biased: bool, options: Options) {
    let stream = stream();
    let logits: Vec<f64> = numbers(tokens * count, 1)
        .iter()
        .map(|x| T::round(x * 3.0).value())
        .collect();
    let bias: Vec<f32> = numbers(count, 2).iter().map(|x| *x as f32).collect();
    let of_logits = Rows::<T>::new(&stream, &logits, &[tokens, count], [1, 0]);
    let of_bias = Tensor::from_slice(&stream, &bias, [count]).unwrap();
    let mut ids = Tensor::full(&stream, -7, [tokens, chosen]).unwrap();
    let mut weights = Tensor::full(&stream, 7.0f32, [tokens, chosen]).unwrap();
    experts::route(
        &stream,
        &of_logits.view(),
        biased.then_some(&of_bias),
        &mut ids,
        &mut weights,
        options,
    )
    .unwrap_or_else(|e| panic!("{e}"));
    let (ids, weights) = (ids.to_vec().unwrap(), weights.to_vec().unwrap());
    for t in 0..tokens {
        let row = &logits[t * count..(t + 1) * count];
        let total: f64 = row.iter().map(|x| x.exp()).sum();
        let score = |e: usize| match options.score {
            Score::Softmax => row[e].exp() / total,
            Score::Sigmoid => 1.0 / (1.0 + (-row[e]).exp()),
        };
        let rank = |e: usize| score(e) + if biased { f64::from(bias[e]) } else { 0.0 };
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by(|a, b| rank(*b).total_cmp(&rank(*a)));
        let own = &ids[t * chosen..(t + 1) * chosen];
        let sum: f64 = own.iter().map(|e| score(*e as usize)).sum();
        for (c, expert) in own.iter().enumerate() {
            let expert = *expert as usize;
            assert!(
                (rank(expert) - rank(order[c])).abs() < 1e-6,
                "token {t}: expert {expert} is not {}",
                order[c]
            );
            assert!(
                own[..c].iter().all(|before| *before as usize != expert),
                "token {t}: expert {expert} twice"
            );
            let exact = score(expert) * f64::from(options.scale) / if options.normalized { sum } else { 1.0 };
            let found = f64::from(weights[t * chosen + c]);
            assert!(
                (found - exact).abs() <= exact * 1e-5 + 1e-7,
                "token {t}, expert {expert}: {found}, not {exact}"
            );
        }
    }
}

#[test]
fn routing_agrees_with_a_sort() {
    for options in [
        Options::new(Score::Softmax),
        Options::new(Score::Softmax).normalized(),
        Options::new(Score::Sigmoid).normalized().scale(2.5),
        Options::new(Score::Sigmoid).scale(0.5),
    ] {
        for shape in [[1, 1, 1], [9, 8, 2], [5, 60, 4], [3, 512, 8], [2, 33, 33]] {
            routes::<f32>(shape, false, options);
            routes::<f32>(shape, true, options);
        }
    }
    for_each_type!(routes(
        [4, 128, 8],
        false,
        Options::new(Score::Softmax).normalized()
    ));
}

#[test]
fn experts_of_scores_that_are_no_numbers_exist() {
    let stream = stream();
    let no_expert = [0.0, f32::NEG_INFINITY, 0.0, f32::NEG_INFINITY, f32::NEG_INFINITY];
    let bias = Tensor::from_slice(&stream, &no_expert, [5]).unwrap();
    for (logits, score, bias, ids) in [
        ([f32::NAN; 5], Score::Softmax, None, [0, 1, 2, 3]),
        ([f32::NEG_INFINITY; 5], Score::Softmax, None, [0, 1, 2, 3]),
        (
            [0.5, f32::NAN, 0.0, 1.0, f32::NAN],
            Score::Sigmoid,
            None,
            [3, 0, 2, 1],
        ),
        (
            [0.5, 9.0, 1.0, 9.0, 9.0],
            Score::Sigmoid,
            Some(&bias),
            [2, 0, 1, 3],
        ),
    ] {
        let of_logits = Tensor::from_slice(&stream, &logits, [1, 5]).unwrap();
        let mut found = Tensor::full(&stream, -7, [1, 4]).unwrap();
        let mut weights = Tensor::full(&stream, 7.0, [1, 4]).unwrap();
        let options = Options::new(score);
        experts::route(&stream, &of_logits, bias, &mut found, &mut weights, options).unwrap();
        assert_eq!(found.to_vec().unwrap(), ids, "{logits:?}");
        let last = weights.to_vec().unwrap()[3];
        assert_eq!(last.is_nan(), bias.is_none(), "{logits:?}: {last}");
    }
}

fn orders(tokens: usize, count: usize, chosen: usize, multiple: usize) {
    let stream = stream();
    // Some experts have no token, and one choice in eleven is no expert.
    let ids: Vec<i32> = (0..tokens * chosen)
        .map(|i| {
            if i % 11 == 5 {
                [-1, count as i32][i % 2]
            } else {
                (i * i % count) as i32
            }
        })
        .collect();
    let rows = experts::capacity(tokens * chosen, count, multiple);
    let of_ids = Tensor::from_slice(&stream, &ids, [tokens, chosen]).unwrap();
    let ints = |shape: &[usize]| Tensor::full(&stream, -9, shape).unwrap();
    let (mut begins, mut order, mut places) = (ints(&[count + 1]), ints(&[rows]), ints(&[tokens, chosen]));
    experts::align(&stream, &of_ids, &mut begins, &mut order, &mut places, multiple)
        .unwrap_or_else(|e| panic!("{e}"));
    let found = [&begins, &order, &places].map(|t| t.to_vec().unwrap());
    let mut begin = 0;
    let mut used = vec![false; rows];
    for expert in 0..count {
        assert_eq!(found[0][expert] as usize, begin, "expert {expert}");
        let own = ids.iter().filter(|id| **id == expert as i32).count();
        for (choice, id) in ids.iter().enumerate().filter(|(_, id)| **id == expert as i32) {
            let row = found[2][choice] as usize;
            assert!(
                (begin..begin + own).contains(&row),
                "choice {choice} of expert {id} is in row {row}"
            );
            assert!(!used[row], "row {row} twice");
            used[row] = true;
            assert_eq!(found[1][row] as usize, choice / chosen);
        }
        begin += own.next_multiple_of(multiple);
    }
    assert_eq!(found[0][count] as usize, begin);
    assert!(begin <= rows);
    for (row, used) in used.iter().enumerate() {
        assert!(*used || found[1][row] == -1, "row {row} is padding");
    }
    for (choice, id) in ids.iter().enumerate() {
        assert_eq!(
            found[2][choice] == -1,
            *id < 0 || *id >= count as i32,
            "choice {choice}"
        );
    }
}

#[test]
fn choices_are_ordered_by_expert() {
    for (tokens, count, chosen, multiple) in [
        (0, 4, 2, 16),
        (1, 1, 1, 1),
        (30, 8, 2, 16),
        (700, 64, 6, 64),
        (40, 512, 8, 1),
    ] {
        orders(tokens, count, chosen, multiple);
    }
    let stream = stream();
    let ints = |shape: &[usize]| Tensor::<i32>::zeros(&stream, shape).unwrap();
    let error = experts::align(
        &stream,
        &ints(&[4, 2]),
        &mut ints(&[9]),
        &mut ints(&[127]),
        &mut ints(&[4, 2]),
        16,
    );
    assert_eq!(
        error.unwrap_err().to_string(),
        "tokens have 127 rows; 8 choices need 128"
    );
    let multiple = usize::MAX;
    let error = experts::align(
        &stream,
        &ints(&[4, 2]),
        &mut ints(&[9]),
        &mut ints(&[127]),
        &mut ints(&[4, 2]),
        multiple,
    );
    let error = error.unwrap_err().to_string();
    assert!(
        error.starts_with("tokens have 127 rows; 8 choices need"),
        "{error}"
    );
}

fn sums<T: Number>(rows: usize, columns: usize, [tokens, chosen]: [usize; 2], gaps: [usize; 2]) {
    let stream = stream();
    let x = numbers(rows * columns, 1);
    let weights: Vec<f32> = numbers(tokens * chosen, 2).iter().map(|x| *x as f32).collect();
    let places: Vec<i32> = (0..tokens * chosen)
        .map(|i| (i * 7 % (rows + 2)) as i32 - 1)
        .collect();
    let of_x = Rows::<T>::new(&stream, &x, &[rows, columns], gaps);
    let of_places = Tensor::from_slice(&stream, &places, [tokens, chosen]).unwrap();
    let of_weights = Tensor::from_slice(&stream, &weights, [tokens, chosen]).unwrap();
    let mut of_y = Rows::<T>::new(&stream, &vec![7.0; tokens * columns], &[tokens, columns], gaps);
    experts::combine(
        &stream,
        &of_x.view(),
        &of_places,
        &of_weights,
        &mut of_y.view_mut(),
    )
    .unwrap_or_else(|e| panic!("{e}"));
    let exact = |i: usize| {
        let (t, column) = (i / columns, i % columns);
        let choices = (t * chosen..(t + 1) * chosen).filter(|c| (0..rows as i32).contains(&places[*c]));
        let sum = choices
            .map(|c| f64::from(weights[c]) * x[places[c] as usize * columns + column])
            .sum();
        (sum, 0.01)
    };
    close(&of_y.values(), exact, T::UNIT);
}

#[test]
fn results_are_added_by_their_weights() {
    for (columns, gaps) in [
        (1, [0, 0]),
        (64, [0, 0]),
        (100, [8, 4]),
        (77, [1, 0]),
        (5000, [0, 0]),
    ] {
        for_each_type!(sums(13, columns, [6, 3], gaps));
    }
}
