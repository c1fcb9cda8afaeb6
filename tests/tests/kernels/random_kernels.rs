//! Random kernels compute the same with few passes and with all.
//!
//! `TIRX_RANDOM_KERNELS=10000` sets how many, `TIRX_RANDOM_SEED=1` the first seed, `TIRX_NVCC=path` asks nvcc about one
//! kernel in `TIRX_RANDOM_NVCC=5`, `TIRX_TVM_PYTHON=path` compares one kernel in `TIRX_RANDOM_TVM=20` with TVM's,
//! `TIRX_RANDOM_TRACE=1` says each seed first, `TIRX_RANDOM_EXACT=1` takes the kernels that `on_gpu.rs` compares with a
//! GPU. Run large numbers with `--release`: see docs/developing/testing.md.

use tirx_tests::differential::{Settings, check, run_seeds};
use tirx_tests::generator::{generate, generate_exact};
use tirx_tests::number;

#[test]
fn random_kernels_mean_the_same_however_they_are_lowered() {
    let count = number("TIRX_RANDOM_KERNELS", 200);
    let first = number("TIRX_RANDOM_SEED", 1);
    let scratch = tempfile::tempdir().unwrap();
    let settings = Settings {
        nvcc: tirx_tests::nvcc::nvcc(),
        nvcc_every: number("TIRX_RANDOM_NVCC", 5),
        tvm: std::env::var_os("TIRX_TVM_PYTHON").map(Into::into),
        tvm_every: number("TIRX_RANDOM_TVM", 20),
        scratch: scratch.path().to_path_buf(),
        most_failures: number("TIRX_RANDOM_FAILURES", 5) as usize,
        shrink: 2000,
        threads: std::thread::available_parallelism().map_or(1, usize::from),
        trace: std::env::var_os("TIRX_RANDOM_TRACE").is_some(),
        exact: std::env::var_os("TIRX_RANDOM_EXACT").is_some(),
    };
    // A panic is reported with its kernel.
    std::panic::set_hook(Box::new(|_| {}));
    let started = std::time::Instant::now();
    let report = run_seeds(first, count, &settings);
    let _ = std::panic::take_hook();
    println!(
        "{} kernels from seed {first} in {:.0?}: {} through nvcc, {} the same by TVM ({} refused), {} failed",
        report.kernels,
        started.elapsed(),
        report.nvcc,
        report.tvm,
        report.refused_by_tvm,
        report.failures.len()
    );
    let failures: Vec<String> = report.failures.iter().map(ToString::to_string).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert_eq!(report.kernels, count);
}

/// Kernels of which lowering once made sums or products that overflow where the kernel's own do not, a remainder of another value, or a name for a
/// quotient outside of the branch that needs it.
#[test]
fn lowering_adds_no_overflow() {
    for seed in [
        20261299, 20264113, 30302019, 30302196, 71123102, 830994, 55504759, 55505092, 55506443,
    ] {
        let checked = check(&generate_exact(seed));
        assert!(checked.is_ok(), "seed {seed}: {}", checked.unwrap_err());
    }
    for seed in [
        20261124795,
        20261125619,
        20261201557,
        20261203065,
        20261203992,
        20261205693,
    ] {
        for kernel in [generate(seed), generate_exact(seed)] {
            let checked = check(&kernel);
            assert!(checked.is_ok(), "seed {seed}: {}", checked.unwrap_err());
        }
    }
}
