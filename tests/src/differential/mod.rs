//! Differential tests: does a random kernel compute the same however it is lowered?
//!
//! A kernel is parsed, printed and parsed back at every stage, verified after each pass, and run on the simulator
//! twice: lowered by all passes, and by the fewest that make it runnable. Both runs must leave the same bytes in all
//! tensors. (Two NaNs are the same whatever their bits; the generator makes none on purpose.) Nothing else is
//! tolerated. Some kernels go through nvcc as well, and some through Apache TVM ([`tvm`]).

pub mod tvm;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use tirx_core::ir::{DType, IRModule};
use tirx_core::transform::{Lowering, Options, Target, lower};
use tirx_sim::host;

use crate::generator::{Argument, Kernel, generate, generate_exact};
use crate::machine::{self, Machine, Simulator};
use crate::nvcc::{Nvcc, UNOPTIMIZED};
use crate::unit::BATCH;
use crate::{Defines, RoundTrips, build, stages};

/// The architecture that kernels are lowered for.
pub const ARCH: &str = "sm_90a";

/// Passes that only change the form of a program, or check it: the reference run skips them.
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

/// Branches and loop iterations of a block after which a run counts as endless.
const STEPS: u64 = 2_000_000;

/// A failure of a kernel.
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
    /// TVM takes the text for something else, or its IR does not run.
    Tvm(String),
    /// Something panicked.
    Panic(String),
}

impl Problem {
    /// Failures of one kind are considered the same while a kernel is reduced.
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
            | (Problem::Tvm(a), Problem::Tvm(b))
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
            Problem::Tvm(t) => ("TVM", t),
            Problem::Panic(t) => ("panic", t),
        };
        write!(f, "{what}: {text}")
    }
}

/// The errors among nvcc's messages, without the places in a file that is gone.
fn errors(messages: &str) -> String {
    let errors: Vec<&str> = messages
        .lines()
        .filter(|l| l.contains("error") || l.contains("fatal"))
        .map(|l| l.split_once("): ").map_or(l, |(_, rest)| rest))
        .collect();
    match errors.is_empty() {
        true => messages.to_string(),
        false => errors.join("\n"),
    }
}

/// Settings of a run.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The nvcc that is used, if any.
    pub nvcc: Option<Nvcc>,
    /// Every how many kernels one goes through nvcc; 0 for none.
    pub nvcc_every: u64,
    /// The Python with TVM, if kernels are compared with TVM's.
    pub tvm: Option<PathBuf>,
    /// Every how many kernels one is compared with TVM's; 0 for none.
    pub tvm_every: u64,
    /// A folder for files.
    pub scratch: PathBuf,
    /// Failures after which a run stops.
    pub most_failures: usize,
    /// Attempts at reducing a failing kernel.
    pub shrink: usize,
    /// Threads that check kernels.
    pub threads: usize,
    /// Whether each seed is printed before its kernel is checked.
    pub trace: bool,
    /// Whether kernels are those whose values are the same on a GPU ([`generate_exact`]).
    pub exact: bool,
}

/// A kernel that passed, with few passes and with all.
#[derive(Debug)]
pub struct Checked {
    /// Lowered by all passes.
    pub lowered: IRModule,
    /// Its CUDA text.
    pub cuda: String,
    /// The contents of its tensors afterwards.
    pub contents: Vec<Vec<u8>>,
}

