//! Kernels with one synchronization removed: does the simulator report each of them?
//!
//! A *mutant* is the text of a kernel file with one call of `SYNCHRONIZATIONS` replaced by nothing. It is *reported* if the
//! run of a kernel ends in a fault; *wrong* if it ends with other values and no fault; *silent* if nothing is different.
//! `mutants.txt` lists those that may be silent, with the reason.

use std::collections::BTreeMap;

use tirx_core::ir::{DType, IRModule};
use tirx_core::script::ConstValue;
use tirx_sim::{LaunchOptions, host};

use crate::asynchronous::{self, Scale};
use crate::machine::{self, Simulator};
use crate::runs::Run;
use crate::{Case, Defines, build, root, stages};

/// Calls that order threads with threads or copies. Each is a statement of its own.
const SYNCHRONIZATIONS: &[&str] = &[
    "T.cuda.cta_sync",
    "T.cuda.warp_sync",
    "T.cuda.warpgroup_sync",
    "T.cuda.cluster_sync",
    "T.cuda.grid_sync",
    "T.cuda.thread_fence",
    "T.tvm_storage_sync",
    "T.ptx.bar.sync",
    "T.ptx.bar.arrive",
    "T.ptx.barrier.",
    "T.ptx.fence",
    "T.ptx.mbarrier.",
    "T.ptx.griddepcontrol.wait",
    "T.ptx.cp_async.wait_group",
    "T.ptx.cp_async.commit_group",
    "T.ptx.cp_async.mbarrier",
    "T.ptx.cp_async.bulk.wait_group",
    "T.ptx.cp_async.bulk.commit_group",
    "T.ptx.wgmma.fence",
    "T.ptx.wgmma.commit_group",
    "T.ptx.wgmma.wait_group",
    "T.ptx.tcgen05.fence",
    "T.ptx.tcgen05.commit",
    "T.ptx.tcgen05.wait",
    "T.nvshmem.quiet",
    "T.nvshmem.fence",
    "T.nvshmem.wait_until",
    "T.nvshmem.barrier_all",
];

/// The outcome of a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A fault, with its message.
    Reported(String),
    /// Other values, and no fault.
    Wrong(String),
    /// No difference.
    Silent,
    /// It cannot be built, or no run executes it.
    NotRun,
}

/// One synchronization taken out.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// `file kernel statement`, with a number where the kernel has the statement several times.
    pub name: String,
    /// Line of the file, from 1.
    pub line: usize,
    /// The kernel that it is in.
    pub kernel: String,
    /// Whether that is a kernel, rather than a function that kernels call.
    entry: bool,
    text: String,
}

/// The end of the call that starts at `at`: one past its closing parenthesis.
fn call_end(text: &str, at: usize) -> Option<usize> {
    let open = at + text[at..].find('(')?;
    let mut depth = 0;
    for (i, c) in text[open..].char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(open + i + 1);
        }
    }
    None
}

/// The mutants of a filetest.
pub fn mutants(case: &Case) -> Vec<Mutant> {
    of_text(&case.name(), &case.text)
}

/// The mutants of a text, which stands in a file of this name.
pub fn of_text(file: &str, text: &str) -> Vec<Mutant> {
    let mut out = Vec::new();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let (mut kernel, mut entry) = (String::new(), false);
    let mut decorated = false;
    let mut start = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let trimmed = line.trim_start();
        if let Some(rest) = trimmed.strip_prefix("def ") {
            kernel = rest.split('(').next().unwrap_or_default().to_string();
            entry = std::mem::take(&mut decorated);
        }
        decorated |= ["@T.prim_func", "@T.jit"].iter().any(|d| trimmed.starts_with(d));
        let mut from = 0;
        while let Some(found) = line[from..].find("T.") {
            let at = from + found;
            from = at + 2;
            let statement = line[..at].trim().is_empty() || line[..at].trim_end().ends_with([';', ':']);
            let known = SYNCHRONIZATIONS.iter().any(|s| {
                let rest = line[at..].strip_prefix(s);
                rest.is_some_and(|r| s.ends_with('.') || r.starts_with(['(', '.']))
            });
            if !statement || !known || line.trim_start().starts_with('#') {
                continue;
            }
            let Some(end) = call_end(text, start + at) else {
                continue;
            };
            let call = &text[start + at..end];
            let mut name = format!(
                "{file} {kernel} {}",
                call.split_whitespace().collect::<Vec<_>>().join(" ")
            );
            let times = seen.entry(name.clone()).or_default();
            *times += 1;
            if *times > 1 {
                name = format!("{name} {times}");
            }
            out.push(Mutant {
                name,
                line: number + 1,
                kernel: kernel.clone(),
                entry,
                text: format!("{}T.evaluate(0){}", &text[..start + at], &text[end..]),
            });
        }
        start += line.len();
    }
    out
}

