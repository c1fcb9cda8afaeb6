//! Products of generated extents and strides on the simulator, with all its checks, against float64. `TIRX_TEST_DEVICE=cuda` runs
//! them on the first GPU.

#![cfg(feature = "gemm")]

mod numbers;

use numbers::{Number, blackwell, error_of_term, numbers, stream};
use proptest::prelude::*;
use tirx_kernels::gemm::{self, Element};
use tirx_rt::{Device, Stream, Tensor, bf16, f16};

/// The memory of an operand with `rows` x `columns` elements.
#[derive(Clone, Copy, Debug)]
struct Memory {
    /// Columns are contiguous, not rows.
    turned: bool,
    /// Elements between the end of one row and the begin of the next.
    gap: usize,
}

fn memory() -> impl Strategy<Value = Memory> {
    (any::<bool>(), prop_oneof![Just(0), Just(8), Just(3)]).prop_map(|(turned, gap)| Memory { turned, gap })
}

/// Runs `with` on a view of shape `[batch, rows, columns]` of a tensor with the given memory.
fn tensor<T: Number>(
    stream: &Stream,
    values: &[f64],
    [batch, rows, columns]: [usize; 3],
    memory: Memory,
) -> Tensor<T> {
    let (outer, inner) = if memory.turned {
        (columns, rows)
    } else {
        (rows, columns)
    };
    let stride = inner + memory.gap;
    let mut all = vec![T::round(99.0); batch * outer * stride];
    for (index, value) in values.iter().enumerate() {
        let (b, i, j) = (index / (rows * columns), index / columns % rows, index % columns);
        let (o, n) = if memory.turned { (j, i) } else { (i, j) };
        all[(b * outer + o) * stride + n] = T::round(*value);
    }
    Tensor::from_slice(stream, &all, [batch, outer, stride]).unwrap()
}

macro_rules! view {
    ($name:ident = $tensor:expr, $columns:expr, $memory:expr) => {
        let inner = $tensor.slice(2, 0..$columns).unwrap();
        let turned = inner.permute(&[0, 2, 1]).unwrap();
        let $name = if $memory.turned { turned } else { inner };
    };
}

