//! `cargo xtask public-kernels CHECKOUT`: compiles every configuration of a public kernel library's modules.
//!
//! CHECKOUT is a checkout of [TIRx-kernels](https://github.com/mlc-ai/TIRx-kernels). Each of its files that has
//! a list `CONFIGS` and a function `get_kernel` is compiled with each of the configurations, from the file as it is, for
//! sm_100a, and a table is printed: how many configurations compile, and the first error of those that do not.
//!
//! | option | what it does |
//! |---|---|
//! | WORD | only the modules whose path holds the word |
//! | `--parse-only` | no passes and no CUDA text: what the front end accepts |
//! | `--errors` | every error in full, and the warnings about modules that compile |
//! | `--first` | only the first configuration of each module |
//! | `--most N` | of a module with more configurations, N that are spread over its list |
//! | `--out DIR` | writes `MODULE-LABEL.cu` there |
//! | `--nvcc NVCC` | nvcc compiles the texts of each module's first configuration |
//! | `--simulate PYTHON` | runs `xtask/python/public_kernels.py` (0.27: `public_library.py`) by a Python with NumPy (and PyTorch): small configurations on the simulator |
//! | `--log FILE` | keeps the results of the simulator in a file, and runs only what has none there |
//! | `--tirx PROGRAM` | the `cargo-tirx` that runs them; without it one is built in release |
//!
//! With `--nvcc` and `--simulate` it prints the table of `docs/developing/public-kernels.md`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use tirx_build::compile::{FileImports, Loaded, Settings, compile};
use tirx_core::ir::Gpu;
use tirx_core::script::ConstValue;

use crate::process::{Result, cargo, output, run};

/// The architecture that the library is written for.
const GPU: Gpu = Gpu::SM_100A;

/// The multiprocessors of a B200, which some of the modules ask the machine for.
const MULTIPROCESSORS: u32 = 148;

/// Arguments that a module asks a package of the host for, by the module's folder: they are given instead.
const GIVEN: &[(&str, &str, i64)] = &[("deepep/", "num_sms", 24)];

/// The command line.
#[derive(Default)]
struct Wanted {
    checkout: PathBuf,
    words: Vec<String>,
    parse_only: bool,
    errors: bool,
    /// How many configurations of a module are compiled.
    most: Option<usize>,
    out: Option<PathBuf>,
    nvcc: Option<PathBuf>,
    python: Option<PathBuf>,
    log: Option<PathBuf>,
    tirx: Option<PathBuf>,
}

impl Wanted {
    fn read(args: &[String]) -> Result<Wanted> {
        let mut wanted = Wanted::default();
        let mut args = args.iter();
        let mut words = Vec::new();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--parse-only" => wanted.parse_only = true,
                "--errors" => wanted.errors = true,
                "--first" => wanted.most = Some(1),
                "--most" => wanted.most = Some(args.next().ok_or("--most needs a number")?.parse()?),
                "--out" => wanted.out = Some(args.next().ok_or("--out needs a folder")?.into()),
                "--nvcc" => wanted.nvcc = Some(args.next().ok_or("--nvcc needs a program")?.into()),
                "--simulate" => wanted.python = Some(args.next().ok_or("--simulate needs a Python")?.into()),
                "--log" => wanted.log = Some(args.next().ok_or("--log needs a file")?.into()),
                "--tirx" => wanted.tirx = Some(args.next().ok_or("--tirx needs a program")?.into()),
                option if option.starts_with("--") => return Err(format!("unknown option {option}").into()),
                word => words.push(word.to_string()),
            }
        }
        if words.is_empty() {
            return Err("usage: cargo xtask public-kernels CHECKOUT [WORD…] [--parse-only] [--errors] [--first] [--most N] [--out DIR] [--nvcc NVCC] \
                        [--simulate PYTHON] [--log FILE] [--tirx PROGRAM]"
                .into());
        }
        wanted.checkout = words.remove(0).into();
        wanted.words = words;
        Ok(wanted)
    }

    /// The modules, as paths from the package's folder.
    fn modules(&self) -> Result<Vec<String>> {
        let root = self.checkout.join("tirx_kernels");
        let (mut modules, mut folders) = (Vec::new(), vec![root.clone()]);
        while let Some(folder) = folders.pop() {
            for file in std::fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))? {
                let file = file?.path();
                if file.is_dir() {
                    folders.push(file);
                    continue;
                }
                let path = file.strip_prefix(&root)?.to_string_lossy().replace('\\', "/");
                if !path.ends_with(".py") {
                    continue;
                }
                let text = std::fs::read_to_string(&file)?;
                let wanted =
                    self.words.is_empty() || self.words.iter().any(|word| path.contains(word.as_str()));
                if wanted && text.contains("\ndef get_kernel(") && text.contains("\nCONFIGS") {
                    modules.push(path);
                }
            }
        }
        modules.sort();
        Ok(modules)
    }
}

/// What became of a configuration.
struct Tried {
    label: String,
    /// The CUDA texts of the kernels that it gives, or the error in full.
    result: std::result::Result<Vec<String>, String>,
}

