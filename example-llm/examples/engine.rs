//! An inference engine: a model with the shape of Llama, prompts, a paged cache, and steps of all sequences as one graph.

use tirx_kernels::paged::{self, Rope, Workspace};
use tirx_kernels::sampling::{self, Options, Parameters};
use tirx_kernels::{activation, attention, embedding, gemm, norm, rope};
use tirx_rt::{Device, Graph, Stream, Tensor, bf16};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

#[derive(Clone, Copy)]
struct Shape {
    hidden: usize,
    inner: usize,
    layers: usize,
    heads: usize,
    heads_of_k: usize,
    head: usize,
    vocabulary: usize,
}

struct Layer {
    attention_norm: Tensor<bf16>,
    qkv: Tensor<bf16>,
    output: Tensor<bf16>,
    mlp_norm: Tensor<bf16>,
    gate_up: Tensor<bf16>,
    down: Tensor<bf16>,
}

struct Model {
    shape: Shape,
    embedding: Tensor<bf16>,
    layers: Vec<Layer>,
    norm: Tensor<bf16>,
    head: Tensor<bf16>,
    frequencies: Tensor<f32>,
}

impl Model {
    /// Random weights; those of a file would be read here. Matrices are `[outputs, inputs]`, as files have them.
    fn random(stream: &Stream, shape: Shape) -> Result<Model> {
        let mut state = 1u64;
        let mut matrix = |rows: usize, columns: usize| {
            let numbers: Vec<bf16> = (0..rows * columns)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let uniform = (state >> 40) as f32 / (1 << 23) as f32 - 1.0;
                    bf16::from_f32(uniform * 2.0 / (columns as f32).sqrt())
                })
                .collect();
            Tensor::from_slice(stream, &numbers, [rows, columns])
        };
        let ones = || Tensor::full(stream, bf16::from_f32(1.0), [shape.hidden]);
        let (rows, rows_of_k) = (shape.heads * shape.head, shape.heads_of_k * shape.head);
        let mut layers = Vec::new();
        for _ in 0..shape.layers {
            layers.push(Layer {
                attention_norm: ones()?,
                qkv: matrix(rows + 2 * rows_of_k, shape.hidden)?,
                output: matrix(shape.hidden, rows)?,
                mlp_norm: ones()?,
                gate_up: matrix(2 * shape.inner, shape.hidden)?,
                down: matrix(shape.hidden, shape.inner)?,
            });
        }
        let frequencies = rope::frequencies(500_000.0, shape.head);
        Ok(Model {
            shape,
            embedding: matrix(shape.vocabulary, shape.hidden)?,
            layers,
            norm: ones()?,
            head: matrix(shape.vocabulary, shape.hidden)?,
            frequencies: Tensor::from_slice(stream, &frequencies, [shape.head / 2])?,
        })
    }
}

/// Keys and values of all sequences, in pages. Row `r` of the table lists the pages of sequence `r`.
struct Cache {
    keys: Vec<Tensor<bf16>>,
    values: Vec<Tensor<bf16>>,
    table: Tensor<i32>,
}

const PAGE: usize = 16;

impl Cache {
    fn new(stream: &Stream, shape: Shape, sequences: usize, tokens: usize) -> Result<Cache> {
        let pages = tokens.div_ceil(PAGE);
        let layers = || {
            let of_layer = || Tensor::zeros(stream, [sequences * pages, PAGE, shape.heads_of_k, shape.head]);
            (0..shape.layers)
                .map(|_| of_layer())
                .collect::<tirx_rt::Result<Vec<_>>>()
        };
        let order: Vec<i32> = (0..(sequences * pages) as i32).collect();
        Ok(Cache {
            keys: layers()?,
            values: layers()?,
            table: Tensor::from_slice(stream, &order, [sequences, pages])?,
        })
    }
}

/// The results between kernels, for a number of tokens.
struct Buffers {
    residual: Tensor<bf16>,
    normed: Tensor<bf16>,
    qkv: Tensor<bf16>,
    attended: Tensor<bf16>,
    gate_up: Tensor<bf16>,
    inner: Tensor<bf16>,
    output: Tensor<bf16>,
}

impl Buffers {
    fn new(stream: &Stream, shape: Shape, tokens: usize) -> Result<Buffers> {
        let rows = |columns: usize| Tensor::zeros(stream, [tokens, columns]);
        let heads = |heads: usize| Tensor::zeros(stream, [tokens, heads, shape.head]);
        Ok(Buffers {
            residual: rows(shape.hidden)?,
            normed: rows(shape.hidden)?,
            qkv: heads(shape.heads + 2 * shape.heads_of_k)?,
            attended: heads(shape.heads)?,
            gate_up: rows(2 * shape.inner)?,
            inner: rows(shape.inner)?,
            output: rows(shape.hidden)?,
        })
    }
}

/// Tokens, the sequence of each, and its position there.
struct Tokens {
    ids: Tensor<i32>,
    sequences: Tensor<i32>,
    positions: Tensor<i32>,
}

