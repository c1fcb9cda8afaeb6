//! `cargo tirx`: check, lower, print and simulate kernels, and install nvcc.
//!
//! IR and CUDA go to stdout, diagnostics to stderr. Exit code 1 says that the kernel, a file or an argument is at
//! fault, 2 that the command line is.

#![forbid(unsafe_code)]

mod bundle;
mod cache;
mod doctor;
mod explain;
mod input;
mod layout;
mod literal;
mod new;
mod npy;
mod output;
mod simulate;
mod toolchain;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

use clap::{Parser, Subcommand};
use tirx_build::Builder;
use tirx_build::compile::{compile, cuda_source};
use tirx_core::codegen::host as host_ir;
use tirx_core::diagnostic::{Level, Message};
use tirx_core::script::print;
use tirx_core::transform::pass_names;

use input::{Failure, Input, Result, choice, is_lowered, usage, user};
use output::Output;

#[derive(Parser, Debug)]
#[command(
    name = "cargo-tirx",
    bin_name = "cargo tirx",
    version,
    about = "TIRx kernels from the command line."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    output: Output,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Writes a crate with a kernel that runs.
    New(new::New),
    /// Compiles the kernels of a file, or without one those of the manifest in all specializations, in memory and prints
    /// nothing but diagnostics.
    Check(Check),
    /// Prints the IR after the last pass, or after the one named.
    Lower(Lower),
    /// Prints the CUDA text.
    Cuda(Input),
    /// Says of the tile primitives of FILE:LINE which variant lowers each, why no other does, and what it becomes.
    Explain(Input),
    /// Prints the map of a layout as a table and writes it as a picture.
    Layout(layout::Show),
    /// Prints the host function: what a launcher checks and launches.
    Host(Input),
    /// Runs a kernel on the simulator, arrays from and to .npy files.
    Sim(simulate::Simulate),
    /// The nvcc that builds use, and those that were fetched.
    #[command(subcommand)]
    Toolchain(toolchain::Toolchain),
    /// Says what a build here finds, what it uses of that and why, and what is missing.
    Doctor(doctor::Doctor),
    /// Writes or checks a bundle: finished kernels, for builds without nvcc.
    Bundle(bundle::Bundle),
    /// The store of compiled kernels that all packages of the user share: its place and size, without a command.
    Cache(cache::Cache),
}

#[derive(clap::Args, Debug)]
struct Check {
    /// A kernel file, or printed IR; without one, the manifest is checked.
    file: Option<PathBuf>,
    #[command(flatten)]
    options: input::Options,
    /// The manifest to check.
    #[arg(
        long,
        value_name = "FILE",
        default_value = "kernels.toml",
        conflicts_with = "file"
    )]
    manifest: PathBuf,
    /// Checks again whenever a kernel file or a manifest beside it changes.
    #[arg(long)]
    watch: bool,
}

#[derive(clap::Args, Debug)]
struct Lower {
    #[command(flatten)]
    input: Input,
    /// The last pass to run; `parse` prints the kernel as written.
    #[arg(long, value_name = "PASS")]
    stop_after: Option<String>,
    /// A table of the time that each pass took, on stderr.
    #[arg(long)]
    timing: bool,
}

fn main() -> ExitCode {
    // Cargo runs `cargo-tirx tirx …`.
    let mut args: Vec<_> = std::env::args_os().collect();
    if args.get(1).is_some_and(|arg| arg == "tirx") {
        args.remove(1);
    }
    // Prints help and usage errors; the latter with exit code 2.
    let cli = Cli::parse_from(args);
    let result = match &cli.command {
        Command::New(command) => new::run(command),
        Command::Check(command) => check_all(command, &cli.output),
        Command::Lower(command) => lower(command),
        Command::Cuda(input) => cuda(input),
        Command::Explain(input) => explain::run(input).and_then(|text| out(&text)),
        Command::Layout(command) => layout::run(command).and_then(|text| out(&text)),
        Command::Host(input) => host_function(input),
        Command::Sim(command) => simulate::run(command),
        Command::Toolchain(command) => toolchain::run(command),
        Command::Doctor(command) => doctor::run(command),
        Command::Bundle(command) => bundle::run(command),
        Command::Cache(command) => cache::run(command),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::User(messages)) => {
            cli.output.show(&messages);
            ExitCode::from(1)
        }
        Err(Failure::Usage(message)) => {
            cli.output.show(&[*message]);
            ExitCode::from(2)
        }
    }
}

