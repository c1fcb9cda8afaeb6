//! Does a random kernel mean the same however it is lowered?
//!
//! A kernel is parsed, printed and parsed back at every stage, verified after each pass, and run on the simulator
//! twice: lowered by all passes, and by the fewest that make it runnable. Both runs must leave the same bytes in all
//! tensors. (Two NaNs are the same whatever their bits; the generator makes none on purpose.) At times nvcc is asked
//! as well. Nothing else is tolerated.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use tirx_core::ir::{DType, IRModule};
use tirx_core::transform::{Lowering, Options, Target, lower};
use tirx_sim::{Allocation, LaunchOptions, Memory, Program, StandIns, host};

use crate::generator::{Argument, Kernel, generate};
use crate::{Defines, build, round_trip, stages};

/// The architecture that kernels are lowered for.
const ARCH: &str = "sm_90a";

/// Passes that only change the form of a program, or check it: the reference does without them.
const OPTIONAL: &[&str] = &[
    "StmtSimplify",
    "NarrowDataType",
    "UnrollLoop",
    "StmtSimplify2",
    "CommonSubexprElim",
    "VerifyMemory",
    "StmtSimplify3",
    "LowerIntrin",
];

/// Branches and loop turns of a block after which a run counts as endless.
const STEPS: u64 = 2_000_000;

/// What went wrong with a kernel.
#[derive(Clone, Debug, PartialEq)]
pub enum Problem {
    /// The text is refused.
    Build(String),
    /// A module does not print and parse back, is malformed after a pass, or a pass refuses it.
    Stages(String),
    /// The kernel lowered by few passes does not run.
    Reference(String),
    /// The kernel lowered by all passes does not run.
    Lowered(String),
    /// The runs differ.
    Difference(String),
    /// There is no CUDA text, or nvcc refuses it.
    Cuda(String),
    /// Something panicked.
    Panic(String),
}

impl Problem {
    /// Problems of one kind are taken for one while a kernel is made smaller.
    fn same_kind(&self, other: &Problem) -> bool {
        let first = |text: &str| -> String {
            let line = text.lines().next().unwrap_or_default();
            line.chars().filter(|c| !c.is_ascii_digit()).take(60).collect()
        };
        match (self, other) {
            (Problem::Difference(_), Problem::Difference(_)) => true,
            (Problem::Build(a), Problem::Build(b))
            | (Problem::Stages(a), Problem::Stages(b))
            | (Problem::Reference(a), Problem::Reference(b))
            | (Problem::Lowered(a), Problem::Lowered(b))
            | (Problem::Cuda(a), Problem::Cuda(b))
            | (Problem::Panic(a), Problem::Panic(b)) => first(a) == first(b),
            _ => false,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, text) = match self {
            Problem::Build(t) => ("the text is refused", t),
            Problem::Stages(t) => ("lowering", t),
            Problem::Reference(t) => ("the reference does not run", t),
            Problem::Lowered(t) => ("the lowered kernel does not run", t),
            Problem::Difference(t) => ("the runs differ", t),
            Problem::Cuda(t) => ("CUDA", t),
            Problem::Panic(t) => ("panic", t),
        };
        write!(f, "{what}: {text}")
    }
}

/// How kernels are checked.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Where nvcc is asked: its path.
    pub nvcc: Option<PathBuf>,
    /// One kernel in so many goes through nvcc.
    pub nvcc_every: u64,
    /// A folder for nvcc's files.
    pub scratch: PathBuf,
    /// Failures after which a run stops.
    pub most_failures: usize,
    /// Attempts at making a failing kernel smaller.
    pub shrink: usize,
    /// Threads that check kernels.
    pub threads: usize,
    /// Whether each seed is said before its kernel is checked.
    pub trace: bool,
}

/// Checks a kernel in every way but nvcc. The lowered module.
pub fn check(kernel: &Kernel) -> Result<IRModule, Problem> {
    guarded(|| {
        let text = kernel.text();
        let mut built = build("random.py", &text, &["k"], &Defines::new()).map_err(Problem::Build)?;
        let (_, module) = built.remove(0);
        let lowered = stages(&module, ARCH, &mut |_, m| round_trip(m)).map_err(Problem::Stages)?;
        let mut fewest = Lowering::new(Target::cuda(ARCH));
        fewest.verify = true;
        fewest.options = Options {
            disable_vectorize: true,
            disable_cse: true,
            skip: OPTIONAL.iter().map(ToString::to_string).collect(),
            ..Options::default()
        };
        let sources = module.sources.clone();
        let reference = lower(module, &mut fewest).map_err(|e| Problem::Reference(e.render(&sources)))?;
        let expected = run(&reference, kernel).map_err(Problem::Reference)?;
        let actual = run(&lowered, kernel).map_err(Problem::Lowered)?;
        compare(kernel, &expected, &actual).map_err(Problem::Difference)?;
        let device = lowered.clone();
        tirx_core::codegen::cuda::emit(&device).map_err(|e| Problem::Cuda(e.render(&sources)))?;
        Ok(lowered)
    })
}

