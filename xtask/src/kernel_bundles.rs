//! `cargo xtask kernel-bundles`: the packages of compiled kernels, `tirx-kernels/bundles/*`.

use std::fs;
use std::path::Path;

use crate::process::{Result, cargo, run};

/// What crates.io takes of a package, compressed; bundles are compressed.
const MAX_BYTES: u64 = 10 << 20;

/// The package's folder, and the options that select its kernels.
const PACKAGES: [(&str, [&str; 2]); 2] = [
    ("sm90a", ["--targets", "sm_90a"]),
    ("sm80", ["--only-targets", "sm_80,compute_80"]),
];

/// Writes the file of kernels of each package; with `--locked` or `--verify` it checks them as `cargo tirx bundle` does.
pub(crate) fn build(root: &Path, args: &[String]) -> Result<()> {
    let manifest = root.join("tirx-kernels/kernels.toml");
    for (folder, selection) in PACKAGES {
        let file = root
            .join("tirx-kernels/bundles")
            .join(folder)
            .join("kernels.bundle");
        let mut bundle = cargo(["run", "--quiet", "-p", "cargo-tirx", "--", "tirx", "bundle"]);
        bundle.arg("--manifest").arg(&manifest).arg("--out").arg(&file);
        bundle.args(selection).args(args);
        if args.is_empty() {
            bundle.arg("--single-file");
        }
        run(&mut bundle)?;
        let bytes = fs::metadata(&file)?.len();
        println!("{}: {:.1} MB", file.display(), bytes as f64 / 1e6);
        if bytes > MAX_BYTES {
            return Err(format!(
                "{} has {bytes} bytes, and the registry takes {MAX_BYTES}: divide it by families",
                file.display()
            )
            .into());
        }
    }
    Ok(())
}
