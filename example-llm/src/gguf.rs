//! How does one file hold a whole model: its numbers, its weights in few bits, its tokens?
//!
//! GGUF has metadata by name, tensors by names of its own, and blocks of weights ([`tirx_kernels::quant`]). Matrices of queries and keys of Llama
//! have their rows in the order of neighboring pairs, so the rotary embedding turns neighbors.

use std::path::{Path, PathBuf};

use gguf_rs_lib::format::{GGUFTensorType, Metadata, MetadataValue};
use gguf_rs_lib::reader::open_gguf_file;
use gguf_rs_lib::tensor::TensorInfo;
use serde_json::{Value, json};
use tirx_kernels::quant::Format;
use tirx_kernels::rope::{self, Pairs};
use tirx_rt::bf16;

use crate::config::extent;
use crate::weights::{Elements, from_bf16, from_f16, from_f32, read_at};
use crate::{Config, Result, Source, Text};

/// A model in a GGUF file.
#[derive(Debug)]
pub struct Gguf {
    path: PathBuf,
    metadata: Metadata,
    tensors: Vec<TensorInfo>,
    /// The position of the first tensor in the file.
    begin: u64,
}

impl Gguf {
    /// The file's metadata and list of tensors.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn open(path: &Path) -> Result<Gguf> {
        let of_file = |e: gguf_rs_lib::GGUFError| format!("{}: {e}", path.display());
        let reader = open_gguf_file(path).map_err(of_file)?;
        Ok(Gguf {
            path: path.to_path_buf(),
            metadata: reader.metadata().clone(),
            tensors: reader.tensor_infos().to_vec(),
            begin: reader.tensor_data_offset(),
        })
    }

    fn value(&self, key: &str) -> Result<&MetadataValue> {
        let found = self.metadata.get(key);
        found.ok_or_else(|| format!("{} has no {key:?}", self.path.display()).into())
    }

    fn text_of(&self, key: &str) -> Result<&str> {
        let found = self.value(key)?.as_str();
        found.ok_or_else(|| format!("{key:?} is no text").into())
    }

    fn number(&self, key: &str) -> Result<usize> {
        let found = self.value(key)?.as_u64();
        found
            .ok_or_else(|| format!("{key:?} is no number").into())
            .map(|n| n as usize)
    }

    fn list(&self, key: &str) -> Result<impl Iterator<Item = &MetadataValue>> {
        match self.value(key)? {
            MetadataValue::Array(all) => Ok(all.iter()),
            _ => Err(format!("{key:?} is no list").into()),
        }
    }

    fn find(&self, name: &str) -> Option<&TensorInfo> {
        self.tensors.iter().find(|tensor| tensor.name() == name)
    }

    /// The numbers of the model.
    ///
    /// # Errors
    /// A kind of model that is not supported, or a number that is missing.
    pub fn config(&self) -> Result<Config> {
        let kind = self.text_of("general.architecture")?;
        let pairs = match kind {
            "llama" => Pairs::Interleaved,
            "qwen3" => Pairs::Halves,
            other => {
                return Err(
                    format!("general.architecture is {other:?}: llama and qwen3 are supported").into(),
                );
            }
        };
        let optional = |key: &str| {
            let key = format!("{kind}.{key}");
            let found = self.metadata.get(&key).and_then(MetadataValue::as_u64);
            found.map(|n| extent(&key, n)).transpose()
        };
        let number = |key: &str| -> Result<usize> {
            let missing = || format!("{} has no number {kind}.{key}", self.path.display());
            Ok(optional(key)?.ok_or_else(missing)?)
        };
        let real = |key: &str| self.metadata.get_f64(&format!("{kind}.{key}"));
        if let Ok(scaling) = self.text_of(&format!("{kind}.rope.scaling.type"))
            && scaling != "none"
        {
            return Err(format!("rope.scaling.type {scaling:?} is not supported").into());
        }
        let (hidden, heads) = (number("embedding_length")?, number("attention.head_count")?);
        let head = optional("attention.key_length")?.unwrap_or(hidden / heads.max(1));
        let mut frequencies = rope::frequencies(real("rope.freq_base").unwrap_or(10_000.0), head);
        if self.find("rope_freqs.weight").is_some() {
            // Llama 3.1: slow turns become slower.
            let factors = self.read("rope_freqs.weight", &[frequencies.len()])?;
            for (frequency, factor) in frequencies.iter_mut().zip(from_elements(factors)?) {
                *frequency /= factor.to_f32();
            }
        }
        let ends = ["tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"];
        let config = Config {
            hidden,
            inner: number("feed_forward_length")?,
            layers: number("block_count")?,
            heads,
            heads_of_k: optional("attention.head_count_kv")?.unwrap_or(heads),
            head,
            vocabulary: self.list("tokenizer.ggml.tokens")?.count(),
            eps: real("attention.layer_norm_rms_epsilon").unwrap_or(1e-5) as f32,
            frequencies,
            pairs,
            normalized_heads: kind == "qwen3",
            tied: self.find("output.weight").is_none(),
            ends: ends
                .iter()
                .filter_map(|key| self.number(key).ok())
                .map(|end| end as i32)
                .collect(),
        };
        config.check()
    }

    /// The tokens of the model.
    ///
    /// # Errors
    /// Another tokenizer than a byte-pair encoding of bytes, or a rule for words that is not known.
    pub fn text(&self) -> Result<Text> {
        let kind = self.text_of("tokenizer.ggml.model")?;
        if kind != "gpt2" {
            return Err(format!(
                "tokenizer.ggml.model is {kind:?}, and `gpt2` is supported: pass numbers of tokens, or the model's folder with tokenizer.json"
            )
            .into());
        }
        let rule = self.text_of("tokenizer.ggml.pre").unwrap_or("default");
        let digits = match rule {
            "llama-bpe" | "llama3" | "llama-v3" => r"\p{N}{1,3}",
            "qwen2" => r"\p{N}",
            other => return Err(format!("tokenizer.ggml.pre {other:?} is not supported").into()),
        };
        let words = format!(
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
        );
        let texts = |key: &str| -> Result<Vec<&str>> {
            Ok(self.list(key)?.filter_map(MetadataValue::as_str).collect())
        };
        let tokens = texts("tokenizer.ggml.tokens")?;
        // The types of tokens: 3 controls, 4 is defined by a user. Both stand for themselves in a text.
        let types = self.list("tokenizer.ggml.token_type")?.map(MetadataValue::as_i64);
        let added: Vec<Value> = (tokens.iter().zip(types).enumerate())
            .filter(|(_, (_, kind))| matches!(kind, Some(3 | 4)))
            .map(|(id, (token, _))| {
                json!({"id": id, "content": token, "special": true, "single_word": false, "lstrip": false, "rstrip": false,
                    "normalized": false})
            })
            .collect();
        let vocabulary: serde_json::Map<String, Value> = tokens
            .iter()
            .enumerate()
            .map(|(id, token)| (token.to_string(), id.into()))
            .collect();
        let begin = match self.metadata.get_bool("tokenizer.ggml.add_bos_token") {
            Some(true) => Some(self.number("tokenizer.ggml.bos_token_id")?),
            _ => None,
        };
        let bytes =
            json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false});
        let tokenizer = json!({
            "version": "1.0", "truncation": null, "padding": null, "added_tokens": added, "normalizer": null,
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
                {"type": "Split", "pattern": {"Regex": words}, "behavior": "Isolated", "invert": false}, bytes]},
            "post_processor": null, "decoder": bytes,
            "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null, "end_of_word_suffix": null,
                "fuse_unk": false, "byte_fallback": false, "ignore_merges": rule != "qwen2", "vocab": vocabulary,
                "merges": texts("tokenizer.ggml.merges")?},
        });
        Text::from_json(&tokenizer.to_string(), begin.map(|id| id as i32))
    }

    /// A tensor with these extents, the last one contiguous.
    fn read(&self, name: &str, extents: &[usize]) -> Result<Elements> {
        let tensor = self
            .find(name)
            .ok_or_else(|| format!("the file has no tensor {name}"))?;
        let found: Vec<usize> = tensor.shape().dims().iter().rev().map(|n| *n as usize).collect();
        if found != extents {
            return Err(format!("tensor {name} has the shape {found:?}, not {extents:?}").into());
        }
        let bytes = usize::try_from(tensor.checked_expected_data_size()?)?;
        let read = || read_at(&self.path, self.begin.saturating_add(tensor.data_offset()), bytes);
        Ok(match tensor.tensor_type() {
            GGUFTensorType::F32 => Elements::Bf16(from_f32(&read()?)),
            GGUFTensorType::F16 => Elements::Bf16(from_f16(&read()?)),
            GGUFTensorType::BF16 => Elements::Bf16(from_bf16(&read()?)),
            GGUFTensorType::Q8_0 => Elements::Blocks(Format::Q8_0, read()?),
            GGUFTensorType::Q4_K => Elements::Blocks(Format::Q4_K, read()?),
            GGUFTensorType::Q6_K => Elements::Blocks(Format::Q6_K, read()?),
            other => {
                return Err(format!(
                    "tensor {name} is of {other:?}: F32, F16, BF16, Q8_0, Q4_K and Q6_K are supported"
                )
                .into());
            }
        })
    }
}

