//! The subcommands: one row each, with the help text, the name, the arguments that clap reads, and the function that runs.

use crate::failure::Result;
use crate::input::Input;
use crate::output::Output;
use crate::{
    asm, bench, bundle, cache, check, docs, doctor, explain, fix, layout, lsp, new, profile, sanitize,
    simulate, sources, stats, stubs, test, texts, toolchain, tune,
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
    /// Creates a crate with a kernel that runs.
    New(new::New) => new::run,
    /// Checks a kernel file, or every specialization of the manifest, and prints diagnostics.
    Check(check::Check) => check::run,
    /// Prints the IR after the last pass, or after a given one.
    Lower(texts::Lower) => texts::lower,
    /// Prints the generated CUDA C++.
    Cuda(Input) => texts::cuda,
    /// Shows how each tile primitive at FILE:LINE is lowered, and the reasons why other variants do not apply.
    Explain(Input) => explain::run,
    /// Explains a name of the language: signature, meaning, GPUs, an example.
    Docs(docs::Docs) => docs::run,
    /// Shows the location of each element of a layout, as a table and a picture.
    Layout(layout::Show) => layout::run,
    /// Prints the host function: the checks and launches of a launcher, as IR.
    Host(Input) => texts::host,
    /// Runs a kernel on the simulator; reads and writes arrays as .npy files.
    Sim(simulate::Simulate) => simulate::run,
    /// Tests kernels on the simulator against the `# sim:` lines of their files.
    Test(test::Test) => test::run,
    /// Rewrites kernel files of TVM 0.26 into the language of 0.27; the IR stays the same.
    Fix(fix::Fix) => fix::run,
    /// Shows each kernel's registers, spills, memory, code size and occupancy, and their changes.
    Stats(stats::Stats) => stats::run,
    /// Shows a kernel's machine code, PTX or CUDA text next to its source lines, with the hot loop.
    Asm(asm::Asm) => asm::run,
    /// Measures a kernel on the GPU: time, bandwidth and throughput against the device's peak.
    Bench(bench::Bench) => bench::run,
    /// Measures the candidates of tuned kernels on the GPU and writes the record that launchers choose by.
    Tune(tune::Tune) => tune::run,
    /// Runs the application under compute-sanitizer or, without a GPU, on the simulator with several schedules.
    Sanitize(sanitize::Sanitize) => sanitize::run,
    /// Turns a kernel's profiler records into a table and a Perfetto timeline.
    Profile(profile::ProfileCommand) => profile::run,
    /// Runs the language server for editors.
    Lsp(lsp::Lsp) => lsp::run,
    /// Writes Python stubs, so that Pyright can check kernel files.
    Stubs(stubs::Stubs) => stubs::run,
    /// Shows, installs and removes versions of nvcc.
    #[command(subcommand)]
    Toolchain(toolchain::Toolchain) => toolchain::run,
    /// Reports the tools that a build on this machine finds, and the missing tools.
    Doctor(doctor::Doctor) => doctor::run,
    /// Writes or checks a bundle of compiled kernels, for builds without nvcc.
    Bundle(bundle::Bundle) => bundle::run,
    /// Writes or checks launchers and compiled kernels as source files, for a crate without a build script.
    Sources(sources::Sources) => sources::run,
    /// Shows and cleans the per-user store of compiled kernels.
    Cache(cache::Cache) => cache::run,
}
