//! Times the kernels for `xtask/python/vendor.py`, which times the vendor's libraries in turn. One command per line of the standard input:
//!
//! - `gemm M N K COPIES`: prepares a product of random bfloat16 matrices, with B as `[N, K]` in COPIES copies that take turns, and
//!   prints the candidates with their times;
//! - `fused M N K`: prepares such a product with bias and GELU, and prints its time; `gated M N K` one with the gate of SwiGLU;
//! - `fp8 M N K`: prepares a product of e4m3 elements with a scale of each tensor; C has bfloat16 elements;
//! - `scaled M N K`: prepares such a product with scales of blocks;
//! - `grouped GROUPS ROWS N K`: prepares a product by groups of rows of equal sizes, ROWS in all;
//! - `attention BATCH HEADS HEADS_OF_K QUERIES KEYS HEAD CAUSAL`: prepares attention, and prints the candidates with their times;
//! - `packed HEADS HEADS_OF_K HEAD CAUSAL LENGTH…`: prepares attention of packed sequences with these lengths, likewise;
//! - `backward BATCH HEADS HEADS_OF_K QUERIES KEYS HEAD CAUSAL`: prepares the backward pass, likewise;
//! - `argmax BATCH` and `sample BATCH K`: prepare the greatest of 128,256 logits, and a draw from the K most likely;
//! - `route TOKENS EXPERTS CHOSEN`: prepares the choice of experts by a softmax;
//! - `go`: runs the two fastest candidates and the chosen one, and prints their microseconds per launch.

use std::io::{BufRead, Write};

use tirx_kernels::attention::{self, Options, Sequences};
use tirx_kernels::experts::{self, Score};
use tirx_kernels::gemm::{self, Activation, Matmul, Plan};
use tirx_kernels::sampling::{self, Parameters};
use tirx_rt::{Device, Element, Graph, Stream, Tensor, bf16, f8e4m3};

mod numbers;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Random normal numbers.
fn normal(stream: &Stream, rows: usize, columns: usize, seed: u64) -> Result<Tensor<bf16>> {
    normal_of(stream, rows, columns, seed, bf16::from_f64)
}

/// Random normal numbers of an element type: a block of them, repeated.
fn normal_of<T: Element>(
    stream: &Stream,
    rows: usize,
    columns: usize,
    seed: u64,
    round: impl Fn(f64) -> T,
) -> Result<Tensor<T>> {
    let block: Vec<T> = numbers::normal(seed).into_iter().map(round).collect();
    let values: Vec<T> = (0..rows * columns).map(|i| block[i % block.len()]).collect();
    Ok(Tensor::from_slice(stream, &values, [rows, columns])?)
}

struct Prepared {
    graphs: Vec<(String, Graph)>,
    launches: usize,
}

impl Prepared {
    fn microseconds(&mut self, stream: &Stream, index: usize) -> Result<f64> {
        let start = stream.record()?;
        self.graphs[index].1.launch(stream)?;
        let end = stream.record()?;
        stream.synchronize()?;
        Ok(end.elapsed_since(&start)?.as_secs_f64() * 1e6 / self.launches as f64)
    }
}

fn prepare(stream: &Stream, [m, n, k, copies]: [usize; 4]) -> Result<Prepared> {
    let a = normal(stream, m, k, 1)?;
    let b = (0..copies)
        .map(|i| normal(stream, n, k, 2 + i as u64))
        .collect::<Result<Vec<_>>>()?;
    let mut c = Tensor::zeros(stream, [m, n])?;
    let few = 2.0 * (m * n * k) as f64 / 7e14 < 1e-4 || copies > 1;
    let launches = if few { 20 } else { 1 };
    let plans = Plan::candidates(&stream.device(), &a, &b[0].permute(&[1, 0])?, &c)?;
    let mut graphs = Vec::new();
    for plan in &plans {
        let graph = stream.capture(|s| -> std::result::Result<(), tirx_rt::Error> {
            for i in 0..launches {
                let run = plan.run(s, &a, &b[i % copies].permute(&[1, 0])?, &mut c);
                run.map_err(|e| tirx_rt::Error::Shape(e.to_string()))?;
            }
            Ok(())
        })?;
        graphs.push((plan.to_string(), graph));
    }
    Ok(Prepared { graphs, launches })
}

/// Launches in a graph: several of a short kernel.
fn launches(operations: f64) -> usize {
    if operations / 5e14 < 1e-4 { 20 } else { 1 }
}

