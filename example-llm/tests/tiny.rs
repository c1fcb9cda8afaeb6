//! The tiny model on the simulator: its logits against plain Rust in float64, and its tokens.

use std::collections::HashMap;

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

    let json = r#"{"model_type":"llama","hidden_size":64,"num_attention_heads":4,"num_key_value_heads":2,"intermediate_size":96,
        "num_hidden_layers":3,"vocab_size":11,"rms_norm_eps":1e-6,"rope_theta":500000.0,"eos_token_id":[7,8],
        "rope_scaling":{"rope_type":"llama3","factor":8.0,"low_freq_factor":1.0,"high_freq_factor":4.0,"original_max_position_embeddings":8192}}"#;
    let config = Config::from_json(json).unwrap();
    assert_eq!((config.head, config.layers, config.ends), (16, 3, vec![7, 8]));
    let plain = tirx_kernels::rope::frequencies(500_000.0, 16);
    assert_eq!(config.frequencies[0], plain[0]);
    assert_eq!(config.frequencies[7], (f64::from(plain[7]) / 8.0) as f32);
    let error = Config::from_json(r#"{"model_type":"gpt2"}"#)
        .unwrap_err()
        .to_string();
    assert!(error.contains("gpt2"), "{error}");
}
