//! The page on other libraries: its code for candle and burn compiles in throw-away crates. The rest of the page is tested with
//! the book.
//!
//! Ignored without being asked for: two frameworks are fetched and compiled (`cargo test -p tirx-tests --test builds others --
//! --ignored`).

use std::fs;
use std::path::Path;
use std::process::Command;

use tirx_tests::pages::{Block, read};

const MANIFEST: &str = r#"[package]
name = "with-other-libraries"
version = "0.1.0"
edition = "2024"

[dependencies]
anyhow = "1"
candle-core = CANDLE
burn-tensor = { version = "0.20", default-features = false, features = ["std"] }
tirx-rt = { path = "ROOT/tirx-rt", features = ["half"] }

[build-dependencies]
tirx-build = { path = "ROOT/tirx-build", default-features = false }

[workspace]
"#;

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

/// A folder for a crate with a version of candle.
fn folder(candle: &str, library: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let root = tirx_tests::root();
    let manifest = MANIFEST
        .replace("ROOT", &root.to_string_lossy())
        .replace("CANDLE", candle);
    fs::write(folder.path().join("Cargo.toml"), manifest).unwrap();
    fs::create_dir(folder.path().join("src")).unwrap();
    fs::write(folder.path().join("src/lib.rs"), library).unwrap();
    folder
}

fn check(cargo: &mut Command, folder: &Path) {
    let output = cargo.arg("check").current_dir(folder).output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn page() -> Vec<Block> {
    read(&tirx_tests::root().join("docs/book/src/interoperation.md")).unwrap()
}

#[test]
#[ignore = "fetches and compiles candle and burn"]
fn candle_and_burn_compile_beside_the_run_time() {
    let shown = page()
        .into_iter()
        .filter(|block| block.words == ["no_run"] && !block.text.contains("CustomOp1"));
    let modules: Vec<String> = shown
        .enumerate()
        .map(|(number, block)| {
            format!(
                "pub mod part{number} {{\n{}}}\n",
                block.text.replace("\nfn ", "\npub fn ")
            )
        })
        .collect();
    assert_eq!(modules.len(), 2, "candle and burn");
    let folder = folder("\"0.11.1\"", &modules.concat());
    check(&mut Command::new(env!("CARGO")), folder.path());
}

#[test]
#[ignore = "fetches and compiles candle"]
fn an_operation_of_candle_on_gpus_compiles_beside_the_run_time() {
    let page = page();
    let block = |with: &str| {
        let found = page.iter().find(|block| block.text.contains(with));
        found
            .unwrap_or_else(|| panic!("no block with `{with}`"))
            .text
            .clone()
    };
    // The functions on slices are above what the page runs.
    let slices = block("fn scale_slices");
    let slices = &slices[..slices.find("\nif let Ok(context)").unwrap()];
    let library = format!(
        "#![allow(dead_code)]\ntirx_rt::include_kernels!();\n\n{slices}\n\nmod operation {{\nuse super::scale_slices;\n{}}}\n",
        block("CustomOp1")
    );
    let folder = folder("{ version = \"0.11.1\", features = [\"cuda\"] }", &library);
    let place = folder.path();
    fs::create_dir(place.join("kernels")).unwrap();
    fs::write(place.join("kernels.toml"), block("name = \"scale\"")).unwrap();
    fs::write(place.join("kernels/scale.py"), block("def scale(")).unwrap();
    let script =
        "fn main() -> tirx_build::Result<()> {\n    tirx_build::compile_kernels(\"kernels.toml\")\n}\n";
    fs::write(place.join("build.rs"), script).unwrap();
    let nvcc = tirx_tests::stand_in::script(place.join("nvcc"), NVCC);
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .env("NVCC", &nvcc)
        .env("CUDA_COMPUTE_CAP", "90")
        .env("TIRX_NVCC", "none");
    check(&mut cargo, place);
}
