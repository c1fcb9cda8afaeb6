//! `cargo tirx explain FILE:LINE`: how the tile primitives of a line are lowered.

use std::path::PathBuf;

use tirx_core::script::print_stmt;
use tirx_core::transform::lower_tirx::{Decision, Outcome, explain};
use tirx_core::transform::{Options, PassContext, Target};

use crate::failure::{Result, usage, user};
use crate::input::Input;
use crate::output::{Output, out};

/// The file and the line of `FILE:LINE`; all lines without one.
fn place(text: &str) -> (PathBuf, Option<u32>) {
    match text.rsplit_once(':') {
        Some((file, line)) => match line.parse() {
            Ok(line) => (file.into(), Some(line)),
            Err(_) => (text.into(), None),
        },
        None => (text.into(), None),
    }
}

pub(crate) fn run(input: &Input, _: &Output) -> Result<()> {
    out(&explained(input)?)
}

fn explained(input: &Input) -> Result<String> {
    let text = input.file.to_string_lossy().into_owned();
    let (file, line) = place(&text);
    let input = Input {
        file,
        options: crate::input::Options {
            entry: input.options.entry.clone(),
            define: input.options.define.clone(),
            arch: input.options.arch.clone(),
            ..input.options.clone()
        },
    };
    if line == Some(0) {
        return Err(usage("lines count from 1"));
    }
    let loaded = input.load()?;
    let entries = match input.options.entry {
        Some(_) => vec![input.pick(&loaded)?],
        None => loaded.file().entries().to_vec(),
    };
    let context = PassContext::new(Target::cuda(input.options.arch.as_str()), &Options::default());
    let mut out = String::new();
    let mut calls = 0;
    for entry in &entries {
        // Kernels of the file that need values are skipped, except the one that was named.
        let module = match input.build(&loaded, entry) {
            Ok(module) => module,
            Err(error) if entries.len() == 1 => return Err(error),
            Err(_) => continue,
        };
        for decision in explain(&module, &context) {
            let at = module.sources.locate(decision.span);
            calls += 1;
            if line.is_some_and(|line| at.as_ref().is_none_or(|at| at.line != line)) {
                continue;
            }
            if let Some(at) = at {
                out.push_str(&format!("{}:{}: {}\n", at.file, at.line, at.line_text.trim()));
            }
            describe(&mut out, &decision);
        }
    }
    match (out.is_empty(), line) {
        (false, _) => Ok(out),
        (true, Some(line)) if calls > 0 => Err(user(format_args!(
            "there is no tile primitive on line {line} of `{}`",
            input.file.display()
        ))),
        _ => Err(user(format_args!(
            "the kernels of `{}` have no tile primitives",
            input.file.display()
        ))),
    }
}

/// The variants and their outcomes, the partition and the code.
fn describe(out: &mut String, decision: &Decision) {
    let width = decision
        .rows
        .iter()
        .map(|(name, _)| name.len())
        .max()
        .unwrap_or(0);
    for (name, outcome) in &decision.rows {
        let said = match outcome {
            Outcome::Chosen => "chosen".to_string(),
            Outcome::NotAsked => "not asked".to_string(),
            Outcome::Declined(reason) => format!("declines: {reason}"),
        };
        out.push_str(&format!("  {name:<width$}  {said}\n"));
    }
    if decision.rows.is_empty() {
        out.push_str("  no variants\n");
    }
    if let Some([rounds, threads, vector]) = decision.partition {
        out.push_str(&format!(
            "  partition: {rounds} rounds x {threads} threads x {vector} elements\n"
        ));
    }
    for line in &decision.lines {
        out.push_str(&format!("  plan: {line}\n"));
    }
    if let Some(completion) = decision.completion {
        out.push_str(&format!("  the caller waits for {completion}\n"));
    }
    if let Some(code) = &decision.code {
        for line in print_stmt(code).lines() {
            out.push_str(&format!("    {line}\n"));
        }
    }
    out.push('\n');
}
