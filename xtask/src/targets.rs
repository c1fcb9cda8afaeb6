//! Whether users' crates compile for machines other than this one: `cargo check` for each target.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{Result, cargo, run};

/// Machines on which kernels are built, tested on the simulator or launched.
const TARGETS: [&str; 5] = [
    "aarch64-unknown-linux-gnu", // Grace, Jetson
    "x86_64-unknown-linux-musl",
    "aarch64-apple-darwin",
    "x86_64-pc-windows-msvc",
    "x86_64-pc-windows-gnu",
];

/// Checks the published crates for each of [`TARGETS`], or those given, whose standard library rustup gets.
pub(crate) fn check(root: &Path, targets: &[String]) -> Result<()> {
    let all = TARGETS.map(String::from);
    let targets = if targets.is_empty() { &all[..] } else { targets };
    let stand_ins = stand_ins(&root.join("target").join("targets"))?;
    for target in targets {
        run(Command::new("rustup").args(["target", "add", target]))?;
        let mut check = cargo(["check", "--quiet", "--target", target]);
        for package in ["tirx-rt", "tirx-build", "cargo-tirx"] {
            check.args(["-p", package]);
        }
        run(check
            .env("CC", stand_ins.join("cc"))
            .env("AR", stand_ins.join("ar")))?;
        println!("{target}: tirx-rt, tirx-build and cargo-tirx compile");
    }
    Ok(())
}

/// Programs in place of a C compiler and archiver for another machine, which few have installed: `cargo check` looks at
/// no object file, so that empty ones serve.
fn stand_ins(folder: &Path) -> Result<PathBuf> {
    const WRITE_OUTPUT: &str = "#!/bin/sh\nlast=\nfor a in \"$@\"; do\n\
        case \"$a\" in -Fo*|/Fo*) : > \"${a#?Fo}\";; -out:*|-OUT:*) : > \"${a#*:}\";; -*) ;; *.a|*.lib) : > \"$a\";; esac\n\
        [ \"$last\" = -o ] && : > \"$a\"\nlast=$a\ndone\nexit 0\n";
    fs::create_dir_all(folder)?;
    for name in ["cc", "ar"] {
        let file = folder.join(name);
        fs::write(&file, WRITE_OUTPUT)?;
        run(Command::new("chmod").arg("+x").arg(&file))?;
    }
    Ok(folder.to_path_buf())
}
