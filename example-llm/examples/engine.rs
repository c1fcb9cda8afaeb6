//! An inference engine: a model with the shape of Llama, a paged cache, and steps of all sequences as one graph.

use tirx_kernels::paged::{self, Heads, Rope, Workspace};
use tirx_kernels::sampling::{self, Options, Parameters};
use tirx_kernels::{activation, embedding, gemm, norm, rope};
use tirx_rt::{Device, Graph, Stream, Tensor, bf16};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const HIDDEN: usize = 128;
const INNER: usize = 192;
const LAYERS: usize = 2;
const HEADS: usize = 4;
const HEADS_OF_K: usize = 2;
const HEAD: usize = 64;
const VOCABULARY: usize = 203;

/// Matrices are `[outputs, inputs]`, as files have them.
struct Layer {
    attention_norm: Tensor<bf16>,
    qkv: Tensor<bf16>,
    output: Tensor<bf16>,
    mlp_norm: Tensor<bf16>,
    gate_up: Tensor<bf16>,
    down: Tensor<bf16>,
}

/// The weights.
pub struct Model {
    embedding: Tensor<bf16>,
    layers: Vec<Layer>,
    norm: Tensor<bf16>,
    head: Tensor<bf16>,
    frequencies: Tensor<f32>,
}

impl Model {
    /// Random weights. Those of a file would be read here.
    pub fn random(stream: &Stream) -> Result<Model> {
        let mut state = 1u64;
        let mut matrix = |rows: usize, columns: usize| {
            let mut number = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let uniform = (state >> 40) as f32 / (1 << 23) as f32 - 1.0;
                bf16::from_f32(uniform * 2.0 / (columns as f32).sqrt())
            };
            let numbers: Vec<bf16> = (0..rows * columns).map(|_| number()).collect();
            Tensor::from_slice(stream, &numbers, [rows, columns])
        };
        let ones = || Tensor::full(stream, bf16::from_f32(1.0), [HIDDEN]);
        let mut layers = Vec::new();
        for _ in 0..LAYERS {
            layers.push(Layer {
                attention_norm: ones()?,
                qkv: matrix((HEADS + 2 * HEADS_OF_K) * HEAD, HIDDEN)?,
                output: matrix(HIDDEN, HEADS * HEAD)?,
                mlp_norm: ones()?,
                gate_up: matrix(2 * INNER, HIDDEN)?,
                down: matrix(HIDDEN, INNER)?,
            });
        }
        Ok(Model {
            embedding: matrix(VOCABULARY, HIDDEN)?,
            layers,
            norm: ones()?,
            head: matrix(VOCABULARY, HIDDEN)?,
            frequencies: Tensor::from_slice(stream, &rope::frequencies(500_000.0, HEAD), [HEAD / 2])?,
        })
    }
}

/// Tokens of a cache page.
const PAGE: usize = 16;

/// Keys and values of all sequences, by layer: `[pages, tokens of a page, heads, elements of a head]`.
struct Cache {
    keys: Vec<Tensor<bf16>>,
    values: Vec<Tensor<bf16>>,
}

impl Cache {
    fn new(stream: &Stream, pages: usize) -> Result<Cache> {
        let of_layer = |_| Tensor::zeros(stream, [pages, PAGE, HEADS_OF_K, HEAD]);
        Ok(Cache {
            keys: (0..LAYERS).map(of_layer).collect::<tirx_rt::Result<_>>()?,
            values: (0..LAYERS).map(of_layer).collect::<tirx_rt::Result<_>>()?,
        })
    }
}

/// Memory of a call of `Model::forward` with a number of tokens.
struct Buffers {
    residual: Tensor<bf16>,
    normed: Tensor<bf16>,
    qkv: Tensor<bf16>,
    queries: Tensor<bf16>,
    attended: Tensor<bf16>,
    gate_up: Tensor<bf16>,
    inner: Tensor<bf16>,
    output: Tensor<bf16>,
    workspace: Workspace,
}

impl Buffers {
    /// For a number of tokens of each sequence of a page table.
    fn new(stream: &Stream, cache: &Cache, table: &Tensor<i32>, queries: usize) -> Result<Buffers> {
        let sequences = table.shape()[0];
        let rows = |columns: usize| Tensor::zeros(stream, [sequences * queries, columns]);
        let heads = |heads: usize| Tensor::zeros(stream, [sequences, queries, heads, HEAD]);
        let attended = heads(HEADS)?;
        let options = paged::Options::default();
        Ok(Buffers {
            residual: rows(HIDDEN)?,
            normed: rows(HIDDEN)?,
            qkv: heads(HEADS + 2 * HEADS_OF_K)?,
            queries: heads(HEADS)?,
            gate_up: rows(2 * INNER)?,
            inner: rows(INNER)?,
            output: rows(HIDDEN)?,
            workspace: Workspace::for_decode(stream, &attended, &cache.keys[0], table, options)?,
            attended,
        })
    }
}

