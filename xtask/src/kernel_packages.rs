//! `cargo xtask kernel-packages`: the packages of compiled kernels, `tirx-kernels/compiled/*`.

use std::fs;
use std::path::Path;

use crate::process::{Result, cargo, run};

/// The largest package that crates.io takes, compressed.
const MAX_BYTES: u64 = 10 << 20;

/// The package's folder, and the targets of its kernels.
const PACKAGES: [(&str, &str); 3] = [
    ("sm90a", "sm_90a"),
    ("sm80", "sm_80,compute_80"),
    ("sm100a", "sm_100a,compute_80"),
];

/// Writes the kernels of each package, and says how large the package is; with `--locked` it checks them as `cargo tirx sources` does.
pub(crate) fn build(root: &Path, args: &[String]) -> Result<()> {
    let manifest = root.join("tirx-kernels/kernels.toml");
    for (folder, targets) in PACKAGES {
        let package = root.join("tirx-kernels/compiled").join(folder);
        let mut sources = cargo(["run", "--quiet", "-p", "cargo-tirx", "--", "tirx", "sources"]);
        sources.arg("--manifest").arg(&manifest);
        sources.arg("--out").arg(package.join("kernels"));
        run(sources.args(["--only-targets", targets]).args(args))?;
        let name = format!("tirx-kernels-{folder}");
        // Without a lock file, cargo does not look for the other crates in the registry.
        let mut archive = cargo([
            "package",
            "--quiet",
            "--no-verify",
            "--allow-dirty",
            "--exclude-lockfile",
        ]);
        let target = root.join("target");
        run(archive.args(["-p", &name, "--target-dir"]).arg(&target))?;
        let file = format!("package/{name}-{}.crate", env!("CARGO_PKG_VERSION"));
        let bytes = fs::metadata(target.join(file))?.len();
        println!("{name}: {:.2} MB compressed", bytes as f64 / 1e6);
        if bytes > MAX_BYTES {
            return Err(format!(
                "{} has {bytes} bytes compressed, and the registry takes {MAX_BYTES}: divide it by families",
                package.display()
            )
            .into());
        }
    }
    Ok(())
}
