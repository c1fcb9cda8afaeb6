//! The page on other libraries: its code for candle and burn compiles in a throw-away crate. The rest of the page is tested with
//! the guide.
//!
//! Ignored without being asked for: two frameworks are fetched and compiled (`cargo test -p tirx-tests --test builds others --
//! --ignored`).

use std::fs;
use std::process::Command;

use tirx_tests::pages::read;

const MANIFEST: &str = r#"[package]
name = "with-other-libraries"
version = "0.1.0"
edition = "2024"

[dependencies]
anyhow = "1"
candle-core = "0.11.1"
burn-tensor = { version = "0.20", default-features = false, features = ["std"] }
tirx-rt = { path = "ROOT/tirx-rt", features = ["half"] }

[workspace]
"#;

#[test]
#[ignore = "fetches and compiles candle and burn"]
fn candle_and_burn_compile_beside_the_run_time() {
    let root = tirx_tests::root();
    let blocks = read(&root.join("docs/guide/interoperation.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let manifest = MANIFEST.replace("ROOT", &root.to_string_lossy());
    fs::write(folder.path().join("Cargo.toml"), manifest).unwrap();
    let shown = blocks.into_iter().filter(|block| block.words == ["no_run"]);
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
    fs::create_dir(folder.path().join("src")).unwrap();
    fs::write(folder.path().join("src/lib.rs"), modules.concat()).unwrap();
    let mut cargo = Command::new(env!("CARGO"));
    let output = cargo.arg("check").current_dir(folder.path()).output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