/// The tokens of a call: as many of each sequence.
struct Tokens {
    ids: Tensor<i32>,
    /// The row of the page table, and the position there, of each token.
    rows: Tensor<i32>,
    positions: Tensor<i32>,
    /// The length of each sequence, with its tokens of this call.
    lengths: Tensor<i32>,
}

impl Model {
    /// Adds keys and values of the tokens to the cache, and writes their hidden states to `b.normed`.
    fn forward(
        &self,
        stream: &Stream,
        tokens: &Tokens,
        table: &Tensor<i32>,
        cache: &mut Cache,
        b: &mut Buffers,
    ) -> tirx_kernels::Result<()> {
        let count = tokens.ids.len();
        let eps = norm::Options::eps(1e-5);
        embedding::gather(stream, &self.embedding, &tokens.ids, &mut b.residual)?;
        b.output.fill_zero(stream)?;
        for (i, layer) in self.layers.iter().enumerate() {
            // The residual grows by the output of the layer before.
            let (x, r) = (&mut b.normed, &mut b.residual);
            norm::add_rms_norm(stream, &b.output, r, &layer.attention_norm, x, eps)?;
            let mut qkv = b.qkv.reshape_mut([count, (HEADS + 2 * HEADS_OF_K) * HEAD])?;
            gemm::matmul(stream, x, &layer.qkv.permute(&[1, 0])?, &mut qkv)?;

            let qkv = b.qkv.reshape([count, HEADS + 2 * HEADS_OF_K, HEAD])?;
            let q = qkv.slice(1, 0..HEADS)?;
            let k = qkv.slice(1, HEADS..HEADS + HEADS_OF_K)?;
            let v = qkv.slice(1, HEADS + HEADS_OF_K..HEADS + 2 * HEADS_OF_K)?;
            let rope = Rope {
                frequencies: &self.frequencies,
                pairs: rope::Pairs::Halves,
            };
            let heads = Heads {
                rope: Some(rope),
                ..Heads::default()
            };
            let (keys, values) = (&mut cache.keys[i], &mut cache.values[i]);
            let (rows, positions) = (&tokens.rows, &tokens.positions);
            let mut turned = b.queries.reshape_mut([count, HEADS, HEAD])?;
            paged::append_queries(
                stream,
                &q,
                &k,
                &v,
                &mut turned,
                keys,
                values,
                table,
                rows,
                positions,
                heads,
            )?;

            let (o, options) = (&mut b.attended, paged::Options::default());
            paged::decode(
                stream,
                &b.queries,
                keys,
                values,
                table,
                &tokens.lengths,
                o,
                &mut b.workspace,
                options,
            )?;
            let flat = b.attended.reshape([count, HEADS * HEAD])?;
            gemm::matmul(stream, &flat, &layer.output.permute(&[1, 0])?, &mut b.output)?;

            norm::add_rms_norm(stream, &b.output, r, &layer.mlp_norm, x, eps)?;
            gemm::matmul(stream, x, &layer.gate_up.permute(&[1, 0])?, &mut b.gate_up)?;
            let (gate, up) = (
                b.gate_up.slice(1, 0..INNER)?,
                b.gate_up.slice(1, INNER..2 * INNER)?,
            );
            activation::swiglu(stream, &gate, &up, &mut b.inner)?;
            gemm::matmul(stream, &b.inner, &layer.down.permute(&[1, 0])?, &mut b.output)?;
        }
        norm::add_rms_norm(stream, &b.output, &mut b.residual, &self.norm, &mut b.normed, eps)
    }
}

/// Sequences that take steps together. Row `r` of the table lists the pages of sequence `r`.
pub struct Engine {
    stream: Stream,
    model: Model,
    cache: Cache,
    table: Tensor<i32>,
    step: Step,
    graph: Option<Graph>,
}

/// The inputs and outputs of a step. A row without a sequence has position and length −1.
struct Step {
    tokens: Tokens,
    parameters: Parameters,
    buffers: Buffers,
    logits: Tensor<bf16>,
}

impl Engine {
    /// An engine for `rows` sequences of up to `tokens` tokens.
    pub fn new(stream: &Stream, model: Model, rows: usize, tokens: usize) -> Result<Engine> {
        let pages = tokens.div_ceil(PAGE);
        let cache = Cache::new(stream, rows * pages)?;
        let order: Vec<i32> = (0..(rows * pages) as i32).collect();
        let table = Tensor::from_slice(stream, &order, [rows, pages])?;
        let none = || Tensor::full(stream, -1, [rows]);
        let step = Step {
            tokens: Tokens {
                ids: Tensor::zeros(stream, [rows])?,
                rows: Tensor::arange(stream, 0, rows as i32)?,
                positions: none()?,
                lengths: none()?,
            },
            parameters: Parameters::from_rows(stream, &vec![Options::greedy(); rows])?,
            buffers: Buffers::new(stream, &cache, &table, 1)?,
            logits: Tensor::zeros(stream, [rows, VOCABULARY])?,
        };
        Ok(Engine {
            stream: stream.clone(),
            model,
            cache,
            table,
            step,
            graph: None,
        })
    }

