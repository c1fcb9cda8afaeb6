//! Kernels of several ranks on simulated devices, with all checks of the simulator, against float64. `TIRX_TEST_DEVICE=cuda` runs them on the
//! first two GPUs, or as two ranks on the only one.

#![cfg(feature = "ranks")]

#[path = "../examples/data_parallel.rs"]
#[allow(dead_code, reason = "the test calls the function that trains")]
mod data_parallel;
#[allow(dead_code, reason = "each test uses a part")]
mod numbers;

use numbers::{Number, numbers};
use tirx_kernels::ranks::{AllGatherMatmul, AllReduceRmsNorm, MatmulReduceScatter};
use tirx_rt::{Device, Tensor, World, bf16};

fn on_gpus() -> bool {
    std::env::var("TIRX_TEST_DEVICE").as_deref() == Ok("cuda")
}

/// Worlds of these numbers of simulated devices; or of two GPUs, or of two ranks on the only GPU.
fn worlds(ranks: &[usize]) -> Vec<World> {
    if !on_gpus() {
        return ranks
            .iter()
            .map(|ranks| World::simulated(*ranks).unwrap())
            .collect();
    }
    match Device::cuda_count() {
        0 | 1 => vec![World::on_one_gpu(0, 2).unwrap()],
        _ => vec![World::cuda(&[0, 1]).unwrap()],
    }
}

/// A matrix on each rank, and its values.
struct OfRanks {
    tensors: Vec<Tensor<bf16>>,
    values: Vec<Vec<f64>>,
}

impl OfRanks {
    fn new(world: &World, shape: [usize; 2], seed: u64) -> OfRanks {
        let values: Vec<_> = (0..world.ranks())
            .map(|rank| numbers(shape[0] * shape[1], seed + 100 * rank as u64))
            .collect();
        let tensors = (0..world.ranks()).map(|rank| {
            let rounded: Vec<bf16> = values[rank].iter().map(|x| bf16::round(*x)).collect();
            Tensor::from_slice(world.stream(rank), &rounded, shape).unwrap()
        });
        OfRanks {
            tensors: tensors.collect(),
            values,
        }
    }
}

fn zeros(world: &World, shape: [usize; 2]) -> Vec<Tensor<bf16>> {
    (0..world.ranks())
        .map(|rank| Tensor::zeros(world.stream(rank), shape).unwrap())
        .collect()
}

/// The product of a row of A and a row of B.
fn dot(a: &[f64], i: usize, b: &[f64], j: usize, k: usize) -> f64 {
    (0..k).map(|q| a[i * k + q] * b[j * k + q]).sum()
}

fn close(found: bf16, exact: f64, bound: f64, place: &str) {
    let found = found.value();
    assert!((found - exact).abs() <= bound, "{place}: {found}, not {exact}");
}

/// `turns` launches with other rows each time, and the same columns of the result in all of them.
fn check_gather(world: &World, rows: usize, n: usize, k: usize, turns: u64) {
    let ranks = world.ranks();
    let mut gather = AllGatherMatmul::new(world, rows, k).unwrap();
    let b = OfRanks::new(world, [n, k], 7);
    for turn in 0..turns {
        let a = OfRanks::new(world, [rows, k], 1000 * turn);
        for rank in 0..ranks {
            gather
                .rows_mut(rank)
                .unwrap()
                .copy_from(world.stream(rank), &a.tensors[rank])
                .unwrap();
        }
        let mut c = zeros(world, [ranks * rows, n]);
        gather.run(world, &b.tensors, &mut c).unwrap();
        let all: Vec<f64> = a.values.concat();
        for (rank, c) in c.iter().enumerate() {
            let place = format!("rank {rank} of {ranks}, {rows} x {n} x {k}, launch {turn}");
            let gathered = gather.gathered(rank).unwrap().to_vec().unwrap();
            assert!(
                gathered.iter().map(|x| x.value()).eq(all.iter().copied()),
                "{place}: A"
            );
            let found = c.to_vec().unwrap();
            for i in 0..ranks * rows {
                for j in 0..n {
                    let exact = dot(&all, i, &b.values[rank], j, k);
                    let bound = bf16::UNIT * exact.abs() + k as f64 * 2e-5;
                    close(
                        found[i * n + j],
                        exact,
                        bound,
                        &format!("{place}, row {i}, column {j}"),
                    );
                }
            }
        }
    }
}