/// A panic as a problem.
fn guarded<T>(f: impl FnOnce() -> Result<T, Problem>) -> Result<T, Problem> {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
        Err(Problem::Panic(text.unwrap_or_default()))
    })
}

/// Runs a lowered kernel on the simulator; what its tensors hold in the end.
fn run(module: &IRModule, kernel: &Kernel) -> Result<Vec<Vec<u8>>, String> {
    let memory = Memory::new();
    let mut tensors: Vec<Allocation> = Vec::new();
    let mut names = Vec::new();
    let mut arguments = Vec::new();
    for argument in &kernel.arguments {
        arguments.push(match argument {
            Argument::Tensor {
                name,
                dtype,
                shape,
                bytes,
            } => {
                let tensor = memory.alloc(bytes.len().max(1));
                tensor.write(0, bytes);
                let address = tensor.address();
                tensors.push(tensor);
                names.push(name.clone());
                host::Argument::Tensor {
                    dtype: *dtype,
                    shape: shape.clone(),
                    address,
                    byte_offset: 0,
                }
            }
            Argument::Int { dtype, value } => {
                names.push(String::new());
                if dtype.is_bool() {
                    host::Argument::Bool(*value != 0)
                } else {
                    host::Argument::Int(*value)
                }
            }
            Argument::Float { value } => {
                names.push(String::new());
                host::Argument::Float(*value)
            }
        });
    }
    host::run(module, &names, &arguments, &mut |launch| {
        let program = Program::compile(module, &launch.symbol).map_err(|e| e.render(&module.sources))?;
        let sim = tirx_sim::Launch {
            grid: launch.grid,
            block: launch.block,
            cluster: launch.cluster,
            shared_bytes: launch.shared_bytes,
            args: &launch.args,
        };
        let options = LaunchOptions {
            step_limit: Some(STEPS),
            ..LaunchOptions::default()
        };
        let stats = program.launch_with(&memory, &sim, &StandIns::new(), &options);
        stats.map(|_| ()).map_err(|fault| fault.to_string())
    })?;
    let mut contents = Vec::new();
    for tensor in &tensors {
        let mut bytes = vec![0; tensor.len()];
        tensor.read(0, &mut bytes);
        contents.push(bytes);
    }
    Ok(contents)
}

/// The first element that differs.
fn compare(kernel: &Kernel, expected: &[Vec<u8>], actual: &[Vec<u8>]) -> Result<(), String> {
    let tensors = kernel.arguments.iter().filter_map(|a| match a {
        Argument::Tensor { name, dtype, .. } => Some((name, *dtype)),
        _ => None,
    });
    for ((name, dtype), (a, b)) in tensors.zip(expected.iter().zip(actual)) {
        if a == b {
            continue;
        }
        for (i, (x, y)) in a.chunks(dtype.bytes()).zip(b.chunks(dtype.bytes())).enumerate() {
            if x != y && !(is_nan(dtype, x) && is_nan(dtype, y)) {
                return Err(format!(
                    "element {i} of {name}: {} by few passes, {} by all",
                    shown(dtype, x),
                    shown(dtype, y)
                ));
            }
        }
    }
    Ok(())
}

/// An element of a floating dtype.
fn float(dtype: DType, bytes: &[u8]) -> Option<f64> {
    if !dtype.is_floating() {
        return None;
    }
    Some(match (dtype.is_bfloat16(), bytes) {
        (true, [a, b]) => half::bf16::from_le_bytes([*a, *b]).to_f64(),
        (false, [a, b]) => half::f16::from_le_bytes([*a, *b]).to_f64(),
        (_, [a, b, c, d]) => f32::from_le_bytes([*a, *b, *c, *d]).into(),
        _ => f64::from_le_bytes(bytes.try_into().ok()?),
    })
}

fn is_nan(dtype: DType, bytes: &[u8]) -> bool {
    float(dtype, bytes).is_some_and(f64::is_nan)
}

