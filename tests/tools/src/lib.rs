//! What the tests of several crates use: which nvcc do they run, which scripts stand in for programs, and what do they skip?

#![forbid(unsafe_code)]

pub mod nvcc;
#[cfg(unix)]
pub mod stand_in;
pub mod unit;

use std::io::Write;
use std::path::{Path, PathBuf};

/// The target directory that holds the running test program; a temporary folder for a program that was carried elsewhere.
pub fn target() -> PathBuf {
    let program = std::env::current_exe().unwrap_or_default();
    let folders: Vec<&Path> = program.ancestors().skip(1).take(3).collect();
    match folders[..] {
        [deps, _profile, target] if deps.ends_with("deps") => target.into(),
        _ => std::env::temp_dir().join("tirx-tests"),
    }
}

/// The file that lists the skipped tests of a run: a line for each. `cargo xtask test` counts them.
pub const SKIPPED: &str = "skipped-tests.txt";

/// Notes that the running test is skipped, for a reason that whoever runs it has asked for, or that lies in the machine.
pub fn skip(reason: &str) {
    let thread = std::thread::current();
    skip_test(thread.name().unwrap_or("a test"), reason);
}

/// [`skip`] for a test whose thread has another name.
pub fn skip_test(test: &str, reason: &str) {
    let program = std::env::current_exe().unwrap_or_default();
    let program = program.file_name().unwrap_or_default().to_string_lossy();
    // Cargo adds a hash to the name.
    let program = program.rsplit_once('-').map_or(&*program, |(name, _)| name);
    let line = format!("{program} {test}: {reason}\n");
    eprint!("skipped: {line}");
    let list = std::fs::File::options()
        .create(true)
        .append(true)
        .open(target().join(SKIPPED));
    // No list, no count; the test itself is not concerned.
    if let Ok(mut list) = list {
        let _ = list.write_all(line.as_bytes());
    }
}
