//! How do sequences share a cache, and a step one graph?
//!
//! Each row of the batch has pages of its own. A prompt runs alone, in parts; then all rows take steps together. A step is one graph: it
//! embeds the tokens that the step before chose, and chooses the next ones, so nothing but the chosen tokens leaves the device.

use tirx_kernels::paged::{self, Workspace};
use tirx_kernels::sampling::{self, Options, Parameters};
use tirx_rt::{Graph, Stream, Tensor, bf16};

use crate::model::{Activations, Cache, Places};
use crate::{Model, Result};

/// Rows of a page.
const PAGE: usize = 64;
/// Tokens of a part of a prompt: their activations are in memory at once.
const PART: usize = 4096;

/// A model with a cache for a batch of sequences.
pub struct Engine {
    stream: Stream,
    model: Model,
    caches: Vec<Cache>,
    table: Tensor<i32>,
    workspace: Workspace,
    longest: usize,
    step: Step,
    graph: Option<Graph>,
}

/// The inputs and outputs of a step, with a row for each sequence. A row without a sequence has a negative position and length.
struct Step {
    tokens: Tensor<i32>,
    positions: Tensor<i32>,
    lengths: Tensor<i32>,
    sequences: Tensor<i32>,
    parameters: Parameters,
    activations: Activations,
    logits: Tensor<bf16>,
}

impl Engine {
    /// An engine for `rows` sequences of at most `longest` tokens.
    ///
    /// # Errors
    /// Those of the device.
    pub fn new(stream: &Stream, model: Model, rows: usize, longest: usize) -> Result<Engine> {
        let config = &model.config;
        let pages = longest.div_ceil(PAGE).max(1);
        let cache = || Tensor::zeros(stream, [rows * pages, PAGE, config.heads_of_k, config.head]);
        let caches = (0..config.layers)
            .map(|_| {
                Ok(Cache {
                    k: cache()?,
                    v: cache()?,
                })
            })
            .collect::<Result<Vec<_>>>()?;
        let table = Tensor::arange(stream, 0, (rows * pages) as i32)?;
        let table = table.reshape([rows, pages])?.to(stream)?;
        let none = || Tensor::full(stream, -1, [rows]);
        let queries = Tensor::<bf16>::zeros(stream, [rows, config.heads, config.head])?;
        let workspace =
            Workspace::for_decode(stream, &queries, &cache()?, &table, paged::Options::default())?;
        let step = Step {
            tokens: Tensor::zeros(stream, [rows])?,
            positions: none()?,
            lengths: none()?,
            sequences: Tensor::arange(stream, 0, rows as i32)?,
            parameters: Parameters::from_rows(stream, &vec![Options::greedy(); rows])?,
            activations: Activations::new(stream, &model, rows)?,
            logits: Tensor::zeros(stream, [rows, config.vocabulary])?,
        };
        Ok(Engine {
            stream: stream.clone(),
            caches,
            table,
            workspace,
            longest: pages * PAGE,
            step,
            graph: None,
            model,
        })
    }