fn capture(
    stream: &Stream,
    launches: usize,
    mut run: impl FnMut(&Stream) -> tirx_kernels::Result<()>,
) -> Result<Graph> {
    Ok(stream.capture(|s| -> std::result::Result<(), tirx_rt::Error> {
        for _ in 0..launches {
            run(s).map_err(|e| tirx_rt::Error::Shape(e.to_string()))?;
        }
        Ok(())
    })?)
}

fn options(causal: usize) -> Options {
    match causal {
        0 => Options::default(),
        _ => Options::causal(),
    }
}

/// A graph of as many launches as take long enough to be measured.
fn record(
    stream: &Stream,
    name: &str,
    flops: f64,
    launch: impl FnMut(&Stream) -> tirx_kernels::Result<()>,
) -> Result<Prepared> {
    let launches = launches(flops);
    Ok(Prepared {
        graphs: vec![(name.into(), capture(stream, launches, launch)?)],
        launches,
    })
}

fn prepare_fused(stream: &Stream, [m, n, k]: [usize; 3]) -> Result<Prepared> {
    let (a, b, bias) = (
        normal(stream, m, k, 1)?,
        normal(stream, n, k, 2)?,
        normal(stream, 1, n, 3)?,
    );
    let (b, bias) = (b.permute(&[1, 0])?, bias.reshape([n])?);
    let mut c = Tensor::zeros(stream, [m, n])?;
    let product = Matmul::new().bias(&bias).activation(Activation::GeluTanh);
    record(stream, "fused", 2.0 * (m * n * k) as f64, |s| {
        product.run(s, &a, &b, &mut c)
    })
}

fn prepare_gated(stream: &Stream, [m, n, k]: [usize; 3]) -> Result<Prepared> {
    let (a, gate, up) = (
        normal(stream, m, k, 1)?,
        normal(stream, n, k, 2)?,
        normal(stream, n, k, 3)?,
    );
    let (gate, up) = (gate.permute(&[1, 0])?, up.permute(&[1, 0])?);
    let mut c = Tensor::zeros(stream, [m, n])?;
    record(stream, "gated", 4.0 * (m * n * k) as f64, |s| {
        gemm::swiglu(s, &a, &gate, &up, &mut c)
    })
}

fn prepare_fp8(stream: &Stream, [m, n, k]: [usize; 3]) -> Result<Prepared> {
    let round = |x: f64| f8e4m3::from_f32(x as f32);
    let (a, b) = (
        normal_of(stream, m, k, 1, round)?,
        normal_of(stream, n, k, 2, round)?,
    );
    let b = b.permute(&[1, 0])?;
    let scale = Tensor::full(stream, 0.5f32, [1])?;
    let mut c = Tensor::<bf16>::zeros(stream, [m, n])?;
    let product = Matmul::new().scale_a(&scale).scale_b(&scale);
    record(stream, "fp8", 2.0 * (m * n * k) as f64, |s| {
        product.run(s, &a, &b, &mut c)
    })
}

fn prepare_scaled(stream: &Stream, [m, n, k]: [usize; 3]) -> Result<Prepared> {
    let round = |x: f64| f8e4m3::from_f32(x as f32);
    let (a, b) = (
        normal_of(stream, m, k, 1, round)?,
        normal_of(stream, n, k, 2, round)?,
    );
    let b = b.permute(&[1, 0])?;
    let steps = k.div_ceil(128);
    let of_a = Tensor::full(stream, 0.5f32, [m, steps])?;
    let of_b = Tensor::full(stream, 0.25f32, [n.div_ceil(128), steps])?;
    let mut c = Tensor::<bf16>::zeros(stream, [m, n])?;
    let product = Matmul::new().block_scales(&of_a, &of_b);
    record(stream, "scaled", 2.0 * (m * n * k) as f64, |s| {
        product.run(s, &a, &b, &mut c)
    })
}

fn prepare_grouped(stream: &Stream, [groups, rows, n, k]: [usize; 4]) -> Result<Prepared> {
    let (a, b) = (normal(stream, rows, k, 1)?, normal(stream, groups * n, k, 2)?);
    let b = b.reshape([groups, n, k])?;
    let b = b.permute(&[0, 2, 1])?;
    let offsets: Vec<i32> = (0..=groups).map(|e| (e * rows / groups) as i32).collect();
    let offsets = Tensor::from_slice(stream, &offsets, [groups + 1])?;
    let mut c = Tensor::<bf16>::zeros(stream, [rows, n])?;
    record(stream, "grouped", 2.0 * (rows * n * k) as f64, |s| {
        gemm::grouped(s, &a, &b, &offsets, &mut c)
    })
}

/// The columns of logits.
const VOCABULARY: usize = 128_256;

