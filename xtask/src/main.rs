//! Developer tasks, run as `cargo xtask TASK`.
//!
//! | task | what it does |
//! |---|---|
//! | `test` | installs the pinned nvcc if there is none, then runs every test |
//! | `gpu-kit` | builds `gpu-kit/`: executables and `run.sh` for a machine with a driver and nothing else |
//! | `oracle` | compares IR after each pass, and machine code, of every kernel with Apache TVM's |
//! | `bench` | the benches of `docs/performance.md`, in release and without optimization |

#![forbid(unsafe_code)]

mod gpu_kit;
mod oracle;
mod process;

use std::path::Path;
use std::process::ExitCode;

use process::{Result, cargo, run};

/// The workspace's root.
fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

fn test(args: &[String]) -> Result<()> {
    // Tests compile every kernel for real: they need nvcc, and a bare machine has none.
    run(&mut cargo([
        "run",
        "--quiet",
        "-p",
        "cargo-tirx",
        "--",
        "tirx",
        "toolchain",
        "install",
    ]))?;
    run(cargo(["test", "--workspace"]).args(args))
}

fn bench(args: &[String]) -> Result<()> {
    let reference = oracle::python()?;
    for profile in ["bench", "dev"] {
        run(cargo([
            "bench",
            "-p",
            "tirx-tests",
            "--bench",
            "compile",
            "--profile",
            profile,
        ])
        .env("TIRX_TVM_PYTHON", &reference)
        .args(args))?;
    }
    run(&mut cargo(["bench", "-p", "tirx-tests", "--bench", "stages"]))?;
    run(cargo(["bench", "-p", "tirx-tests", "--bench", "simulator"]).args(args))
}

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let task = args.next().unwrap_or_default();
    let rest: Vec<String> = args.collect();
    let result = match task.as_str() {
        "test" => test(&rest),
        "gpu-kit" => gpu_kit::build(root()),
        "oracle" => oracle::compare(root(), &rest),
        "bench" => bench(&rest),
        _ => Err("usage: cargo xtask test | gpu-kit | oracle | bench".into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