impl Model {
    /// Writes the hidden state of each token to `b.normed`. `decode` is a step: one token for each sequence, with its keys in the cache.
    /// Otherwise the tokens are a whole prompt.
    fn forward(
        &self,
        stream: &Stream,
        tokens: &Tokens,
        cache: &mut Cache,
        b: &mut Buffers,
        mut decode: Option<(&Tensor<i32>, &mut Workspace)>,
    ) -> tirx_kernels::Result<()> {
        let Shape {
            heads,
            heads_of_k,
            head,
            inner,
            ..
        } = self.shape;
        let count = tokens.ids.len();
        let eps = norm::Options::eps(1e-5);
        let rope = Rope {
            frequencies: &self.frequencies,
            pairs: rope::Pairs::Halves,
        };
        embedding::gather(stream, &self.embedding, &tokens.ids, &mut b.residual)?;
        b.output.fill(stream, bf16::from_f32(0.0))?;
        for (i, layer) in self.layers.iter().enumerate() {
            // residual += output of the layer before; normed = its norm
            norm::add_rms_norm(
                stream,
                &b.output,
                &mut b.residual,
                &layer.attention_norm,
                &mut b.normed,
                eps,
            )?;
            let mut flat = b.qkv.reshape_mut([count, (heads + 2 * heads_of_k) * head])?;
            gemm::matmul(stream, &b.normed, &layer.qkv.permute(&[1, 0])?, &mut flat)?;
            let (mut q, mut rest) = b.qkv.split_at_mut(1, heads)?;
            let (mut k, v) = rest.split_at_mut(1, heads_of_k)?;
            rope::apply(stream, &mut q, &tokens.positions, rope.frequencies, rope.pairs)?;
            rope::apply(stream, &mut k, &tokens.positions, rope.frequencies, rope.pairs)?;
            let (keys, values) = (&mut cache.keys[i], &mut cache.values[i]);
            let (of, at) = (&tokens.sequences, &tokens.positions);
            paged::append(stream, &k, &v, keys, values, &cache.table, of, at, None)?;
            match &mut decode {
                Some((lengths, workspace)) => {
                    // [sequences, queries of each, heads, head]
                    let mut o = b.attended.unsqueeze_mut(1)?;
                    let options = paged::Options::default();
                    let q = q.unsqueeze(1)?;
                    paged::decode(
                        stream,
                        &q,
                        keys,
                        values,
                        &cache.table,
                        lengths,
                        &mut o,
                        workspace,
                        options,
                    )?;
                }
                None => {
                    // [1, heads, tokens, head]
                    let (q, k, v) = (q.unsqueeze(0)?, k.unsqueeze(0)?, v.unsqueeze(0)?);
                    let order = [0, 2, 1, 3];
                    let (q, k, v) = (q.permute(&order)?, k.permute(&order)?, v.permute(&order)?);
                    let mut o = b.attended.unsqueeze_mut(0)?;
                    let mut o = o.permute_mut(&order)?;
                    attention::forward(stream, &q, &k, &v, &mut o, attention::Options::causal())?;
                }
            }
            let flat = b.attended.reshape([count, heads * head])?;
            gemm::matmul(stream, &flat, &layer.output.permute(&[1, 0])?, &mut b.output)?;
            norm::add_rms_norm(
                stream,
                &b.output,
                &mut b.residual,
                &layer.mlp_norm,
                &mut b.normed,
                eps,
            )?;
            gemm::matmul(
                stream,
                &b.normed,
                &layer.gate_up.permute(&[1, 0])?,
                &mut b.gate_up,
            )?;
            let (gate, up) = (
                b.gate_up.slice(1, 0..inner)?,
                b.gate_up.slice(1, inner..2 * inner)?,
            );
            activation::swiglu(stream, &gate, &up, &mut b.inner)?;
            gemm::matmul(stream, &b.inner, &layer.down.permute(&[1, 0])?, &mut b.output)?;
        }
        norm::add_rms_norm(stream, &b.output, &mut b.residual, &self.norm, &mut b.normed, eps)
    }
}

/// Sequences that take steps together.
struct Engine {
    stream: Stream,
    model: Model,
    cache: Cache,
    step: Step,
    graph: Option<Graph>,
}

/// The inputs and outputs of a step, a row for each sequence. A row without a sequence has position and length −1.
struct Step {
    tokens: Tokens,
    lengths: Tensor<i32>,
    parameters: Parameters,
    buffers: Buffers,
    workspace: Workspace,
    logits: Tensor<bf16>,
}

impl Engine {
    fn new(stream: &Stream, model: Model, rows: usize, tokens: usize) -> Result<Engine> {
        let shape = model.shape;
        let cache = Cache::new(stream, shape, rows, tokens)?;
        let q = Tensor::<bf16>::zeros(stream, [rows, shape.heads, shape.head])?;
        let none = || Tensor::full(stream, -1, [rows]);
        let step = Step {
            tokens: Tokens {
                ids: Tensor::zeros(stream, [rows])?,
                sequences: Tensor::arange(stream, 0, rows as i32)?,
                positions: none()?,
            },
            lengths: none()?,
            parameters: Parameters::from_rows(stream, &vec![Options::greedy(); rows])?,
            buffers: Buffers::new(stream, shape, rows)?,
            workspace: Workspace::for_decode(
                stream,
                &q,
                &cache.keys[0],
                &cache.table,
                paged::Options::default(),
            )?,
            logits: Tensor::zeros(stream, [rows, shape.vocabulary])?,
        };
        Ok(Engine {
            stream: stream.clone(),
            model,
            cache,
            step,
            graph: None,
        })
    }

