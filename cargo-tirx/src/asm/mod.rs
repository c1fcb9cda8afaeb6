//! `cargo tirx asm`: what a kernel became, beside the lines of its file.

mod listing;
mod loops;

use std::path::PathBuf;
use std::process::Command;

use tirx_build::{CodeForm, KernelCode, disassembler};

use crate::failure::{Result, choice, user};
use crate::output::{Output, out, say};
use listing::{Function, Syntax};

#[derive(clap::Args, Debug)]
pub(crate) struct Asm {
    /// A kernel of the manifest, or one of its specializations (`add::n256`).
    kernel: String,
    /// Shows machine code, through nvdisasm; the default if nvdisasm is installed.
    #[arg(long, conflicts_with_all = ["ptx", "cuda"])]
    sass: bool,
    /// Shows PTX.
    #[arg(long, conflicts_with = "cuda")]
    ptx: bool,
    /// Shows the CUDA text.
    #[arg(long)]
    cuda: bool,
    /// Shows only this target, such as `sm_90a`.
    #[arg(long, value_name = "ARCH")]
    target: Option<String>,
    /// Prints only the counts and the hot loop.
    #[arg(long, conflicts_with = "cuda")]
    summary: bool,
    /// The manifest.
    #[arg(long, value_name = "FILE", default_value = "kernels.toml")]
    manifest: PathBuf,
}

pub(crate) fn run(command: &Asm, _: &Output) -> Result<()> {
    let builder = crate::dependencies::builder(&command.manifest);
    let tool = disassembler(&builder);
    if command.sass && tool.is_none() {
        return Err(user(
            "there is no nvdisasm\n  = help: run `cargo tirx toolchain nvdisasm`, or set TIRX_NVDISASM to the one to use; `--ptx` needs none",
        ));
    }
    let form = match (command.cuda, command.ptx, &tool) {
        (true, _, _) => CodeForm::Cuda,
        (_, true, _) | (_, _, None) => CodeForm::Ptx,
        _ => CodeForm::Machine,
    };
    if form == CodeForm::Ptx && !command.ptx {
        say("PTX, as there is no nvdisasm for machine code: `cargo tirx toolchain nvdisasm` fetches it\n");
    }
    let names = std::cell::RefCell::new(Vec::new());
    let wanted = |name: &str| {
        names.borrow_mut().push(name.to_string());
        name == command.kernel
            || name
                .strip_prefix(&command.kernel)
                .is_some_and(|rest| rest.starts_with("::"))
    };
    let mut codes = builder.code(&wanted, form)?;
    if codes.is_empty() {
        let names = names.borrow();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        return Err(user(format_args!(
            "the manifest has no kernel `{}`\n  = help: {}",
            command.kernel,
            choice(&command.kernel, &names, "it has")
        )));
    }
    if let Some(target) = &command.target {
        let targets: Vec<String> = codes.iter().map(|code| code.target.clone()).collect();
        codes.retain(|code| code.target == *target);
        if codes.is_empty() {
            let targets: Vec<&str> = targets.iter().map(String::as_str).collect();
            return Err(user(format_args!(
                "`{}` is not compiled for {target}\n  = help: {}",
                command.kernel,
                choice(target, &targets, "its targets are")
            )));
        }
    }
    let mut text = String::new();
    for code in &codes {
        match (form, &tool) {
            (CodeForm::Cuda, _) => text += &beside_cuda(code),
            (CodeForm::Machine, Some(tool)) => {
                let shown = disassembled(tool, &code.code)?;
                text += &beside(code, &listing::read(&shown, Syntax::Sass), command.summary);
            }
            _ => {
                let shown = String::from_utf8_lossy(&code.code);
                text += &beside(
                    code,
                    &listing::read(shown.trim_end_matches('\0'), Syntax::Ptx),
                    command.summary,
                );
            }
        }
    }
    out(&text)
}

