//! `example-candle` and `example-burn`: kernels and frameworks agree.
//!
//! Ignored without being asked for: two frameworks are fetched and compiled (`cargo test -p tirx-tests --test builds others --
//! --ignored`).

use std::process::Command;

/// A stand-in for nvcc, which candle's build runs some 30 times: its Rust code does not depend on what they make.
const NVCC: &str = r#"case "$*" in *--version*) echo "Cuda compilation tools, release 13.0, V13.0.88"; exit 0;; esac
while [ $# -gt 0 ]; do
    case "$1" in
        -o) : > "$2"; shift;;
        --output-directory) folder=$2; shift;;
        *.cu) [ -z "$folder" ] || : > "$folder/$(basename "$1" .cu).ptx";;
    esac
    shift
done
"#;

/// Cargo in the folder of an example, which compiles into a folder of the workspace's target directory. The output of the program.
fn cargo(example: &str, prepare: impl FnOnce(&mut Command)) -> String {
    let program = std::env::current_exe().unwrap();
    let mut cargo = Command::new(env!("CARGO"));
    prepare(&mut cargo);
    let output = cargo
        .current_dir(tirx_tests::root().join(example))
        .env(
            "CARGO_TARGET_DIR",
            program.ancestors().nth(3).unwrap().join("others"),
        )
        .env("TIRX_NVCC", "none")
        .output()
        .unwrap();
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{messages}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The comparisons that a program printed, which refuses large differences itself.
fn compared(output: &str) -> Vec<&str> {
    let names = output.lines().map(|line| line.split_once(": differs by "));
    names
        .map(|name| name.unwrap_or_else(|| panic!("{output}")).0)
        .collect()
}

#[test]
#[ignore = "fetches and compiles candle"]
fn operations_of_candle_give_its_results() {
    let output = cargo("example-candle", |cargo| {
        cargo.arg("run");
    });
    let expected = ["BF16", "F16"].map(|dtype| {
        let of = |operation: &str| format!("{operation} {dtype}");
        [
            "matmul",
            "matmul of views",
            "gradient of matmul",
            "causal attention",
            "RMSNorm",
        ]
        .map(of)
    });
    assert_eq!(compared(&output), expected.as_flattened());
}

#[test]
#[ignore = "fetches and compiles candle"]
fn operations_of_candle_on_gpus_compile() {
    let folder = tempfile::tempdir().unwrap();
    let nvcc = tirx_tests::stand_in::script(folder.path().join("nvcc"), NVCC);
    cargo("example-candle", |cargo| {
        cargo
            .args(["check", "--features", "cuda"])
            .env("NVCC", &nvcc)
            .env("CUDA_COMPUTE_CAP", "90");
    });
}

#[test]
#[ignore = "fetches and compiles burn"]
fn functions_on_tensors_of_burn_give_its_results() {
    let output = cargo("example-burn", |cargo| {
        cargo.arg("run");
    });
    assert_eq!(compared(&output), ["matmul", "causal attention", "RMSNorm"]);
}