#[test]
fn products_of_gathered_rows() {
    for world in worlds(&[1, 2, 4, 8]) {
        check_gather(&world, 16, 40, 64, 2);
        check_gather(&world, 1, 8, 8, 1);
    }
    for world in worlds(&[2, 3]) {
        check_gather(&world, 130, 264, 72, 2);
        check_gather(&world, 256, 128, 320, 1);
    }
}

fn check_scatter(world: &World, rows: usize, n: usize, k: usize, turns: u64) {
    let ranks = world.ranks();
    let mut scatter = MatmulReduceScatter::new(world, rows, n).unwrap();
    for turn in 0..turns {
        let a = OfRanks::new(world, [ranks * rows, k], 1000 * turn);
        let b = OfRanks::new(world, [n, k], 1000 * turn + 7);
        let mut c = zeros(world, [rows, n]);
        scatter.run(world, &a.tensors, &b.tensors, &mut c).unwrap();
        for (rank, c) in c.iter().enumerate() {
            let found = c.to_vec().unwrap();
            for i in 0..rows {
                for j in 0..n {
                    let parts = (0..ranks)
                        .map(|other| dot(&a.values[other], rank * rows + i, &b.values[other], j, k));
                    let (exact, size) =
                        parts.fold((0.0, 0.0), |(sum, size), part| (sum + part, size + part.abs()));
                    let bound = bf16::UNIT * (exact.abs() + size) + (ranks * k) as f64 * 2e-5;
                    let place = format!(
                        "rank {rank} of {ranks}, {rows} x {n} x {k}, launch {turn}, row {i}, column {j}"
                    );
                    close(found[i * n + j], exact, bound, &place);
                }
            }
        }
    }
}

#[test]
fn scattered_sums_of_products() {
    for world in worlds(&[1, 2, 4, 8]) {
        check_scatter(&world, 16, 40, 64, 2);
        check_scatter(&world, 1, 8, 8, 1);
    }
    for world in worlds(&[2, 3]) {
        check_scatter(&world, 130, 264, 72, 2);
        check_scatter(&world, 256, 128, 320, 1);
    }
}

fn check_norm(world: &World, rows: usize, n: usize, turns: u64) {
    let ranks = world.ranks();
    let mut all = AllReduceRmsNorm::new(world, rows + 3, n).unwrap();
    for turn in 0..turns {
        // Launches may have different numbers of rows.
        let rows = if turn % 2 == 1 { rows.div_ceil(2) } else { rows };
        let x = OfRanks::new(world, [rows, n], 1000 * turn);
        let first = numbers(rows * n, 50 + turn);
        let weight = numbers(n, 60);
        let rounded = |values: &[f64]| values.iter().map(|v| bf16::round(*v)).collect::<Vec<_>>();
        let on_all = |values: &[f64], shape: &[usize]| -> Vec<Tensor<bf16>> {
            (0..ranks)
                .map(|rank| Tensor::from_slice(world.stream(rank), &rounded(values), shape).unwrap())
                .collect()
        };
        let mut residual = on_all(&first, &[rows, n]);
        let weights = on_all(&weight, &[n]);
        let mut y = zeros(world, [rows, n]);
        all.run(world, &x.tensors, &mut residual, &weights, &mut y, 1e-5)
            .unwrap();
        let (sums, norms) = (residual[0].to_vec().unwrap(), y[0].to_vec().unwrap());
        for rank in 1..ranks {
            assert!(residual[rank].to_vec().unwrap() == sums && y[rank].to_vec().unwrap() == norms);
        }
        for i in 0..rows {
            let mut squares = 0.0;
            for j in 0..n {
                let terms = x.values.iter().map(|x| x[i * n + j]);
                let exact = first[i * n + j] + terms.sum::<f64>();
                let place = format!("{ranks} ranks, {rows} x {n}, launch {turn}, row {i}, column {j}");
                close(sums[i * n + j], exact, bf16::UNIT * exact.abs() + 1e-6, &place);
                squares += sums[i * n + j].value().powi(2);
            }
            let factor = 1.0 / (squares / n as f64 + 1e-5).sqrt();
            for j in 0..n {
                let exact = sums[i * n + j].value() * factor * weight[j];
                close(
                    norms[i * n + j],
                    exact,
                    (bf16::UNIT + 1e-4) * exact.abs(),
                    &format!("row {i}, column {j} of Y"),
                );
            }
        }
    }
}

