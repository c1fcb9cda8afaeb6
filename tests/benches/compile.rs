//! Source to CUDA text, for scale and for the matmul: rows of the table in `docs/developing/performance.md`, medians. With
//! `TIRX_TVM_PYTHON` (a Python that has Apache TVM; set by `cargo xtask bench`) TVM does the same in the same run, on
//! the same text: the one kernel without its file's others. `--rows` leaves the table's head out.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use tirx_core::script::ConstValue;
use tirx_tests::{Defines, cuda_text, only, root};

/// File, entry, constants of one specialization.
type Kernel = (&'static str, &'static str, &'static [(&'static str, i64)]);

const KERNELS: &[Kernel] = &[
    ("vector.py", "scale", &[]),
    ("matrix.py", "matmul", &[("M", 512), ("N", 512), ("K", 512)]),
];

/// How long one kernel is compiled again and again, and how often at least.
const LONG_ENOUGH: Duration = Duration::from_secs(2);
const OFTEN_ENOUGH: usize = 20;

/// Seconds that TVM takes: the median of 20 compilations.
fn reference(python: &Path, path: &Path, entry: &str, constants: &[(&str, i64)]) -> f64 {
    let output = Command::new(python)
        .arg(root().join("xtask/python/tvm_cuda.py"))
        .arg(path)
        .arg(entry)
        .args(constants.iter().map(|(name, value)| format!("{name}={value}")))
        .args(["--time", "20"])
        .output()
        .expect("TVM's Python starts");
    let printed = String::from_utf8_lossy(&output.stdout);
    match printed.trim().parse() {
        Ok(seconds) => seconds,
        Err(_) => panic!("TVM failed: {}", String::from_utf8_lossy(&output.stderr)),
    }
}

/// The median seconds of many runs, after one that is not counted.
fn median(run: impl Fn()) -> f64 {
    run();
    let (start, mut times) = (Instant::now(), Vec::new());
    while times.len() < OFTEN_ENOUGH || start.elapsed() < LONG_ENOUGH {
        let before = Instant::now();
        run();
        times.push(before.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let profile = if cfg!(debug_assertions) {
        "`opt-level = 0`"
    } else {
        "release"
    };
    if !std::env::args().any(|a| a == "--rows") {
        println!("| kernel | profile | tirx | TVM | ratio |\n|---|---|---|---|---|");
    }
    for (file, entry, constants) in KERNELS {
        let whole = std::fs::read_to_string(root().join("kernels").join(file)).expect("an example kernel");
        let text = only(&whole, entry).expect("the file has the kernel");
        let define = |(name, value): &(&str, i64)| (name.to_string(), ConstValue::Int(i128::from(*value)));
        let defines: Defines = constants.iter().map(define).collect();
        let ours = median(|| {
            let text = cuda_text(file, &text, entry, &defines, "sm_90a").expect("the kernel compiles");
            std::hint::black_box(text);
        });
        let sizes: Vec<String> = constants.iter().map(|(n, v)| format!("{n} = {v}")).collect();
        let name = format!("`{entry}` {}", sizes.join(", "));
        let (theirs, ratio) = match std::env::var_os("TIRX_TVM_PYTHON") {
            None => ("not measured".into(), "".into()),
            Some(python) => {
                let path = folder.path().join(file);
                std::fs::write(&path, &text).expect("the temporary folder can be written");
                let seconds = reference(Path::new(&python), &path, entry, constants);
                (
                    format!("{:.1} ms", seconds * 1e3),
                    format!("{:.0}", seconds / ours),
                )
            }
        };
        println!(
            "| {} | {profile} | {:.2} ms | {theirs} | {ratio} |",
            name.trim(),
            ours * 1e3
        );
    }
}