fn shown(dtype: DType, bytes: &[u8]) -> String {
    if let Some(value) = float(dtype, bytes) {
        return format!("{value:?}");
    }
    let mut wide = [0; 16];
    wide[..bytes.len()].copy_from_slice(bytes);
    dtype.wrap(i128::from_le_bytes(wide)).to_string()
}

/// Whether nvcc takes the kernel's CUDA text.
fn ask_nvcc(module: &IRModule, nvcc: &Path, folder: &Path, name: &str) -> Result<(), Problem> {
    let failed = |e: std::io::Error| Problem::Cuda(e.to_string());
    let source =
        tirx_core::codegen::cuda::emit(module).map_err(|e| Problem::Cuda(e.render(&module.sources)))?;
    let (text, out) = (
        folder.join(format!("{name}.cu")),
        folder.join(format!("{name}.cubin")),
    );
    std::fs::write(&text, &source.text).map_err(failed)?;
    let output = Command::new(nvcc)
        .args(["-std=c++17", "-O3", "-cubin", "-arch", ARCH, "-o"])
        .args([&out, &text])
        .output()
        .map_err(failed)?;
    let _ = std::fs::remove_file(&out);
    let _ = std::fs::remove_file(&text);
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr);
    let errors: Vec<&str> = message.lines().filter(|l| l.contains("error")).collect();
    Err(Problem::Cuda(format!("{}\n{}", errors.join("\n"), source.text)))
}

/// A kernel that failed, made smaller.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Its seed.
    pub seed: u64,
    /// What went wrong with the smaller one.
    pub problem: Problem,
    /// The smaller one.
    pub kernel: Kernel,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "==== seed {}: {}", self.seed, self.problem)?;
        f.write_str(&self.kernel.text())
    }
}

/// What a run of many kernels did.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Kernels checked.
    pub kernels: u64,
    /// Of these, asked of nvcc.
    pub nvcc: u64,
    /// Those that failed.
    pub failures: Vec<Failure>,
}

/// Checks the kernels of `count` seeds from `first` on.
pub fn run_seeds(first: u64, count: u64, settings: &Settings) -> Report {
    let next = AtomicU64::new(first);
    let report = Mutex::new(Report::default());
    std::thread::scope(|scope| {
        for _ in 0..settings.threads.max(1) {
            let work = || {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let full = |r: &Report| r.failures.len() >= settings.most_failures.max(1);
                    if seed >= first + count || report.lock().is_ok_and(|r| full(&r)) {
                        return;
                    }
                    if settings.trace {
                        eprintln!("seed {seed}");
                    }
                    let (asked, failure) = one(seed, settings);
                    if let Ok(mut report) = report.lock() {
                        report.kernels += 1;
                        report.nvcc += u64::from(asked);
                        report.failures.extend(failure);
                    }
                }
            };
            // As much stack as a main thread has.
            let _ = std::thread::Builder::new()
                .stack_size(8 << 20)
                .spawn_scoped(scope, work);
        }
    });
    report.into_inner().unwrap_or_default()
}

/// Checks the kernel of a seed; whether nvcc was asked, and the failure.
fn one(seed: u64, settings: &Settings) -> (bool, Option<Failure>) {
    let kernel = match guarded(|| Ok(generate(seed))) {
        Ok(kernel) => kernel,
        Err(problem) => {
            let kernel = Kernel {
                seed,
                head: Vec::new(),
                body: Vec::new(),
                arguments: Vec::new(),
            };
            return (
                false,
                Some(Failure {
                    seed,
                    problem,
                    kernel,
                }),
            );
        }
    };
    let nvcc = settings
        .nvcc
        .as_deref()
        .filter(|_| settings.nvcc_every > 0 && seed.is_multiple_of(settings.nvcc_every));
    let checked = |kernel: &Kernel| {
        let module = check(kernel)?;
        match nvcc {
            Some(nvcc) => ask_nvcc(&module, nvcc, &settings.scratch, &format!("k{seed}")),
            None => Ok(()),
        }
    };
    let Err(problem) = checked(&kernel) else {
        return (nvcc.is_some(), None);
    };
    // nvcc takes seconds; the rest takes milliseconds.
    let budget = match (&problem, nvcc) {
        (Problem::Cuda(_), Some(_)) => settings.shrink.min(40),
        _ => settings.shrink,
    };
    let mut last = problem.clone();
    let small = kernel.shrink(budget, &mut |candidate| match checked(candidate) {
        Err(found) if found.same_kind(&problem) => {
            last = found;
            true
        }
        _ => false,
    });
    let failure = Failure {
        seed,
        problem: last,
        kernel: small,
    };
    (nvcc.is_some(), Some(failure))
}