#[test]
fn norms_of_sums() {
    for world in worlds(&[1, 2, 4, 8]) {
        check_norm(&world, 3, 512, 3);
        check_norm(&world, 1, 1, 1);
        check_norm(&world, 5, 101, 2);
    }
    for world in worlds(&[2, 5]) {
        check_norm(&world, 2, 9000, 2);
        // Two ranks on one GPU share its multiprocessors, and all blocks must fit.
        let rows = if on_gpus() && Device::cuda_count() < 2 {
            60
        } else {
            150
        };
        check_norm(&world, rows, 16, 2);
    }
}

/// Two layers in one step, again and again, without a wait of the host between the kernels. On GPUs, other work delays each rank.
#[test]
fn a_step_of_several_kernels_with_delays() {
    let (rows, n, k) = (24, 72, 40);
    for world in worlds(&[2]) {
        let ranks = world.ranks();
        let mut gather = AllGatherMatmul::new(&world, rows, k).unwrap();
        let mut scatter = MatmulReduceScatter::new(&world, rows, k).unwrap();
        let mut sum = AllReduceRmsNorm::new(&world, rows, k).unwrap();
        let up = OfRanks::new(&world, [n, k], 1);
        let down = OfRanks::new(&world, [k, n], 2);
        let weights: Vec<_> = (0..ranks)
            .map(|rank| Tensor::from_slice(world.stream(rank), &vec![bf16::round(0.25); k], [k]).unwrap())
            .collect();
        let start = OfRanks::new(&world, [rows, k], 3);
        let mut hidden = zeros(&world, [ranks * rows, n]);
        let mut out = zeros(&world, [rows, k]);
        let mut y = zeros(&world, [rows, k]);
        let mut residual = zeros(&world, [rows, k]);
        let busy = zeros(&world, [64, 64]);
        let mut result = zeros(&world, [64, 64]);
        // Loads the kernel: it must not be loaded while a rank waits.
        #[cfg(feature = "gemm")]
        for (rank, result) in result.iter_mut().enumerate().filter(|_| on_gpus()) {
            tirx_kernels::gemm::matmul(world.stream(rank), &busy[rank], &busy[rank], result).unwrap();
        }
        let mut delay = numbers(400, 9).into_iter().map(|x| ((x + 1.0) * 32.0) as usize);
        let mut first = None;
        for step in 0..if on_gpus() { 100 } else { 10 } {
            for rank in 0..ranks {
                gather
                    .rows_mut(rank)
                    .unwrap()
                    .copy_from(world.stream(rank), &start.tensors[rank])
                    .unwrap();
            }
            world
                .launch(|rank, stream| {
                    let mut pause = || -> tirx_rt::Result<()> {
                        let long = delay.next().unwrap_or(0) / 8;
                        #[cfg(feature = "gemm")]
                        for _ in 0..if on_gpus() { long } else { 0 } {
                            tirx_kernels::gemm::matmul(stream, &busy[rank], &busy[rank], &mut result[rank])
                                .map_err(|error| tirx_rt::Error::Shape(error.to_string()))?;
                        }
                        Ok(())
                    };
                    let shape = |error: tirx_kernels::Error| tirx_rt::Error::Shape(error.to_string());
                    pause()?;
                    gather
                        .launch(rank, stream, &up.tensors[rank], &mut hidden[rank])
                        .map_err(shape)?;
                    pause()?;
                    scatter
                        .launch(rank, stream, &hidden[rank], &down.tensors[rank], &mut out[rank])
                        .map_err(shape)?;
                    // Two launches without anything between them.
                    for _ in 0..2 {
                        sum.launch(
                            rank,
                            stream,
                            &out[rank],
                            &mut residual[rank],
                            &weights[rank],
                            &mut y[rank],
                            1e-3,
                        )
                        .map_err(shape)?;
                    }
                    Ok(())
                })
                .unwrap();
            let mut found = Vec::new();
            for rank in 0..ranks {
                found.push(out[rank].to_vec().unwrap());
                found.push(y[rank].to_vec().unwrap());
                residual[rank] = Tensor::zeros(world.stream(rank), [rows, k]).unwrap();
            }
            assert!(
                found == *first.get_or_insert_with(|| found.clone()),
                "step {step}"
            );
        }
        // The first step against float64.
        let first = first.unwrap();
        let all = start.values.concat();
        for i in 0..rows {
            for j in 0..k {
                let (mut exact, mut size) = (0.0, 0.0);
                for rank in 0..ranks {
                    for h in 0..n {
                        let value = dot(&all, i, &up.values[rank], h, k) * down.values[rank][j * n + h];
                        exact += value;
                        size += value.abs();
                    }
                }
                close(
                    first[0][i * k + j],
                    exact,
                    3.0 * bf16::UNIT * size + 1e-3,
                    &format!("row {i}, column {j}"),
                );
            }
        }
    }
}

