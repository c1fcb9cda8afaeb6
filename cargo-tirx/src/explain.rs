//! `cargo tirx explain FILE:LINE`: how the tile primitives of a line are lowered.

use std::path::PathBuf;

use tirx_core::judge::gpu_of;
use tirx_services::tiles::{Explained, Variant, explained as explained_calls};

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
    let named = input.gpu()?;
    let mut out = String::new();
    let mut calls = 0;
    for entry in &entries {
        // Kernels of the file that need values are skipped, except the one that was named.
        let module = match input.build(&loaded, entry) {
            Ok(module) => module,
            Err(error) if entries.len() == 1 => return Err(error),
            Err(_) => continue,
        };
        let gpu = named.unwrap_or_else(|| gpu_of(&module));
        for call in explained_calls(&module, gpu) {
            calls += 1;
            if line.is_some_and(|line| call.line != Some(line)) {
                continue;
            }
            if let (Some(file), Some(line)) = (&call.file, call.line) {
                out.push_str(&format!("{file}:{line}: {}\n", call.text));
            }
            describe(&mut out, &call);
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
fn describe(out: &mut String, call: &Explained) {
    let width = call.variants.iter().map(|variant| variant.name.len()).max();
    let width = width.unwrap_or(0);
    for Variant {
        name,
        outcome,
        reason,
    } in &call.variants
    {
        let colon = if reason.is_empty() { "" } else { ": " };
        out.push_str(&format!("  {name:<width$}  {outcome}{colon}{reason}\n"));
    }
    if call.variants.is_empty() {
        out.push_str("  no variants\n");
    }
    if let Some([rounds, threads, vector]) = call.partition {
        out.push_str(&format!(
            "  partition: {rounds} rounds x {threads} threads x {vector} elements\n"
        ));
    }
    for line in &call.plan {
        out.push_str(&format!("  plan: {line}\n"));
    }
    if let Some(completion) = &call.completion {
        out.push_str(&format!("  the caller waits for {completion}\n"));
    }
    for line in call.code.iter().flat_map(|code| code.lines()) {
        out.push_str(&format!("    {line}\n"));
    }
    out.push('\n');
}