fn prepare_argmax(stream: &Stream, batch: usize) -> Result<Prepared> {
    let x = normal_of(stream, batch, VOCABULARY, 1, |x| (4.0 * x) as f32)?;
    let mut tokens = Tensor::zeros(stream, [batch])?;
    record(stream, "argmax", 0.0, |s| sampling::argmax(s, &x, &mut tokens))
}

fn prepare_sample(stream: &Stream, [batch, k]: [usize; 2]) -> Result<Prepared> {
    let x = normal_of(stream, batch, VOCABULARY, 1, |x| (4.0 * x) as f32)?;
    let mut tokens = Tensor::zeros(stream, [batch])?;
    let counters = Tensor::zeros(stream, [batch])?;
    let options = sampling::Options::temperature(0.8).top_k(k);
    let parameters = Parameters::from_rows(stream, &vec![options; batch])?;
    record(stream, "sample", 0.0, |s| {
        sampling::sample(s, &x, &parameters, &counters, &mut tokens)
    })
}

fn prepare_route(stream: &Stream, [tokens, experts, chosen]: [usize; 3]) -> Result<Prepared> {
    let x = normal(stream, tokens, experts, 1)?;
    let mut ids = Tensor::zeros(stream, [tokens, chosen])?;
    let mut weights = Tensor::zeros(stream, [tokens, chosen])?;
    let options = experts::Options::new(Score::Softmax).normalized();
    record(stream, "route", 0.0, |s| {
        experts::route(s, &x, None, &mut ids, &mut weights, options)
    })
}

fn prepare_attention(
    stream: &Stream,
    [b, h, of_k, queries, keys, head, causal]: [usize; 7],
) -> Result<Prepared> {
    let (q, k, v) = (
        normal(stream, b * h * queries, head, 1)?,
        normal(stream, b * of_k * keys, head, 2)?,
        normal(stream, b * of_k * keys, head, 3)?,
    );
    let mut o = Tensor::zeros(stream, [b, h, queries, head])?;
    let launches = launches(4.0 * (b * h * queries * keys * head) as f64);
    let (q, k, v) = (
        q.reshape([b, h, queries, head])?,
        k.reshape([b, of_k, keys, head])?,
        v.reshape([b, of_k, keys, head])?,
    );
    let mut graphs = Vec::new();
    for plan in attention::Plan::candidates(&stream.device(), &q, &k, &v, &o, options(causal))? {
        let graph = capture(stream, launches, |s| {
            plan.run(s, &q, &k, &v, &mut o, options(causal))
        })?;
        graphs.push((plan.to_string(), graph));
    }
    Ok(Prepared { graphs, launches })
}

fn prepare_packed(
    stream: &Stream,
    [h, of_k, head, causal]: [usize; 4],
    lengths: &[usize],
) -> Result<Prepared> {
    let tokens: usize = lengths.iter().sum();
    let (q, k, v) = (
        normal(stream, tokens * h, head, 1)?,
        normal(stream, tokens * of_k, head, 2)?,
        normal(stream, tokens * of_k, head, 3)?,
    );
    let (q, k, v) = (
        q.reshape([tokens, h, head])?,
        k.reshape([tokens, of_k, head])?,
        v.reshape([tokens, of_k, head])?,
    );
    let mut o = Tensor::zeros(stream, [tokens, h, head])?;
    let mut offsets = vec![0];
    for length in lengths {
        offsets.push(offsets[offsets.len() - 1] + *length as i32);
    }
    let offsets = Tensor::from_slice(stream, &offsets, [offsets.len()])?;
    let sequences = Sequences::from_offsets(&offsets, &offsets);
    let launches = launches(4.0 * lengths.iter().map(|l| (h * l * l * head) as f64).sum::<f64>());
    let mut graphs = Vec::new();
    for plan in
        attention::Plan::packed_candidates(&stream.device(), &q, &k, &v, &o, sequences, options(causal))?
    {
        let graph = capture(stream, launches, |s| {
            plan.run_packed(s, &q, &k, &v, &mut o, None, sequences, options(causal))
        })?;
        graphs.push((plan.to_string(), graph));
    }
    Ok(Prepared { graphs, launches })
}

