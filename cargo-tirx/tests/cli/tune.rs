//! `cargo tirx tune`, with and without a GPU.

use std::fs;

use tirx_build::tuning::{FOLDER, TuningRecord};
use tirx_test_tools::skip;

use super::{Folder, Outcome, nvcc};

const KERNELS: &str = r#"from __future__ import annotations
from tvm.script import tirx as T


@T.jit
def scale(a: T.handle, b: T.handle, f: T.float32, rows: T.int32, *, TILE: T.constexpr):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float16")
    B = T.match_buffer(b, (n,), "float16")
    T.device_entry()
    by, bx = T.cta_id([rows, T.ceildiv(n, TILE)])
    tx = T.thread_id([TILE])
    if bx * TILE + tx < n and by == 0:
        B[bx * TILE + tx] = A[bx * TILE + tx] * T.cast(f, "float16")
"#;

const MANIFEST: &str = "[defaults]\ntargets = [\"sm_90a\", \"sm_100a\"]\n\n[[kernel]]\nname = \"scale\"\nsource = \"k.py\"\n\
                        [kernel.tune]\nvalues = { TILE = [256, 64] }\n\
                        sizes = [{ n = 100_000, rows = 1 }, { n = 1000, rows = 1 }]\n";

fn folder() -> Folder {
    let folder = Folder::new();
    fs::write(folder.path("k.py"), KERNELS).unwrap();
    fs::write(folder.path("kernels.toml"), MANIFEST).unwrap();
    folder
}

fn run(folder: &Folder, arguments: &[&str]) -> Outcome {
    folder.run_with(arguments, &[("TIRX_NVCC", "none")])
}

#[test]
fn the_simulator_verifies_candidates() {
    let folder = folder();
    let outcome = run(&folder, &["tune", "--simulator"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.err);
    assert_eq!(
        outcome.out,
        "scale: 2 candidates verified on the simulator at n = 1000, rows = 1\n"
    );
    let outcome = run(
        &folder,
        &[
            "tune",
            "scale",
            "--simulator",
            "--size",
            "n=7",
            "--size",
            "rows=2",
        ],
    );
    assert_eq!(
        outcome.out,
        "scale: 2 candidates verified on the simulator at n = 7, rows = 2\n"
    );
    assert!(!folder.path(FOLDER).exists());
}

#[test]
fn without_a_gpu_there_is_no_record() {
    let outcome = run(&folder(), &["tune", "--device", "4096"]);
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.out.contains("2 candidates verified"), "{}", outcome.out);
    for part in [
        "no CUDA device 4096: ",
        "only a GPU measures candidates",
        "= help: run `cargo tirx tune` on",
    ] {
        assert!(outcome.err.contains(part), "{}", outcome.err);
    }
}

#[test]
fn candidates_with_other_results_are_refused() {
    let folder = folder();
    let wrong = KERNELS.replace(
        "A[bx * TILE + tx] *",
        "A[bx * TILE + tx] * T.float16(TILE // 64) *",
    );
    fs::write(folder.path("k.py"), wrong).unwrap();
    let outcome = run(&folder, &["tune", "--simulator"]);
    assert_eq!(outcome.code, Some(1), "{}", outcome.out);
    for part in [
        "candidates of `scale` give different results at n = 1000, rows = 1: `B` differs by",
        "of `tile256` and `tile64`",
        "= help: a tuned parameter may change the speed of a kernel, not its results",
    ] {
        assert!(outcome.err.contains(part), "{}", outcome.err);
    }
    // A race is found, too.
    let racy = KERNELS
        .replace("and by == 0", "")
        .replace("* T.cast(f", "* T.cast(f + T.cast(by, \"float32\")");
    fs::write(folder.path("k.py"), racy).unwrap();
    let outcome = run(&folder, &["tune", "--simulator", "--size", "rows=2"]);
    assert_eq!(outcome.code, Some(1), "{}", outcome.out);
    assert!(outcome.err.contains("data race"), "{}", outcome.err);
}

#[test]
fn what_is_missing_is_named() {
    let folder = folder();
    for (arguments, wanted) in [
        (
            &["tune", "scal", "--simulator"][..],
            "help: did you mean `scale`?",
        ),
        (&["tune", "--simulator", "--size", "m=1"], "its sizes are n, rows"),
        (&["tune", "--simulator", "--size", "n=x"], "`x` is no size"),
    ] {
        let outcome = run(&folder, arguments);
        assert_eq!(outcome.code, Some(1), "{}", outcome.err);
        assert!(outcome.err.contains(wanted), "{}", outcome.err);
    }
    let plain = &MANIFEST[..MANIFEST.find("[kernel.tune]").unwrap()];
    fs::write(
        folder.path("kernels.toml"),
        format!("{plain}specialize = [{{ TILE = 64 }}]\n"),
    )
    .unwrap();
    let outcome = run(&folder, &["tune"]);
    assert!(
        outcome.err.contains("no tuned kernel") && outcome.err.contains("add `[kernel.tune]`"),
        "{}",
        outcome.err
    );
}

/// On a driver that does nothing and whose events are always 3 ms apart, if there is an nvcc.
#[test]
#[cfg(target_os = "linux")]
fn a_gpu_gets_a_record_that_keeps_other_kernels() {
    let (folder, Some(nvcc)) = (folder(), nvcc()) else {
        return;
    };
    let Some(driver) = super::bench::stub_driver(&folder) else {
        skip("there is no C compiler");
        return;
    };
    let variables = [
        ("TIRX_NVCC", nvcc.as_str()),
        ("LD_LIBRARY_PATH", driver.as_str()),
        ("CUDA_VISIBLE_DEVICES", "0"),
    ];
    let tune = || {
        let outcome = folder.run_with(&["tune", "--samples", "3"], &variables);
        assert_eq!(outcome.code, Some(0), "{}{}", outcome.out, outcome.err);
        let text = fs::read_to_string(folder.path(FOLDER).join("stub-H100.toml")).unwrap();
        (outcome.out, TuningRecord::read(&text).unwrap())
    };
    let (shown, record) = tune();
    assert!(shown.starts_with("scale on stub H100\n"), "{shown}");
    assert!(
        shown.contains("tile256") && shown.contains("wrote kernels.tuning/stub-H100.toml"),
        "{shown}"
    );
    assert_eq!(record.device, "stub H100");
    let kernel = &record.kernels[0];
    assert_eq!((kernel.driver.as_str(), kernel.clock), ("13.0", None));
    assert!(
        kernel.nvcc.starts_with(|c: char| c.is_ascii_digit()),
        "{}",
        kernel.nvcc
    );
    assert_eq!(kernel.candidates, ["tile256", "tile64"]);
    for (point, n) in kernel.points.iter().zip([100_000, 1000]) {
        assert_eq!((&point.sizes, &point.times), (&vec![n, 1], &vec![3000.0, 3000.0]));
    }
    // Another kernel's times stay, and the hash is that of the code.
    let mut other = record.clone();
    other.kernels[0].name = "other".into();
    fs::write(folder.path(FOLDER).join("stub-H100.toml"), other.text()).unwrap();
    let (_, both) = tune();
    assert_eq!(both.kernels, [other.kernels[0].clone(), kernel.clone()]);
    fs::write(
        folder.path("k.py"),
        KERNELS.replace("* T.cast(f", "* T.float16(2) * T.cast(f"),
    )
    .unwrap();
    let (_, changed) = tune();
    assert_ne!(changed.kernels[1].hash, kernel.hash);
}
