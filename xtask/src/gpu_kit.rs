//! `cargo xtask gpu-kit`: executables that test the kernels on a GPU machine without cargo or network.

use std::fs;
use std::path::{Path, PathBuf};

use crate::process::{Result, cargo, output};

/// The programs that the kit runs, in order.
const RUN: &str = r#"#!/bin/sh
# Runs every kernel on the first GPU and checks it, then measures launches and kernels. Needs an NVIDIA driver.
# With `--gpus 2` only the parts that use two GPUs.
set -e
cd "$(dirname "$0")"
ranks() {
    echo "== world: two GPUs that run kernels together, or two ranks on the only GPU"
    TIRX_TEST_DEVICE=cuda ./world --nocapture --test-threads=1
    TIRX_TEST_DEVICE=cuda tests-of-kernels/ranks --nocapture --test-threads=1
    echo "== data_parallel: a layer trained by two ranks"
    ./data_parallel "$@"
    echo "== ranks: kernels of two GPUs, beside copies and the functions of one GPU (skipped with one GPU)"
    ./ranks
}
if [ "$1" = --gpus ]; then
    [ "$2" = 2 ] || { echo "run.sh --gpus 2: the tests use two GPUs"; exit 2; }
    ranks 0 1
    if python3 -c "import torch" 2> /dev/null; then
        echo "== nccl: NCCL followed by cuBLAS, for the same shapes"
        python3 nccl.py
    fi
    if command -v compute-sanitizer > /dev/null; then
        echo "== memcheck: the kernels of two GPUs"
        TIRX_TEST_DEVICE=cuda compute-sanitizer --tool memcheck --error-exitcode 1 ./world --test-threads=1
        TIRX_TEST_DEVICE=cuda compute-sanitizer --tool memcheck --error-exitcode 1 tests-of-kernels/ranks --test-threads=1
    fi
    exit
fi
echo "== example-app: every kernel against plain Rust"
./example-app
echo "== gpu: tests on the device"
TIRX_TEST_DEVICE=cuda ./gpu --test-threads=1
ranks 0
echo "== tirx-kernels: each function against float64"
for test in tests-of-kernels/*; do
    TIRX_TEST_DEVICE=cuda "$test" --test-threads=1
done
echo "== planned: matrix products on the host, beside a bare cuLaunchKernelEx"
./planned
echo "== serving: functions around matrix products, beside a copy of the same bytes"
./serving
if python3 -c "import torch" 2> /dev/null; then
    echo "== anchors: what cuBLAS and cuDNN reach here"
    python3 anchors.py
    echo "== vendor: tirx-kernels beside cuBLAS and cuDNN"
    python3 vendor.py gemm few fused gated fp8 scaled grouped sampling experts attention packed backward
fi
echo "== ladder: each step of the book's GEMM ladder, the table of docs/book/src/ladder/times.txt"
./ladder --bench | tee times.txt
echo "== launch: typed launcher, bare cuLaunchKernelEx, cudarc builder"
./launch --bench --noplot
if command -v nvcc > /dev/null; then
    echo "== on_gpu: filetests and random kernels, compiled here, against their values and the simulator"
    export TIRX_NVCC="$(command -v nvcc)" TIRX_ROOT=.
    TIRX_TRACE=profiled.json ./on_gpu --ignored --nocapture --test-threads=1
    echo "== bench: kernels against what the device has"
    ./cargo-tirx tirx bench add
    ./cargo-tirx tirx tune
    ./cargo-tirx tirx bench gemm_clusters::m4096_n4096_k4096_clusters66 --operations "2*M*N*K"
    if command -v compute-sanitizer > /dev/null; then
        for tool in memcheck racecheck synccheck initcheck; do
            echo "== $tool: the asynchronous kernels, at their smallest sizes"
            TIRX_SIZES=small compute-sanitizer --tool "$tool" --error-exitcode 1 ./on_gpu --ignored --nocapture \
                --exact asynchronous_kernels_leave_what_plain_rust_leaves
        done
    fi
else
    echo "no nvcc: filetests and random kernels are left out"
fi
"#;

/// compute-sanitizer over the asynchronous kernels. One process per kernel: synccheck stops making progress when one
/// process loads several of them.
const SANITIZE: &str = r#"#!/bin/sh
# Each asynchronous kernel under each tool of compute-sanitizer, one launch at its smallest size. Needs nvcc.
cd "$(dirname "$0")"
sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
export TIRX_NVCC="$(command -v nvcc)" TIRX_SIZES=small
test="--ignored --nocapture --test-threads=1 --exact asynchronous_kernels_leave_what_plain_rust_leaves"
failed=0
for kernel in $(./on_gpu $test | sed -n 's/^\(.* \)\{0,1\}\([a-z_0-9]*\): right$/\2/p'); do
    for tool in memcheck racecheck synccheck initcheck; do
        TIRX_FILTER=$kernel timeout 120 "$sanitizer" --tool $tool --error-exitcode 7 ./on_gpu $test > sanitize.log 2>&1
        code=$?
        echo "$kernel, $tool: $(grep SUMMARY sanitize.log | sed 's/^=* *//') (exit $code)"
        [ $code = 0 ] || failed=1
    done