/// What nvdisasm prints of an ELF file.
fn disassembled(tool: &std::path::Path, code: &[u8]) -> Result<String> {
    let failed = |why: String| user(format_args!("`{}` {why}", tool.display()));
    let folder = tempfile::tempdir().map_err(|error| failed(format!("needs a folder: {error}")))?;
    let file = folder.path().join("kernel.cubin");
    std::fs::write(&file, code).map_err(|error| failed(format!("needs a file: {error}")))?;
    let output = Command::new(tool)
        .args(["--print-line-info", "--print-code"])
        .arg(&file)
        .output()
        .map_err(|error| failed(format!("cannot be run: {error}")))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(failed(format!(
            "fails: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        ))),
    }
}

/// A file's name as a line table has it: nvcc writes bytes that are not ASCII as `\303`, and the tools behind it take some of these
/// backslashes for the separators of a path, so that all of them are `/` here.
fn in_line_table(name: &str) -> String {
    let byte = |byte: u8| match byte {
        b'\\' => "/".to_string(),
        _ if byte.is_ascii() => char::from(byte).to_string(),
        _ => format!("/{byte:03o}"),
    };
    name.bytes().map(byte).collect()
}

/// The line of a kernel file: `kernels/vector.py:7  C[tx] = A[tx] + B[tx]`.
fn heading(code: &KernelCode, file: &str, line: u32) -> Option<String> {
    let file = in_line_table(file);
    let (name, text) = code.files.iter().find(|(name, _)| {
        file.strip_suffix(&in_line_table(name))
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
    })?;
    let line_text = text.lines().nth(line.checked_sub(1)? as usize)?;
    Some(format!("{name}:{line}  {}", line_text.trim()))
}

/// The CUDA text, with a heading wherever the kernel's line changes.
fn beside_cuda(code: &KernelCode) -> String {
    let mut text = format!("{} for {}\n\n", code.kernel, code.target);
    let mut last = None;
    for (at, line) in code.cuda.lines().enumerate() {
        let place = code.lines.get(at).and_then(Option::as_ref);
        if let Some((file, number)) = place
            && last != place
        {
            last = place;
            if let Some(heading) = heading(code, file, *number) {
                text += &format!("{heading}\n");
            }
        }
        text += &format!("    {line}\n");
    }
    text.push('\n');
    text
}

/// The functions, each with its counts, its hot loop, and its instructions below the kernel's lines.
fn beside(code: &KernelCode, functions: &[Function], summary: bool) -> String {
    let mut text = String::new();
    for function in functions {
        let all = function.all();
        let kernels_line = |part: &std::collections::BTreeSet<usize>| {
            let lines = function.lines(part);
            let own: Vec<u32> = lines
                .into_iter()
                .filter(|(file, line)| heading(code, file, *line).is_some())
                .map(|(_, line)| line)
                .collect();
            match (own.iter().min(), own.iter().max()) {
                (Some(first), Some(last)) if first == last => format!(", line {first}"),
                (Some(first), Some(last)) => format!(", lines {first} to {last}"),
                _ => String::new(),
            }
        };
        text += &format!(
            "{} for {}: {}, {} instructions\n",
            code.kernel,
            code.target,
            function.name,
            function.count(&all)
        );
        text += &format!("  all: {}\n", function.classes(&all));
        let hot = function.hot_loop();
        match &hot {
            Some(hot) => {
                text += &format!(
                    "  hot loop: {} instructions{}: {}\n",
                    function.count(hot),
                    kernels_line(hot),
                    function.classes(hot)
                );
            }
            None => text += "  no loop\n",
        }
        text.push('\n');
        if summary {
            continue;
        }
        let mut last = None;
        for (at, item) in function.items.iter().enumerate() {
            let margin = match hot.as_ref().is_some_and(|hot| hot.contains(&at)) {
                true => "  |",
                false => "   ",
            };
            if let Some(place) = &item.place
                && last.as_ref() != Some(place)
            {
                last = Some(place.clone());
                if let Some(heading) = heading(code, &place.0, place.1) {
                    text += &format!("{heading}\n");
                }
            }
            let indent = if item.mnemonic.is_empty() { "" } else { "    " };
            text += &format!("{margin} {indent}{}\n", item.text);
        }
        text.push('\n');
    }
    text
}