/// Checks a kernel in every way that needs no other program.
pub fn check(kernel: &Kernel) -> Result<Checked, Problem> {
    guarded(|| {
        let text = kernel.text();
        let mut built = build("random.py", &text, &["k"], &Defines::new()).map_err(Problem::Build)?;
        let (_, module) = built.remove(0);
        let mut trips = RoundTrips::default();
        let lowered = stages(&module, ARCH, &mut |_, m| trips.check(m)).map_err(Problem::Stages)?;
        let mut fewest = Lowering::new(Target::named(ARCH).expect("a known GPU"));
        fewest.verify = true;
        fewest.options = Options {
            disable_vectorize: true,
            disable_cse: true,
            skip: OPTIONAL.iter().map(ToString::to_string).collect(),
            ..Options::default()
        };
        let sources = module.sources.clone();
        let reference = lower(module, &mut fewest).map_err(|e| Problem::Reference(e.render(&sources)))?;
        let simulate = |module| {
            let mut simulator = Simulator::with_step_limit(STEPS).checks_overflow();
            run(&mut simulator, module, kernel)
        };
        let expected = simulate(&reference).map_err(Problem::Reference)?;
        let contents = simulate(&lowered).map_err(Problem::Lowered)?;
        let sides = ["by few passes", "by all"];
        compare(kernel, sides, &expected, &contents).map_err(Problem::Difference)?;
        let cuda = tirx_core::codegen::cuda::emit(&lowered).map_err(|e| Problem::Cuda(e.render(&sources)))?;
        Ok(Checked {
            lowered,
            cuda: cuda.text,
            contents,
        })
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

/// Runs a lowered kernel; what its tensors hold in the end.
pub fn run(machine: &mut dyn Machine, module: &IRModule, kernel: &Kernel) -> Result<Vec<Vec<u8>>, String> {
    let arguments = kernel.arguments.iter().map(|argument| match argument {
        Argument::Tensor {
            name,
            dtype,
            shape,
            bytes,
        } => {
            let tensor = machine::Argument::Tensor {
                dtype: *dtype,
                shape: shape.clone(),
                bytes: bytes.clone(),
            };
            (name.clone(), tensor)
        }
        Argument::Int { dtype, value } => {
            let value = match dtype.is_bool() {
                true => host::Argument::Bool(*value != 0),
                false => host::Argument::Int(*value),
            };
            (String::new(), machine::Argument::Scalar(value))
        }
        Argument::Float { value } => {
            let value = host::Argument::Float(*value);
            (String::new(), machine::Argument::Scalar(value))
        }
    });
    machine::run(machine, module, &arguments.collect::<Vec<_>>())
}

/// The first element that differs.
pub fn compare(
    kernel: &Kernel,
    sides: [&str; 2],
    expected: &[Vec<u8>],
    actual: &[Vec<u8>],
) -> Result<(), String> {
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
                let [first, second] = sides;
                return Err(format!(
                    "element {i} of {name}: {} {first}, {} {second}",
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

/// A failing kernel, reduced.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Its seed.
    pub seed: u64,
    /// The failure of the reduced kernel.
    pub problem: Problem,
    /// The reduced kernel.
    pub kernel: Kernel,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "==== seed {}: {}", self.seed, self.problem)?;
        f.write_str(&self.kernel.text())
    }
}

/// The results of a run over many kernels.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Kernels checked.
    pub kernels: u64,
    /// Of these, compiled by nvcc.
    pub nvcc: u64,
    /// Of these, compared with TVM's.
    pub tvm: u64,
    /// Those that TVM refuses.
    pub refused_by_tvm: u64,
    /// Those that failed.
    pub failures: Vec<Failure>,
}

/// State shared by the threads of a run.
struct Run<'a> {
    settings: &'a Settings,
    report: Mutex<Report>,
    nvcc: Mutex<Vec<(Kernel, Checked)>>,
    tvm: Mutex<Vec<(Kernel, Checked)>>,
}

/// Checks the kernels of `count` seeds from `first` on.
pub fn run_seeds(first: u64, count: u64, settings: &Settings) -> Report {
    let next = AtomicU64::new(first);
    let run = Run {
        settings,
        report: Mutex::default(),
        nvcc: Mutex::default(),
        tvm: Mutex::default(),
    };
    std::thread::scope(|scope| {
        for _ in 0..settings.threads.max(1) {
            let work = || {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + count || run.is_full() {
                        // Kernels that still wait for nvcc or TVM.
                        run.ask_nvcc(1);
                        run.ask_tvm(1);
                        return;
                    }
                    if settings.trace {
                        eprintln!("seed {seed}");
                    }
                    run.one(seed);
                    run.ask_nvcc(BATCH);
                    run.ask_tvm(tvm::BATCH);
                }
            };
            // As much stack as a main thread has.
            let _ = std::thread::Builder::new()
                .stack_size(8 << 20)
                .spawn_scoped(scope, work);
        }
    });
    run.report.into_inner().unwrap_or_default()
}

/// Takes the list if it has at least `least` elements.
fn take<T>(list: &Mutex<Vec<T>>, least: usize) -> Vec<T> {
    match list.lock() {
        Ok(mut list) if list.len() >= least => std::mem::take(&mut *list),
        _ => Vec::new(),
    }
}