/// An example kernel that synchronizes, with sizes and arguments; arguments that are not given are derived from a run
/// of the unchanged kernel.
#[derive(Debug)]
pub struct Example {
    /// The kernel.
    pub entry: &'static str,
    /// Its file in `kernels/`.
    pub file: &'static str,
    defines: &'static [(&'static str, i64)],
    arguments: &'static [(&'static str, Given)],
}

/// An argument of an example kernel.
#[derive(Clone, Copy, Debug)]
enum Given {
    /// Of such elements, different from one to the next.
    Tensor(DType, &'static [i64]),
    Int(i64),
    Float(f64),
}

/// The examples of `kernels.toml` that hold a synchronization.
pub static EXAMPLES: &[Example] = &[
    Example {
        entry: "block_sum",
        file: "reduce.py",
        defines: &[],
        arguments: &[
            ("a", Given::Tensor(DType::FLOAT32, &[700])),
            ("out", Given::Tensor(DType::FLOAT32, &[3])),
        ],
    },
    Example {
        entry: "row_sums",
        file: "reduce.py",
        defines: &[("ROWS", 2), ("WARPS", 4)],
        arguments: &[
            ("a", Given::Tensor(DType::FLOAT32, &[3, 300])),
            ("out", Given::Tensor(DType::FLOAT32, &[3])),
        ],
    },
    Example {
        entry: "rmsnorm",
        file: "reduce.py",
        defines: &[("ROWS", 2), ("D", 512)],
        arguments: &[
            ("X", Given::Tensor(DType::FLOAT16, &[2, 512])),
            ("W", Given::Tensor(DType::FLOAT16, &[512])),
            ("Y", Given::Tensor(DType::FLOAT16, &[2, 512])),
            ("eps", Given::Float(1e-5)),
        ],
    },
    Example {
        entry: "histogram",
        file: "reduce.py",
        defines: &[],
        arguments: &[
            ("values", Given::Tensor(DType::UINT8, &[5000])),
            ("counts", Given::Tensor(DType::INT32, &[256])),
        ],
    },
    Example {
        entry: "transpose",
        file: "matrix.py",
        defines: &[],
        arguments: &[
            ("a", Given::Tensor(DType::FLOAT32, &[40, 50])),
            ("b", Given::Tensor(DType::FLOAT32, &[50, 40])),
        ],
    },
    Example {
        entry: "matmul",
        file: "matrix.py",
        defines: &[("M", 64), ("N", 64), ("K", 48)],
        arguments: &[
            ("A", Given::Tensor(DType::FLOAT32, &[64, 48])),
            ("B", Given::Tensor(DType::FLOAT32, &[48, 64])),
            ("C", Given::Tensor(DType::FLOAT32, &[64, 64])),
        ],
    },
    Example {
        entry: "sobel",
        file: "image.py",
        defines: &[],
        arguments: &[
            ("src", Given::Tensor(DType::UINT8, &[20, 40])),
            ("dst", Given::Tensor(DType::UINT8, &[20, 40])),
        ],
    },
    Example {
        entry: "equalize_map",
        file: "image.py",
        defines: &[],
        arguments: &[
            ("counts", Given::Tensor(DType::INT32, &[256])),
            ("table", Given::Tensor(DType::UINT8, &[256])),
            ("pixels", Given::Int(1000)),
        ],
    },
];

impl Example {
    /// The file's text.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn text(&self) -> Result<String, String> {
        let path = root().join("kernels").join(self.file);
        std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))
    }

    /// What the tensors hold after a run of a text of the file.
    fn run(&self, text: &str, options: LaunchOptions) -> Result<Vec<Vec<u8>>, String> {
        let define = |(name, value): &(&str, i64)| (name.to_string(), ConstValue::Int((*value).into()));
        let defines: Defines = self.defines.iter().map(define).collect();
        let module = build(self.file, text, &[self.entry], &defines)?;
        let (_, module) = module.into_iter().next().ok_or("no kernel")?;
        let lowered = stages(&module, "sm_90a", &mut |_, _| Ok(()))?;
        let arguments: Vec<_> = self
            .arguments
            .iter()
            .map(|(name, given)| (name.to_string(), given.argument()))
            .collect();
        machine::run(&mut Simulator::with_options(options), &lowered, &arguments)
    }
}

impl Given {
    fn argument(self) -> machine::Argument {
        match self {
            Given::Int(value) => machine::Argument::Scalar(host::Argument::Int(value)),
            Given::Float(value) => machine::Argument::Scalar(host::Argument::Float(value)),
            Given::Tensor(dtype, shape) => {
                let count = shape.iter().product::<i64>() as usize;
                let element = |i: usize| {
                    let value = ((i * 7 + 3) % 13) as u8;
                    match (dtype.bits, dtype.is_floating()) {
                        (32, true) => (f32::from(value) * 0.5).to_le_bytes().to_vec(),
                        (16, true) => half::f16::from_f32(f32::from(value) * 0.5).to_le_bytes().to_vec(),
                        (32, false) => i32::from(value).to_le_bytes().to_vec(),
                        _ => vec![value],
                    }
                };
                machine::Argument::Tensor {
                    dtype,
                    shape: shape.to_vec(),
                    bytes: (0..count).flat_map(element).collect(),
                }
            }
        }
    }
}

