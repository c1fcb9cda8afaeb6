//! Times the functions around matrix products and attention, beside a copy on the device of the same number of bytes, on the first GPU.
//!
//! Words on the command line select lines by a part of their names. Medians of 30 runs; a run is a graph of 20 launches if they are short.

use tirx_kernels::activation::Function;
use tirx_kernels::norm::Options;
use tirx_kernels::paged::{self, Heads, Rope, Workspace};
use tirx_kernels::quant::{self, Format, Int4, Weights};
use tirx_kernels::rope::Pairs;
use tirx_kernels::sampling::{self, Parameters};
use tirx_kernels::{activation, cast, embedding, loss, norm, quantize, rope, softmax};
use tirx_rt::{Device, Element, Stream, Tensor, bf16, f4e2m1x2, f8e4m3, f8e8m0, f16};

mod numbers;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// A tensor of random normal numbers, repeated by copies on the device.
fn normal<T: Element>(stream: &Stream, shape: &[usize], round: fn(f64) -> T) -> Result<Tensor<T>> {
    let block: Vec<T> = numbers::normal(1).into_iter().map(round).collect();
    let mut all = Tensor::zeros(stream, shape)?;
    let count = all.len();
    let block = Tensor::from_slice(stream, &block[..block.len().min(count)], [block.len().min(count)])?;
    {
        let mut flat = all.reshape_mut([count])?;
        for begin in (0..count).step_by(block.len().max(1)) {
            let length = block.len().min(count - begin);
            let part = block.slice(0, 0..length)?;
            flat.slice_mut(0, begin..begin + length)?
                .copy_from(stream, &part)?;
        }
    }
    Ok(all)
}

/// The median time of a call in microseconds.
fn microseconds(stream: &Stream, mut call: impl FnMut(&Stream) -> tirx_kernels::Result<()>) -> Result<f64> {
    let mut graph_of = |launches: usize| {
        stream.capture(|s| {
            (0..launches)
                .try_for_each(|_| call(s))
                .map_err(|error| match error {
                    tirx_kernels::Error::Runtime(error) => error,
                    other => tirx_rt::Error::Shape(other.to_string()),
                })
        })
    };
    let mut graph = graph_of(1)?;
    let time = |graph: &mut tirx_rt::Graph| -> Result<f64> {
        let start = stream.record()?;
        graph.launch(stream)?;
        let end = stream.record()?;
        stream.synchronize()?;
        Ok(end.elapsed_since(&start)?.as_secs_f64() * 1e6)
    };
    time(&mut graph)?;
    let launches = if time(&mut graph)? < 100.0 { 20 } else { 1 };
    let mut graph = graph_of(launches)?;
    time(&mut graph)?;
    let mut times = (0..30).map(|_| time(&mut graph)).collect::<Result<Vec<_>>>()?;
    times.sort_by(f64::total_cmp);
    Ok(times[15] / launches as f64)
}

struct Table {
    stream: Stream,
    words: Vec<String>,
}

impl Table {
    fn wanted(&self, name: &str) -> bool {
        self.words.is_empty() || self.words.iter().any(|word| name.contains(word.as_str()))
    }

    /// Times a call that moves `bytes` and a copy that moves as many.
    fn line(
        &self,
        name: &str,
        bytes: usize,
        call: impl FnMut(&Stream) -> tirx_kernels::Result<()>,
    ) -> Result<()> {
        let stream = &self.stream;
        let time = microseconds(stream, call)?;
        let half = (bytes / 2).clamp(1, 2 << 30);
        let from = Tensor::<u8>::zeros(stream, [half])?;
        let mut to = Tensor::<u8>::zeros(stream, [half])?;
        let copy = microseconds(stream, |s| Ok(to.copy_from(s, &from)?))?;
        let (rate, of_copy) = (bytes as f64 / time / 1e3, 2.0 * half as f64 / copy / 1e3);
        println!(
            "{name:<44} {:>9.1} MB {time:>9.1} us {rate:>7.0} GB/s   copy {of_copy:>6.0} GB/s   ratio {:.2}",
            bytes as f64 / 1e6,
            rate / of_copy
        );
        Ok(())
    }
}

