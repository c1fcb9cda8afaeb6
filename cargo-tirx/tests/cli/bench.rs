//! `cargo tirx bench`, with and without a GPU.

use std::fs;

use serde_json::Value;
use tirx_build::Environment;
use tirx_build::toolchain::{Discovered, Search, discover};

use super::{Folder, Outcome};

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

/// Where the machine has a GPU and an nvcc.
#[test]
fn a_gpu_is_measured() {
    let environment = Environment::process();
    let search = Search {
        environment: &environment,
        pin: None,
        needs: None,
        prefixes: None,
    };
    let found = discover(&search);
    let (Ok(_), Ok(Discovered::Found(nvcc))) = (tirx_build::toolchain::gpus(&environment), found) else {
        println!("skipped: there is no GPU with an nvcc");
        return;
    };
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
    let nvcc = nvcc.path.to_string_lossy().into_owned();
    let all = json(&folder.run_with(&arguments, &[("TIRX_NVCC", &nvcc)]));
    let one = &all[0];
    assert_eq!(one["bytes_read"], 8 * 4194304);
    let order = ["fastest", "tenth", "seconds", "ninetieth", "slowest"].map(|key| one[key].as_f64().unwrap());
    assert!(order.is_sorted() && order[0] > 0.0, "{order:?}");
    let share = one["bytes_per_second"].as_f64().unwrap() / one["peak_bytes_per_second"].as_f64().unwrap();
    assert!(share > 0.01, "{share}");
}