#[test]
fn a_layer_whose_data_and_weights_are_divided_learns() {
    for world in worlds(&[1, 2, 4]) {
        data_parallel::train(&world).unwrap();
    }
}

fn message<T>(result: tirx_kernels::Result<T>) -> String {
    result.err().expect("an error").to_string()
}

#[test]
fn wrong_arguments_are_errors_before_the_launch() {
    let world = World::simulated(2).unwrap();
    for (error, words) in [
        (
            message(AllGatherMatmul::new(&world, 4, 12)),
            "k is 12, and it is a multiple of 8",
        ),
        (
            message(AllGatherMatmul::new(&world, 0, 8)),
            "the number of rows is 0",
        ),
        (
            message(MatmulReduceScatter::new(&world, 4, 20)),
            "the number of columns is 20",
        ),
        (
            message(AllReduceRmsNorm::new(&world, 4, 0)),
            "the number of columns is 0",
        ),
    ] {
        assert!(error.contains(words), "{error}");
    }
    let mut gather = AllGatherMatmul::new(&world, 4, 16).unwrap();
    let (b, mut c) = (zeros(&world, [24, 16]), zeros(&world, [8, 24]));
    let mut narrow = zeros(&world, [8, 20]);
    let mut short = zeros(&world, [4, 24]);
    assert!(message(gather.rows_mut(2)).contains("no rank 2 of 2"));
    for (error, words) in [
        (
            message(gather.run(&world, &zeros(&world, [24, 8]), &mut c)),
            "B has the shape [N, 16]",
        ),
        (
            message(gather.run(&world, &b, &mut short)),
            "C has the shape [8, 24], not [4, 24]",
        ),
        (
            message(gather.run(&world, &b[..1], &mut c)),
            "B has 1 tensors for 2 ranks",
        ),
        (
            message(gather.run(&world, &zeros(&world, [20, 16]), &mut narrow)),
            "multiple of 8",
        ),
        (
            message(gather.run(&World::simulated(3).unwrap(), &b, &mut c)),
            "made for 2 ranks, and this world has 3",
        ),
    ] {
        assert!(error.contains(words), "{error}");
    }
    // A refused call counts as no launch.
    gather.run(&world, &b, &mut c).unwrap();

    let mut scatter = MatmulReduceScatter::new(&world, 4, 24).unwrap();
    let mut c = zeros(&world, [4, 24]);
    let error = message(scatter.run(&world, &zeros(&world, [4, 16]), &b, &mut c));
    assert!(error.contains("A has the shape [8, K]"), "{error}");
    let error = message(scatter.run(&world, &zeros(&world, [8, 16]), &zeros(&world, [16, 16]), &mut c));
    assert!(error.contains("B has the shape [24, 16]"), "{error}");
    scatter.run(&world, &zeros(&world, [8, 16]), &b, &mut c).unwrap();

    let mut sum = AllReduceRmsNorm::new(&world, 4, 24).unwrap();
    let weight: Vec<_> = (0..2)
        .map(|rank| Tensor::<bf16>::zeros(world.stream(rank), [24]).unwrap())
        .collect();
    let (mut residual, mut y) = (zeros(&world, [5, 24]), zeros(&world, [5, 24]));
    let error = message(sum.run(
        &world,
        &zeros(&world, [5, 24]),
        &mut residual,
        &weight,
        &mut y,
        0.0,
    ));
    assert!(error.contains("at most 4 rows"), "{error}");
    let error = message(sum.run(
        &world,
        &zeros(&world, [4, 24]),
        &mut residual,
        &weight,
        &mut y,
        0.0,
    ));
    assert!(error.contains("the residual has the shape [4, 24]"), "{error}");
    let (mut residual, mut y) = (zeros(&world, [0, 24]), zeros(&world, [0, 24]));
    sum.run(
        &world,
        &zeros(&world, [0, 24]),
        &mut residual,
        &weight,
        &mut y,
        0.0,
    )
    .unwrap();
}
