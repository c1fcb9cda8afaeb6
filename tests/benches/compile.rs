//! Source to CUDA text, for scale and for the matmul. With `TIRX_TVM_PYTHON` (a Python that has Apache TVM; set by
//! `cargo xtask bench`) TVM does the same in the same run, on the same text: the one kernel without its file's others.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use tirx_core::script::ConstValue;
use tirx_tests::{Defines, cuda_text, only, root};

/// File, entry, constants of one specialization.
type Kernel = (&'static str, &'static str, &'static [(&'static str, i64)]);

const KERNELS: &[Kernel] = &[
    ("vector.py", "scale", &[]),
    ("matrix.py", "matmul", &[("M", 512), ("N", 512), ("K", 512)]),
];

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

fn compile(c: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let profile = if cfg!(debug_assertions) {
        "without optimization"
    } else {
        "release"
    };
    let mut group = c.benchmark_group(format!("source to CUDA, {profile}"));
    for (file, entry, constants) in KERNELS {
        let whole = std::fs::read_to_string(root().join("kernels").join(file)).expect("an example kernel");
        let text = only(&whole, entry).expect("the file has the kernel");
        let define = |(name, value): &(&str, i64)| (name.to_string(), ConstValue::Int(*value));
        let defines: Defines = constants.iter().map(define).collect();
        group.bench_function(format!("{entry}, tirx"), |b| {
            b.iter(|| cuda_text(file, &text, entry, &defines, "sm_90a").expect("the kernel compiles"))
        });
        let Some(python) = std::env::var_os("TIRX_TVM_PYTHON") else {
            continue;
        };
        let path = folder.path().join(file);
        std::fs::write(&path, &text).expect("the temporary folder can be written");
        let seconds = reference(Path::new(&python), &path, entry, constants);
        println!("{entry}: TVM takes {:.1} ms (median of 20)", seconds * 1e3);
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20).measurement_time(Duration::from_secs(3));
    targets = compile
}
criterion_main!(benches);