/// Branches and loop iterations of a block after which a mutant counts as endless.
const STEPS: u64 = 3_000_000;

impl Mutant {
    /// Runs it.
    ///
    /// # Errors
    /// Where the file's expectations cannot be read.
    pub fn run(&self, case: &Case) -> Result<Outcome, String> {
        let runs = case.runs()?;
        // A mutated helper function affects all kernels of the file.
        let whole = !self.entry;
        let mut outcome = Outcome::NotRun;
        for run in runs
            .iter()
            .filter(|r| (whole || r.kernel == self.kernel) && !r.faults())
        {
            let mutated = case.with_text(self.text.clone());
            let Ok(module) = mutated.build_one(&run.kernel) else {
                continue;
            };
            let run = &case.bound(run, &module)?;
            for arch in run.archs(&case.arch) {
                if let Some(reported) = self.run_as(case, run, &module, arch, &mut outcome) {
                    return Ok(reported);
                }
            }
        }
        Ok(outcome)
    }

    /// Runs it as one GPU. Gives the outcome of all runs, once it is decided.
    fn run_as(
        &self,
        case: &Case,
        run: &Run,
        module: &IRModule,
        arch: &str,
        outcome: &mut Outcome,
    ) -> Option<Outcome> {
        let lowered = stages(module, arch, &mut |_, _| Ok(())).ok()?;
        for seed in 0..2 {
            let mut machine = Simulator::with_options(LaunchOptions {
                step_limit: Some(1 << 20),
                seed,
                // Of a kernel that waits, and no attribute launches early: any grid may be before it.
                dependent: case.text.contains("griddepcontrol.wait")
                    && !case.text.contains("dependent_launch"),
                ..LaunchOptions::default()
            });
            let result = run.check(&mut machine, &lowered);
            if let Some(reported) = outcome.note(seed, result, "element ") {
                return Some(reported);
            }
        }
        None
    }

    /// Runs one of a kernel that copies and computes asynchronously.
    pub fn run_case(&self, case: &asynchronous::Case) -> Outcome {
        let mut outcome = Outcome::NotRun;
        if case.prepare(&self.text, Scale::Small).is_err() {
            return outcome;
        }
        for seed in 0..2 {
            let mut machine = Simulator::with_options(LaunchOptions {
                step_limit: Some(STEPS),
                seed,
                ..LaunchOptions::default()
            });
            let result = case.check(&mut machine, &self.text, Scale::Small);
            if let Some(reported) = outcome.note(seed, result, "(") {
                return reported;
            }
        }
        outcome
    }

    /// Runs one of an example kernel, beside the kernel as it is.
    ///
    /// # Errors
    /// Where the kernel as it is cannot be run.
    pub fn run_example(&self, example: &Example) -> Result<Outcome, String> {
        let mut outcome = Outcome::NotRun;
        for seed in 0..2 {
            let options = LaunchOptions {
                step_limit: Some(STEPS),
                seed,
                ..LaunchOptions::default()
            };
            let wanted = example.run(&example.text()?, options)?;
            let result = example
                .run(&self.text, options)
                .and_then(|found| match found == wanted {
                    true => Ok(()),
                    false => Err("element: the tensors hold other values".to_string()),
                });
            if let Some(reported) = outcome.note(seed, result, "element") {
                return Ok(reported);
            }
        }
        Ok(outcome)
    }
}

impl Outcome {
    /// Records a run with a seed; `values` begins the messages about other values. Gives the outcome, once it is
    /// decided.
    fn note(&mut self, seed: u64, result: Result<(), String>, values: &str) -> Option<Outcome> {
        match result {
            Ok(()) if *self == Outcome::NotRun => *self = Outcome::Silent,
            Ok(()) => {}
            // Another order of atomics may give other values.
            Err(message) if message.starts_with(values) && seed == 0 => *self = Outcome::Wrong(message),
            Err(message) if message.starts_with(values) => {}
            Err(message) => return Some(Outcome::Reported(message)),
        }
        None
    }
}

/// The mutants that may be silent, with the reasons: lines `name: reason`, where `*` may stand for the kernel of the name, and
/// `* *` for kernel and file.
pub fn redundant(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().filter(|l| !l.starts_with('#'));
    let pairs = lines.filter_map(|l| l.split_once(": "));
    pairs
        .map(|(name, reason)| (name.to_string(), reason.to_string()))
        .collect()
}