/// Compiles everything and prints the table. Fails where something does not compile.
pub(crate) fn compile_all(args: &[String]) -> Result<()> {
    let wanted = Wanted::read(args)?;
    let mut table = Vec::new();
    let mut failures = 0;
    let simulated = match &wanted.python {
        Some(python) => simulate(&wanted, python)?,
        None => BTreeMap::new(),
    };
    for module in wanted.modules()? {
        let start = Instant::now();
        let tried = try_module(&wanted, &module);
        let tried = match tried {
            Ok(tried) => tried,
            Err(error) => vec![Tried {
                label: "CONFIGS".into(),
                result: Err(error),
            }],
        };
        let good = tried.iter().filter(|t| t.result.is_ok()).count();
        failures += tried.len() - good;
        let mut errors: BTreeMap<String, Vec<&Tried>> = BTreeMap::new();
        for t in &tried {
            if let Err(error) = &t.result {
                errors.entry(first_line(error)).or_default().push(t);
            }
        }
        eprintln!(
            "{module}: {good} of {} in {:.1} s",
            tried.len(),
            start.elapsed().as_secs_f64()
        );
        for (line, which) in &errors {
            eprintln!("    {} ({}): {line}", which[0].label, which.len());
            if let (true, Err(error)) = (wanted.errors, &which[0].result) {
                eprintln!("{error}");
            }
        }
        let why = errors.keys().next().cloned().unwrap_or_default();
        let nvcc = match (&wanted.nvcc, tried.first().map(|t| &t.result)) {
            (Some(nvcc), Some(Ok(texts))) => taken_by(nvcc, texts)?,
            _ => String::new(),
        };
        let runs = simulated.get(&module).cloned().unwrap_or_default();
        table.push(format!(
            "| `{module}` | {} | {good} | {nvcc} | {runs} | {why} |",
            tried.len()
        ));
    }
    println!(
        "| module | configurations | compile | nvcc | simulated | first error |\n|---|---|---|---|---|---|"
    );
    table.iter().for_each(|row| println!("{row}"));
    match failures {
        0 => Ok(()),
        n => Err(format!("{n} configurations do not compile").into()),
    }
}

fn try_module(wanted: &Wanted, module: &str) -> std::result::Result<Vec<Tried>, String> {
    let path = wanted.checkout.join("tirx_kernels").join(module);
    let text = std::fs::read_to_string(&path).map_err(|e| e.to_string())?;
    let (family, file) = module.rsplit_once('/').unwrap_or(("", module));
    let imports = FileImports::new(path.parent().unwrap_or(Path::new("")), format!("{family}/"))
        .with_multiprocessors(MULTIPROCESSORS);
    let loaded = Loaded::new(module, &text, &imports).map_err(|e| e.to_string())?;
    let configs = loaded.file().constant("CONFIGS");
    let configs = configs.map_err(|e| e.render(loaded.sources()))?;
    let Some(ConstValue::List(configs)) = configs else {
        return Err("CONFIGS is no list of constants".into());
    };
    let (count, mut tried) = (configs.len(), Vec::new());
    for (number, config) in configs.into_iter().enumerate() {
        if !is_of_sample(number, count, wanted.most) {
            continue;
        }
        let ConstValue::Dict(config) = config else {
            return Err("CONFIGS holds something that is no dict".into());
        };
        let label = match config.iter().find(|(name, _)| name == "label") {
            Some((_, ConstValue::Str(label))) => label.clone(),
            _ => number.to_string(),
        };
        let name = format!("{}-{label}", file.trim_end_matches(".py"));
        // The library's own runner leaves the label out.
        let mut values: BTreeMap<String, ConstValue> =
            config.into_iter().filter(|(name, _)| name != "label").collect();
        for (_, name, value) in GIVEN.iter().filter(|(folder, ..)| module.starts_with(folder)) {
            values.insert((*name).to_string(), ConstValue::Int((*value).into()));
        }
        let result = try_config(wanted, &loaded, &name, values);
        tried.push(Tried { label, result });
    }
    Ok(tried)
}

/// Whether a configuration is one of at most `most` that are spread evenly over `count`, the first among them.
fn is_of_sample(number: usize, count: usize, most: Option<usize>) -> bool {
    match most {
        Some(most) if most < count => (0..most).any(|n| n * count / most == number),
        _ => true,
    }
}

fn try_config(
    wanted: &Wanted,
    loaded: &Loaded,
    name: &str,
    values: BTreeMap<String, ConstValue>,
) -> std::result::Result<Vec<String>, String> {
    let built = loaded
        .build_all(Some("get_kernel"), &values)
        .map_err(|e| e.to_string())?;
    let mut texts = Vec::new();
    if wanted.parse_only {
        return Ok(texts);
    }
    for (number, kernel) in built.into_iter().enumerate() {
        let compiled = compile(kernel.module, &Settings::new(GPU)).map_err(|e| e.to_string())?;
        if wanted.errors {
            compiled
                .warnings
                .iter()
                .for_each(|warning| eprintln!("{}", warning.text));
        }
        if let Some(folder) = &wanted.out {
            let path = folder.join(format!("{name}-{number}.cu"));
            std::fs::create_dir_all(folder)
                .and_then(|()| std::fs::write(&path, &compiled.cuda.text))
                .map_err(|e| format!("{}: {e}", path.display()))?;
        }
        texts.push(compiled.cuda.text);
    }
    Ok(texts)
}