fn rows(table: &Table) -> Result<()> {
    let stream = &table.stream;
    let (tokens, hidden, inner, heads, head) = (8192, 4096, 14336, 32, 128);
    let x = normal(stream, &[tokens, hidden], bf16::from_f64)?;
    let mut r = normal(stream, &[tokens, hidden], bf16::from_f64)?;
    let mut y = Tensor::<bf16>::zeros(stream, [tokens, hidden])?;
    let w = normal(stream, &[hidden], bf16::from_f64)?;
    let size = 2 * tokens * hidden;
    let options = Options::eps(1e-5);
    if table.wanted("norm") {
        table.line("rms_norm 8192 x 4096", 2 * size, |s| {
            norm::rms_norm(s, &x, &w, &mut y, options)
        })?;
        table.line("add_rms_norm 8192 x 4096", 4 * size, |s| {
            norm::add_rms_norm(s, &x, &mut r, &w, &mut y, options)
        })?;
        table.line("layer_norm 8192 x 4096", 2 * size, |s| {
            norm::layer_norm(s, &x, &w, &w, &mut y, options)
        })?;
        let mut scales = Tensor::zeros(stream, [tokens])?;
        let mut floats = Tensor::<f8e4m3>::zeros(stream, [tokens, hidden])?;
        table.line("rms_norm to fp8, 8192 x 4096", size / 2 * 3, |s| {
            norm::rms_norm_quantized(s, &x, &w, &mut floats, &mut scales, options)
        })?;
        table.line("add_rms_norm to fp8, 8192 x 4096", size / 2 * 7, |s| {
            norm::add_rms_norm_quantized(s, &x, &mut r, &w, &mut floats, &mut scales, options)
        })?;
        let (x, w) = (x.reshape([tokens, heads, head])?, w.slice(0, 0..head)?);
        let mut y = y.reshape_mut([tokens, heads, head])?;
        table.line("rms_norm of heads, 262144 x 128", 2 * size, |s| {
            norm::rms_norm(s, &x, &w, &mut y, options)
        })?;
    }
    if table.wanted("rope") {
        let positions = Tensor::arange(stream, 0, tokens as i32)?;
        let frequencies = Tensor::from_slice(stream, &rope::frequencies(500_000.0, head), [head / 2])?;
        let mut r = r.reshape_mut([tokens, heads, head])?;
        for (name, pairs) in [
            ("rope halves", Pairs::Halves),
            ("rope interleaved", Pairs::Interleaved),
        ] {
            table.line(name, 2 * size, |s| {
                rope::apply(s, &mut r, &positions, &frequencies, pairs)
            })?;
        }
    }
    if table.wanted("softmax") {
        table.line("softmax 8192 x 4096", 2 * size, |s| {
            softmax::softmax(s, &x, &mut y, 1.0)
        })?;
    }
    if table.wanted("quantize") {
        let mut scales = Tensor::zeros(stream, [tokens])?;
        let mut bytes = Tensor::<i8>::zeros(stream, [tokens, hidden])?;
        table.line("quantize to int8, 8192 x 4096", size / 2 * 3, |s| {
            quantize::rows(s, &x, &mut bytes, &mut scales)
        })?;
        let mut floats = bytes.as_bits_mut::<f8e4m3>()?;
        table.line("quantize to fp8, 8192 x 4096", size / 2 * 3, |s| {
            quantize::rows(s, &x, &mut *floats, &mut scales)
        })?;
        let mut scales = Tensor::zeros(stream, [tokens / 128, hidden / 128])?;
        table.line("quantize to blocks of fp8, 8192 x 4096", size / 2 * 3, |s| {
            quantize::blocks(s, &x, &mut *floats, &mut scales)
        })?;
        let mut q = Tensor::<f4e2m1x2>::zeros(stream, [tokens, hidden / 2])?;
        let mut scales = Tensor::<f8e8m0>::zeros(stream, [tokens, hidden / 32])?;
        let bytes = size + q.len() + scales.len();
        table.line("quantize to mxfp4, 8192 x 4096", bytes, |s| {
            quantize::mxfp4(s, &x, &mut q, &mut scales)
        })?;
        let mut scales = Tensor::<f8e4m3>::zeros(stream, [tokens, hidden / 16])?;
        let bytes = size + q.len() + scales.len();
        table.line("quantize to nvfp4, 8192 x 4096", bytes, |s| {
            quantize::nvfp4(s, &x, &mut q, &mut scales, 1e-3)
        })?;
    }
    if table.wanted("cast") {
        let wide = normal(stream, &[tokens, hidden], |x| x as f32)?;
        table.line("cast f32 to bf16, 8192 x 4096", 3 * size, |s| {
            cast::cast(s, &wide, &mut y)
        })?;
    }
    if table.wanted("gather") {
        let entries = normal(stream, &[64_000, hidden], bf16::from_f64)?;
        let ids: Vec<i32> = (0..tokens).map(|i| (i * 7919 % 64_000) as i32).collect();
        let ids = Tensor::from_slice(stream, &ids, [tokens])?;
        table.line("gather 8192 of 64000 x 4096", 2 * size, |s| {
            embedding::gather(s, &entries, &ids, &mut y)
        })?;
    }
    if table.wanted("swiglu") {
        let both = normal(stream, &[tokens / 2, 2 * inner], bf16::from_f64)?;
        let mut out = Tensor::zeros(stream, [tokens / 2, inner])?;
        let (gate, up) = (both.slice(1, 0..inner)?, both.slice(1, inner..2 * inner)?);
        for (name, function) in [
            ("swiglu 4096 x 14336", Function::Silu),
            ("geglu 4096 x 14336", Function::GeluTanh),
        ] {
            table.line(name, 3 * tokens * inner, |s| {
                activation::gated(s, function, &gate, &up, &mut out)
            })?;
        }
    }
    Ok(())
}