fn from_elements(elements: Elements) -> Result<Vec<bf16>> {
    match elements {
        Elements::Bf16(values) => Ok(values),
        Elements::Blocks(format, _) => Err(format!("a vector has numbers, not {format:?}").into()),
    }
}

/// GGUF's name of a tensor of `transformers`.
fn name_in_file(name: &str) -> Result<String> {
    let table = [
        ("input_layernorm", "attn_norm"),
        ("self_attn.q_proj", "attn_q"),
        ("self_attn.k_proj", "attn_k"),
        ("self_attn.v_proj", "attn_v"),
        ("self_attn.o_proj", "attn_output"),
        ("self_attn.q_norm", "attn_q_norm"),
        ("self_attn.k_norm", "attn_k_norm"),
        ("post_attention_layernorm", "ffn_norm"),
        ("mlp.gate_proj", "ffn_gate"),
        ("mlp.up_proj", "ffn_up"),
        ("mlp.down_proj", "ffn_down"),
        ("model.embed_tokens", "token_embd"),
        ("model.norm", "output_norm"),
        ("lm_head", "output"),
    ];
    let unknown = || format!("GGUF has no name for tensor {name}");
    let plain = name.strip_suffix(".weight").ok_or_else(unknown)?;
    let (block, part) = match plain
        .strip_prefix("model.layers.")
        .and_then(|rest| rest.split_once('.'))
    {
        Some((layer, part)) => (format!("blk.{layer}."), part),
        None => (String::new(), plain),
    };
    let (_, part) = table
        .iter()
        .find(|(theirs, _)| *theirs == part)
        .ok_or_else(unknown)?;
    Ok(format!("{block}{part}.weight"))
}

impl Source for Gguf {
    fn tensor(&self, name: &str, elements: usize) -> Result<Vec<bf16>> {
        from_elements(self.read(&name_in_file(name)?, &[elements])?)
    }

    fn matrix(&self, name: &str, rows: usize, columns: usize) -> Result<Elements> {
        self.read(&name_in_file(name)?, &[rows, columns])
    }
}