/// Writes to stdout; a closed pipe (`| head`) is not an error.
fn out(text: &str) -> Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(user(format_args!("cannot write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}

fn check_all(command: &Check, output: &Output) -> Result<()> {
    if !command.watch {
        return check_once(command, output);
    }
    let place = command.file.as_ref().unwrap_or(&command.manifest);
    let folder = match place.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    loop {
        let before = changed(folder, 0);
        match check_once(command, output) {
            Ok(()) => output::say(&format!("`{}` is well\n", place.display())),
            Err(Failure::User(messages)) => output.show(&messages),
            Err(usage) => return Err(usage),
        }
        while changed(folder, 0) == before {
            std::thread::sleep(Duration::from_millis(300));
        }
    }
}

fn check_once(command: &Check, output: &Output) -> Result<()> {
    match &command.file {
        Some(file) => check(&command.options.of(file), output),
        None => {
            output.show(&Builder::new().manifest(&command.manifest).check()?);
            Ok(())
        }
    }
}

/// The kernel files and manifests in a folder, each with the time of its last change.
fn changed(folder: &Path, depth: usize) -> Vec<(PathBuf, Option<SystemTime>)> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut files = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        if path.is_dir() && depth < 8 && name != "target" && !name.starts_with('.') {
            files.extend(changed(&path, depth + 1));
        } else if name.ends_with(".py") || name.ends_with(".toml") {
            let time = path.metadata().and_then(|m| m.modified()).ok();
            files.push((path, time));
        }
    }
    files.sort();
    files
}

fn check(input: &Input, output: &Output) -> Result<()> {
    let settings = input.settings()?;
    let values = input.values()?;
    let loaded = input.load()?;
    let entries = match input.options.entry {
        Some(_) => vec![input.pick(&loaded)?],
        None => loaded.file().entries().to_vec(),
    };
    if entries.is_empty() {
        input.pick(&loaded)?;
    }
    let several = entries.len() > 1;
    let mut errors: Vec<Message> = Vec::new();
    for entry in &entries {
        let missing: Vec<&str> = entry
            .constexprs
            .iter()
            .filter(|p| p.required && !values.contains_key(&p.name))
            .map(|p| p.name.as_str())
            .collect();
        if several && !missing.is_empty() {
            let text = format!(
                "`{}` was not checked: it needs {}",
                entry.name,
                missing.join(", ")
            );
            let help = format!(
                "give -D {}=…, or check the manifest, which has the values: `cargo tirx check` without a file",
                missing.join("=… -D ")
            );
            errors.push(Message::new(Level::Error, text).child(Level::Help, help));
            continue;
        }
        let checked = || -> Result<()> {
            let modules = if several {
                // A value applies to the entries that have the parameter.
                let own = values
                    .iter()
                    .filter(|(name, _)| entry.specializable().any(|known| known == *name))
                    .map(|(name, value)| (name.clone(), value.clone()))
                    .collect();
                loaded.build_all(Some(&entry.name), &own)?
            } else {
                input.build_all(&loaded, entry)?
            };
            for built in modules {
                if is_lowered(&built.module) {
                    cuda_source(&built.module)?;
                } else {
                    output.show(&compile(built.module, &settings)?.warnings);
                }
            }
            Ok(())
        };
        match checked() {
            Ok(()) => {}
            Err(Failure::User(messages)) => errors.extend(messages),
            Err(usage) => return Err(usage),
        }
    }
    output.show(&loaded.warnings());
    if errors.is_empty() {
        Ok(())
    } else {
        Err(Failure::User(errors))
    }
}

fn lower(command: &Lower) -> Result<()> {
    let input = &command.input;
    let mut settings = input.settings()?;
    settings.options.finalize_host = true;
    let parse_only = command.stop_after.as_deref() == Some("parse");
    settings.stop_after = command.stop_after.clone();
    if let Some(pass) = &command.stop_after
        && !parse_only
        && !pass_names().contains(&pass.as_str())
    {
        return Err(usage(format_args!(
            "there is no pass `{pass}`\n  = help: {}",
            choice(pass, &pass_names(), "the passes are parse,")
        )));
    }
    let loaded = input.load()?;
    let module = input.build(&loaded, &input.pick(&loaded)?)?;
    if parse_only {
        return out(&print(&module));
    }
    let start = Instant::now();
    let clock = move || start.elapsed().as_nanos() as u64;
    let mut times: Vec<(&str, u64)> = Vec::new();
    let lowered = input.lower(module, &settings, Some(&clock), &mut |step| {
        times.push((step.pass, step.nanoseconds.unwrap_or_default()));
    })?;
    if command.timing {
        let total: u64 = times.iter().map(|(_, time)| time).sum();
        for (pass, time) in times.iter().chain([&("total", total)]) {
            let share = *time as f64 / total.max(1) as f64 * 100.0;
            output::say(&format!(
                "{pass:<24} {:>10.1} µs {share:>5.1} %\n",
                *time as f64 / 1000.0
            ));
        }
    }
    out(&print(&lowered))
}

fn cuda(input: &Input) -> Result<()> {
    let lowered = input.lowered()?;
    let source = cuda_source(&lowered)?;
    if source.kernels.is_empty() {
        return Err(user("the module has no device function"));
    }
    out(&source.text)
}

fn host_function(input: &Input) -> Result<()> {
    let mut lowered = input.lowered()?;
    lowered.functions.retain(|(_, func)| host_ir::is_host(func));
    if lowered.functions.is_empty() {
        return Err(user("the module has no host function"));
    }
    out(&print(&lowered))
}
