//! The tiny model on the simulator: its logits against plain Rust in float64, and its tokens.

use std::collections::HashMap;
use std::path::Path;

use example_llm::{Config, Engine, Files, Model, Random, Source};
use tirx_kernels::sampling::Options;
use tirx_rt::Device;

type Result<T> = example_llm::Result<T>;

/// The model in float64, token by token, without caches.
struct Reference<'a> {
    config: &'a Config,
    weights: HashMap<String, Vec<f64>>,
}

fn norm(x: &[f64], weight: &[f64], eps: f64) -> Vec<f64> {
    let squares = x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64;
    x.iter()
        .zip(weight)
        .map(|(x, w)| x / (squares + eps).sqrt() * w)
        .collect()
}

fn product(matrix: &[f64], x: &[f64]) -> Vec<f64> {
    matrix
        .chunks(x.len())
        .map(|row| row.iter().zip(x).map(|(a, b)| a * b).sum())
        .collect()
}

impl<'a> Reference<'a> {
    fn new(config: &'a Config, source: &dyn Source) -> Result<Reference<'a>> {
        let (hidden, inner, head) = (config.hidden, config.inner, config.head);
        let mut sizes = vec![
            (
                "model.embed_tokens.weight".to_string(),
                config.vocabulary * hidden,
            ),
            ("model.norm.weight".to_string(), hidden),
        ];
        if !config.tied {
            sizes.push(("lm_head.weight".to_string(), config.vocabulary * hidden));
        }
        for i in 0..config.layers {
            let mut of = vec![
                ("input_layernorm", hidden),
                ("self_attn.q_proj", config.heads * head * hidden),
                ("self_attn.k_proj", config.heads_of_k * head * hidden),
                ("self_attn.v_proj", config.heads_of_k * head * hidden),
                ("self_attn.o_proj", hidden * config.heads * head),
                ("post_attention_layernorm", hidden),
                ("mlp.gate_proj", inner * hidden),
                ("mlp.up_proj", inner * hidden),
                ("mlp.down_proj", hidden * inner),
            ];
            if config.normalized_heads {
                of.extend([("self_attn.q_norm", head), ("self_attn.k_norm", head)]);
            }
            sizes.extend(
                of.iter()
                    .map(|(name, size)| (format!("model.layers.{i}.{name}.weight"), *size)),
            );
        }
        let mut weights = HashMap::new();
        for (name, size) in sizes {
            let values = source.tensor(&name, size)?.iter().map(|w| w.to_f64()).collect();
            weights.insert(name, values);
        }
        Ok(Reference { config, weights })
    }

    fn weight(&self, name: &str) -> &[f64] {
        &self.weights[&format!("{name}.weight")]
    }

    /// The logits of the last token.
    fn logits(&self, tokens: &[i32]) -> Vec<f64> {
        let Config {
            hidden,
            heads,
            heads_of_k,
            head,
            ..
        } = *self.config;
        let eps = f64::from(self.config.eps);
        let embedding = self.weight("model.embed_tokens");
        let row = |t: i32| embedding[t as usize * hidden..(t as usize + 1) * hidden].to_vec();
        let mut states: Vec<Vec<f64>> = tokens.iter().map(|t| row(*t)).collect();
        for i in 0..self.config.layers {
            let of = |name: &str| self.weight(&format!("model.layers.{i}.{name}"));
            let turned = |name: &str, norm_name: &str, x: &[f64], position: usize| -> Vec<Vec<f64>> {
                let all = product(of(name), x);
                all.chunks(head)
                    .map(|h| {
                        let h = match self.config.normalized_heads {
                            true => norm(h, of(norm_name), eps),
                            false => h.to_vec(),
                        };
                        let pairs = head / 2;
                        (0..head)
                            .map(|d| {
                                let angle = position as f64 * f64::from(self.config.frequencies[d % pairs]);
                                let other = if d < pairs { -h[d + pairs] } else { h[d - pairs] };
                                h[d] * angle.cos() + other * angle.sin()
                            })
                            .collect()
                    })
                    .collect()
            };
            let mut keys = Vec::new();
            let mut values: Vec<Vec<f64>> = Vec::new();
            let mut next = Vec::new();
            for (position, state) in states.iter().enumerate() {
                let x = norm(state, of("input_layernorm"), eps);
                let q = turned("self_attn.q_proj", "self_attn.q_norm", &x, position);
                keys.push(turned("self_attn.k_proj", "self_attn.k_norm", &x, position));
                values.push(product(of("self_attn.v_proj"), &x));
                let mut attended = Vec::new();
                for (h, q) in q.iter().enumerate() {
                    let hk = h / (heads / heads_of_k);
                    let scores: Vec<f64> = keys
                        .iter()
                        .map(|k| q.iter().zip(&k[hk]).map(|(a, b)| a * b).sum::<f64>() / (head as f64).sqrt())
                        .collect();
                    let most = scores.iter().fold(f64::MIN, |m, s| m.max(*s));
                    let total: f64 = scores.iter().map(|s| (s - most).exp()).sum();
                    attended.extend((0..head).map(|d| {
                        let parts = scores.iter().zip(&values);
                        parts
                            .map(|(s, v)| (s - most).exp() / total * v[hk * head + d])
                            .sum::<f64>()
                    }));
                }
                let mut state = state.clone();
                for (s, o) in state.iter_mut().zip(product(of("self_attn.o_proj"), &attended)) {
                    *s += o;
                }
                let x = norm(&state, of("post_attention_layernorm"), eps);
                let (gate, up) = (product(of("mlp.gate_proj"), &x), product(of("mlp.up_proj"), &x));
                let inner: Vec<f64> = gate
                    .iter()
                    .zip(&up)
                    .map(|(g, u)| g / (1.0 + (-g).exp()) * u)
                    .collect();
                for (s, o) in state.iter_mut().zip(product(of("mlp.down_proj"), &inner)) {
                    *s += o;
                }
                next.push(state);
            }
            states = next;
        }
        let last = norm(&states[states.len() - 1], self.weight("model.norm"), eps);
        let head = if self.config.tied {
            "model.embed_tokens"
        } else {
            "lm_head"
        };
        product(self.weight(head), &last)
    }
}

/// The device of the tests: the simulator, or with `TIRX_TEST_DEVICE=cuda` the first GPU.
fn device() -> Device {
    match std::env::var("TIRX_TEST_DEVICE").as_deref() {
        Ok("cuda") => Device::cuda(0).expect("a GPU"),
        _ => Device::new_simulator(),
    }
}

fn assert_close(found: &[f64], exact: &[f64]) {
    let size = (exact.iter().map(|x| x * x).sum::<f64>() / exact.len() as f64).sqrt();
    for (i, (found, exact)) in found.iter().zip(exact).enumerate() {
        assert!(
            (found - exact).abs() < 0.06 * size,
            "logit {i}: {found}, not {exact}; their size is {size}"
        );
    }
}

/// Prompts of different lengths, then steps of both sequences: the logits of each step are those of the reference.
fn check(config: Config) {
    let stream = device().new_stream().unwrap();
    let source = Random {
        seed: 7,
        hidden: config.hidden,
    };
    let reference = Reference::new(&config, &source).unwrap();
    let model = Model::new(&stream, config.clone(), &source).unwrap();
    let mut engine = Engine::new(&stream, model, 2, 40).unwrap();
    let mut sequences = [vec![5, 17, 100, 3, 3, 202], vec![9]];
    for (row, sequence) in sequences.iter_mut().enumerate() {
        let token = engine.begin(row, &sequence.clone(), Options::greedy()).unwrap();
        let exact = reference.logits(sequence);
        let most = exact.iter().fold(f64::MIN, |m, x| m.max(*x));
        let size = (exact.iter().map(|x| x * x).sum::<f64>() / exact.len() as f64).sqrt();
        assert!(
            exact[token as usize] > most - 0.12 * size,
            "token {token} is not the most likely one"
        );
        let logits: Vec<f64> = engine.logits().unwrap().iter().map(|x| x.to_f64()).collect();
        assert_close(&logits[row * config.vocabulary..][..config.vocabulary], &exact);
        sequence.push(token);
    }
    for _ in 0..2 {
        let tokens = engine.step().unwrap();
        let logits: Vec<f64> = engine.logits().unwrap().iter().map(|x| x.to_f64()).collect();
        for (row, sequence) in sequences.iter_mut().enumerate() {
            let found = &logits[row * config.vocabulary..(row + 1) * config.vocabulary];
            assert_close(found, &reference.logits(sequence));
            let most = found.iter().fold(f64::MIN, |m, x| m.max(*x));
            assert_eq!(found[tokens[row] as usize], most);
            sequence.push(tokens[row]);
        }
    }
    // Another sequence takes the place of the first; the second goes on.
    let again = engine
        .begin(0, &[1, 2], Options::temperature(0.8).top_k(20).seed(3))
        .unwrap();
    engine.step().unwrap();
    let logits: Vec<f64> = engine.logits().unwrap().iter().map(|x| x.to_f64()).collect();
    assert_close(&logits[..config.vocabulary], &reference.logits(&[1, 2, again]));
    assert_close(&logits[config.vocabulary..], &reference.logits(&sequences[1]));
    engine.end(1).unwrap();
    engine.step().unwrap();
}

#[test]
fn logits_of_llama_agree_with_float64() {
    check(Config::tiny());
}

#[test]
fn logits_of_qwen_agree_with_float64() {
    check(Config {
        normalized_heads: true,
        tied: true,
        heads_of_k: 1,
        ..Config::tiny()
    });
}

#[test]
fn wrong_prompts_are_refused() {
    let stream = device().new_stream().unwrap();
    let config = Config::tiny();
    let source = Random {
        seed: 7,
        hidden: config.hidden,
    };
    let model = Model::new(&stream, config, &source).unwrap();
    let mut engine = Engine::new(&stream, model, 1, 10).unwrap();
    let mut message = |row, prompt: &[i32]| {
        engine
            .begin(row, prompt, Options::greedy())
            .unwrap_err()
            .to_string()
    };
    assert_eq!(message(0, &[]), "a prompt has 1 to 63 tokens, not 0");
    assert_eq!(message(0, &[1; 64]), "a prompt has 1 to 63 tokens, not 64");
    assert_eq!(message(1, &[1]), "there are 1 rows, no row 1");
    assert_eq!(message(0, &[1, 203]), "there are 203 tokens, no token 203");
}

#[test]
fn files_and_numbers_of_a_model_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let header = r#"{"__metadata__":{},"a.weight":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b.weight":{"dtype":"BF16","shape":[1],"data_offsets":[8,10]}}"#;
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.bytes());
    bytes.extend(
        1.5f32
            .to_le_bytes()
            .iter()
            .chain(&(-2f32).to_le_bytes())
            .chain(&0x3f80u16.to_le_bytes()),
    );
    let path = folder.path().join("model.safetensors");
    std::fs::write(&path, &bytes).unwrap();
    let files = Files::in_folder(folder.path()).unwrap();
    let values = |name: &str, elements| {
        files
            .tensor(name, elements)
            .map(|t| t.iter().map(|x| x.to_f32()).collect::<Vec<_>>())
    };
    assert_eq!(values("a.weight", 2).unwrap(), [1.5, -2.0]);
    assert_eq!(values("b.weight", 1).unwrap(), [1.0]);
    assert_eq!(
        values("b.weight", 2).unwrap_err().to_string(),
        "tensor b.weight has 1 elements, not 2"
    );
    assert_eq!(
        values("c", 1).unwrap_err().to_string(),
        "the files have no tensor c"
    );
    std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let error = Files::in_folder(folder.path()).unwrap_err().to_string();
    assert!(error.ends_with("tensor b.weight ends at byte 10 of 9"), "{error}");
    for length in [100, u64::MAX] {
        let short = [&length.to_le_bytes()[..], b"{}"].concat();
        std::fs::write(&path, short).unwrap();
        let error = Files::in_folder(folder.path()).unwrap_err().to_string();
        assert!(
            error.contains("its header ends at byte 1") && error.ends_with("and the file has 10"),
            "{error}"
        );
    }

    let json = r#"{"model_type":"llama","hidden_size":64,"num_attention_heads":4,"num_key_value_heads":2,"intermediate_size":96,
        "num_hidden_layers":3,"vocab_size":11,"rms_norm_eps":1e-6,"rope_theta":500000.0,"eos_token_id":[7,8],
        "rope_scaling":{"rope_type":"llama3","factor":8.0,"low_freq_factor":1.0,"high_freq_factor":4.0,"original_max_position_embeddings":8192}}"#;
    let config = Config::from_json(json).unwrap();
    assert_eq!((config.head, config.layers, config.ends), (16, 3, vec![7, 8]));
    let plain = tirx_kernels::rope::frequencies(500_000.0, 16);
    assert_eq!(config.frequencies[0], plain[0]);
    assert_eq!(config.frequencies[7], (f64::from(plain[7]) / 8.0) as f32);
    let refusal = |json: &str| Config::from_json(json).unwrap_err().to_string();
    let error = refusal(r#"{"model_type":"gpt2"}"#);
    assert!(error.contains("gpt2"), "{error}");
    for (number, by, message) in [
        (
            r#""hidden_size":64"#,
            r#""hidden_size":4611686018427387904"#,
            "hidden_size is 4611686018427387904, above 16777216",
        ),
        (
            r#""num_attention_heads":4"#,
            r#""num_attention_heads":262144,"head_dim":1024"#,
            "the number of elements of all heads is 268435456, above 16777216",
        ),
        (
            r#""vocab_size":11"#,
            r#""vocab_size":"11""#,
            "there is no number \"vocab_size\"",
        ),
        (
            r#""factor":8.0"#,
            r#""factor":0"#,
            "rope_scaling has the factor 0, and frequencies from 1 to 4",
        ),
    ] {
        assert_eq!(refusal(&json.replace(number, by)), message);
    }
}

