//! `cargo xtask published`: the crates as a registry would serve them.
//!
//! Packages every crate that is published and lays the archives out as a directory source (Cargo's form of a vendored
//! registry, with checksums), beside the crates of others that they need. Then three generations build from that source
//! alone, without network: a crate that names `tirx-rt` and `tirx-build` by version and has a kernel, its own archive,
//! and a program that depends on that archive by version.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{Result, cargo, output, run};

/// Packages of the workspace that are not published.
const PRIVATE: [&str; 5] = [
    "example-app",
    "example-llm",
    "tirx-test-tools",
    "tirx-tests",
    "xtask",
];

const KERNEL: &str = r#"from tvm.script import tirx as T

@T.jit
def scale(A: T.Buffer((N,), "float32"), B: T.Buffer((N,), "float32"), *, N: T.constexpr):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([N])
    B[tx] = A[tx] * 2.0
"#;

const MANIFEST: &str = "[defaults]\ntargets = [\"sm_90a\"]\n\n[[kernel]]\nname = \"scale\"\nsource = \"kernels/scale.py\"\n\
                        specialize = [{ N = 64 }]\n";

const LIBRARY: &str = "//! A library with a kernel.\n#![deny(missing_docs, warnings)]\n\ntirx_rt::include_kernels!();\n\
                       pub use tirx_rt;\n";

const PROGRAM: &str = r#"use kernel_library::tirx_rt::{Device, Result, Tensor};

fn main() -> Result<()> {
    let stream = Device::best()?.default_stream();
    let a = Tensor::from_slice(&stream, &[21.0f32; 64], [64])?;
    let mut b = Tensor::zeros(&stream, [64])?;
    kernel_library::kernels::scale::n64(&stream, &a, &mut b)?;
    assert_eq!(b.to_vec()?, [42.0; 64]);
    println!("{}", b.to_vec()?[0]);
    Ok(())
}
"#;

/// See the [module](self). `verify` also compiles each archive on its own, as `cargo publish` does.
pub(crate) fn check(root: &Path, args: &[String]) -> Result<()> {
    let place = root.join("target/published");
    if place.exists() {
        fs::remove_dir_all(&place)?;
    }
    let source = place.join("source");
    fs::create_dir_all(&source)?;
    let mut package = cargo(["package", "--workspace", "--allow-dirty"]);
    if !args.iter().any(|arg| arg == "verify") {
        package.arg("--no-verify");
    }
    package.arg("--target-dir").arg(place.join("archives"));
    for name in PRIVATE {
        package.args(["--exclude", name]);
    }
    run(&mut package)?;
    println!("crates of others");
    output(cargo(["vendor", "--locked"]).arg(&source))?;
    let version = env!("CARGO_PKG_VERSION");
    for archive in archives(&place.join("archives/package"))? {
        add(&archive, &source)?;
    }

    let library = place.join("kernel-library");
    write(
        &library,
        &[
            (
                "Cargo.toml",
                &format!(
                    "[package]\nname = \"kernel-library\"\nversion = \"1.0.0\"\nedition = \"2024\"\nlicense = \"Apache-2.0\"\n\
                     description = \"A library with a kernel.\"\nrepository = \"https://example.org\"\n\n[dependencies]\n\
                     tirx-rt = \"{version}\"\n\n[build-dependencies]\ntirx-build = \"{version}\"\n\n[workspace]\n"
                ),
            ),
            (
                "build.rs",
                "fn main() -> tirx_build::Result<()> {\n    tirx_build::compile_kernels(\"kernels.toml\")\n}\n",
            ),
            ("kernels.toml", MANIFEST),
            ("kernels/scale.py", KERNEL),
            ("src/lib.rs", LIBRARY),
        ],
    )?;
    let own = |folder: &Path| {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.current_dir(folder).env("TIRX_NVCC", "none");
        command.env("CARGO_TARGET_DIR", place.join("target"));
        command
            .arg("--config")
            .arg("source.crates-io.replace-with='published'")
            .arg("--config")
            .arg(format!(
                "source.published.directory={:?}",
                source.to_string_lossy()
            ));
        command
    };
    println!("a crate with a kernel, packaged and verified");
    run(own(&library).args(["package", "--offline", "--allow-dirty", "--quiet"]))?;
    println!("the same as a documentation server builds it");
    run(own(&library)
        .args(["doc", "--offline", "--no-deps", "--quiet"])
        .env("DOCS_RS", "1")
        .env_remove("TIRX_NVCC"))?;
    add(&place.join("target/package/kernel-library-1.0.0.crate"), &source)?;
    println!("a program that depends on it");
    let program = place.join("program");
    write(
        &program,
        &[
            (
                "Cargo.toml",
                "[package]\nname = \"program\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[dependencies]\n\
                 kernel-library = \"1.0.0\"\n\n[workspace]\n",
            ),
            ("src/main.rs", PROGRAM),
        ],
    )?;
    let printed = output(own(&program).args(["run", "--offline", "--quiet"]))?;
    if printed.trim() != "42" {
        return Err(format!("the program printed {printed:?}").into());
    }
    println!("the program runs: {}", printed.trim());
    Ok(())
}

fn archives(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "crate") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Unpacks an archive into the source, with the checksum that a lock file records.
fn add(archive: &Path, source: &Path) -> Result<()> {
    run(Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(source))?;
    let sum = output(Command::new("sha256sum").arg(archive))?;
    let sum = sum.split_whitespace().next().unwrap_or_default();
    let stem = archive
        .file_stem()
        .ok_or_else(|| format!("{} has no name", archive.display()))?;
    let checksums = format!("{{\"files\":{{}},\"package\":\"{sum}\"}}");
    fs::write(source.join(stem).join(".cargo-checksum.json"), checksums)?;
    Ok(())
}

fn write(folder: &Path, files: &[(&str, &str)]) -> Result<()> {
    for (name, text) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap_or(folder))?;
        fs::write(path, text)?;
    }
    Ok(())
}
