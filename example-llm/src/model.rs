//! How does a model turn tokens into logits?

use tirx_kernels::norm::{self, Options};
use tirx_kernels::paged::{self, Heads, Norms, Rope, Workspace};
use tirx_kernels::{activation, attention, embedding, rope};
use tirx_rt::{Stream, Tensor, bf16};

use crate::matrix::{Matrix, multiply_numbers};
use crate::{Config, Result, Source};

/// A model's weights on a device.
#[derive(Debug)]
pub struct Model {
    /// The numbers of the model.
    pub config: Config,
    embedding: Tensor<bf16>,
    layers: Vec<Layer>,
    norm: Tensor<bf16>,
    /// The matrix of logits, unless it is the embedding.
    head: Option<Matrix>,
    frequencies: Tensor<f32>,
}

/// Matrices with the same input are one matrix.
#[derive(Debug)]
struct Layer {
    before_attention: Tensor<bf16>,
    queries_keys_values: Matrix,
    /// The norms of heads of queries and of keys.
    of_heads: Option<[Tensor<bf16>; 2]>,
    after_attention: Matrix,
    before_mlp: Tensor<bf16>,
    gate_and_up: Matrix,
    down: Matrix,
}

/// The sequences that tokens belong to.
pub(crate) struct Places<'a> {
    /// The row of the page table of each token.
    pub(crate) sequences: &'a Tensor<i32>,
    /// The position of each token in its sequence.
    pub(crate) positions: &'a Tensor<i32>,
    /// All pages of all sequences.
    pub(crate) table: &'a Tensor<i32>,
    /// The rows of the page table of the sequences of this call, which have equal numbers of tokens.
    pub(crate) rows: &'a Tensor<i32>,
    /// The lengths of these sequences, with their tokens of this call.
    pub(crate) lengths: &'a Tensor<i32>,
    /// Whether the tokens are one sequence from its begin, so that they see no other keys than their own.
    pub(crate) whole: bool,
}

/// Keys and values of a layer: `[pages, rows of a page, heads of K, head]`.
#[derive(Debug)]
pub(crate) struct Cache {
    pub(crate) k: Tensor<bf16>,
    pub(crate) v: Tensor<bf16>,
}

/// The results between the layers, for a fixed number of tokens.
#[derive(Debug)]
pub(crate) struct Activations {
    residual: Tensor<bf16>,
    normalized: Tensor<bf16>,
    queries_keys_values: Tensor<bf16>,
    queries: Tensor<bf16>,
    keys: Tensor<bf16>,
    attended: Tensor<bf16>,
    gate_and_up: Tensor<bf16>,
    inner: Tensor<bf16>,
    output: Tensor<bf16>,
    /// The numbers of a matrix in few bits: many tokens multiply by them.
    dense: Tensor<bf16>,
}

impl Activations {
    pub(crate) fn new(stream: &Stream, model: &Model, tokens: usize) -> Result<Activations> {
        let config = &model.config;
        let zeros = |columns: usize| Tensor::zeros(stream, [tokens, columns]);
        let heads = |heads: usize| Tensor::zeros(stream, [tokens, heads, config.head]);
        Ok(Activations {
            residual: zeros(config.hidden)?,
            normalized: zeros(config.hidden)?,
            queries_keys_values: heads(config.heads + 2 * config.heads_of_k)?,
            queries: heads(config.heads)?,
            keys: heads(config.heads_of_k)?,
            attended: heads(config.heads)?,
            gate_and_up: zeros(2 * config.inner)?,
            inner: zeros(config.inner)?,
            output: zeros(config.hidden)?,
            dense: Tensor::zeros(stream, [model.dense_elements(tokens)])?,
        })
    }
}

