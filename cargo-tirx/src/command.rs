//! The subcommands: one row each, with the help text, the name, the arguments that clap reads, and the function that runs.

use crate::failure::Result;
use crate::input::Input;
use crate::output::Output;
use crate::{
    asm, bench, bundle, cache, check, doctor, explain, fix, layout, lsp, new, profile, sanitize, simulate,
    stats, stubs, test, texts, toolchain,
};

macro_rules! commands {
    ($($(#[$attribute:meta])* $name:ident($arguments:ty) => $run:path,)*) => {
        #[derive(clap::Subcommand, Debug)]
        pub(crate) enum Command {
            $($(#[$attribute])* $name(Box<$arguments>),)*
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
    /// Checks kernels and prints diagnostics: those of a file, or every specialization in the manifest.
    Check(check::Check) => check::run,
    /// Prints the IR after the last pass, or after the one named.
    Lower(texts::Lower) => texts::lower,
    /// Prints the CUDA text.
    Cuda(Input) => texts::cuda,
    /// Shows how each tile primitive at FILE:LINE is lowered, and why the other variants do not apply.
    Explain(Input) => explain::run,
    /// Prints the map of a layout as a table and writes it as a picture.
    Layout(layout::Show) => layout::run,
    /// Prints the host function: the checks and launches of a launcher, as IR.
    Host(Input) => texts::host,
    /// Runs a kernel on the simulator; reads and writes arrays as .npy files.
    Sim(simulate::Simulate) => simulate::run,
    /// Tests kernels on the simulator against the `# sim:` lines of their files.
    Test(test::Test) => test::run,
    /// Rewrites kernel files of TVM 0.26 into the language of 0.27; the IR stays the same.
    Fix(fix::Fix) => fix::run,
    /// Shows registers, spills, memory, code size and occupancy of each kernel on each target, and changes.
    Stats(stats::Stats) => stats::run,
    /// Shows the machine code, PTX or CUDA text of a kernel beside its lines, with its hot loop and counts.
    Asm(asm::Asm) => asm::run,
    /// Measures a kernel of the manifest on the GPU: time, bytes and operations a second against what the device has.
    Bench(bench::Bench) => bench::run,
    /// Runs the application under compute-sanitizer, or without a GPU on the simulator by several schedules.
    Sanitize(sanitize::Sanitize) => sanitize::run,
    /// Turns the records of a kernel's profiler into a timeline for Perfetto and a table.
    Profile(profile::ProfileCommand) => profile::run,
    /// Runs the language server for editors: diagnostics, hover, completion, definitions, tile primitives.
    Lsp(lsp::Lsp) => lsp::run,
    /// Writes Python stubs of the language, so that Pyright knows its names.
    Stubs(stubs::Stubs) => stubs::run,
    /// Shows which nvcc builds use; fetches and removes others.
    #[command(subcommand)]
    Toolchain(toolchain::Toolchain) => toolchain::run,
    /// Checks this machine: which tools a build finds and uses, and what is missing.
    Doctor(doctor::Doctor) => doctor::run,
    /// Writes or checks a bundle: finished kernels, for builds without nvcc.
    Bundle(bundle::Bundle) => bundle::run,
    /// Shows and cleans the store of compiled kernels, which all packages of a user share.
    Cache(cache::Cache) => cache::run,
}
