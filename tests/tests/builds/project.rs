//! Requirements of the surrounding project: generated code under strict lints, a new crate that runs, crates that can
//! be packaged, and a shared cache of compiled kernels.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tirx_tests::skip;

use crate::book::command_line;
use crate::throw_away::{ScratchPackages, real_nvcc, texts};
use crate::{KERNELS, MAIN, manifest};

/// Kernels with what generated code can hold: documentation, choices, launch arithmetic, tensor maps aside.
pub(crate) const STRICT: &str = r#"from __future__ import annotations
from tvm.script import tirx as T

@T.jit
def add(A: T.Buffer((N,), DTYPE), B: T.Buffer((N,), DTYPE), bias: T.Optional(T.float32), *, N: T.constexpr,
        DTYPE: T.constexpr = "float32"):
    """`B[i] = A[i]`, see <https://tvm.apache.org> and [the guide](https://tvm.apache.org/docs).

    ```
    add(A, B)
        is not Rust
    ```
    """
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([N])
    B[tx] = A[tx]

@T.prim_func
def outer(a: T.handle, b: T.handle, in_: T.float16, flag: T.bool, k: T.uint64):
    m = T.int32(); n = T.int64()
    A = T.match_buffer(a, (m, n), "float16", strides=(n * 2, 1), elem_offset=T.int32())
    B = T.match_buffer(b, (T.int64(2) * n,), "float8_e4m3fn")
    T.device_entry()
    bx, by = T.cta_id([T.ceildiv(m, 16), T.max(m // 2, 1)]); tx = T.thread_id([32])
    if flag:
        A[bx % m, T.int64(0)] = A[bx % m, T.int64(0)] * in_
"#;

pub(crate) const STRICT_MANIFEST: &str = "[[kernel]]\nname = \"add\"\nsource = \"kernels.py\"\ntargets = [\"sm_90a\"]\nspecialize = [{ N = \
     32 }, { N = 64, DTYPE = \"float16\" }, { N = 128, bias = \"None\" }]\n\n[[kernel]]\nname = \"outer\"\nsource = \
     \"kernels.py\"\ntargets = [\"sm_90a\"]\n";

#[test]
fn generated_code_passes_strict_lints() {
    let mut place = ScratchPackages::new();
    place.set("TIRX_NVCC", "none");
    let library = "//! A library.\n#![forbid(unsafe_code)]\n#![deny(warnings, missing_docs, rust_2018_idioms, unused)]\n\
                   #![deny(clippy::all, clippy::pedantic)]\n\ntirx_rt::include_kernels!();\n";
    place.package("strict", STRICT_MANIFEST, STRICT, "", "");
    place.write("strict/src/lib.rs", library);
    fs::remove_file(place.path("strict/src/main.rs")).unwrap();
    for command in ["clippy", "doc"] {
        place.set("RUSTDOCFLAGS", "-Dwarnings");
        let arguments: &[&str] = match command {
            "doc" => &["doc", "--no-deps"],
            _ => &["clippy"],
        };
        let (success, _, err) = place.cargo("strict", arguments);
        let warned = err
            .lines()
            .filter(|line| line.starts_with("warning") && !line.contains("TIRX_NVCC"));
        assert!(success && warned.count() == 0, "{command}: {err}");
    }
    // No documentation becomes a test of the user's crate.
    let (success, out, err) = place.cargo("strict", &["test", "--doc"]);
    assert!(success && out.contains("0 passed"), "{out}{err}");
}

#[test]
fn a_new_crate_runs() {
    let mut place = ScratchPackages::new();
    place.set("TIRX_NVCC", "none");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut command = Command::new(command_line());
    command.args(["tirx", "new", "first-kernel", "--tirx"]).arg(root);
    let (success, _, err) = texts(command.current_dir(place.path("")).output().unwrap());
    assert!(success && err.contains("created `first-kernel`"), "{err}");
    assert!(err.contains("book, reference and playground: https://"), "{err}");
    let written = fs::read_to_string(place.path("first-kernel/Cargo.toml")).unwrap();
    assert!(
        written.contains("[profile.dev.package.tirx-sim-machine]\nopt-level = 2"),
        "{written}"
    );
    place.manifest("first-kernel", &written);
    let (success, out, err) = place.cargo("first-kernel", &["run"]);
    assert!(success && out.starts_with("1 + 2 = 3 on "), "{out}{err}");
    let (success, out, err) = place.cargo("first-kernel", &["test"]);
    assert!(success, "{out}{err}");
    let mut command = Command::new(command_line());
    command
        .args(["tirx", "test"])
        .current_dir(place.path("first-kernel"));
    let (success, out, err) = texts(command.output().unwrap());
    assert!(success && out.contains("add"), "{out}{err}");
}

#[test]
fn the_crates_can_be_packaged() {
    let target = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO"));
    command
        .args([
            "package",
            "--workspace",
            "--no-verify",
            "--allow-dirty",
            "--offline",
        ])
        .args([
            "--exclude",
            "example-app",
            "--exclude",
            "tirx-tests",
            "--exclude",
            "xtask",
        ])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))
        .env("CARGO_TARGET_DIR", target.path());
    let (success, _, err) = texts(command.output().unwrap());
    assert!(success, "{err}");
    for package in [
        "tirx-core",
        "tirx-build",
        "tirx-rt",
        "tirx-sim",
        "tirx-sim-machine",
        "cargo-tirx",
    ] {
        let file = format!("package/{package}-{}.crate", env!("CARGO_PKG_VERSION"));
        assert!(target.path().join(&file).is_file(), "{file}: {err}");
    }
}

/// The `sccache` that `TIRX_SCCACHE` names, that is on `PATH`, or that `cargo xtask test` has installed.
fn sccache() -> Option<PathBuf> {
    let program = std::env::current_exe().unwrap();
    let installed = program
        .ancestors()
        .nth(3)
        .unwrap()
        .join("tools/sccache/bin/sccache");
    let named = std::env::var_os("TIRX_SCCACHE").map(PathBuf::from);
    let found = [named, Some(installed), Some("sccache".into())];
    found.into_iter().flatten().find(|program| {
        let asked = Command::new(program).arg("--version").output();
        asked.is_ok_and(|output| output.status.success())
    })
}

/// Asks the place's server.
fn ask(place: &ScratchPackages, sccache: &Path, question: &str) -> String {
    let mut command = place.prepared(Command::new(sccache), "");
    texts(command.arg(question).output().unwrap()).1
}

#[test]
fn a_team_shares_kernels_through_sccache() {
    let Some(real) = real_nvcc() else { return };
    let Some(sccache) = sccache() else {
        skip("there is no sccache (`cargo xtask test` installs it)");
        return;
    };
    let mut place = ScratchPackages::new();
    // A server of its own, at an unused port.
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    place.set("SCCACHE_SERVER_PORT", &port.to_string());
    place.set("SCCACHE_DIR", place.path("team").to_str().unwrap());
    place.set("TIRX_NVCC_WRAPPER", sccache.to_str().unwrap());
    place.set("TIRX_NVCC", real.to_str().unwrap());
    place.set("TIRX_STORE", "none");
    place.unset("NVCC_PREPEND_FLAGS");
    let mut build = |person: &str| {
        // Part of our key and of no text: what the other one compiled is in no store of ours.
        place.set("C_INCLUDE_PATH", place.path(person).to_str().unwrap());
        place.package(person, &manifest(2, "\"sm_90a\""), KERNELS, MAIN, "");
        let (success, out, err) = place.cargo(person, &["run"]);
        assert!(success && out == "42.0 true [\"sm_90a\"]\n", "{out}{err}");
        let stats = ask(&place, &sccache, "--show-stats");
        let hits = stats.lines().find(|line| line.starts_with("Cache hits  "));
        let hits = hits.and_then(|line| line.split_whitespace().last()?.parse::<u32>().ok());
        hits.unwrap_or_else(|| panic!("{stats}"))
    };
    let (first, second) = (build("ada"), build("grace"));
    ask(&place, &sccache, "--stop-server");
    assert!(
        second >= first + 2,
        "hits: {first} after the first build, {second} after the second"
    );
}