    /// Runs a prompt and gives the token behind it. The sequence then takes part in steps as row `row`.
    fn begin(&mut self, row: usize, prompt: &[i32], options: Options) -> Result<i32> {
        let (stream, count) = (&self.stream, prompt.len());
        let tokens = Tokens {
            ids: Tensor::from_slice(stream, prompt, [count])?,
            sequences: Tensor::full(stream, row as i32, [count])?,
            positions: Tensor::arange(stream, 0, count as i32)?,
        };
        let mut buffers = Buffers::new(stream, self.model.shape, count)?;
        self.model
            .forward(stream, &tokens, &mut self.cache, &mut buffers, None)?;
        let last = buffers.normed.slice(0, count - 1..count)?;
        let mut logits = self.step.logits.slice_mut(0, row..row + 1)?;
        gemm::matmul(stream, &last, &self.model.head.permute(&[1, 0])?, &mut logits)?;
        self.step.parameters.set(stream, row, options)?;
        let parameters = Parameters::from_rows(stream, &[options])?;
        let mut token = self.step.tokens.ids.slice_mut(0, row..row + 1)?;
        let position = tokens.positions.slice(0, count - 1..count)?;
        sampling::sample(stream, &logits, &parameters, &position, &mut token)?;
        self.set(row, count as i32, count as i32 + 1)?;
        Ok(self.step.tokens.ids.to_vec()?[row])
    }

    /// Ends a sequence: another one may begin in its row.
    fn end(&mut self, row: usize) -> Result<()> {
        self.set(row, -1, -1)
    }

    fn set(&mut self, row: usize, position: i32, length: i32) -> Result<()> {
        for (numbers, value) in [
            (&mut self.step.tokens.positions, position),
            (&mut self.step.lengths, length),
        ] {
            numbers
                .slice_mut(0, row..row + 1)?
                .copy_from_slice(&self.stream, &[value])?;
        }
        Ok(())
    }

    /// One more token of each sequence.
    fn step(&mut self) -> Result<Vec<i32>> {
        let (model, cache, step) = (&self.model, &mut self.cache, &mut self.step);
        let graph = match &mut self.graph {
            Some(graph) => graph,
            none => none.insert(self.stream.capture(|s| {
                step.record(s, model, cache)
                    .map_err(|error| tirx_rt::Error::Shape(error.to_string()))
            })?),
        };
        graph.launch(&self.stream)?;
        Ok(self.step.tokens.ids.to_vec()?)
    }
}

impl Step {
    fn record(&mut self, stream: &Stream, model: &Model, cache: &mut Cache) -> tirx_kernels::Result<()> {
        let decode = Some((&self.lengths, &mut self.workspace));
        model.forward(stream, &self.tokens, cache, &mut self.buffers, decode)?;
        gemm::matmul(
            stream,
            &self.buffers.normed,
            &model.head.permute(&[1, 0])?,
            &mut self.logits,
        )?;
        let Tokens { ids, positions, .. } = &mut self.tokens;
        sampling::sample(stream, &self.logits, &self.parameters, positions, ids)?;
        paged::advance(stream, positions)?;
        paged::advance(stream, &mut self.lengths)
    }
}

fn main() -> Result<()> {
    let stream = Device::best()?.new_stream()?;
    let shape = Shape {
        hidden: 128,
        inner: 192,
        layers: 2,
        heads: 4,
        heads_of_k: 2,
        head: 64,
        vocabulary: 203,
    };
    let mut engine = Engine::new(&stream, Model::random(&stream, shape)?, 2, 64)?;
    // Three prompts share two rows: the third one begins when a row is free.
    let mut waiting = vec![(vec![7, 8, 9], 3), (vec![1; 20], 6), (vec![3, 1, 4, 1, 5], 4)];
    let mut running: [Option<(Vec<i32>, usize)>; 2] = [None, None];
    while !waiting.is_empty() || running.iter().any(Option::is_some) {
        for (row, place) in running.iter_mut().enumerate() {
            if place.is_none() && !waiting.is_empty() {
                let (mut tokens, wanted) = waiting.remove(0);
                tokens.push(engine.begin(row, &tokens, Options::greedy())?);
                let end = tokens.len() + wanted - 1;
                *place = Some((tokens, end));
            }
        }
        let next = engine.step()?;
        for (row, place) in running.iter_mut().enumerate() {
            let Some((tokens, end)) = place else { continue };
            tokens.push(next[row]);
            if tokens.len() >= *end {
                println!("{tokens:?}");
                engine.end(row)?;
                *place = None;
            }
        }
    }
    Ok(())
}
