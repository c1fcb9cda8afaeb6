//! Do random kernels mean to Apache TVM what they mean here?
//!
//! TVM parses and lowers the kernel's text up to the split into host and device; its printed IR is read back, takes our
//! passes from there on, runs on the simulator, and must leave what our own lowering leaves.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use tirx_core::transform::{Lowering, Options, Target, lower, pass_names};

use super::{ARCH, Checked, Problem, compare, guarded, run};
use crate::generator::Kernel;
use crate::{Defines, build};

/// Kernels of one TVM process.
pub const BATCH: usize = 100;

/// The last pass that is TVM's.
const LAST: &str = "AnnotateEntryFunc";

/// What a comparison shows that is no failure.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Both lowerings leave the same.
    Same,
    /// TVM does not take the text, and says why.
    Refused(String),
}

/// Compares kernels, each with what our lowering leaves.
pub fn compare_all(
    python: &Path,
    scratch: &Path,
    kernels: &[(Kernel, Checked)],
) -> Vec<Result<Outcome, Problem>> {
    static FOLDERS: AtomicU64 = AtomicU64::new(0);
    let folder = scratch.join(format!("tvm{}", FOLDERS.fetch_add(1, Ordering::Relaxed)));
    let file = |kernel: &Kernel, ending: &str| folder.join(format!("k{}.{ending}", kernel.seed));
    let lowered = || -> std::io::Result<()> {
        std::fs::create_dir_all(&folder)?;
        for (kernel, _) in kernels {
            std::fs::write(file(kernel, "py"), kernel.text())?;
        }
        let script = crate::root().join("xtask/python/tvm_lower.py");
        let output = Command::new(python).arg(script).arg(&folder).arg(LAST).output()?;
        match output.status.success() {
            true => Ok(()),
            false => Err(std::io::Error::other(
                String::from_utf8_lossy(&output.stderr).into_owned(),
            )),
        }
    };
    let started = lowered();
    let results = kernels.iter().map(|(kernel, ours)| {
        if let Err(error) = &started {
            return Err(Problem::Tvm(error.to_string()));
        }
        if let Ok(why) = std::fs::read_to_string(file(kernel, "refused")) {
            return Ok(Outcome::Refused(why));
        }
        let text = std::fs::read_to_string(file(kernel, "tvm"))
            .map_err(|e| Problem::Tvm(format!("TVM wrote nothing: {e}")))?;
        guarded(|| same(kernel, ours, &text).map_err(Problem::Tvm)).map(|()| Outcome::Same)
    });
    results.collect()
}

/// Runs TVM's IR and compares.
fn same(kernel: &Kernel, ours: &Checked, text: &str) -> Result<(), String> {
    let shown = |e: String| format!("{e}\n--- TVM's IR:\n{text}");
    let mut built = build("tvm.py", text, &[], &Defines::new()).map_err(shown)?;
    let (_, module) = built.remove(0);
    let mut rest = Lowering::new(Target::cuda(ARCH));
    rest.verify = true;
    let done = pass_names().into_iter().take_while(|name| *name != LAST);
    rest.options = Options {
        skip: done.chain([LAST]).map(ToString::to_string).collect(),
        ..Options::default()
    };
    let sources = module.sources.clone();
    let lowered = lower(module, &mut rest).map_err(|e| shown(e.render(&sources)))?;
    let theirs = run(&lowered, kernel).map_err(shown)?;
    compare(kernel, ["by TVM's passes", "by ours"], &theirs, &ours.contents).map_err(shown)
}
