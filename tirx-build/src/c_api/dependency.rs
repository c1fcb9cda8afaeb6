//! Whether a package is built as a dependency, whose sources are not the builder's to write into.
//!
//! Cargo does not tell a build script which packages it was asked to build. A package is a dependency if it was
//! published (registries, vendored sources and Git checkouts leave their marks), or if it belongs to another workspace
//! than the one that Cargo was called for.

use std::path::{Path, PathBuf};

use crate::paths::workspace_root;

/// Whether the package in this folder is built as a dependency.
pub(super) fn is_one(package: &Path) -> bool {
    let published = ["Cargo.toml.orig", ".cargo-checksum.json", ".cargo-ok"];
    if published.iter().any(|mark| package.join(mark).exists()) || is_checkout(package) {
        return true;
    }
    let own = workspace_root(package);
    // Cargo writes the lock file of the workspace that it builds before it runs a build script.
    if !own.join("Cargo.lock").exists() {
        return true;
    }
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    asked_for().is_some_and(|asked| real(&workspace_root(&asked)) != real(&own))
}

/// Whether a folder is in one of Cargo's checkouts of Git repositories.
fn is_checkout(package: &Path) -> bool {
    package
        .ancestors()
        .any(|folder| folder.ends_with("git/checkouts") || folder.join(".cargo-ok").exists())
}

/// The folder of the package or workspace that Cargo was called for, where the system tells what the parent process is.
#[cfg(target_os = "linux")]
fn asked_for() -> Option<PathBuf> {
    let process = PathBuf::from(format!("/proc/{}", std::os::unix::process::parent_id()));
    let words = std::fs::read(process.join("cmdline")).ok()?;
    let words: Vec<String> = words
        .split(|byte| *byte == 0)
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect();
    let program = Path::new(words.first()?).file_stem()?;
    let folder = std::fs::read_link(process.join("cwd")).ok()?;
    asked_by(program.to_str()?, &words, &folder)
}

#[cfg(not(target_os = "linux"))]
fn asked_for() -> Option<PathBuf> {
    None
}

/// The folder that a call of Cargo in a folder is about; `None` for another program.
#[cfg(target_os = "linux")]
fn asked_by(program: &str, words: &[String], folder: &Path) -> Option<PathBuf> {
    if program != "cargo" {
        return None;
    }
    // What follows `--` is for the program that Cargo runs.
    let mut words = words.iter().take_while(|word| *word != "--");
    let mut manifest = None;
    while let Some(word) = words.next() {
        match word.strip_prefix("--manifest-path") {
            Some("") => manifest = words.next().cloned(),
            Some(rest) => manifest = rest.strip_prefix('=').map(str::to_string),
            None => {}
        }
    }
    match manifest {
        Some(manifest) => folder.join(manifest).parent().map(Path::to_path_buf),
        None => folder
            .ancestors()
            .find(|folder| folder.join("Cargo.toml").is_file())
            .map(Path::to_path_buf),
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn published_packages_are_dependencies() {
        let folder = tempfile::tempdir().unwrap();
        let package = folder.path().join("p");
        std::fs::create_dir(&package).unwrap();
        std::fs::write(package.join("Cargo.toml"), "[package]\n").unwrap();
        assert!(is_one(&package), "no build of it has made a lock file");
        std::fs::write(package.join("Cargo.lock"), "").unwrap();
        // The test's own parent is Cargo, which builds another workspace, or it is no Cargo.
        assert_eq!(is_one(&package), asked_for().is_some());
        for mark in ["Cargo.toml.orig", ".cargo-checksum.json"] {
            std::fs::write(package.join(mark), "").unwrap();
            assert!(is_one(&package), "{mark}");
            std::fs::remove_file(package.join(mark)).unwrap();
        }
        std::fs::write(folder.path().join(".cargo-ok"), "").unwrap();
        assert!(is_one(&package), "a checkout");
    }

    #[test]
    fn a_call_of_cargo_is_about_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("src/bin");
        std::fs::create_dir_all(&below).unwrap();
        std::fs::write(folder.path().join("Cargo.toml"), "[package]\n").unwrap();
        let asked = |program: &str, words: &str, folder: &Path| {
            let words: Vec<String> = words.split(' ').map(str::to_string).collect();
            asked_by(program, &words, folder)
        };
        let found = asked("cargo", "cargo build --release", &below);
        assert_eq!(found.as_deref(), Some(folder.path()));
        for words in [
            "cargo run --manifest-path a/Cargo.toml -- x",
            "cargo run --manifest-path=a/Cargo.toml",
        ] {
            let found = asked("cargo", words, folder.path());
            assert_eq!(found, Some(folder.path().join("a")));
        }
        let found = asked(
            "cargo",
            "cargo run -- --manifest-path a/Cargo.toml",
            folder.path(),
        );
        assert_eq!(found.as_deref(), Some(folder.path()));
        assert_eq!(asked("make", "make", folder.path()), None);
    }
}
