//! Developer tasks, run as `cargo xtask TASK`.
//!
//! | task | what it does |
//! |---|---|
//! | `test` | installs the pinned nvcc, nvdisasm and sccache if there are none, then runs every test |
//! | `kernel-packages` | makes the packages of compiled kernels, `tirx-kernels/compiled` |
//! | `gpu-kit` | builds `gpu-kit/`: executables and `run.sh` for a machine with a driver and nothing else |
//! | `oracle` | compares IR after each pass, and machine code, of every kernel with Apache TVM's |
//! | `published` | builds users' crates from the packaged crates, as a registry would serve them; `verify` compiles each |
//! | `targets` | checks that users' crates compile for other machines: ARM, musl, macOS, Windows |
//! | `public-kernels` | compiles every configuration of a public kernel library |
//! | `mutants` | takes each synchronization out of each kernel with values: the simulator must report it |
//! | `playground` | builds the page of `playground/` into `target/playground`; `--test` tests it under node and in Chromium |
//! | `book` | builds the book of `docs/book` into `target/book`; `--test` presses each *Run* in Chromium, `--pages` writes the pages alone |
//! | `bench` | the benches of `docs/developing/performance.md`, in release and without optimization |

#![forbid(unsafe_code)]

mod book;
mod gpu_kit;
mod kernel_packages;
mod oracle;
mod playground;
mod process;
mod public_kernels;
mod published;
mod targets;

use std::path::Path;
use std::process::{Command, ExitCode};

use tirx_build::{Environment, toolchain};

use process::{Result, cargo, output, run};

/// The release of CUDA whose nvcc the tests run.
const CUDA: &str = "13.0";

/// The workspace's root.
fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

fn test(args: &[String]) -> Result<()> {
    // The tests compile every kernel with nvcc and read machine code with nvdisasm: each is installed if it is missing.
    let environment = Environment::process();
    let mut say = |line: &str| println!("{line}");
    let release = CUDA.parse().map_err(|_| format!("{CUDA} is no release"))?;
    let nvcc = toolchain::install(&environment, release, &mut say)?;
    let disassembler = toolchain::install_disassembler(&environment, &mut say)?;
    println!("{nvcc}\n{}", disassembler.display());
    // One test shares compiled kernels through sccache; without it the test prints a note and passes.
    let tools = root().join("target/tools/sccache");
    if !tools.is_dir() {
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--target"])
            .arg(&tools)
            .arg("sccache");
        if let Err(error) = run(&mut pip) {
            eprintln!("note: no sccache: {error}");
        }
    }
    // Each test that is skipped adds a line.
    let skipped = root().join("target/skipped-tests.txt");
    let _ = std::fs::remove_file(&skipped);
    let result = run(cargo(["test", "--workspace"]).args(args));
    let skipped = std::fs::read_to_string(&skipped).unwrap_or_default();
    println!("{} tests were skipped\n{skipped}", skipped.lines().count());
    result
}

fn mutants() -> Result<()> {
    run(&mut cargo([
        "test",
        "-p",
        "tirx-tests",
        "--test",
        "kernels",
        "mutants",
        "--",
        "--ignored",
        "--nocapture",
    ]))
}

fn bench(args: &[String]) -> Result<()> {
    let reference = oracle::python()?;
    let compile = |profile: &str| {
        let mut bench = cargo(["bench", "-p", "tirx-tests", "--bench", "compile", "--profile"]);
        bench.arg(profile).env("TIRX_TVM_PYTHON", &reference);
        bench
    };
    // Everything is built before the first measurement, so that all measurements are of the same state.
    for profile in ["bench", "dev"] {
        run(compile(profile).arg("--no-run"))?;
    }
    for bench in ["stages", "simulator"] {
        run(&mut cargo([
            "bench",
            "-p",
            "tirx-tests",
            "--no-run",
            "--bench",
            bench,
        ]))?;
    }
    println!("\n## Source to CUDA text\n");
    println!("| kernel | profile | tirx | TVM | ratio |\n|---|---|---|---|---|");
    for profile in ["bench", "dev"] {
        print!("{}", output(compile(profile).args(["--", "--rows"]))?);
    }
    println!("\n## By size\n");
    run(&mut cargo(["bench", "-p", "tirx-tests", "--bench", "stages"]))?;
    println!("\n## Simulator\n");
    run(cargo(["bench", "-p", "tirx-tests", "--bench", "simulator"]).args(args))
}

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let task = args.next().unwrap_or_default();
    let rest: Vec<String> = args.collect();
    let result = match task.as_str() {
        "test" => test(&rest),
        "gpu-kit" => gpu_kit::build(root()),
        "kernel-packages" => kernel_packages::build(root(), &rest),
        "oracle" => oracle::compare(root(), &rest),
        "playground" => playground::build(root(), &rest),
        "book" => book::build(root(), &rest),
        "published" => published::check(root(), &rest),
        "targets" => targets::check(root(), &rest),
        "public-kernels" => public_kernels::compile_all(&rest),
        "mutants" => mutants(),
        "bench" => bench(&rest),
        _ => Err(
            "usage: cargo xtask test | gpu-kit | kernel-packages | oracle | playground | book | published | targets | public-kernels | mutants | bench"
                .into(),
        ),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