fn logits(table: &Table) -> Result<()> {
    let stream = &table.stream;
    let vocabulary = 128_256;
    if table.wanted("cross_entropy") {
        let x = normal(stream, &[1024, vocabulary], bf16::from_f64)?;
        let (targets, mut losses) = (Tensor::zeros(stream, [1024])?, Tensor::zeros(stream, [1024])?);
        table.line("cross_entropy 1024 x 128256", x.len() * 2, |s| {
            loss::cross_entropy(s, &x, &targets, &mut losses)
        })?;
    }
    for batch in [1, 16, 128] {
        let x = normal(stream, &[batch, vocabulary], |x| (x * 4.0) as f32)?;
        let mut tokens = Tensor::zeros(stream, [batch])?;
        let counters = Tensor::zeros(stream, [batch])?;
        if table.wanted("argmax") {
            table.line(&format!("argmax of {batch} x 128256 f32"), x.len() * 4, |s| {
                sampling::argmax(s, &x, &mut tokens)
            })?;
        }
        for (name, options) in [
            ("temperature", sampling::Options::temperature(0.8)),
            ("top_k 50", sampling::Options::temperature(0.8).top_k(50)),
            ("top_p 0.9", sampling::Options::temperature(0.8).top_p(0.9)),
            (
                "top_k 50, top_p 0.9",
                sampling::Options::temperature(0.8).top_k(50).top_p(0.9),
            ),
        ] {
            if table.wanted("sample") {
                let parameters = Parameters::from_rows(stream, &vec![options; batch])?;
                table.line(
                    &format!("sample {name} of {batch} x 128256 f32"),
                    x.len() * 4,
                    |s| sampling::sample(s, &x, &parameters, &counters, &mut tokens),
                )?;
            }
        }
    }
    Ok(())
}

/// A page table whose pages are in an order that no prefetcher guesses.
fn table_of_pages(stream: &Stream, sequences: usize, width: usize) -> Result<Tensor<i32>> {
    let pages = sequences * width;
    let step = (7919..)
        .find(|s| !pages.is_multiple_of(*s) && s % 2 == 1)
        .unwrap_or(1);
    let order: Vec<i32> = (0..pages).map(|i| (i * step % pages) as i32).collect();
    Ok(Tensor::from_slice(stream, &order, [sequences, width])?)
}

