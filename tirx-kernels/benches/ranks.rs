//! Times the kernels of several ranks on the first two GPUs, beside the sequence of peer copies and the functions of one GPU.
//!
//! Words on the command line select tables: `gather`, `scatter`, `norm`. Medians of 30 runs, each of several launches in a row on both GPUs; the
//! time is that of the rank whose launches are queued last. The floor is the longer one of the copies and the product. The sequence of `scatter` and
//! `norm` leaves the sum of the copies out.

use std::time::{Duration, Instant};

use tirx_kernels::gemm;
use tirx_kernels::norm::{self, Options};
use tirx_kernels::ranks::{AllGatherMatmul, AllReduceRmsNorm, MatmulReduceScatter};
use tirx_rt::{Device, Stream, Symmetric, Tensor, World, bf16};

mod numbers;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const RUNS: usize = 30;
/// How long launches run before they are timed: an idle GPU has a low clock.
const WARM: Duration = Duration::from_millis(300);

/// Symmetric memory of random normal numbers, which `stream` of each rank has used last.
fn normal(world: &World, streams: &[Stream], shape: &[usize], scale: f64) -> Result<Symmetric<bf16>> {
    let block: Vec<bf16> = numbers::normal(1)
        .into_iter()
        .map(|x| bf16::from_f64(x * scale))
        .collect();
    let mut all = world.from_fn(shape, |rank, i| block[(i + rank * 7919) % block.len()])?;
    let n = shape[0];
    for (rank, stream) in streams.iter().enumerate() {
        let copy = all[rank].slice(0, 0..n)?.to_vec()?;
        all[rank].copy_from_slice(stream, &copy)?;
    }
    Ok(all)
}