#[test]
fn errors_of_the_command_line_name_their_cause() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().to_str().unwrap();
    let error = |options: &[&str]| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_example-llm"))
            .args(options)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let found = error(&[]);
    assert!(
        found.contains("\n  --model PATH        a folder with config.json"),
        "{found}"
    );
    let found = error(&["--random", "tiny", "--ids", "1,x"]);
    assert_eq!(found, "error: --ids \"x\": invalid digit found in string\n");
    let found = error(&["--model", folder]);
    assert!(found.contains("config.json: "), "{found}");
    let found = error(&["--random", "tiny", "--tokens", "18446744073709551615"]);
    assert!(found.ends_with("is too large\n"), "{found}");
}

/// A GGUF file of random blocks: what its parts stand for, in float64, under the names of `transformers`.
mod gguf {
    use super::*;
    use example_llm::{Elements, Gguf};
    use gguf_rs_lib::builder::GGUFBuilder;
    use gguf_rs_lib::format::{GGUFTensorType, GGUFValueType, MetadataArray, MetadataValue};
    use tirx_rt::f16;

    /// Random bytes of blocks whose factors are small float16 numbers.
    fn blocks(kind: GGUFTensorType, count: usize, state: &mut u64) -> Vec<u8> {
        let mut byte = || {
            *state ^= *state << 13;
            *state ^= *state >> 7;
            *state ^= *state << 17;
            (*state >> 32) as u8
        };
        let (size, factors): (usize, &[usize]) = match kind {
            GGUFTensorType::Q8_0 => (34, &[0]),
            GGUFTensorType::Q4_K => (144, &[0, 2]),
            _ => (210, &[208]),
        };
        let mut all = Vec::new();
        for _ in 0..count {
            let mut block: Vec<u8> = (0..size).map(|_| byte()).collect();
            for at in factors {
                let factor = match kind {
                    GGUFTensorType::Q8_0 => 0.001,
                    GGUFTensorType::Q4_K => 0.0004,
                    _ => 0.00005,
                };
                block[*at..at + 2].copy_from_slice(&f16::from_f64(factor).to_le_bytes());
            }
            all.extend(block);
        }
        all
    }

