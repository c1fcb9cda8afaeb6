//! Streams the tokens of a language model. `--help` shows the options.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Instant;

use example_llm::{Config, Engine, Files, Gguf, Model, Random, Result, Source, Text};
use tirx_kernels::sampling::Options;
use tirx_rt::Device;

const HELP: &str = "\
example-llm (--model PATH | --random tiny|8b) [--prompt TEXT | --ids 1,2,3] [options]

  --model PATH        a folder with config.json, .safetensors files and tokenizer.json, or a .gguf file (Llama, Mistral, Qwen 3)
  --random tiny|8b    random weights: nothing to download
  --prompt TEXT       with the tokenizer of the model
  --ids 1,2,3         the prompt as numbers of tokens; 1 without a prompt
  --prompt-length N   N tokens as the prompt, to measure
  --tokens N          tokens to generate; 32
  --batch N           sequences with the same prompt and different seeds; 1
  --temperature T     0 chooses the most likely token; 0
  --logits FILE       writes the logits of the last token, as float32 numbers in little-endian order
  --top-k K, --top-p P, --min-p P, --seed S
";

struct Arguments {
    model: Option<String>,
    random: Option<String>,
    prompt: Option<String>,
    ids: Vec<i32>,
    tokens: usize,
    batch: usize,
    logits: Option<String>,
    options: Options,
}

/// The number that an option's value is.
fn number<T: FromStr<Err: std::fmt::Display>>(option: &str, value: &str) -> Result<T> {
    let parsed = value.trim().parse();
    parsed.map_err(|e| format!("{option} {value:?}: {e}").into())
}

