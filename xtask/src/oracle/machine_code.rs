//! The machine code that one nvcc makes of both CUDA texts.

use std::path::Path;
use std::process::Command;

use tirx_core::codegen::cuda;
use tirx_core::transform::{Lowering, Target, lower};

use super::kernels::Kernel;
use crate::process::{Result, output};

/// Prints the table of one architecture; gives the kernels whose code is longer than the reference's.
pub(super) fn compare(
    root: &Path,
    python: &Path,
    kernels: &[Kernel],
    out: &Path,
    cache: &Path,
    arch: &str,
) -> Result<Vec<String>> {
    let mut failures = Vec::new();
    let mut pairs = Vec::new();
    for kernel in kernels {
        let folder = out.join(&kernel.id);
        let theirs = folder.join("kernel.cu");
        if !theirs.exists() {
            continue;
        }
        let text = kernel.build(root).and_then(|module| {
            let sources = module.sources.clone();
            let lowered = lower(module, &mut Lowering::new(Target::cuda(arch)));
            let source = lowered.and_then(|module| cuda::emit(&module));
            Ok(source.map_err(|e| e.render(&sources))?.text)
        });
        match text {
            Ok(text) => {
                let ours = folder.join("ours.cu");
                std::fs::write(&ours, text)?;
                pairs.push((kernel, ours, theirs));
            }
            Err(error) => failures.push(format!("{} ({arch}): refused by us: {error}", kernel.id)),
        }
    }
    let mut command = Command::new(python);
    command
        .arg(root.join("xtask/python/machine_code.py"))
        .arg(arch)
        .arg(cache);
    for (_, ours, theirs) in &pairs {
        command.args([ours, theirs]);
    }
    let table = output(&mut command)?;
    println!(
        "| kernel ({arch}) | instructions, ours / TVM | registers, ours / TVM | spilled bytes, ours / TVM | opcodes |\n|---|---|---|---|---|"
    );
    let mut refused = Vec::new();
    for ((kernel, ..), row) in pairs.iter().zip(table.lines()) {
        if let Some(error) = row.strip_prefix("theirs: ") {
            refused.push(format!("{}: {error}", kernel.id));
            continue;
        }
        println!(
            "| {}{} | {} |",
            if kernel.example { "" } else { "test: " },
            kernel.name(),
            row.trim()
        );
        if row.ends_with("longer") || !row.contains(" / ") {
            failures.push(format!("{} ({arch}): {row}", kernel.id));
        }
    }
    if !refused.is_empty() {
        println!(
            "\nnvcc refuses the reference's text, so not compared ({arch}):\n{}",
            refused.join("\n")
        );
    }
    println!();
    Ok(failures)
}