/// Decoding with a cache of 8 bits, with latent keys, and copies of pages.
fn other_pages(table: &Table) -> Result<()> {
    let stream = &table.stream;
    let (heads, heads_of_k, head, page) = (32, 8, 128, 64);
    for (sequences, keys) in [(1, 32_768), (8, 8192), (32, 4096), (128, 4096)] {
        let width = keys / page;
        let lengths = Tensor::full(stream, keys as i32, [sequences])?;
        let by_row = table_of_pages(stream, sequences, width)?;
        let options = paged::Options::default();
        let name = format!("fp8 decode {sequences} x {keys}, {heads} heads");
        if table.wanted(&name) {
            let shape = [sequences * width, page, heads_of_k, head];
            let round = |x| f8e4m3::from_f32(x as f32);
            let (k, v) = (normal(stream, &shape, round)?, normal(stream, &shape, round)?);
            let q = normal(stream, &[sequences, heads, head], bf16::from_f64)?;
            let mut o = Tensor::zeros(stream, [sequences, heads, head])?;
            let mut workspace = Workspace::for_decode(stream, &q, &k, &by_row, options)?;
            table.line(&name, 2 * k.len(), |s| {
                paged::decode(s, &q, &k, &v, &by_row, &lengths, &mut o, &mut workspace, options)
            })?;
        }
        for heads in [16, 128] {
            let name = format!("latent decode {sequences} x {keys}, {heads} heads");
            if table.wanted(&name) {
                let cache = normal(stream, &[sequences * width, page, 576], bf16::from_f64)?;
                let q = normal(stream, &[sequences, heads, 576], bf16::from_f64)?;
                let mut o = Tensor::zeros(stream, [sequences, heads, 512])?;
                let mut workspace = Workspace::for_latent(stream, &q, &cache, &by_row, options)?;
                table.line(&name, 2 * cache.len(), |s| {
                    paged::decode_latent(s, &q, &cache, &by_row, &lengths, &mut o, &mut workspace, options)
                })?;
            }
        }
    }
    if table.wanted("copy_pages") {
        let (count, pages) = (2048, 4096);
        let from = normal(stream, &[pages, page, heads_of_k, head], bf16::from_f64)?;
        let mut to = Tensor::<bf16>::zeros(stream, [pages, page, heads_of_k, head])?;
        let pairs: Vec<i32> = (0..count)
            .flat_map(|p| [p * 7919 % pages as i32, p * 5119 % pages as i32])
            .collect();
        let pairs = Tensor::from_slice(stream, &pairs, [count as usize, 2])?;
        table.line(
            "copy_pages, 2048 of 64 x 8 x 128",
            2 * 2 * count as usize * page * heads_of_k * head,
            |s| paged::copy_pages(s, &from, &mut to, &pairs),
        )?;
    }
    Ok(())
}

fn pages(table: &Table) -> Result<()> {
    let stream = &table.stream;
    let (heads_of_k, head, page) = (8, 128, 64);
    for (sequences, keys) in [
        (1, 1024),
        (1, 8192),
        (1, 32_768),
        (1, 131_072),
        (8, 1024),
        (8, 8192),
        (8, 32_768),
        (32, 1024),
        (32, 4096),
        (32, 32_768),
        (128, 1024),
        (128, 4096),
        (128, 8192),
        (128, 131_072),
        (200, 2048),
    ] {
        let name = |heads: usize| format!("decode {sequences} x {keys}, {heads} heads");
        if !table.wanted("decode") && !table.wanted("append") {
            break;
        }
        let width = keys / page;
        let shape = [sequences * width, page, heads_of_k, head];
        let (mut k, mut v) = (
            normal(stream, &shape, bf16::from_f64)?,
            normal(stream, &shape, bf16::from_f64)?,
        );
        let by_row = table_of_pages(stream, sequences, width)?;
        let lengths = Tensor::full(stream, keys as i32, [sequences])?;
        for heads in [32, 64] {
            let q = normal(stream, &[sequences, heads, head], bf16::from_f64)?;
            let mut o = Tensor::zeros(stream, [sequences, heads, head])?;
            let options = paged::Options::default();
            let mut workspace = Workspace::for_decode(stream, &q, &k, &by_row, options)?;
            if table.wanted("decode") {
                table.line(&name(heads), k.len() * 4, |s| {
                    paged::decode(s, &q, &k, &v, &by_row, &lengths, &mut o, &mut workspace, options)
                })?;
            }
        }
        if table.wanted("append") && (sequences, keys) == (32, 4096) {
            let tokens = 16_384;
            let [new_k, new_v] =
                [(); 2].map(|()| normal(stream, &[tokens, heads_of_k, head], bf16::from_f64));
            let (new_k, new_v) = (new_k?, new_v?);
            let frequencies = Tensor::from_slice(stream, &rope::frequencies(500_000.0, head), [head / 2])?;
            let of: Vec<i32> = (0..tokens).map(|t| (t / 512) as i32).collect();
            let at: Vec<i32> = (0..tokens).map(|t| (t % 512) as i32).collect();
            let (of, at) = (
                Tensor::from_slice(stream, &of, [tokens])?,
                Tensor::from_slice(stream, &at, [tokens])?,
            );
            let rope = Rope {
                frequencies: &frequencies,
                pairs: Pairs::Halves,
            };
            for (name, rope) in [
                ("append 16384 tokens", None),
                ("append and rope, 16384 tokens", Some(rope)),
            ] {
                table.line(name, new_k.len() * 8, |s| {
                    paged::append(s, &new_k, &new_v, &mut k, &mut v, &by_row, &of, &at, rope)
                })?;
            }
            let q = normal(stream, &[tokens, 32, head], bf16::from_f64)?;
            let mut y = Tensor::zeros(stream, [tokens, 32, head])?;
            for tokens in [1, tokens] {
                let (q, new_k, new_v) = (
                    q.slice(0, 0..tokens)?,
                    new_k.slice(0, 0..tokens)?,
                    new_v.slice(0, 0..tokens)?,
                );
                let (of, at, mut y) = (
                    of.slice(0, 0..tokens)?,
                    at.slice(0, 0..tokens)?,
                    y.slice_mut(0, 0..tokens)?,
                );
                let heads = Heads {
                    rope: Some(rope),
                    ..Heads::default()
                };
                let bytes = 4 * q.len() + 8 * new_k.len();
                table.line(&format!("append_queries, {tokens} tokens"), bytes, |s| {
                    paged::append_queries(
                        s, &q, &new_k, &new_v, &mut y, &mut k, &mut v, &by_row, &of, &at, heads,
                    )
                })?;
            }
        }
    }
    Ok(())
}

