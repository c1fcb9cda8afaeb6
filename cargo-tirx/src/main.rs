//! `cargo tirx`: check, lower, print and simulate kernels, and install nvcc.
//!
//! IR and CUDA go to stdout, diagnostics to stderr. Exit code 1 says that the kernel, a file or an argument is at
//! fault, 2 that the command line is. `command` is the table of the subcommands; each has a file.

// A launch with arguments that the command line names is `unsafe`: `bench` makes it.
#![deny(unsafe_code)]
#![warn(clippy::undocumented_unsafe_blocks)]

/// Compiling is many small allocations, and the system's allocator takes a quarter of the time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod accuracy;
mod asm;
mod bench;
mod bundle;
mod cache;
mod check;
mod command;
mod cost;
mod coverage;
mod dependencies;
mod docs;
mod doctor;
mod explain;
mod failure;
mod fix;
mod input;
mod layout;
mod literal;
mod lsp;
mod new;
mod npy;
mod observed;
mod output;
mod packages;
mod profile;
mod sanitize;
mod simulate;
mod sources;
mod stats;
mod stubs;
mod table;
mod tensor_map;
mod test;
mod texts;
mod toolchain;
mod tune;

use std::process::ExitCode;

use clap::Parser;

use command::Command;
use failure::Failure;
use output::Output;

#[derive(Parser, Debug)]
#[command(
    name = "cargo-tirx",
    bin_name = "cargo tirx",
    version,
    about = "GPU kernels as a Cargo build dependency: checks, tests and compiles TIRx kernels.",
    after_help = concat!("Book, reference and playground: ", env!("CARGO_PKG_REPOSITORY"))
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    output: Output,
}

fn main() -> ExitCode {
    // Cargo runs `cargo-tirx tirx …`.
    let mut args: Vec<_> = std::env::args_os().collect();
    if args.get(1).is_some_and(|arg| arg == "tirx") {
        args.remove(1);
    }
    // Prints help and usage errors; the latter with exit code 2.
    let cli = Cli::parse_from(args);
    match cli.command.run(&cli.output) {
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
