//! `cargo xtask oracle`: our machine code against Apache TVM's, kernel by kernel.
//!
//! Sets up a Python environment with the pinned TVM and the CUDA tools under `target/`, prints each example kernel as
//! CUDA with both compilers, compiles both with the same nvcc and counts instructions. Fails where ours are more.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{Result, cargo, output, run};

/// Kernels as `FILE:ENTRY` with the constants of one specialization.
const KERNELS: &[(&str, &[&str])] = &[
    ("vector:scale", &[]),
    ("vector:scal", &[]),
    ("vector:scale_dyn", &[]),
    ("vector:scale_blocks", &[]),
    ("vector:add", &["N=256"]),
    ("vector:relu", &[]),
    ("reduce:warp_reduce", &[]),
    ("reduce:block_sum", &[]),
    ("reduce:softmax", &[]),
    ("reduce:rmsnorm", &["ROWS=64", "D=2048"]),
    ("reduce:histogram", &[]),
    ("matrix:transpose", &[]),
    ("matrix:matmul", &["M=512", "N=512", "K=512"]),
    ("image:mandelbrot", &[]),
    ("image:blur", &["RADIUS=3", "SIGMA=1.5", "VERTICAL=False"]),
    ("image:blur", &["RADIUS=3", "SIGMA=1.5", "VERTICAL=True"]),
    ("image:sobel", &[]),
    ("image:equalize_map", &[]),
    ("image:apply_map", &[]),
];

const PACKAGES: &[&str] = &[
    "apache-tvm==0.26.0",
    "numpy",
    "nvidia-cuda-nvcc==13.0.*",
    "nvidia-cuda-runtime==13.0.*",
    "nvidia-cuda-crt==13.0.*",
    "nvidia-nvvm==13.0.*",
    "nvidia-cuda-cccl==13.0.*",
    "nvidia-cuda-cuobjdump",
    "nvidia-cuda-nvdisasm",
];

/// The Python with TVM: `TIRX_TVM_PYTHON`, else an environment under `target/` that is made on first use.
pub(crate) fn python() -> Result<PathBuf> {
    if let Some(python) = std::env::var_os("TIRX_TVM_PYTHON") {
        return Ok(python.into());
    }
    let venv = crate::root().join("target/oracle");
    let python = venv.join("bin/python");
    if !venv.join("complete").exists() {
        run(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
        run(Command::new(&python)
            .args(["-m", "pip", "install", "--quiet"])
            .args(PACKAGES))?;
        std::fs::write(venv.join("complete"), "")?;
    }
    Ok(python)
}

/// Prints a table row per kernel and architecture.
pub(crate) fn compare(root: &Path, args: &[String]) -> Result<()> {
    let python = python()?;
    let archs: Vec<&str> = match args {
        [] => vec!["sm_90a", "sm_100a"],
        list => list.iter().map(String::as_str).collect(),
    };
    run(cargo(["build", "--quiet", "-p", "cargo-tirx"]).env("CARGO_TARGET_DIR", root.join("target")))?;
    let tirx = root.join("target/debug/cargo-tirx");
    let out = root.join("target/oracle-cuda");
    std::fs::create_dir_all(&out)?;
    let scripts = root.join("xtask/python");
    println!("| kernel | arch | instructions, ours / TVM | registers, ours / TVM |\n|---|---|---|---|");
    let mut longer = Vec::new();
    for (kernel, constants) in KERNELS {
        let (file, entry) = kernel.split_once(':').unwrap_or((kernel, kernel));
        let path = format!("kernels/{file}.py");
        let name = std::iter::once(entry)
            .chain(constants.iter().copied())
            .collect::<Vec<_>>()
            .join(" ");
        let theirs = out.join("tvm.cu");
        let ours = out.join("tirx.cu");
        let defines = || constants.iter().flat_map(|c| ["-D", *c]);
        let text = output(
            Command::new(&python)
                .arg(scripts.join("tvm_cuda.py"))
                .args([&path, entry])
                .args(*constants)
                .current_dir(root),
        )?;
        std::fs::write(&theirs, text)?;
        for arch in &archs {
            let mut cuda = Command::new(&tirx);
            cuda.args(["tirx", "cuda", &path, "--entry", entry, "--arch", arch])
                .args(defines())
                .current_dir(root);
            let text = output(&mut cuda)?;
            std::fs::write(&ours, text)?;
            let counts = output(
                Command::new(&python)
                    .arg(scripts.join("machine_code.py"))
                    .args([&ours, &theirs])
                    .arg(arch),
            )?;
            let counts = counts.trim();
            println!("| {name} | {arch} | {counts} |");
            let number = |i| {
                counts
                    .split([' ', '|'])
                    .filter(|w| !w.is_empty() && *w != "/")
                    .nth(i)
                    .and_then(|w| w.parse::<u32>().ok())
            };
            if number(0) > number(1) {
                longer.push(format!("{name} ({arch})"));
            }
        }
    }
    if longer.is_empty() {
        Ok(())
    } else {
        Err(format!("longer than TVM's: {}", longer.join(", ")).into())
    }
}
