//! Builds the playground into `target/playground`, a folder of static files, and tests it. The book has a playground of its own,
//! which lies in a folder of the book.
//!
//! The WebAssembly module is compiled by Cargo, its JavaScript glue is written by the program `bindgen` of this package, and
//! the page is bundled by esbuild, which npm installs as `playground/web/package-lock.json` says.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{Result, cargo, output, run};

const TARGET: &str = "wasm32-unknown-unknown";

/// The folders that a build uses.
struct Folders {
    /// The page's sources.
    web: PathBuf,
    /// The module with its glue.
    module: PathBuf,
    /// The result.
    site: PathBuf,
}

/// `cargo xtask playground [--test]`.
pub(crate) fn build(root: &Path, args: &[String]) -> Result<()> {
    let test = match args {
        [] => false,
        [only] if only == "--test" => true,
        _ => return Err("usage: cargo xtask playground [--test]".into()),
    };
    let folders = Folders {
        web: root.join("playground/web"),
        module: root.join("target/playground-module"),
        site: root.join("target/playground"),
    };
    if !built(root, &folders, None, test)? {
        return Ok(());
    }
    match test {
        true => tests(root, &folders),
        false => {
            println!("built {}", folders.site.display());
            Ok(())
        }
    }
}

/// The script and the style of the pages in `site`, and the playground that the pages use; then the tests of the pages.
pub(crate) fn book(root: &Path, site: &Path, test: bool) -> Result<()> {
    let folders = Folders {
        web: root.join("playground/web"),
        module: root.join("target/playground-module"),
        site: site.join("playground"),
    };
    if built(root, &folders, Some(site), test)? && test {
        chromium()?;
        let mut node = Command::new("node");
        node.arg("test/book.mjs").arg(site).current_dir(&folders.web);
        run(&mut node)?;
    }
    Ok(())
}

/// Builds the module and the page, and the script of the book's pages in `book`. False if a test is skipped, because the target is missing.
fn built(root: &Path, folders: &Folders, book: Option<&Path>, test: bool) -> Result<bool> {
    if let Err(reason) = target() {
        let text = format!("{TARGET} is not installed, and rustup cannot fetch it: {reason}");
        if !test {
            return Err(text.into());
        }
        println!("web tests skipped: {text}");
        return Ok(false);
    }
    module(root, folders)?;
    node_modules(&folders.web)?;
    let mut bundle = Command::new("node");
    bundle
        .arg("build.mjs")
        .arg(&folders.module)
        .arg(&folders.site)
        .args(book)
        .current_dir(&folders.web);
    run(&mut bundle)?;
    Ok(true)
}

/// The standard library of the target, which rustup fetches if it is missing.
fn target() -> Result<()> {
    let libraries = output(Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]))?;
    if Path::new(libraries.trim()).is_dir() {
        return Ok(());
    }
    output(Command::new("rustup").args(["target", "add", TARGET])).map(|_| ())
}

/// Compiles the module and writes its glue.
fn module(root: &Path, folders: &Folders) -> Result<()> {
    run(&mut cargo([
        "build",
        "--quiet",
        "--package",
        "tirx-playground",
        "--target",
        TARGET,
        "--profile",
        "web",
    ]))?;
    let compiled = root.join("target").join(TARGET).join("web/tirx_playground.wasm");
    let glue = folders.module.join("tirx_bg.wasm");
    let time = |path: &Path| fs::metadata(path).and_then(|data| data.modified()).ok();
    if time(&glue) > time(&compiled) {
        return Ok(());
    }
    run(cargo([
        "run",
        "--quiet",
        "--package",
        "xtask",
        "--bin",
        "bindgen",
        "--features",
        "bindgen",
        "--",
    ])
    .arg(&compiled)
    .arg(&folders.module))
}

/// Installs the packages of the lock file, unless they are there.
fn node_modules(web: &Path) -> Result<()> {
    let time = |path: PathBuf| fs::metadata(path).and_then(|data| data.modified()).ok();
    let installed = time(web.join("node_modules/.package-lock.json"));
    if installed.is_some() && installed >= time(web.join("package-lock.json")) {
        return Ok(());
    }
    run(Command::new("npm")
        .args(["ci", "--no-audit", "--no-fund"])
        .current_dir(web))
}

/// The runs of the filetests natively and under node, then the page in Chromium.
fn tests(root: &Path, folders: &Folders) -> Result<()> {
    let node = |script: &str| {
        let mut node = Command::new("node");
        node.arg(script).arg(&folders.module).arg(&folders.site);
        node.current_dir(&folders.web);
        node
    };
    let native = root.join("target/playground-native.jsonl");
    // With the features of the whole workspace, with which `cargo xtask test` has built everything.
    run(&mut cargo([
        "build",
        "--quiet",
        "--workspace",
        "--example",
        "playground",
    ]))?;
    run(Command::new(root.join("target/debug/examples/playground")).arg(&native))?;
    run(node("test/same.mjs").arg(&native))?;
    chromium()?;
    run(&mut node("test/page.mjs"))
}

/// Installs Chromium if there is none.
fn chromium() -> Result<()> {
    let found = |name: &str| Command::new(name).arg("--version").output().is_ok();
    if std::env::var_os("CHROMIUM").is_some() || found("chromium") || found("google-chrome") {
        return Ok(());
    }
    let installed = output(Command::new("apt-get").args(["install", "--yes", "chromium"]));
    installed.map(|_| ()).map_err(|error| {
        format!("there is no Chromium, and apt-get cannot install it: {error}\n  = help: CHROMIUM names one")
            .into()
    })
}
