//! `cargo tirx bench`, with and without a GPU.

use std::fs;
use std::process::Command;

use serde_json::Value;
use tirx_build::Environment;
use tirx_test_tools::skip;

use super::{Folder, Outcome, nvcc};

const KERNELS: &str = r#"from __future__ import annotations
from tvm.script import tirx as T


@T.jit
def axpy(a: T.float32, x: T.handle, y: T.handle, *, B: T.constexpr):
    n = T.int32()
    X = T.match_buffer(x, (n,), "float32")
    Y = T.match_buffer(y, (n,), "float32")
    T.device_entry()
    bx = T.cta_id([T.ceildiv(n, B)])
    tx = T.thread_id([B])
    if bx * B + tx < n:
        Y[bx * B + tx] = Y[bx * B + tx] + a * X[bx * B + tx]
"#;

const MANIFEST: &str = "[defaults]\ntargets = [\"sm_90a\", \"sm_100a\"]\n\n[[kernel]]\nname = \"axpy\"\nsource = \"k.py\"\n\
                        specialize = [{ B = 64 }, { B = 128 }]\n";

fn folder() -> Folder {
    let folder = Folder::new();
    fs::write(folder.path("k.py"), KERNELS).unwrap();
    fs::write(folder.path("kernels.toml"), MANIFEST).unwrap();
    folder
}

fn run(folder: &Folder, arguments: &[&str]) -> Outcome {
    folder.run_with(arguments, &[("TIRX_NVCC", "none")])
}

fn json(outcome: &Outcome) -> Value {
    assert_eq!(outcome.code, Some(0), "{}", outcome.err);
    serde_json::from_str(&outcome.out).unwrap()
}

#[test]
fn without_a_gpu_the_message_says_what_can_be_had() {
    let outcome = run(
        &folder(),
        &["bench", "axpy", "--size", "n=100", "--device", "4096"],
    );
    assert_eq!(outcome.code, Some(1));
    for part in [
        "no CUDA device 4096: ",
        "--simulator",
        "cargo tirx sim --counters",
    ] {
        assert!(outcome.err.contains(part), "{}", outcome.err);
    }
}

#[test]
fn the_simulator_runs_what_would_be_measured() {
    let folder = folder();
    let arguments = [
        "bench",
        "axpy",
        "--simulator",
        "--size",
        "n=1000",
        "--operations",
        "2*n + B - B",
    ];
    let all = json(&run(&folder, &[&arguments[..], &["--json"]].concat()));
    let names: Vec<&Value> = all.as_array().unwrap().iter().map(|one| &one["kernel"]).collect();
    assert_eq!(names, ["axpy::b64", "axpy::b128"]);
    for one in all.as_array().unwrap() {
        // X and Y are read, Y is written.
        assert_eq!(
            (&one["bytes_read"], &one["bytes_written"]),
            (&8000.into(), &4000.into())
        );
        assert_eq!(one["operations"], 2000.0);
        assert!(one["seconds"].as_f64().unwrap() > 0.0 && one["peak_bytes_per_second"].is_null());
        assert_eq!(one["unit"], "float32");
    }
    let table = run(&folder, &arguments);
    assert!(table.out.starts_with("simulator\nkernel"), "{}", table.out);
    assert!(table.out.contains("\naxpy::b128  sm_90a"), "{}", table.out);
}

#[test]
fn what_is_missing_is_named() {
    let folder = folder();
    for (arguments, wanted) in [
        (&["bench", "axpy", "--simulator"][..], "help: give --size n=…"),
        (
            &["bench", "axpi", "--simulator"],
            "help: it has axpy::b64, axpy::b128",
        ),
        (
            &["bench", "axpy", "--simulator", "--size", "m=1"],
            "its extents are n",
        ),
        (
            &["bench", "axpy", "--simulator", "--size", "n=-1"],
            "`-1` is no size",
        ),
        (
            &[
                "bench",
                "axpy",
                "--simulator",
                "--size",
                "n=1",
                "--operations",
                "2*k",
            ],
            "bad --operations: ",
        ),
        (
            &["bench", "axpy", "--simulator", "--size", "n=1", "--scalar", "b=2"],
            "--scalar b: ",
        ),
    ] {
        let outcome = run(&folder, arguments);
        assert_eq!(outcome.code, Some(1), "{}", outcome.err);
        assert!(outcome.err.contains(wanted), "{}", outcome.err);
    }
}