    /// The model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Begins a sequence in a row of the batch, in place of the one before, and chooses its first token.
    ///
    /// # Errors
    /// An empty or too long prompt, a token or a row that there is not; those of the device.
    pub fn begin(&mut self, row: usize, prompt: &[i32], options: Options) -> Result<i32> {
        let rows = self.table.shape()[0];
        let vocabulary = self.model.config.vocabulary;
        if prompt.is_empty() || prompt.len() >= self.longest {
            let longest = self.longest - 1;
            return Err(format!("a prompt has 1 to {longest} tokens, not {}", prompt.len()).into());
        }
        if row >= rows {
            return Err(format!("there are {rows} rows, no row {row}").into());
        }
        if let Some(token) = prompt
            .iter()
            .find(|t| !(0..vocabulary as i64).contains(&i64::from(**t)))
        {
            return Err(format!("there are {vocabulary} tokens, no token {token}").into());
        }
        let stream = self.stream.clone();
        let mut logits = Tensor::zeros(&stream, [1, vocabulary])?;
        let mut end = 0;
        for part in prompt.chunks(PART) {
            let first = end as i32;
            end += part.len();
            let ints = |values: &[i32]| Tensor::from_slice(&stream, values, [values.len()]);
            let positions: Vec<i32> = (first..end as i32).collect();
            let own = self.table.slice(0, row..row + 1)?;
            let places = Places {
                sequences: &ints(&vec![row as i32; part.len()])?,
                positions: &ints(&positions)?,
                table: &self.table,
                rows: &own,
                lengths: &ints(&[end as i32])?,
                whole: first == 0,
            };
            let mut activations = Activations::new(&stream, &self.model, part.len())?;
            self.model.logits(
                &stream,
                &ints(part)?,
                &places,
                &mut self.caches,
                &mut activations,
                &mut self.workspace,
                &mut logits,
            )?;
        }
        // The step's token, position and length; the random numbers of a token are those of its position.
        let parameters = Parameters::from_rows(&stream, &[options])?;
        let counter = Tensor::from_slice(&stream, &[end as i32 - 1], [1])?;
        let mut token = self.step.tokens.slice_mut(0, row..row + 1)?;
        sampling::sample(&stream, &logits, &parameters, &counter, &mut token)?;
        let token = token.to_vec()?[0];
        let mut of_row = self.step.logits.slice_mut(0, row..row + 1)?;
        of_row.copy_from(&stream, &logits)?;
        self.step.parameters.set(&stream, row, options)?;
        for (numbers, value) in [(&mut self.step.positions, end), (&mut self.step.lengths, end + 1)] {
            numbers
                .slice_mut(0, row..row + 1)?
                .copy_from_slice(&stream, &[value as i32])?;
        }
        Ok(token)
    }

    /// Ends the sequence of a row: steps leave the row out.
    ///
    /// # Errors
    /// A row that there is not; those of the device.
    pub fn end(&mut self, row: usize) -> Result<()> {
        for numbers in [&mut self.step.positions, &mut self.step.lengths] {
            numbers
                .slice_mut(0, row..row + 1)?
                .copy_from_slice(&self.stream, &[-1])?;
        }
        Ok(())
    }

    /// Takes a step of all sequences, and gives the token that it chose for each row. Rows without a sequence give any token.
    ///
    /// # Errors
    /// Those of the device.
    pub fn step(&mut self) -> Result<Vec<i32>> {
        if self.graph.is_none() {
            let (model, caches, table) = (&self.model, &mut self.caches, &self.table);
            let (step, workspace) = (&mut self.step, &mut self.workspace);
            let graph = self.stream.capture(|s| {
                step.record(s, model, caches, table, workspace)
                    .map_err(|error| match error {
                        tirx_kernels::Error::Runtime(error) => error,
                        other => tirx_rt::Error::Shape(other.to_string()),
                    })
            })?;
            self.graph = Some(graph);
        }
        if let Some(graph) = &mut self.graph {
            graph.launch(&self.stream)?;
        }
        Ok(self.step.tokens.to_vec()?)
    }

    /// The logits of the last token of each row, `[rows, vocabulary]`.
    ///
    /// # Errors
    /// Those of the device.
    pub fn logits(&self) -> Result<Vec<bf16>> {
        Ok(self.step.logits.to_vec()?)
    }
}

impl Step {
    fn record(
        &mut self,
        stream: &Stream,
        model: &Model,
        caches: &mut [Cache],
        table: &Tensor<i32>,
        workspace: &mut Workspace,
    ) -> tirx_kernels::Result<()> {
        let places = Places {
            sequences: &self.sequences,
            positions: &self.positions,
            table,
            rows: table,
            lengths: &self.lengths,
            whole: false,
        };
        let (activations, logits) = (&mut self.activations, &mut self.logits);
        model.logits(
            stream,
            &self.tokens,
            &places,
            caches,
            activations,
            workspace,
            logits,
        )?;
        sampling::sample(
            stream,
            &*logits,
            &self.parameters,
            &self.positions,
            &mut self.tokens,
        )?;
        paged::advance(stream, &mut self.positions)?;
        paged::advance(stream, &mut self.lengths)
    }
}