/// Checks a product by the kernel that is number `candidate` of those for it, counted around.
fn check<T: Number + Element>(
    stream: &Stream,
    candidate: usize,
    [batch, m, n, k]: [usize; 4],
    [of_a, of_b, of_c]: [Memory; 3],
) {
    let (a, b) = (numbers(batch * m * k, 1), numbers(batch * k * n, 2));
    let memory_of_a = tensor::<T>(stream, &a, [batch, m, k], of_a);
    let memory_of_b = tensor::<T>(stream, &b, [batch, k, n], of_b);
    let mut memory_of_c = tensor::<T>(stream, &vec![7.0; batch * m * n], [batch, m, n], of_c);
    {
        view!(a = memory_of_a, if of_a.turned { m } else { k }, of_a);
        view!(b = memory_of_b, if of_b.turned { k } else { n }, of_b);
        let mut inner = memory_of_c
            .slice_mut(2, 0..if of_c.turned { m } else { n })
            .unwrap();
        let order = if of_c.turned { [0, 2, 1] } else { [0, 1, 2] };
        let mut c = inner.permute_mut(&order).unwrap();
        match candidate {
            0 => gemm::matmul(stream, &a, &b, &mut c).unwrap_or_else(|e| panic!("{e}")),
            _ => {
                let plans = gemm::Plan::candidates(&stream.device(), &a, &b, &c).unwrap();
                let plan = plans[candidate % plans.len()];
                let plan = if candidate.is_multiple_of(2) {
                    plan.constant_b()
                } else {
                    plan
                };
                plan.run(stream, &a, &b, &mut c)
                    .unwrap_or_else(|e| panic!("{plan}: {e}"));
            }
        }
    }
    let all = memory_of_c.to_vec().unwrap();
    let (outer, inner) = if of_c.turned { (n, m) } else { (m, n) };
    let stride = inner + of_c.gap;
    for p in 0..batch {
        for i in 0..m {
            for j in 0..n {
                let exact: f64 = (0..k)
                    .map(|q| a[(p * m + i) * k + q] * b[(p * k + q) * n + j])
                    .sum();
                let size: f64 = (0..k)
                    .map(|q| (a[(p * m + i) * k + q] * b[(p * k + q) * n + j]).abs())
                    .sum();
                let (o, x) = if of_c.turned { (j, i) } else { (i, j) };
                let found = all[(p * outer + o) * stride + x].value();
                let bound = T::UNIT * exact.abs() + size * k as f64 * error_of_term::<T>() + 1e-7;
                assert!(
                    (found - exact).abs() <= bound,
                    "batch {p}, row {i}, column {j}: {found}, not {exact}"
                );
            }
        }
        for o in 0..outer {
            let gap = &all[(p * outer + o) * stride + inner..(p * outer + o + 1) * stride];
            assert!(
                gap.iter().all(|x| x.value() == 99.0),
                "row {o} was written behind its end"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn products_of_bfloat16_are_right(
        batch in 1..3usize, m in 1..140usize, n in 1..150usize, k in 0..150usize, memories in [memory(), memory(), memory()],
    ) {
        check::<bf16>(&stream(), 0, [batch, m, n, k], memories);
    }

    // Extents that tensor copies take: multiples of eight, with tails of every tile.
    #[test]
    fn products_of_float16_by_tensor_copies_are_right(
        batch in 1..3usize, m in 1..36usize, n in 1..48usize, k in 1..20usize, turned in any::<[bool; 2]>(),
    ) {
        let memory = |turned| Memory { turned, gap: 0 };
        check::<f16>(&stream(), 0, [batch, m * 8, n * 8, k * 8], [memory(turned[0]), memory(turned[1]), memory(false)]);
    }

}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn products_of_bfloat16_in_tensor_memory_are_right(
        candidate in 0..6usize, batch in 1..3usize, m in 1..300usize, n in 1..150usize, k in 0..150usize,
        memories in [memory(), memory(), memory()],
    ) {
        check::<bf16>(&blackwell(), candidate, [batch, m, n, k], memories);
    }

    #[test]
    fn products_of_float16_in_tensor_memory_are_right(
        candidate in 0..6usize, batch in 1..3usize, m in 1..36usize, n in 1..48usize, k in 1..20usize, turned in any::<[bool; 2]>(),
    ) {
        let memory = |turned| Memory { turned, gap: 0 };
        check::<f16>(&blackwell(), candidate, [batch, m * 8, n * 8, k * 8], [memory(turned[0]), memory(turned[1]), memory(false)]);
    }
}

/// C is the first columns of a wider tensor, whose rows are aligned: nothing is written behind them.
#[test]
fn rows_that_end_within_a_vector_keep_their_neighbors() {
    let stream = stream();
    for turned in [false, true] {
        for (n, gap) in [(93, 3), (92, 4), (90, 6), (89, 7)] {
            for candidate in 0..8 {
                let memory = |turned, gap| Memory { turned, gap };
                let extents = [1, 120, n, 128];
                check::<bf16>(
                    &stream,
                    candidate,
                    extents,
                    [memory(turned, 0), memory(true, 0), memory(false, gap)],
                );
            }
        }
    }
}

/// Several rows and columns of tiles with tails, with each tile. Another GPU has no such tiles.
#[test]
fn each_candidate_for_blackwell_is_right() {
    let stream = blackwell();
    if stream.device().compute_capability().unwrap() != Some((10, 0)) {
        return;
    }
    let (m, n, k) = (260, 300, 200);
    let (a, b) = (numbers(m * k, 1), numbers(n * k, 2));
    let of_a = Tensor::from_slice(
        &stream,
        &a.iter().map(|x| bf16::from_f64(*x)).collect::<Vec<_>>(),
        [m, k],
    )
    .unwrap();
    let of_b = Tensor::from_slice(
        &stream,
        &b.iter().map(|x| bf16::from_f64(*x)).collect::<Vec<_>>(),
        [n, k],
    )
    .unwrap();
    let of_b = of_b.permute(&[1, 0]).unwrap();
    let mut c = Tensor::<bf16>::zeros(&stream, [m, n]).unwrap();
    let mut names = Vec::new();
    for plan in gemm::Plan::candidates(&stream.device(), &of_a, &of_b, &c).unwrap() {
        plan.run(&stream, &of_a, &of_b, &mut c)
            .unwrap_or_else(|e| panic!("{plan}: {e}"));
        let found = c.to_vec().unwrap();
        for i in 0..m {
            for j in 0..n {
                let exact: f64 = (0..k).map(|q| a[i * k + q] * b[j * k + q]).sum();
                let error = (found[i * n + j].to_f64() - exact).abs();
                assert!(
                    error <= bf16::UNIT * exact.abs() + 1e-4,
                    "{plan}, row {i}, column {j}: off by {error}"
                );
            }
        }
        names.push(plan.to_string());
    }
    names.sort();
    assert_eq!(
        names,
        [
            "tensor memory 128x128",
            "tensor memory 128x192",
            "tensor memory 128x256",
            "tensor memory 128x64",
            "tensor memory 256x128",
            "tensor memory 256x256",
        ]
    );
}

/// The code for `sm_100a` runs on no other GPU.
#[test]
fn other_blackwell_gpus_take_the_kernels_for_every_gpu() {
    let device = Device::new_simulator().simulated_arch("sm_103a");
    let stream = device.default_stream();
    let ones = Tensor::full(&stream, bf16::ONE, [16, 16]).unwrap();
    let mut c = Tensor::zeros(&stream, [16, 16]).unwrap();
    let plan = gemm::Plan::new(&device, &ones, &ones, &c).unwrap();
    assert_eq!(plan.to_string(), "blocks 64x64 by elements");
    plan.run(&stream, &ones, &ones, &mut c).unwrap();
    assert_eq!(c.to_vec().unwrap(), [bf16::from_f32(16.0); 256]);
}

#[test]
fn few_rows_and_empty_extents() {
    let stream = stream();
    let plain = Memory {
        turned: false,
        gap: 0,
    };
    let turned = Memory { turned: true, gap: 0 };
    for m in [1, 2, 16, 17, 33, 100] {
        for candidate in [0, 1] {
            check::<bf16>(&stream, candidate, [1, m, 136, 200], [plain, turned, plain]);
        }
    }
    // Rows of A and columns of B begin at multiples of 16 bytes, and end before the next.
    let gap = |turned, gap| Memory { turned, gap };
    check::<bf16>(
        &stream,
        0,
        [1, 9, 10, 5],
        [gap(false, 3), gap(true, 3), gap(false, 1)],
    );
    check::<bf16>(&stream, 0, [2, 0, 8, 8], [plain; 3]);
    check::<bf16>(&stream, 0, [2, 8, 0, 8], [plain; 3]);
    check::<bf16>(&stream, 0, [1, 9, 8, 0], [plain; 3]);
}

#[test]
fn shapes_that_do_not_fit_are_refused() {
    let stream = stream();
    let zeros = |shape: &[usize]| Tensor::<bf16>::zeros(&stream, shape).unwrap();
    let (a, b) = (zeros(&[4, 8]), zeros(&[8, 16]));
    for wrong in [&[4, 8][..], &[3, 16], &[1, 4, 16], &[64]] {
        let error = gemm::matmul(&stream, &a, &b, &mut zeros(wrong))
            .unwrap_err()
            .to_string();
        assert!(error.contains("A has [4, 8], B [8, 16] and C ["), "{error}");
    }
    let plan = gemm::Plan::new(&stream.device(), &a, &b, &zeros(&[4, 16])).unwrap();
    let error = plan
        .run(&stream, &zeros(&[5, 8]), &b, &mut zeros(&[5, 16]))
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("the plan is for Extents { batch: 1, m: 4, n: 16, k: 8 }"),
        "{error}"
    );
}

#[test]
fn tensors_of_other_devices_are_refused() {
    let (one, other) = (stream(), Device::new_simulator().default_stream());
    let ones = |stream: &Stream| Tensor::full(stream, f16::ONE, [8, 8]).unwrap();
    let (a, b) = (ones(&one), ones(&other));
    let remedy =
        "all tensors of a launch are on the device of its stream; `Tensor::to` copies a tensor to a device";
    let mut c = ones(&one);
    for (stream, a, b, argument) in [(&one, &a, &b, "`b`"), (&other, &a, &a, "`a`")] {
        let error = gemm::matmul(stream, a, b, &mut c).unwrap_err().to_string();
        assert!(error.contains(argument) && error.ends_with(remedy), "{error}");
    }
    gemm::matmul(&one, &a, &b.to(&one).unwrap(), &mut c).unwrap();
}

/// Without columns of A, which would take the simulator a minute.
#[test]
fn more_matrices_than_the_last_dimension_of_a_grid_has() {
    let stream = stream();
    let batch = 65_537;
    let (a, b) = (
        Tensor::<f16>::zeros(&stream, [batch, 1, 0]).unwrap(),
        Tensor::zeros(&stream, [batch, 0, 1]).unwrap(),
    );
    let mut c = Tensor::full(&stream, f16::ONE, [batch, 1, 1]).unwrap();
    gemm::matmul(&stream, &a, &b, &mut c).unwrap();
    assert!(c.to_vec().unwrap().iter().all(|c| *c == f16::ZERO));
}
