//! Do random kernels compute the same when Apache TVM lowers them?
//!
//! TVM parses and lowers the kernel's text up to the split into host and device; its printed IR is read back, takes our
//! passes from there on, runs on the simulator, and must leave what our own lowering leaves.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use tirx_core::transform::{Lowering, Options, Target, lower, pass_names};

use super::{ARCH, Checked, Problem, STEPS, compare, guarded, run};
use crate::generator::{Argument, Kernel};
use crate::machine::Simulator;
use crate::{Defines, build};

/// Kernels per TVM process.
pub const BATCH: usize = 100;

/// The last pass that TVM runs.
const LAST: &str = "AnnotateEntryFunc";

/// A result of a comparison that is not a failure.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Both lowerings leave the same.
    Same,
    /// TVM rejects the text, with its reason; or lowers it to something else, in a known way.
    Refused(String),
}

/// Known mistakes of TVM 0.26: a word that the kernel contains, and one of the resulting message.
const KNOWN: &[(&str, &str)] = &[
    // Rows of a padded layout lie outside of the storage that is allocated.
    ("TileLayout(S[", "out-of-bounds access"),
    // A uint64 cast to int32 is assumed to be non-negative.
    ("uint64", "out-of-bounds access"),
    // Unrolling leaves the jumps of the loop behind.
    ("break", "T.break_loop outside of a loop"),
    ("continue", "T.continue_loop outside of a loop"),
    // 64-bit constants are printed as 32-bit ones.
    (
        "T.reinterpret(",
        "T.reinterpret: int32 has 32 bits but uint64 has 64",
    ),
];

/// Compares kernels, each with what our lowering leaves.
pub fn compare_all(
    python: &Path,
    scratch: &Path,
    kernels: &[(Kernel, Checked)],
) -> Vec<Result<Outcome, Problem>> {
    static FOLDERS: AtomicU64 = AtomicU64::new(0);
    let folder = scratch.join(format!("tvm{}", FOLDERS.fetch_add(1, Ordering::Relaxed)));
    let file = |kernel: &Kernel, ending: &str| folder.join(format!("k{}.{ending}", kernel.seed));
    let texts: Vec<(u64, String)> = kernels.iter().map(|(k, _)| (k.seed, k.text())).collect();
    let started = lower_all(python, &folder, &texts, LAST);
    let results = kernels.iter().map(|(kernel, ours)| {
        if let Err(error) = &started {
            return Err(Problem::Tvm(error.to_string()));
        }
        if let Ok(why) = std::fs::read_to_string(file(kernel, "refused")) {
            return Ok(Outcome::Refused(why));
        }
        let text = std::fs::read_to_string(file(kernel, "tvm"))
            .map_err(|e| Problem::Tvm(format!("TVM wrote nothing: {e}")))?;
        let result = guarded(|| same(kernel, ours, &text).map_err(Problem::Tvm));
        match result {
            Ok(()) => Ok(Outcome::Same),
            Err(Problem::Tvm(why)) if is_known(&kernel.text(), &why) => Ok(Outcome::Refused(why)),
            Err(problem) => Err(problem),
        }
    });
    results.collect()
}

/// Has TVM lower kernels named `k` up to a pass, each by its seed: `k{seed}.tvm` is its IR, `k{seed}.refused` says why there
/// is none.
fn lower_all(python: &Path, folder: &Path, texts: &[(u64, String)], last: &str) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    for (seed, text) in texts {
        std::fs::write(folder.join(format!("k{seed}.py")), text)?;
    }
    let script = crate::root().join("xtask/python/tvm_lower.py");
    let output = Command::new(python).arg(script).arg(folder).arg(last).output()?;
    match output.status.success() {
        true => Ok(()),
        false => Err(std::io::Error::other(
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )),
    }
}

/// Those of kernels named `k` whose tile primitives TVM lowers, with the IR that it makes of them.
///
/// # Errors
/// Where TVM does not run.
pub fn taken(python: &Path, scratch: &Path, texts: &[(u64, String)]) -> std::io::Result<Vec<(u64, String)>> {
    let mut taken = Vec::new();
    for (number, batch) in texts.chunks(BATCH).enumerate() {
        let folder = scratch.join(format!("tiles{number}"));
        lower_all(python, &folder, batch, "LowerTIRx")?;
        for (seed, _) in batch {
            let lowered = folder.join(format!("k{seed}.tvm"));
            if lowered.exists() {
                taken.push((*seed, std::fs::read_to_string(lowered)?));
            }
        }
    }
    Ok(taken)
}

/// Contents of tensors with negative zeros replaced by positive ones.
fn unsigned_zeros(kernel: &Kernel, mut contents: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let dtypes = kernel.arguments.iter().filter_map(|a| match a {
        Argument::Tensor { dtype, .. } => Some(*dtype),
        _ => None,
    });
    for (dtype, bytes) in dtypes.zip(&mut contents).filter(|(d, _)| d.is_floating()) {
        for element in bytes.chunks_mut(dtype.bytes()) {
            if let [rest @ .., 0x80] = element
                && rest.iter().all(|b| *b == 0)
            {
                element.fill(0);
            }
        }
    }
    contents
}

fn is_known(kernel: &str, why: &str) -> bool {
    let first = why.lines().next().unwrap_or_default();
    (KNOWN.iter()).any(|(word, said)| kernel.contains(word) && first.contains(said))
}

/// Runs TVM's IR and compares.
fn same(kernel: &Kernel, ours: &Checked, text: &str) -> Result<(), String> {
    let shown = |e: String| format!("{e}\n--- TVM's IR:\n{text}");
    let mut built = build("tvm.py", text, &[], &Defines::new()).map_err(shown)?;
    let (_, module) = built.remove(0);
    let mut rest = Lowering::new(Target::named(ARCH).expect("a known GPU"));
    rest.verify = true;
    let done = pass_names().into_iter().take_while(|name| *name != LAST);
    rest.options = Options {
        skip: done.chain([LAST]).map(ToString::to_string).collect(),
        ..Options::default()
    };
    let sources = module.sources.clone();
    let lowered = lower(module, &mut rest).map_err(|e| shown(e.render(&sources)))?;
    let theirs = run(&mut Simulator::with_step_limit(STEPS), &lowered, kernel).map_err(shown)?;
    // TVM folds `x * 0.0` to 0.0, whatever the sign of x.
    let (theirs, ours) = (
        unsigned_zeros(kernel, theirs),
        unsigned_zeros(kernel, ours.contents.clone()),
    );
    compare(kernel, ["by TVM's passes", "by ours"], &theirs, &ours).map_err(shown)
}