    /// The numbers of blocks, from the description of the format.
    fn numbers(kind: GGUFTensorType, bytes: &[u8]) -> Vec<f64> {
        let half = |b: &[u8]| f64::from(f16::from_le_bytes([b[0], b[1]]).to_f32());
        let mut all = Vec::new();
        match kind {
            GGUFTensorType::Q8_0 => {
                for block in bytes.chunks(34) {
                    all.extend(block[2..].iter().map(|b| half(block) * f64::from(*b as i8)));
                }
            }
            GGUFTensorType::Q4_K => {
                for block in bytes.chunks(144) {
                    let (d, least, s, q) = (half(block), half(&block[2..]), &block[4..16], &block[16..]);
                    for part in 0..8 {
                        let (scale, minimum) = match part {
                            0..4 => (s[part] & 63, s[part + 4] & 63),
                            _ => (
                                (s[part + 4] & 15) | (s[part - 4] >> 6 << 4),
                                (s[part + 4] >> 4) | (s[part] >> 6 << 4),
                            ),
                        };
                        for e in 0..32 {
                            let nibble = (q[part / 2 * 32 + e] >> (part % 2 * 4)) & 15;
                            all.push(d * f64::from(scale) * f64::from(nibble) - least * f64::from(minimum));
                        }
                    }
                }
            }
            _ => {
                for block in bytes.chunks(210) {
                    for e in 0..256 {
                        let (side, quarter, l) = (e / 128, e / 32 % 4, e % 32);
                        let low = (block[side * 64 + quarter % 2 * 32 + l] >> (quarter / 2 * 4)) & 15;
                        let high = (block[128 + side * 32 + l] >> (quarter * 2)) & 3;
                        let scale = block[192 + side * 8 + quarter * 2 + l / 16] as i8;
                        let value = f64::from(low | (high << 4)) - 32.0;
                        all.push(half(&block[208..]) * f64::from(scale) * value);
                    }
                }
            }
        }
        all
    }