    /// Runs a prompt and gives the token behind it. The sequence then takes part in steps as row `row`.
    pub fn begin(&mut self, row: usize, prompt: &[i32], options: Options) -> Result<i32> {
        let (stream, count) = (&self.stream, prompt.len());
        let tokens = Tokens {
            ids: Tensor::from_slice(stream, prompt, [count])?,
            rows: Tensor::zeros(stream, [count])?,
            positions: Tensor::arange(stream, 0, count as i32)?,
            lengths: Tensor::full(stream, count as i32, [1])?,
        };
        let table = self.table.slice(0, row..row + 1)?;
        let mut buffers = Buffers::new(stream, &self.cache, &table, count)?;
        self.model
            .forward(stream, &tokens, &table, &mut self.cache, &mut buffers)?;

        let last = buffers.normed.slice(0, count - 1..count)?;
        let mut logits = self.step.logits.slice_mut(0, row..row + 1)?;
        gemm::matmul(stream, &last, &self.model.head.permute(&[1, 0])?, &mut logits)?;
        self.step.parameters.set(stream, row, options)?;
        let parameters = Parameters::from_rows(stream, &[options])?;
        let position = tokens.positions.slice(0, count - 1..count)?;
        let mut token = self.step.tokens.ids.slice_mut(0, row..row + 1)?;
        sampling::sample(stream, &logits, &parameters, &position, &mut token)?;
        self.set(row, count as i32, count as i32 + 1)?;
        Ok(self.step.tokens.ids.to_vec()?[row])
    }

    /// Ends a sequence: another one may begin in its row.
    pub fn end(&mut self, row: usize) -> Result<()> {
        self.set(row, -1, -1)
    }

    fn set(&mut self, row: usize, position: i32, length: i32) -> Result<()> {
        let Tokens {
            positions, lengths, ..
        } = &mut self.step.tokens;
        for (numbers, value) in [(positions, position), (lengths, length)] {
            let mut number = numbers.slice_mut(0, row..row + 1)?;
            number.copy_from_slice(&self.stream, &[value])?;
        }
        Ok(())
    }

    /// One more token of each sequence. The first call records the step's launches, later ones repeat them.
    pub fn step(&mut self) -> Result<Vec<i32>> {
        let (model, table) = (&self.model, &self.table);
        let (cache, step) = (&mut self.cache, &mut self.step);
        let graph = match &mut self.graph {
            Some(graph) => graph,
            none => none.insert(self.stream.capture(|stream| {
                let recorded = step.record(stream, model, table, cache);
                recorded.map_err(|error| tirx_rt::Error::Shape(error.to_string()))
            })?),
        };
        graph.launch(&self.stream)?;
        Ok(self.step.tokens.ids.to_vec()?)
    }
}

impl Step {
    fn record(
        &mut self,
        stream: &Stream,
        model: &Model,
        table: &Tensor<i32>,
        cache: &mut Cache,
    ) -> tirx_kernels::Result<()> {
        model.forward(stream, &self.tokens, table, cache, &mut self.buffers)?;
        let head = model.head.permute(&[1, 0])?;
        gemm::matmul(stream, &self.buffers.normed, &head, &mut self.logits)?;
        let Tokens {
            ids,
            positions,
            lengths,
            ..
        } = &mut self.tokens;
        sampling::sample(stream, &self.logits, &self.parameters, positions, ids)?;
        paged::advance(stream, positions)?;
        paged::advance(stream, lengths)
    }
}

fn main() -> Result<()> {
    let stream = Device::best()?.new_stream()?;
    let mut engine = Engine::new(&stream, Model::random(&stream)?, 2, 64)?;
    // Three prompts share two rows: the third one begins when a row is free.
    let mut waiting = vec![(vec![7, 8, 9], 3), (vec![1; 20], 6), (vec![3, 1, 4, 1, 5], 4)].into_iter();
    let mut running = [None, None];
    loop {
        for (row, place) in running.iter_mut().enumerate() {
            if place.is_none()
                && let Some((mut tokens, more)) = waiting.next()
            {
                let end = tokens.len() + more;
                tokens.push(engine.begin(row, &tokens, Options::greedy())?);
                *place = Some((tokens, end));
            }
        }
        if running.iter().all(Option::is_none) {
            return Ok(());
        }
        let next = engine.step()?;
        for (row, place) in running.iter_mut().enumerate() {
            let Some((tokens, end)) = place else { continue };
            tokens.push(next[row]);
            if tokens.len() == *end {
                println!("{tokens:?}");
                engine.end(row)?;
                *place = None;
            }
        }
    }
}
