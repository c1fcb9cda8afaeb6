//! Which numbers describe a model?

use serde_json::Value;
use tirx_kernels::rope::{self, Pairs};

use crate::Result;

/// The numbers of a model, as its `config.json` has them.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Elements of a token between layers.
    pub hidden: usize,
    /// Elements of a token within the MLP.
    pub inner: usize,
    /// Layers.
    pub layers: usize,
    /// Heads of queries.
    pub heads: usize,
    /// Heads of keys and values.
    pub heads_of_k: usize,
    /// Elements of a head.
    pub head: usize,
    /// Tokens that there are.
    pub vocabulary: usize,
    /// The number that norms add to the mean of squares.
    pub eps: f32,
    /// The angle per position of each pair of a head's elements.
    pub frequencies: Vec<f32>,
    /// The elements of a head that turn together.
    pub pairs: Pairs,
    /// Whether the heads of queries and keys are normalized (Qwen 3).
    pub normalized_heads: bool,
    /// Whether the embedding is the matrix of logits, too.
    pub tied: bool,
    /// Tokens that end a text.
    pub ends: Vec<i32>,
}

/// The largest extent of a matrix: with it, no number of elements overflows.
const MAX_EXTENT: u64 = 1 << 24;

/// An extent that a file gives, as far as there are models with it.
pub(crate) fn extent(name: &str, found: u64) -> Result<usize> {
    match found {
        0..=MAX_EXTENT => Ok(found as usize),
        _ => Err(format!("{name} is {found}, above {MAX_EXTENT}").into()),
    }
}

impl Config {
    /// A model for tests, with every part of a large one.
    pub fn tiny() -> Config {
        Config {
            hidden: 128,
            inner: 192,
            layers: 2,
            heads: 4,
            heads_of_k: 2,
            head: 64,
            vocabulary: 203,
            eps: 1e-5,
            frequencies: rope::frequencies(10_000.0, 64),
            pairs: Pairs::Halves,
            normalized_heads: false,
            tied: false,
            ends: Vec::new(),
        }
    }

    /// The shape of Llama 3 with eight billion parameters.
    pub fn llama_8b() -> Config {
        Config {
            hidden: 4096,
            inner: 14336,
            layers: 32,
            heads: 32,
            heads_of_k: 8,
            head: 128,
            vocabulary: 128_256,
            frequencies: rope::frequencies(500_000.0, 128),
            ..Config::tiny()
        }
    }

    /// That of a `config.json`.
    ///
    /// # Errors
    /// A key that is missing, or a kind of model that is not supported.
    pub fn from_json(text: &str) -> Result<Config> {
        let json: Value = serde_json::from_str(text)?;
        let kind = json["model_type"].as_str().unwrap_or("none");
        if !["llama", "mistral", "qwen3"].contains(&kind) {
            return Err(format!("model_type is {kind:?}: llama, mistral and qwen3 are supported").into());
        }
        let optional = |key: &str| json[key].as_u64().map(|n| extent(key, n)).transpose();
        let number = |key: &str| -> Result<usize> {
            Ok(optional(key)?.ok_or_else(|| format!("there is no number {key:?}"))?)
        };
        let (hidden, heads) = (number("hidden_size")?, number("num_attention_heads")?);
        let head = optional("head_dim")?.unwrap_or(hidden / heads.max(1));
        // Version 5 of `transformers` writes one object for the base and the stretching.
        let rope = &json["rope_parameters"];
        let base = rope["rope_theta"]
            .as_f64()
            .or(json["rope_theta"].as_f64())
            .unwrap_or(10_000.0);
        let scaling = if rope.is_object() {
            rope
        } else {
            &json["rope_scaling"]
        };
        let ends = match &json["eos_token_id"] {
            Value::Array(all) => all.iter().filter_map(Value::as_i64).collect(),
            one => one.as_i64().into_iter().collect::<Vec<_>>(),
        };
        let config = Config {
            hidden,
            inner: number("intermediate_size")?,
            layers: number("num_hidden_layers")?,
            heads,
            heads_of_k: optional("num_key_value_heads")?.unwrap_or(heads),
            head,
            vocabulary: number("vocab_size")?,
            eps: json["rms_norm_eps"].as_f64().unwrap_or(1e-5) as f32,
            frequencies: stretched(rope::frequencies(base, head), scaling)?,
            pairs: Pairs::Halves,
            normalized_heads: kind == "qwen3",
            tied: json["tie_word_embeddings"].as_bool().unwrap_or(false),
            ends: ends.into_iter().map(|end| end as i32).collect(),
        };
        config.check()
    }

    /// Refuses more elements of all heads than a matrix has.
    pub(crate) fn check(self) -> Result<Config> {
        let heads = self.heads.max(self.heads_of_k) as u64;
        extent("the number of elements of all heads", heads * self.head as u64)?;
        Ok(self)
    }
}

/// Frequencies of a model with a longer context than it was trained with first. Llama 3.1: slow turns become slower, fast ones stay.
fn stretched(frequencies: Vec<f32>, scaling: &Value) -> Result<Vec<f32>> {
    let kind = scaling["rope_type"].as_str().or(scaling["type"].as_str());
    match kind {
        None | Some("default") => return Ok(frequencies),
        Some("llama3") => {}
        Some(other) => return Err(format!("rope_scaling of the type {other:?} is not supported").into()),
    }
    let number = |key: &str| {
        scaling[key]
            .as_f64()
            .ok_or_else(|| format!("rope_scaling has no number {key:?}"))
    };
    let (factor, low, high) = (
        number("factor")?,
        number("low_freq_factor")?,
        number("high_freq_factor")?,
    );
    let context = number("original_max_position_embeddings")?;
    if !(factor > 0.0 && high > low) {
        return Err(
            format!("rope_scaling has the factor {factor}, and frequencies from {low} to {high}").into(),
        );
    }
    let stretch = |frequency: f32| {
        let turns = context * f64::from(frequency) / std::f64::consts::TAU;
        let share = ((turns - low) / (high - low)).clamp(0.0, 1.0);
        (f64::from(frequency) * (share + (1.0 - share) / factor)) as f32
    };
    Ok(frequencies.into_iter().map(stretch).collect())
}