    fn text(value: &str) -> MetadataValue {
        MetadataValue::String(value.into())
    }

    fn list(kind: GGUFValueType, values: Vec<MetadataValue>) -> MetadataValue {
        MetadataValue::Array(Box::new(MetadataArray::new(kind, values).unwrap()))
    }

    /// Writes a model whose rows are whole blocks, and gives its numbers in the order of rows that `transformers` has.
    fn file(path: &Path, kind: &str) -> HashMap<String, Vec<f64>> {
        let (hidden, inner, heads, heads_of_k, head, vocabulary) = (256, 512, 4, 2, 64, 203);
        let mut file = GGUFBuilder::new();
        for (key, value) in [
            ("embedding_length", hidden),
            ("feed_forward_length", inner),
            ("block_count", 2),
            ("attention.head_count", heads),
            ("attention.head_count_kv", heads_of_k),
            ("attention.key_length", head),
        ] {
            file = file.add_metadata(format!("{kind}.{key}"), MetadataValue::U32(value as u32));
        }
        let mut tokens: Vec<MetadataValue> = (0..vocabulary).map(|i| text(&format!("t{i}"))).collect();
        for (at, token) in ["a", "b", "Ġ", "ab", "Ġab", "<|end|>"].iter().enumerate() {
            tokens[at] = text(token);
        }
        let types = (0..vocabulary).map(|i| MetadataValue::I32(if i == 5 { 3 } else { 1 }));
        file = file
            .add_metadata("general.architecture", text(kind))
            .add_metadata(
                format!("{kind}.attention.layer_norm_rms_epsilon"),
                MetadataValue::F32(1e-5),
            )
            .add_metadata("tokenizer.ggml.model", text("gpt2"))
            .add_metadata("tokenizer.ggml.pre", text("llama-bpe"))
            .add_metadata("tokenizer.ggml.tokens", list(GGUFValueType::String, tokens))
            .add_metadata(
                "tokenizer.ggml.token_type",
                list(GGUFValueType::I32, types.collect()),
            )
            .add_metadata(
                "tokenizer.ggml.merges",
                list(GGUFValueType::String, vec![text("a b"), text("Ġ ab")]),
            )
            .add_metadata("tokenizer.ggml.add_bos_token", MetadataValue::Bool(true))
            .add_metadata("tokenizer.ggml.bos_token_id", MetadataValue::U32(9))
            .add_metadata("tokenizer.ggml.eos_token_id", MetadataValue::U32(5));
        let mut found = HashMap::new();
        let mut state = 77;
        let kinds = [GGUFTensorType::Q4_K, GGUFTensorType::Q6_K, GGUFTensorType::Q8_0];
        let mut add = |file: GGUFBuilder, name: String, ours: String, rows: usize, columns: usize, kind| {
            let weights = if kind == GGUFTensorType::Q8_0 { 32 } else { 256 };
            let bytes = blocks(kind, rows * columns / weights, &mut state);
            let mut values = numbers(kind, &bytes);
            if file_pairs(&name) {
                // The file has the two halves of a head by turns.
                let of_file = values.clone();
                for row in 0..rows {
                    let (of_head, d) = (row / head * head, row % head);
                    let there = of_head
                        + if d < head / 2 {
                            2 * d
                        } else {
                            2 * (d - head / 2) + 1
                        };
                    values[row * columns..(row + 1) * columns]
                        .copy_from_slice(&of_file[there * columns..(there + 1) * columns]);
                }
            }
            found.insert(ours, values);
            file.add_tensor(name, vec![columns as u64, rows as u64], kind, bytes)
                .unwrap()
        };
        fn file_pairs(name: &str) -> bool {
            name.ends_with("attn_q.weight") || name.ends_with("attn_k.weight")
        }
        file = add(
            file,
            "token_embd.weight".into(),
            "model.embed_tokens.weight".into(),
            vocabulary,
            hidden,
            kinds[1],
        );
        file = add(
            file,
            "output.weight".into(),
            "lm_head.weight".into(),
            vocabulary,
            hidden,
            kinds[2],
        );
        for i in 0..2 {
            for (at, (name, ours, rows, columns)) in [
                ("attn_q", "self_attn.q_proj", heads * head, hidden),
                ("attn_k", "self_attn.k_proj", heads_of_k * head, hidden),
                ("attn_v", "self_attn.v_proj", heads_of_k * head, hidden),
                ("attn_output", "self_attn.o_proj", hidden, heads * head),
                ("ffn_gate", "mlp.gate_proj", inner, hidden),
                ("ffn_up", "mlp.up_proj", inner, hidden),
                ("ffn_down", "mlp.down_proj", hidden, inner),
            ]
            .into_iter()
            .enumerate()
            {
                // Values have another format than queries and keys, as in most files.
                let format = if at == 2 { kinds[1] } else { kinds[i * 2 % 3] };
                let (name, ours) = (
                    format!("blk.{i}.{name}.weight"),
                    format!("model.layers.{i}.{ours}.weight"),
                );
                file = add(file, name, ours, rows, columns, format);
            }
        }
        let norms = (0..2).flat_map(|i| {
            [
                ("attn_norm", "input_layernorm"),
                ("ffn_norm", "post_attention_layernorm"),
            ]
            .map(|(name, ours)| {
                (
                    format!("blk.{i}.{name}.weight"),
                    format!("model.layers.{i}.{ours}.weight"),
                )
            })
        });
        for (name, ours) in norms.chain([("output_norm.weight".to_string(), "model.norm.weight".to_string())])
        {
            let values: Vec<f32> = (0..hidden).map(|c| 0.75 + (c % 16) as f32 / 32.0).collect();
            let bytes = values.iter().flat_map(|x| x.to_le_bytes()).collect();
            file = file
                .add_tensor(name, vec![hidden as u64], GGUFTensorType::F32, bytes)
                .unwrap();
            found.insert(ours, values.iter().map(|x| f64::from(*x)).collect());
        }
        file.build_to_file(path).unwrap();
        found
    }

