//! `cargo xtask oracle layouts [COUNT]`: operations on random layouts, here and in TVM.
//!
//! `tvm_layouts.py` writes each as an expression of a kernel file with what TVM gives; our evaluator must say that the two
//! are equal. `--write` makes the filetest of them that runs without TVM.

use std::path::Path;
use std::process::Command;

use tirx_core::script::{KernelFile, NoImports};
use tirx_core::source::SourceMap;

use crate::process::{Result, output};

const HEAD: &str = "from tvm.script import tirx as T\nfrom tvm.tirx.layout import ComposeLayout, R, S, TileLayout\n\
                    from tvm.tirx.layout import laneid, tid_in_wg, tx, warpid, wgid, wid_in_wg\n\n";
const KERNEL: &str = "\n\n@T.prim_func\ndef nothing():\n    T.device_entry()\n    T.thread_id([32])\n";

/// Number of operations in the filetest.
const KEPT: usize = 400;

pub(crate) fn compare(root: &Path, args: &[String]) -> Result<()> {
    let number = |at: usize, default: u32| {
        let numbers = args.iter().filter_map(|a| a.parse().ok());
        numbers.into_iter().nth(at).unwrap_or(default)
    };
    let (count, seed) = (number(0, 3000), number(1, 1));
    let lines = output(
        Command::new(super::python_asked_for(args)?)
            .arg(root.join("xtask/python/tvm_layouts.py"))
            .args([count.to_string(), seed.to_string()]),
    )?;
    let (mut equal, mut refused, mut different) = (Vec::new(), 0, Vec::new());
    for line in lines.lines() {
        if line.starts_with('!') {
            refused += 1;
        } else if let Err(message) = holds(&[line]) {
            different.push(format!(
                "{line}\n    {}",
                message.lines().next().unwrap_or_default()
            ));
        } else {
            equal.push(line);
        }
    }
    println!(
        "{} operations give what they give in TVM, {refused} TVM refuses, {} differ",
        equal.len(),
        different.len()
    );
    if args.iter().any(|a| a == "--write") {
        let step = (equal.len() / KEPT).max(1);
        let kept: Vec<&str> = equal.iter().step_by(step).take(KEPT).copied().collect();
        let text = format!(
            "# Operations on layouts with what TVM 0.26 gives for them: `cargo xtask oracle layouts {count} {seed} --write`.\n{}",
            text(&kept)
        );
        std::fs::write(root.join("tests/kernels/memory/layouts_as_in_tvm.py"), text)?;
    }
    if different.is_empty() {
        Ok(())
    } else {
        Err(different.join("\n").into())
    }
}

fn text(lines: &[&str]) -> String {
    let asserts: Vec<String> = lines.iter().map(|line| format!("assert {line}\n")).collect();
    format!("{HEAD}{}{KERNEL}", asserts.concat())
}

fn holds(lines: &[&str]) -> std::result::Result<(), String> {
    let mut sources = SourceMap::new();
    let file = KernelFile::load(&mut sources, "layouts", &text(lines), &NoImports);
    file.map(drop).map_err(|error| error.render(&sources))
}