fn arguments() -> Result<Option<Arguments>> {
    let mut found = Arguments {
        model: None,
        random: None,
        prompt: None,
        ids: vec![1],
        tokens: 32,
        batch: 1,
        logits: None,
        options: Options::greedy(),
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        if word == "--help" || word == "-h" {
            return Ok(None);
        }
        let value = words
            .next()
            .ok_or_else(|| format!("{word} has no value\n\n{HELP}"))?;
        match word.as_str() {
            "--model" => found.model = Some(value),
            "--random" => found.random = Some(value),
            "--prompt" => found.prompt = Some(value),
            "--ids" => {
                found.ids = value
                    .split(',')
                    .map(|id| number(&word, id))
                    .collect::<Result<_>>()?
            }
            "--prompt-length" => {
                let length: i32 = number(&word, &value)?;
                found.ids = (0..length).map(|i| 1 + i % 97).collect();
            }
            "--logits" => found.logits = Some(value),
            "--tokens" => found.tokens = number(&word, &value)?,
            "--batch" => found.batch = number::<usize>(&word, &value)?.max(1),
            "--temperature" => found.options.temperature = number(&word, &value)?,
            "--top-k" => found.options.top_k = number(&word, &value)?,
            "--top-p" => found.options.top_p = number(&word, &value)?,
            "--min-p" => found.options.min_p = number(&word, &value)?,
            "--seed" => found.options.seed = number(&word, &value)?,
            _ => return Err(format!("unknown option {word}\n\n{HELP}").into()),
        }
    }
    Ok(Some(found))
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let Some(arguments) = arguments()? else {
        print!("{HELP}");
        return Ok(());
    };
    let (config, source, text): (Config, Box<dyn Source>, Option<Text>) =
        match (&arguments.model, &arguments.random) {
            (Some(file), None) if file.ends_with(".gguf") => {
                let file = Gguf::open(Path::new(file))?;
                // A model whose tokenizer is not supported still takes numbers of tokens.
                let text = match (file.text(), &arguments.prompt) {
                    (Err(error), Some(_)) => return Err(error),
                    (text, _) => text.ok(),
                };
                (file.config()?, Box::new(file), text)
            }
            (Some(folder), None) => {
                let folder = Path::new(folder);
                let file = folder.join("config.json");
                let config = std::fs::read_to_string(&file)
                    .map_err(Into::into)
                    .and_then(|text| Config::from_json(&text))
                    .map_err(|e| format!("{}: {e}", file.display()))?;
                // Numbers of tokens need no tokenizer.
                let text = match (Text::from_file(&folder.join("tokenizer.json")), &arguments.prompt) {
                    (Err(error), Some(_)) => return Err(error),
                    (text, _) => text.ok(),
                };
                (config, Box::new(Files::in_folder(folder)?), text)
            }
            (None, Some(name)) => {
                let config = match name.as_str() {
                    "tiny" => Config::tiny(),
                    "8b" => Config::llama_8b(),
                    other => {
                        return Err(format!("there are random models `tiny` and `8b`, not {other:?}").into());
                    }
                };
                let hidden = config.hidden;
                (config, Box::new(Random { seed: 1, hidden }), None)
            }
            _ => return Err(HELP.into()),
        };
    let prompt = match (&arguments.prompt, &text) {
        (Some(prompt), Some(text)) => text.tokens(prompt)?,
        (Some(_), None) => return Err("random models have no text: pass --ids".into()),
        (None, _) => arguments.ids.clone(),
    };
    let stream = Device::best()?.new_stream()?;
    let start = Instant::now();
    let model = Model::new(&stream, config, &*source)?;
    let mut engine = Engine::new(
        &stream,
        model,
        arguments.batch,
        prompt.len().saturating_add(arguments.tokens).saturating_add(1),
    )?;
    stream.synchronize()?;
    eprintln!(
        "{}: weights in {:.1} s",
        stream.device().name(),
        start.elapsed().as_secs_f64()
    );

    let mut sequences = Vec::new();
    let mut of_prompts = Vec::new();
    for row in 0..arguments.batch {
        let start = Instant::now();
        let options = arguments
            .options
            .seed(arguments.options.seed.wrapping_add(row as u64));
        sequences.push(vec![engine.begin(row, &prompt, options)?]);
        of_prompts.push(start.elapsed().as_secs_f64());
    }
    let first = of_prompts[0];
    let shown = |tokens: &[i32]| {
        // The prompt gives a first token, also if none is wanted.
        let tokens = &tokens[..tokens.len().min(arguments.tokens)];
        match &text {
            Some(text) => text.text(tokens),
            None => Ok(tokens.iter().map(|t| format!("{t} ")).collect()),
        }
    };
    let mut printed = String::new();
    let mut times = Vec::new();
    loop {
        // The text of all tokens so far: a character may have several.
        let now = shown(&sequences[0])?;
        if let Some(more) = now.strip_prefix(&printed) {
            print!("{more}");
            std::io::stdout().flush()?;
            printed = now;
        }
        let ended = sequences[0]
            .last()
            .is_some_and(|t| engine.model().config.ends.contains(t));
        if ended || sequences[0].len() >= arguments.tokens {
            break;
        }
        let start = Instant::now();
        let tokens = engine.step()?;
        times.push(start.elapsed().as_secs_f64());
        for (sequence, token) in sequences.iter_mut().zip(tokens) {
            sequence.push(token);
        }
    }
    println!();
    for sequence in &sequences[1..] {
        println!("{}", shown(sequence)?);
    }
    of_prompts.sort_by(f64::total_cmp);
    eprintln!(
        "prompts: {} tokens each, the fastest in {:.2} ms, the first in {:.2} ms",
        prompt.len(),
        of_prompts[0] * 1e3,
        first * 1e3
    );
    times.sort_by(f64::total_cmp);
    if let Some(median) = times.get(times.len() / 2) {
        eprintln!(
            "steps: {:.2} ms each, {:.0} tokens per second, {:.0} GB/s of weights",
            median * 1e3,
            arguments.batch as f64 / median,
            engine.model().bytes() as f64 / median / 1e9
        );
    }
    if let Some(file) = &arguments.logits {
        let logits = engine.logits()?;
        let of_first = &logits[..engine.model().config.vocabulary];
        let bytes: Vec<u8> = of_first.iter().flat_map(|x| x.to_f32().to_le_bytes()).collect();
        std::fs::write(file, bytes).map_err(|e| format!("{file}: {e}"))?;
    }
    Ok(())
}