/// How many of the texts nvcc compiles, and its first error.
fn taken_by(nvcc: &Path, texts: &[String]) -> Result<String> {
    let folder = std::env::temp_dir().join(format!("public-kernels-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let (source, code) = (folder.join("kernel.cu"), folder.join("kernel.cubin"));
    let (mut good, mut why) = (0, String::new());
    for text in texts {
        std::fs::write(&source, text)?;
        let compute = GPU.compute();
        let done = Command::new(nvcc)
            .args(["-cubin", "-std=c++17", "-gencode"])
            .arg(format!("arch={compute},code={GPU}"))
            .arg("-o")
            .args([&code, &source])
            .output()
            .map_err(|e| format!("{}: {e}", nvcc.display()))?;
        match done.status.success() {
            true => good += 1,
            false if why.is_empty() => {
                let errors = String::from_utf8_lossy(&done.stderr);
                let first = errors.lines().find(|line| line.contains("error"));
                let message = first
                    .unwrap_or_default()
                    .rsplit("error")
                    .next()
                    .unwrap_or_default();
                why = format!(": {}", message.trim_start_matches([':', ' ']).replace('|', "/"));
            }
            false => {}
        }
    }
    std::fs::remove_dir_all(&folder)?;
    Ok(match good == texts.len() {
        true => "yes".into(),
        false => format!("{good} of {}{why}", texts.len()),
    })
}

/// What the simulator makes of the small configurations, by module. Each is a process of its own, and its result is kept where a
/// log is named, so that a run that was cut off goes on where it was.
fn simulate(wanted: &Wanted, python: &Path) -> Result<BTreeMap<String, String>> {
    let tirx = match &wanted.tirx {
        Some(program) => program.clone(),
        None => {
            run(&mut cargo(["build", "--release", "-p", "cargo-tirx"]))?;
            let own = std::env::current_exe()?;
            let profiles = own.ancestors().nth(2);
            profiles
                .ok_or("this program lies in no target folder")?
                .join("release/cargo-tirx")
        }
    };
    // The library in the language of 0.27 has tests that make their own data and references.
    let script = match wanted.checkout.join("tirx_kernels/basic").is_dir() {
        true => "xtask/python/public_library.py",
        false => "xtask/python/public_kernels.py",
    };
    let asked = |words: &[&str]| {
        let mut command = Command::new(python);
        command
            .arg(crate::root().join(script))
            .arg(&wanted.checkout)
            .arg(&tirx)
            .args(words);
        output(&mut command)
    };
    let mut log = match &wanted.log {
        Some(path) => std::fs::read_to_string(path).unwrap_or_default(),
        None => String::new(),
    };
    for case in asked(&["--list"])?.lines() {
        let done = log.lines().any(|line| line.starts_with(&format!("{case}\t")));
        let (module, name) = case.split_once('\t').unwrap_or((case, ""));
        let of_words =
            wanted.words.is_empty() || wanted.words.iter().any(|word| module.contains(word.as_str()));
        if done || !of_words {
            continue;
        }
        // A script that fails is a result, too: the others go on.
        let line = match asked(&[&format!("={case}")]) {
            Ok(said) => said
                .lines()
                .find(|line| line.starts_with(case))
                .map(str::to_string),
            Err(error) => Some(format!("{case}\tnot run\t{}", first_line(&error.to_string()))),
        };
        let line = line.unwrap_or_else(|| format!("{case}\tnot run\t"));
        eprintln!(
            "{module} {name}: {}",
            line.trim_start_matches(case).trim().replace('\t', ", ")
        );
        log.push_str(&line);
        log.push('\n');
        if let Some(path) = &wanted.log {
            std::fs::write(path, &log).map_err(|e| format!("{}: {e}", path.display()))?;
        }
    }
    let mut simulated: BTreeMap<String, String> = BTreeMap::new();
    for line in log.lines() {
        let mut fields = line.split('\t');
        let (Some(module), Some(name), Some(result)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        let runs = simulated.entry(module.to_string()).or_default();
        if !runs.is_empty() {
            runs.push_str("; ");
        }
        let name = if name.is_empty() { "its test" } else { name };
        runs.push_str(&format!("{name}: {result}"));
    }
    Ok(simulated)
}

/// The message and the place of an error, in one line.
fn first_line(error: &str) -> String {
    let mut lines = error.lines();
    let message = lines.next().unwrap_or_default();
    let place = lines.map(str::trim).find_map(|line| line.strip_prefix("--> "));
    format!("{message} ({})", place.unwrap_or_default())
}