    #[test]
    fn a_file_of_blocks_is_a_model() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.gguf");
        let numbers = file(&path, "llama");
        let file = Gguf::open(&path).unwrap();
        let config = file.config().unwrap();
        assert_eq!(
            (config.hidden, config.vocabulary, &config.ends),
            (256, 203, &vec![5])
        );
        assert!(!config.tied);
        assert!(matches!(
            file.matrix("model.layers.0.self_attn.v_proj.weight", 128, 256)
                .unwrap(),
            Elements::Blocks(tirx_kernels::quant::Format::Q6_K, _)
        ));
        // The reference turns halves, by the rows of `transformers`.
        let reference = Reference {
            config: &config,
            weights: numbers,
        };
        let stream = device().new_stream().unwrap();
        let model = Model::new(&stream, config.clone(), &file).unwrap();
        let mut engine = Engine::new(&stream, model, 2, 40).unwrap();
        // More tokens than the products in few bits take, and few.
        let mut sequences: [Vec<i32>; 2] = [(0..21).map(|i| i * 37 % 203).collect(), vec![9, 4]];
        for (row, sequence) in sequences.iter_mut().enumerate() {
            let token = engine.begin(row, &sequence.clone(), Options::greedy()).unwrap();
            sequence.push(token);
        }
        engine.step().unwrap();
        let logits: Vec<f64> = engine.logits().unwrap().iter().map(|x| x.to_f64()).collect();
        for (row, sequence) in sequences.iter().enumerate() {
            assert_close(
                &logits[row * config.vocabulary..(row + 1) * config.vocabulary],
                &reference.logits(sequence),
            );
        }
        let text = file.text().unwrap();
        assert_eq!(text.tokens("ab ab<|end|>").unwrap(), [9, 3, 4, 5]);
        assert_eq!(text.text(&[3, 4, 5]).unwrap(), "ab ab");
    }

    #[test]
    fn other_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.gguf");
        file(&path, "gemma");
        let file = Gguf::open(&path).unwrap();
        let error = file.config().unwrap_err().to_string();
        assert_eq!(
            error,
            "general.architecture is \"gemma\": llama and qwen3 are supported"
        );
        let error = file.matrix("lm_head.weight", 203, 512).unwrap_err().to_string();
        assert_eq!(
            error,
            "tensor output.weight has the shape [203, 256], not [203, 512]"
        );
        let error = file.tensor("lm_head.bias", 203).unwrap_err().to_string();
        assert_eq!(error, "GGUF has no name for tensor lm_head.bias");
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        assert!(Gguf::open(&path).is_err());
        assert!(Gguf::open(&folder.path().join("none.gguf")).is_err());
    }
}