impl Run<'_> {
    fn is_full(&self) -> bool {
        let most = self.settings.most_failures.max(1);
        self.report.lock().is_ok_and(|r| r.failures.len() >= most)
    }

    fn report(&self, change: impl FnOnce(&mut Report)) {
        if let Ok(mut report) = self.report.lock() {
            change(&mut report);
        }
    }

    /// Checks the kernel of a seed.
    fn one(&self, seed: u64) {
        let generate = if self.settings.exact {
            generate_exact
        } else {
            generate
        };
        let kernel = guarded(|| Ok(generate(seed))).unwrap_or_else(|problem| {
            let kernel = Kernel::empty(seed);
            self.report(|r| {
                let kernel = kernel.clone();
                r.failures.push(Failure {
                    seed,
                    problem,
                    kernel,
                });
            });
            kernel
        });
        if kernel.head.is_empty() {
            return;
        }
        self.report(|r| r.kernels += 1);
        match check(&kernel) {
            Err(problem) => self.fail(kernel, problem, self.settings.shrink, |k| check(k).map(|_| ())),
            Ok(checked) => {
                let due = |every: u64| every > 0 && seed.is_multiple_of(every);
                let tvm = self.settings.tvm.is_some() && due(self.settings.tvm_every);
                let nvcc = self.settings.nvcc.is_some() && due(self.settings.nvcc_every);
                let copy = |c: &Checked| Checked {
                    lowered: c.lowered.clone(),
                    cuda: c.cuda.clone(),
                    contents: c.contents.clone(),
                };
                if tvm && let Ok(mut list) = self.tvm.lock() {
                    list.push((kernel.clone(), copy(&checked)));
                }
                if nvcc && let Ok(mut list) = self.nvcc.lock() {
                    list.push((kernel, checked));
                }
            }
        }
    }

    /// Records a failure after reducing the kernel.
    fn fail(
        &self,
        kernel: Kernel,
        problem: Problem,
        attempts: usize,
        checked: impl Fn(&Kernel) -> Result<(), Problem>,
    ) {
        let mut last = problem.clone();
        let kernel = kernel.shrink(attempts, &mut |candidate| match checked(candidate) {
            Err(found) if found.same_kind(&problem) => {
                last = found;
                true
            }
            _ => false,
        });
        let failure = Failure {
            seed: kernel.seed,
            problem: last,
            kernel,
        };
        // Printed immediately, since a long run may be cut short.
        eprintln!("{failure}");
        self.report(|r| r.failures.push(failure));
    }

    /// Compiles the kernels that wait for nvcc, if there are enough.
    fn ask_nvcc(&self, least: usize) {
        let Some(nvcc) = &self.settings.nvcc else { return };
        let batch = take(&self.nvcc, least);
        // Optimization does not affect what is accepted.
        let refused = |texts: &[(u64, &str)]| nvcc.refused(ARCH, UNOPTIMIZED, texts);
        let texts: Vec<(u64, &str)> = batch.iter().map(|(k, c)| (k.seed, c.cuda.as_str())).collect();
        if texts.is_empty() {
            return;
        }
        self.report(|r| r.nvcc += texts.len() as u64);
        let problem = |message: &str, text: &str| Problem::Cuda(format!("{}\n{text}", errors(message)));
        let found = match refused(&texts) {
            Ok(found) => found,
            Err(message) => vec![(texts[0].0, message)],
        };
        for (seed, message) in found {
            for (kernel, checked) in batch.iter().filter(|(kernel, _)| kernel.seed == seed) {
                // nvcc takes a second; the rest takes milliseconds.
                let attempts = self.settings.shrink.min(40);
                self.fail(kernel.clone(), problem(&message, &checked.cuda), attempts, |k| {
                    let text = check(k)?.cuda;
                    let found = refused(&[(k.seed, &text)]).unwrap_or_default();
                    found
                        .first()
                        .map_or(Ok(()), |(_, message)| Err(problem(message, &text)))
                });
            }
        }
    }

    /// Compares the kernels that wait for TVM, if there are enough.
    fn ask_tvm(&self, least: usize) {
        let Some(python) = &self.settings.tvm else { return };
        let batch = take(&self.tvm, least);
        if batch.is_empty() {
            return;
        }
        let results = tvm::compare_all(python, &self.settings.scratch, &batch);
        for ((kernel, _), result) in batch.into_iter().zip(results) {
            match result {
                Ok(tvm::Outcome::Same) => self.report(|r| r.tvm += 1),
                Ok(tvm::Outcome::Refused(why)) => {
                    if self.settings.trace {
                        eprintln!("seed {}: refused by TVM: {why}", kernel.seed);
                    }
                    self.report(|r| r.refused_by_tvm += 1);
                }
                // TVM takes seconds to start.
                Err(problem) => self.fail(kernel, problem, 0, |_| Ok(())),
            }
        }
    }
}