fn prepare_backward(
    stream: &Stream,
    [b, h, of_k, queries, keys, head, causal]: [usize; 7],
) -> Result<Prepared> {
    let (q, k, v, d_o) = (
        normal(stream, b * h * queries, head, 1)?,
        normal(stream, b * of_k * keys, head, 2)?,
        normal(stream, b * of_k * keys, head, 3)?,
        normal(stream, b * h * queries, head, 4)?,
    );
    let (q, k, v, d_o) = (
        q.reshape([b, h, queries, head])?,
        k.reshape([b, of_k, keys, head])?,
        v.reshape([b, of_k, keys, head])?,
        d_o.reshape([b, h, queries, head])?,
    );
    let mut o = Tensor::zeros(stream, [b, h, queries, head])?;
    let mut lse = Tensor::zeros(stream, [b, h, queries])?;
    attention::forward_with_lse(stream, &q, &k, &v, &mut o, &mut lse, options(causal))?;
    let (mut dq, mut dk, mut dv) = (
        Tensor::zeros(stream, [b, h, queries, head])?,
        Tensor::zeros(stream, [b, of_k, keys, head])?,
        Tensor::zeros(stream, [b, of_k, keys, head])?,
    );
    let mut workspace = Tensor::zeros(stream, [attention::backward_workspace(&q)?])?;
    let launches = launches(10.0 * (b * h * queries * keys * head) as f64);
    let mut graphs = Vec::new();
    for plan in attention::BackwardPlan::candidates(&stream.device(), &q, &k, &v, &o)? {
        let graph = capture(stream, launches, |s| {
            plan.run(
                s,
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
                options(causal),
            )
        })?;
        graphs.push((plan.to_string(), graph));
    }
    Ok(Prepared { graphs, launches })
}

fn main() -> Result<()> {
    if std::env::args().any(|arg| arg == "--test") {
        return Ok(());
    }
    let stream = Device::cuda(0)?.new_stream()?;
    let mut prepared = Prepared {
        graphs: Vec::new(),
        launches: 1,
    };
    let mut shown = Vec::new();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [work, ref numbers @ ..] if work != "go" => {
                // The memory of the one before is free for the next.
                prepared.graphs.clear();
                let numbers = numbers
                    .iter()
                    .map(|n| n.parse())
                    .collect::<std::result::Result<Vec<usize>, _>>()?;
                prepared = match (work, &numbers[..]) {
                    ("gemm", &[m, n, k, copies]) => prepare(&stream, [m, n, k, copies])?,
                    ("fused", &[m, n, k]) => prepare_fused(&stream, [m, n, k])?,
                    ("gated", &[m, n, k]) => prepare_gated(&stream, [m, n, k])?,
                    ("fp8", &[m, n, k]) => prepare_fp8(&stream, [m, n, k])?,
                    ("scaled", &[m, n, k]) => prepare_scaled(&stream, [m, n, k])?,
                    ("grouped", &[groups, rows, n, k]) => prepare_grouped(&stream, [groups, rows, n, k])?,
                    ("argmax", &[batch]) => prepare_argmax(&stream, batch)?,
                    ("sample", &[batch, k]) => prepare_sample(&stream, [batch, k])?,
                    ("route", &[tokens, experts, chosen]) => {
                        prepare_route(&stream, [tokens, experts, chosen])?
                    }
                    ("attention", &[b, h, of_k, queries, keys, head, causal]) => {
                        prepare_attention(&stream, [b, h, of_k, queries, keys, head, causal])?
                    }
                    ("packed", &[h, of_k, head, causal, ref lengths @ ..]) => {
                        prepare_packed(&stream, [h, of_k, head, causal], lengths)?
                    }
                    ("backward", &[b, h, of_k, queries, keys, head, causal]) => {
                        prepare_backward(&stream, [b, h, of_k, queries, keys, head, causal])?
                    }
                    _ => return Err(format!("unknown command: {line}").into()),
                };
                let mut times = Vec::new();
                for index in 0..prepared.graphs.len() {
                    prepared.microseconds(&stream, index)?;
                    let mut three = (0..3)
                        .map(|_| prepared.microseconds(&stream, index))
                        .collect::<Result<Vec<_>>>()?;
                    three.sort_by(f64::total_cmp);
                    times.push((three[1], index));
                }
                let list: Vec<_> = times
                    .iter()
                    .map(|(t, i)| format!("{} {t:.1}", prepared.graphs[*i].0))
                    .collect();
                println!("{}", list.join(", "));
                times.sort_by(|one, other| one.0.total_cmp(&other.0));
                shown = times.iter().take(2).map(|(_, index)| *index).collect();
                shown.insert(0, 0);
            }
            ["go"] => {
                let times = shown
                    .iter()
                    .map(|&i| prepared.microseconds(&stream, i))
                    .collect::<Result<Vec<_>>>()?;
                let text: Vec<_> = shown
                    .iter()
                    .zip(times)
                    .map(|(&i, t)| format!("{}|{t}", prepared.graphs[i].0))
                    .collect();
                println!("{}", text.join(";"));
            }
            _ => return Err(format!("unknown command: {line}").into()),
        }
        std::io::stdout().flush()?;
    }
    Ok(())
}