impl Model {
    /// A model with these numbers and weights.
    ///
    /// # Errors
    /// Those of the source and of the device.
    pub fn new(stream: &Stream, config: Config, source: &dyn Source) -> Result<Model> {
        let matrix = |names: &[(String, usize)], columns: usize| Matrix::load(stream, source, names, columns);
        let vector = |name: String, elements: usize| -> Result<Tensor<bf16>> {
            let values = source.tensor(&format!("{name}.weight"), elements)?;
            Ok(Tensor::from_slice(stream, &values, [elements])?)
        };
        let Config {
            hidden, inner, head, ..
        } = config;
        let (rows, rows_of_k) = (config.heads * head, config.heads_of_k * head);
        let layer = |i: usize| -> Result<Layer> {
            let of = |name: &str| format!("model.layers.{i}.{name}");
            Ok(Layer {
                before_attention: vector(of("input_layernorm"), hidden)?,
                queries_keys_values: matrix(
                    &[
                        (of("self_attn.q_proj"), rows),
                        (of("self_attn.k_proj"), rows_of_k),
                        (of("self_attn.v_proj"), rows_of_k),
                    ],
                    hidden,
                )?,
                of_heads: match config.normalized_heads {
                    true => Some([
                        vector(of("self_attn.q_norm"), head)?,
                        vector(of("self_attn.k_norm"), head)?,
                    ]),
                    false => None,
                },
                after_attention: matrix(&[(of("self_attn.o_proj"), hidden)], rows)?,
                before_mlp: vector(of("post_attention_layernorm"), hidden)?,
                gate_and_up: matrix(
                    &[(of("mlp.gate_proj"), inner), (of("mlp.up_proj"), inner)],
                    hidden,
                )?,
                down: matrix(&[(of("mlp.down_proj"), hidden)], inner)?,
            })
        };
        Ok(Model {
            embedding: matrix(&[("model.embed_tokens".into(), config.vocabulary)], hidden)?
                .into_numbers(stream)?,
            layers: (0..config.layers).map(layer).collect::<Result<_>>()?,
            norm: vector("model.norm".into(), hidden)?,
            head: match config.tied {
                true => None,
                false => Some(matrix(&[("lm_head".into(), config.vocabulary)], hidden)?),
            },
            frequencies: Tensor::from_slice(stream, &config.frequencies, [config.frequencies.len()])?,
            config,
        })
    }

    fn matrices(&self) -> impl Iterator<Item = &Matrix> {
        let of_layers = self.layers.iter().flat_map(|layer| {
            [
                &layer.queries_keys_values,
                &layer.after_attention,
                &layer.gate_and_up,
                &layer.down,
            ]
        });
        of_layers.chain(&self.head)
    }

    /// The elements of the largest matrix in few bits, if this number of tokens multiplies by numbers.
    fn dense_elements(&self, tokens: usize) -> usize {
        self.matrices()
            .map(|matrix| matrix.dense_elements(tokens))
            .max()
            .unwrap_or(0)
    }

    /// The bytes of the weights that a step of one token reads.
    pub fn bytes(&self) -> usize {
        let embedding = match self.head {
            Some(_) => 0,
            None => 2 * self.embedding.len(),
        };
        self.matrices().map(Matrix::bytes).sum::<usize>() + embedding
    }

