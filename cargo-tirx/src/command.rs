//! The subcommands: one row each, with the help text, the name, the arguments that clap reads, and the function that runs.

use std::io::Write;

use crate::input::{Input, Result, user};
use crate::output::Output;
use crate::{
    asm, bundle, cache, check, doctor, explain, layout, lsp, new, profile, sanitize, simulate, stats, stubs,
    test, texts, toolchain,
};

macro_rules! commands {
    ($($(#[$attribute:meta])* $name:ident($arguments:ty) => $run:path,)*) => {
        #[derive(clap::Subcommand, Debug)]
        pub(crate) enum Command {
            $($(#[$attribute])* $name($arguments),)*
        }

        impl Command {
            /// Does what the command line asks for. Warnings go to `output`, errors are returned.
            pub(crate) fn run(&self, output: &Output) -> Result<()> {
                match self {
                    $(Command::$name(arguments) => $run(arguments, output),)*
                }
            }
        }
    };
}

commands! {
    /// Writes a crate with a kernel that runs.
    New(new::New) => new::run,
    /// Compiles the kernels of a file, or without one those of the manifest in all specializations, in memory and prints
    /// nothing but diagnostics.
    Check(check::Check) => check::run,
    /// Prints the IR after the last pass, or after the one named.
    Lower(texts::Lower) => texts::lower,
    /// Prints the CUDA text.
    Cuda(Input) => texts::cuda,
    /// Says of the tile primitives of FILE:LINE which variant lowers each, why no other does, and what it becomes.
    Explain(Input) => explain::run,
    /// Prints the map of a layout as a table and writes it as a picture.
    Layout(layout::Show) => layout::run,
    /// Prints the host function: what a launcher checks and launches.
    Host(Input) => texts::host,
    /// Runs a kernel on the simulator, arrays from and to .npy files.
    Sim(simulate::Simulate) => simulate::run,
    /// Runs what kernel files describe in `# sim:` lines, on the simulator.
    Test(test::Test) => test::run,
    /// Registers, spills, memory, code size and occupancy of each kernel on each target, and what changed.
    Stats(stats::Stats) => stats::run,
    /// The machine code, PTX or CUDA text of a kernel beside the lines of its file, with its hot loop and counts.
    Asm(asm::Asm) => asm::run,
    /// Runs the application under compute-sanitizer, or without a GPU on the simulator by several schedules.
    Sanitize(sanitize::Sanitize) => sanitize::run,
    /// The records of a kernel's profiler as a timeline for Perfetto and a table.
    Profile(profile::ProfileCommand) => profile::run,
    /// The language server, for editors: diagnostics, hover, completion, definitions, variants of tile primitives.
    Lsp(lsp::Lsp) => lsp::run,
    /// Writes Python stubs of the language, so that Pyright knows its names.
    Stubs(stubs::Stubs) => stubs::run,
    /// The nvcc that builds use, and those that were fetched.
    #[command(subcommand)]
    Toolchain(toolchain::Toolchain) => toolchain::run,
    /// Says what a build here finds, what it uses of that and why, and what is missing.
    Doctor(doctor::Doctor) => doctor::run,
    /// Writes or checks a bundle: finished kernels, for builds without nvcc.
    Bundle(bundle::Bundle) => bundle::run,
    /// The store of compiled kernels that all packages of the user share: its place and size, without a command.
    Cache(cache::Cache) => cache::run,
}

/// Writes to stdout; a closed pipe (`| head`) is not an error.
pub(crate) fn out(text: &str) -> Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(user(format_args!("cannot write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}