/// The driver of a GPU that does nothing, as the library that programs open; none where there is no C compiler.
pub(super) fn stub_driver(folder: &Folder) -> Option<String> {
    let place = folder.path("driver");
    fs::create_dir(&place).unwrap();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/stub_driver/driver.c");
    let mut compiler = Command::new("cc");
    compiler
        .args(["-shared", "-fPIC", source, "-o"])
        .arg(place.join("libcuda.so"));
    let compiled = compiler.status().is_ok_and(|status| status.success());
    compiled.then(|| place.to_string_lossy().into_owned())
}

/// On a driver that does nothing: where there is an nvcc.
#[test]
#[cfg(target_os = "linux")]
fn calls_are_timed_by_events_of_the_device() {
    let (folder, Some(nvcc)) = (folder(), nvcc()) else {
        return;
    };
    let Some(driver) = stub_driver(&folder) else {
        skip("there is no C compiler");
        return;
    };
    let variables = [("TIRX_NVCC", nvcc.as_str()), ("LD_LIBRARY_PATH", driver.as_str())];
    let arguments = [
        "bench",
        "axpy::b128",
        "--size",
        "n=1000000",
        "--operations",
        "2*n",
        "--samples",
        "3",
    ];
    let all = json(&folder.run_with(&[&arguments[..], &["--json"]].concat(), &variables));
    let one = &all[0];
    assert_eq!(
        (&one["target"], &one["device"]),
        (&"sm_90a".into(), &"stub H100".into())
    );
    // Two events of this driver are 3 ms apart, so that each measurement is of one call.
    let time = one["seconds"].as_f64().unwrap();
    assert!(
        (time - 3e-3).abs() < 1e-6 && one["calls"] == 1 && one["samples"] == 3,
        "{one}"
    );
    assert!((one["bytes_per_second"].as_f64().unwrap() - 12e6 / time).abs() < 1.0);
    assert_eq!(one["peak_bytes_per_second"], 2.0 * 2619e6 * 5120.0 / 8.0);
    assert_eq!(one["peak_operations_per_second"], 256.0 * 132.0 * 1980e6);
    let log = folder.path("log").to_string_lossy().into_owned();
    let logged = [variables[0], variables[1], ("STUB_LOG", log.as_str())];
    let flushed = json(&folder.run_with(&[&arguments[..], &["--json", "--flush-l2"]].concat(), &logged));
    assert_eq!(
        (&flushed[0]["l2_flushed"], &one["l2_flushed"]),
        (&true.into(), &false.into())
    );
    // The memory is written before the first event, and the launch alone is between the two.
    let calls = fs::read_to_string(&log).unwrap();
    let last: Vec<&str> = calls.lines().rev().take(4).collect();
    assert_eq!(last, ["event", "launch", "event", "memset 104857600"]);
    assert_eq!(flushed[0]["seconds"], one["seconds"]);
    let table = folder.run_with(&arguments, &variables);
    assert!(
        table.out.contains("3.000 ms") && table.out.contains("float32"),
        "{}",
        table.out
    );
}

/// Where the machine has a GPU and an nvcc.
#[test]
fn a_gpu_is_measured() {
    let gpus = tirx_build::toolchain::gpus(&Environment::process());
    if gpus.is_err() {
        skip("there is no GPU");
        return;
    }
    let Some(nvcc) = nvcc() else { return };
    let folder = folder();
    let manifest = MANIFEST.replace("[\"sm_90a\", \"sm_100a\"]", "[\"native\"]");
    fs::write(folder.path("kernels.toml"), manifest).unwrap();
    let arguments = [
        "bench",
        "axpy::b128",
        "--size",
        "n=4194304",
        "--operations",
        "2*n",
        "--json",
    ];
    let all = json(&folder.run_with(&arguments, &[("TIRX_NVCC", &nvcc)]));
    let one = &all[0];
    assert_eq!(one["bytes_read"], 8 * 4194304);
    let order = ["fastest", "tenth", "seconds", "ninetieth", "slowest"].map(|key| one[key].as_f64().unwrap());
    assert!(order.is_sorted() && order[0] > 0.0, "{order:?}");
    let share = one["bytes_per_second"].as_f64().unwrap() / one["peak_bytes_per_second"].as_f64().unwrap();
    assert!(share > 0.01, "{share}");
}