    /// The logits of the last token of each sequence, `[sequences, vocabulary]`. Keys and values of all tokens go to the caches. It
    /// allocates nothing and can be captured.
    #[expect(
        clippy::too_many_arguments,
        reason = "the buffers of a step belong to different owners"
    )]
    pub(crate) fn logits(
        &self,
        stream: &Stream,
        tokens: &Tensor<i32>,
        places: &Places<'_>,
        caches: &mut [Cache],
        a: &mut Activations,
        workspace: &mut Workspace,
        logits: &mut Tensor<bf16>,
    ) -> tirx_kernels::Result<()> {
        let Config { heads, head, .. } = self.config;
        let heads_of_k = self.config.heads_of_k;
        let count = tokens.len();
        let sequences = places.lengths.len();
        let options = Options::eps(self.config.eps);
        embedding::gather(stream, &self.embedding, tokens, &mut a.residual)?;
        for (index, (layer, cache)) in self.layers.iter().zip(caches).enumerate() {
            let (x, r) = (&mut a.normalized, &mut a.residual);
            match index {
                0 => norm::rms_norm(stream, &*r, &layer.before_attention, x, options)?,
                _ => norm::add_rms_norm(stream, &a.output, r, &layer.before_attention, x, options)?,
            }
            let all = (heads + 2 * heads_of_k) * head;
            let mut flat = a.queries_keys_values.reshape_mut([count, all])?;
            layer
                .queries_keys_values
                .multiply(stream, x, &mut flat, &mut a.dense)?;
            let (mut q, mut rest) = a.queries_keys_values.split_at_mut(1, heads)?;
            let (mut k, v) = rest.split_at_mut(1, heads_of_k)?;
            let pairs = self.config.pairs;
            let rope = Rope {
                frequencies: &self.frequencies,
                pairs,
            };
            if places.whole {
                // The tokens see no other keys than their own.
                let (queries, keys) = match &layer.of_heads {
                    Some([of_q, of_k]) => {
                        norm::rms_norm(stream, &q, of_q, &mut a.queries, options)?;
                        norm::rms_norm(stream, &k, of_k, &mut a.keys, options)?;
                        (&mut a.queries, &mut a.keys)
                    }
                    None => (&mut *q, &mut *k),
                };
                rope::apply(stream, queries, places.positions, &self.frequencies, pairs)?;
                rope::apply(stream, keys, places.positions, &self.frequencies, pairs)?;
                paged::append(
                    stream,
                    keys,
                    &v,
                    &mut cache.k,
                    &mut cache.v,
                    places.table,
                    places.sequences,
                    places.positions,
                    None,
                )?;
                // `[1, heads, tokens, head]`.
                let (q, k, v) = (queries.unsqueeze(0)?, keys.unsqueeze(0)?, v.unsqueeze(0)?);
                let mut attended = a.attended.unsqueeze_mut(0)?;
                let mut attended = attended.permute_mut(&[0, 2, 1, 3])?;
                attention::forward(
                    stream,
                    &q.permute(&[0, 2, 1, 3])?,
                    &k.permute(&[0, 2, 1, 3])?,
                    &v.permute(&[0, 2, 1, 3])?,
                    &mut attended,
                    attention::Options::causal(),
                )?;
            } else {
                let norms = layer.of_heads.as_ref().map(|[of_q, of_k]| Norms {
                    of_q,
                    of_k,
                    eps: self.config.eps,
                });
                paged::append_queries(
                    stream,
                    &q,
                    &k,
                    &v,
                    &mut a.queries,
                    &mut cache.k,
                    &mut cache.v,
                    places.table,
                    places.sequences,
                    places.positions,
                    Heads {
                        rope: Some(rope),
                        norms,
                        ..Heads::default()
                    },
                )?;
                // `[sequences, queries, heads, head]`: either each sequence has one token, or there is one sequence.
                let by_sequence = if sequences == count { 1 } else { 0 };
                let queries = a.queries.unsqueeze(by_sequence)?;
                let mut attended = a.attended.unsqueeze_mut(by_sequence)?;
                paged::decode(
                    stream,
                    &queries,
                    &cache.k,
                    &cache.v,
                    places.rows,
                    places.lengths,
                    &mut attended,
                    workspace,
                    paged::Options::default(),
                )?;
            }
            let flat = a.attended.reshape([count, heads * head])?;
            layer
                .after_attention
                .multiply(stream, &flat, &mut a.output, &mut a.dense)?;
            norm::add_rms_norm(stream, &a.output, r, &layer.before_mlp, x, options)?;
            layer
                .gate_and_up
                .multiply(stream, x, &mut a.gate_and_up, &mut a.dense)?;
            let inner = self.config.inner;
            let (gate, up) = (
                a.gate_and_up.slice(1, 0..inner)?,
                a.gate_and_up.slice(1, inner..2 * inner)?,
            );
            activation::swiglu(stream, &gate, &up, &mut a.inner)?;
            layer
                .down
                .multiply(stream, &a.inner, &mut a.output, &mut a.dense)?;
        }
        norm::add_rms_norm(
            stream,
            &a.output,
            &mut a.residual,
            &self.norm,
            &mut a.normalized,
            options,
        )?;
        let last = match sequences == count {
            true => a.normalized.slice(0, 0..count)?,
            false => a.normalized.slice(0, count - 1..count)?,
        };
        match &self.head {
            Some(head) => head.multiply(stream, &last, logits, &mut a.dense),
            None => multiply_numbers(stream, &last, &self.embedding, logits),
        }
    }
}