/// Microseconds of a launch: the median over runs of `count` launches on each rank. `queue` queues them for a rank, or for all if it is called
/// with the last rank.
fn microseconds(
    world: &World,
    count: usize,
    mut queue: impl FnMut(usize, &Stream) -> tirx_rt::Result<()>,
) -> Result<f64> {
    let last = world.ranks() - 1;
    let mut times = Vec::new();
    let begin = Instant::now();
    while times.len() < RUNS {
        let mut events = None;
        world.launch(|rank, stream| {
            let start = stream.record()?;
            for _ in 0..count {
                queue(rank, stream)?;
            }
            if rank == last {
                events = Some((start, stream.record()?));
            }
            Ok(())
        })?;
        world.synchronize()?;
        if let Some((start, end)) = events
            && begin.elapsed() > WARM
        {
            times.push(end.elapsed_since(&start)?.as_secs_f64() * 1e6 / count as f64);
        }
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

fn of_launch(error: tirx_kernels::Error) -> tirx_rt::Error {
    match error {
        tirx_kernels::Error::Runtime(error) => error,
        other => tirx_rt::Error::Shape(other.to_string()),
    }
}

/// Tensors of zeros on each rank.
fn zeros(world: &World, shape: &[usize]) -> Result<Vec<Tensor<bf16>>> {
    let tensors = (0..world.ranks()).map(|rank| Tensor::zeros(world.stream(rank), shape));
    Ok(tensors.collect::<tirx_rt::Result<_>>()?)
}

/// Streams for the memory that copies read, so that the two directions of a copy do not wait for each other.
fn others(world: &World) -> Result<Vec<Stream>> {
    let streams = (0..world.ranks()).map(|rank| world.device(rank).new_stream());
    Ok(streams.collect::<tirx_rt::Result<_>>()?)
}

fn line(name: &str, ours: f64, sequence: f64, product: f64, copies: f64) {
    println!(
        "{name:<44} {ours:>9.1} {sequence:>9.1} {product:>9.1} {copies:>9.1} {:>8.2} {:>8.2}",
        sequence / ours,
        product.max(copies) / ours
    );
}

fn head(name: &str, product: &str) {
    println!(
        "{name:<44} {:>9} {:>9} {product:>9} {:>9} {:>8} {:>8}",
        "us", "sequence", "copies", "speedup", "of floor"
    );
}

/// `m` rows on all ranks together, `n` columns on each.
fn gather(world: &World, name: &str, m: usize, n: usize, k: usize) -> Result<()> {
    let (ranks, rows, count) = (world.ranks(), m / world.ranks(), 10);
    let mut gather = AllGatherMatmul::new(world, rows, k)?;
    let sources = normal(world, &others(world)?, &[rows, k], 1.0)?;
    let main: Vec<Stream> = (0..ranks).map(|rank| world.stream(rank).clone()).collect();
    let b = normal(world, &main, &[n, k], 0.05)?;
    let mut c = zeros(world, &[m, n])?;
    for rank in 0..ranks {
        gather
            .rows_mut(rank)?
            .copy_from(world.stream(rank), &sources[rank])?;
    }
    world.synchronize()?;
    let ours = microseconds(world, count, |rank, stream| {
        gather
            .launch(rank, stream, &b[rank], &mut c[rank])
            .map_err(of_launch)
    })?;
    let mut a = zeros(world, &[m, k])?;
    let copies = |a: &mut [Tensor<bf16>], rank: usize, stream: &Stream| -> tirx_rt::Result<()> {
        for other in (0..ranks).filter(|other| *other != rank) {
            a[rank]
                .slice_mut(0, other * rows..(other + 1) * rows)?
                .copy_from(stream, &sources[other])?;
        }
        Ok(())
    };
    let copied = microseconds(world, count, |rank, stream| copies(&mut a, rank, stream))?;
    let mut product = |a: &[Tensor<bf16>], rank: usize, stream: &Stream| -> tirx_rt::Result<()> {
        gemm::matmul(stream, &a[rank], &b[rank].permute(&[1, 0])?, &mut c[rank]).map_err(of_launch)
    };
    let alone = microseconds(world, count, |rank, stream| product(&a, rank, stream))?;
    let sequence = microseconds(world, count, |rank, stream| {
        copies(&mut a, rank, stream)?;
        product(&a, rank, stream)
    })?;
    line(&format!("{name}: {m} x {n} x {k}"), ours, sequence, alone, copied);
    Ok(())
}

/// `m` rows of the sum, `k` columns of A on each rank.
fn scatter(world: &World, name: &str, m: usize, n: usize, k: usize) -> Result<()> {
    let (ranks, rows, count) = (world.ranks(), m / world.ranks(), 10);
    let mut scatter = MatmulReduceScatter::new(world, rows, n)?;
    let main: Vec<Stream> = (0..ranks).map(|rank| world.stream(rank).clone()).collect();
    let a = normal(world, &main, &[m, k], 1.0)?;
    let b = normal(world, &main, &[n, k], 0.05)?;
    let mut c = zeros(world, &[rows, n])?;
    let ours = microseconds(world, count, |rank, stream| {
        scatter
            .launch(rank, stream, &a[rank], &b[rank], &mut c[rank])
            .map_err(of_launch)
    })?;
    let mut full = zeros(world, &[m, n])?;
    let sources = normal(world, &others(world)?, &[m, n], 1.0)?;
    let mut copies = |rank: usize, stream: &Stream| -> tirx_rt::Result<()> {
        for other in (0..ranks).filter(|other| *other != rank) {
            c[rank].copy_from(stream, &*sources[other].slice(0, rank * rows..(rank + 1) * rows)?)?;
        }
        Ok(())
    };
    let copied = microseconds(world, count, &mut copies)?;
    let mut product = |rank: usize, stream: &Stream| -> tirx_rt::Result<()> {
        gemm::matmul(stream, &a[rank], &b[rank].permute(&[1, 0])?, &mut full[rank]).map_err(of_launch)
    };
    let alone = microseconds(world, count, &mut product)?;
    let sequence = microseconds(world, count, |rank, stream| {
        product(rank, stream)?;
        copies(rank, stream)
    })?;
    line(&format!("{name}: {m} x {n} x {k}"), ours, sequence, alone, copied);
    Ok(())
}

fn all_reduce_norm(world: &World, rows: usize, n: usize) -> Result<()> {
    let (ranks, count) = (world.ranks(), 100);
    let mut sum = AllReduceRmsNorm::new(world, rows, n)?;
    let main: Vec<Stream> = (0..ranks).map(|rank| world.stream(rank).clone()).collect();
    let x = normal(world, &main, &[rows, n], 1.0)?;
    let sources = normal(world, &others(world)?, &[rows, n], 1.0)?;
    let (mut residual, mut y) = (zeros(world, &[rows, n])?, zeros(world, &[rows, n])?);
    let weight = zeros(world, &[n])?;
    let ours = microseconds(world, count, |rank, stream| {
        sum.launch(
            rank,
            stream,
            &x[rank],
            &mut residual[rank],
            &weight[rank],
            &mut y[rank],
            1e-5,
        )
        .map_err(of_launch)
    })?;
    let mut near = zeros(world, &[rows, n])?;
    let copies = |near: &mut [Tensor<bf16>], rank: usize, stream: &Stream| -> tirx_rt::Result<()> {
        (0..ranks)
            .filter(|other| *other != rank)
            .try_for_each(|other| near[rank].copy_from(stream, &sources[other]))
    };
    let copied = microseconds(world, count, |rank, stream| copies(&mut near, rank, stream))?;
    let mut norms = |near: &[Tensor<bf16>], rank: usize, stream: &Stream| -> tirx_rt::Result<()> {
        norm::add_rms_norm(
            stream,
            &near[rank],
            &mut residual[rank],
            &weight[rank],
            &mut y[rank],
            Options::eps(1e-5),
        )
        .map_err(of_launch)
    };
    let alone = microseconds(world, count, |rank, stream| norms(&near, rank, stream))?;
    let sequence = microseconds(world, count, |rank, stream| {
        copies(&mut near, rank, stream)?;
        norms(&near, rank, stream)
    })?;
    line(&format!("{rows} x {n}"), ours, sequence, alone, copied);
    Ok(())
}

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    let wanted = |name: &str| words.is_empty() || words.iter().any(|word| word == name);
    if Device::cuda_count() < 2 {
        println!(
            "SKIPPED: this bench needs two GPUs, and there are {}",
            Device::cuda_count()
        );
        return Ok(());
    }
    let world = World::cuda(&[0, 1])?;
    if wanted("gather") {
        head("all-gather and product, C of each rank", "product");
        gather(&world, "square", 8192, 8192, 8192)?;
        gather(&world, "square, half of the columns", 8192, 4096, 8192)?;
        gather(&world, "70B gate and up", 2048, 28672, 8192)?;
        gather(&world, "70B gate", 2048, 14336, 8192)?;
        gather(&world, "70B q, k and v", 2048, 5120, 8192)?;
        gather(&world, "70B q, k and v", 8192, 5120, 8192)?;
    }
    if wanted("scatter") {
        head("product and reduce-scatter, A of each rank", "product");
        scatter(&world, "square", 8192, 8192, 8192)?;
        scatter(&world, "square, half of K", 8192, 8192, 4096)?;
        scatter(&world, "70B down", 2048, 8192, 14336)?;
        scatter(&world, "70B output", 2048, 8192, 4096)?;
    }
    if wanted("norm") {
        head("all-reduce and RMSNorm", "norm");
        for rows in [1, 16, 128, 512, 2048] {
            all_reduce_norm(&world, rows, 8192)?;
        }
    }
    Ok(())
}