done
exit $failed
"#;

/// The tests of `tirx-kernels`.
const TESTS_OF_KERNELS: [&str; 9] = [
    "attention",
    "attention_backward",
    "gemm",
    "gemm_fused",
    "gemm_grouped",
    "gemm_scaled",
    "quant",
    "ranks",
    "serving",
];

/// Builds the kit into `gpu-kit/`.
pub(crate) fn build(root: &Path) -> Result<()> {
    let kit = root.join("gpu-kit");
    fs::create_dir_all(&kit)?;
    copy(
        &executable(&["build", "--release", "-p", "example-app"], "example-app")?,
        &kit.join("example-app"),
    )?;
    copy(
        &executable(&["build", "--release", "-p", "cargo-tirx"], "cargo-tirx")?,
        &kit.join("cargo-tirx"),
    )?;
    // The manifest of the examples, for `bench`.
    copy(&root.join("kernels.toml"), &kit.join("kernels.toml"))?;
    copy_files(&root.join("kernels"), &kit.join("kernels"))?;
    for test in ["gpu", "on_gpu", "world"] {
        let args = [
            "test",
            "--release",
            "--no-run",
            "-p",
            "tirx-tests",
            "--test",
            test,
        ];
        copy(&executable(&args, test)?, &kit.join(test))?;
    }
    // Where the tests look for them below `TIRX_ROOT`.
    let filetests = kit.join("tests/kernels");
    for folder in fs::read_dir(root.join("tests/kernels"))? {
        let folder = folder?;
        copy_files(&folder.path(), &filetests.join(folder.file_name()))?;
    }
    copy(
        &executable(
            &["bench", "--no-run", "-p", "tirx-tests", "--bench", "launch"],
            "launch",
        )?,
        &kit.join("launch"),
    )?;
    let ladder = [
        "bench",
        "--no-run",
        "-p",
        "tirx-tests",
        "--features",
        "ladder",
        "--bench",
        "ladder",
    ];
    copy(&executable(&ladder, "ladder")?, &kit.join("ladder"))?;
    for script in ["anchors.py", "nccl.py", "vendor.py"] {
        copy(&root.join("xtask/python").join(script), &kit.join(script))?;
    }
    for bench in ["planned", "vendor", "serving", "ranks"] {
        let args = ["bench", "--no-run", "-p", "tirx-kernels", "--bench", bench];
        copy(&executable(&args, bench)?, &kit.join(bench))?;
    }
    let example = [
        "build",
        "--release",
        "-p",
        "tirx-kernels",
        "--example",
        "data_parallel",
    ];
    copy(
        &executable(&example, "data_parallel")?,
        &kit.join("data_parallel"),
    )?;
    let tests = kit.join("tests-of-kernels");
    fs::create_dir_all(&tests)?;
    for test in TESTS_OF_KERNELS {
        let args = [
            "test",
            "--release",
            "--no-run",
            "-p",
            "tirx-kernels",
            "--test",
            test,
        ];
        copy(&executable(&args, test)?, &tests.join(test))?;
    }
    for (name, text) in [("run.sh", RUN), ("sanitize.sh", SANITIZE)] {
        let script = kit.join(name);
        fs::write(&script, text)?;
        make_executable(&script)?;
    }
    println!(
        "built {}: run run.sh on a machine with an NVIDIA driver",
        kit.display()
    );
    Ok(())
}

/// The executable that a cargo command builds for target `name`, from its JSON messages.
fn executable(args: &[&str], name: &str) -> Result<PathBuf> {
    // Stripped: the kit is carried to another machine, and debug information is most of its size.
    let strip = [
        "--config",
        "profile.release.strip=true",
        "--message-format=json-render-diagnostics",
    ];
    let messages = output(cargo(args).args(strip))?;
    let quoted = format!("\"name\":\"{name}\"");
    let line = messages
        .lines()
        .filter(|l| l.contains("\"reason\":\"compiler-artifact\"") && l.contains(&quoted));
    let path = line
        .filter_map(|l| l.split("\"executable\":\"").nth(1)?.split('"').next())
        .next_back();
    path.map(PathBuf::from)
        .ok_or_else(|| format!("cargo {} built no executable `{name}`", args.join(" ")).into())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).map_err(|e| format!("{} to {}: {e}", from.display(), to.display()))?;
    Ok(())
}

/// Copies the files of a folder.
fn copy_files(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for file in fs::read_dir(from)? {
        let file = file?;
        if file.file_type()?.is_file() {
            copy(&file.path(), &to.join(file.file_name()))?;
        }
    }
    Ok(())
}

#[cfg(unix)]
fn make_executable(path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
    Ok(())
}

#[cfg(not(unix))]
fn make_executable(_: &Path) -> Result<()> {
    Ok(())
}