/// Products of few rows with weights of few bits: random bytes, whose values do not matter for the time.
fn weights(table: &Table) -> Result<()> {
    let stream = &table.stream;
    for (outputs, columns) in [(28_672, 4096), (4096, 14_336)] {
        for rows in [1, 8, 16] {
            let x = normal(stream, &[rows, columns], bf16::from_f64)?;
            let mut y = Tensor::zeros(stream, [rows, outputs])?;
            let mut line = |name: &str, bytes: usize, weights: Weights<'_>| {
                let name = format!("quant {name}, {rows} x {outputs} x {columns}");
                match table.wanted(&name) {
                    true => table.line(&name, bytes, |s| quant::matmul(s, &x, weights, &mut y)),
                    false => Ok(()),
                }
            };
            for format in [Format::Q8_0, Format::Q4_K, Format::Q6_K] {
                let of_row = format.bytes_of_row(columns).ok_or("whole blocks")?;
                let bytes = normal(stream, &[outputs, of_row], |x| (x * 8.0) as u8)?;
                line(&format!("{format:?}"), bytes.len(), Weights::Gguf(format, &bytes))?;
            }
            let groups = columns / 128;
            let int4 = Int4 {
                bytes: normal(stream, &[outputs, columns / 2], |x| (x * 40.0) as i8 as u8)?,
                scales: normal(stream, &[outputs, groups], f16::from_f64)?,
                zeros: Tensor::full(stream, 8, [outputs, groups])?,
            };
            let bytes = int4.bytes.len() + 3 * int4.scales.len();
            line("Int4 with groups of 128", bytes, Weights::Int4(&int4))?;
            let values = normal(stream, &[outputs, columns], |x| f8e4m3::from_f32(x as f32))?;
            let scales = normal(stream, &[outputs, 1], |x| x as f32)?;
            line("float8", values.len(), Weights::Fp8(&values, &scales))?;
            let bytes = normal(stream, &[outputs, columns / 2], |x| (x * 40.0) as i8 as u8)?;
            let scales = Tensor::full(stream, 127u8, [outputs, columns / 32])?;
            line(
                "MXFP4",
                bytes.len() + scales.len(),
                Weights::Mxfp4(&*bytes.as_bits()?, &*scales.as_bits::<f8e8m0>()?),
            )?;
        }
    }
    Ok(())
}

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| word != "--bench")
        .collect();
    if words.iter().any(|word| word == "--test") {
        return Ok(());
    }
    let stream = Device::cuda(0)?.new_stream()?;
    println!("{}", stream.device().name());
    let table = Table { stream, words };
    rows(&table)?;
    logits(&table)?;
    weights(&table)?;
    pages(&table)?;
    other_pages(&table)
}
