//! `cargo tirx bundle`: compiled kernels for builds without nvcc.

use std::path::{Path, PathBuf};

use tirx_build::{
    BundleAction, BundleReport, BundleRequest, build_script_declares_kernels, bundle_by_build_script,
};

use crate::cache::shown;
use crate::failure::{Result, usage};
use crate::output::{self, Output, counted, out};
use crate::packages::{self, Selection};

#[derive(clap::Args, Debug)]
pub(crate) struct Bundle {
    /// The bundle to write or check; defaults to the manifest's `bundle`, or `kernels.bundle` next to the manifest.
    #[arg(long, value_name = "PATH")]
    out: Option<PathBuf>,
    /// The manifest; defaults to the kernels.toml of this folder or of the nearest folder above.
    #[arg(long, value_name = "PATH")]
    manifest: Option<PathBuf>,
    #[command(flatten)]
    packages: Selection,
    /// Writes one file instead of a folder.
    #[arg(long)]
    single_file: bool,
    /// Includes only these targets, such as `sm_90a,sm_100a`, and no PTX.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    targets: Vec<String>,
    /// Writes nothing; fails if the bundle is out of date. Does not need nvcc.
    #[arg(long, conflicts_with_all = ["verify", "single_file"])]
    locked: bool,
    /// Writes nothing; recompiles everything and fails if the bundle differs.
    #[arg(long, conflicts_with = "single_file")]
    verify: bool,
    /// Runs the package's build script to make the bundle, with the kernels that the script declares. Needed only if the
    /// script does not name them itself (`Kernel::script(…)`), for instance because another crate's function does.
    #[arg(long)]
    build_script: bool,
}

pub(crate) fn run(command: &Bundle, output: &Output) -> Result<()> {
    if command.targets.iter().any(|target| target.is_empty()) {
        return Err(usage(
            "`--targets` has an empty name\n  = help: write it as sm_90a,sm_100a",
        ));
    }
    let Some(packages) = command.packages.packages()? else {
        let manifest = packages::manifest(command.manifest.as_deref())?;
        return bundle(command, &manifest, None);
    };
    if command.out.is_some() {
        return Err(usage(
            "`--out` names one bundle, and each package has its own\n  = help: leave `--out` out, or name the place in \
             `[bundle] path` of each kernels.toml",
        ));
    }
    packages::each(&packages, output, |package| {
        bundle(command, &package.manifest, package.license.as_deref())
    })
}

/// Makes or checks the bundle of one manifest. `inherited` is the license where Cargo has told it.
fn bundle(command: &Bundle, manifest: &Path, inherited: Option<&str>) -> Result<()> {
    let license = || inherited.map_or_else(|| license(manifest), str::to_string);
    let action = match (command.locked, command.verify) {
        (true, _) => BundleAction::Locked,
        (_, true) => BundleAction::Verify,
        _ => BundleAction::Write,
    };
    let package = package(manifest);
    let report = match package
        .filter(|package| command.build_script || build_script_declares_kernels(package))
    {
        Some(package) => {
            output::say("the build script declares kernels: Cargo runs it\n");
            let request = BundleRequest {
                action,
                path: command.out.clone(),
                single: command.single_file,
                targets: command.targets.clone(),
                license: license(),
            };
            bundle_by_build_script(&package, manifest, &request)?
        }
        None if command.build_script => {
            return Err(usage(
                "`--build-script`: there is no Cargo.toml beside the manifest or above\n  = help: run it in a package's \
                 folder",
            ));
        }
        None => {
            let mut builder = crate::dependencies::builder(manifest);
            if let Some(path) = &command.out {
                builder = builder.bundle_dir(path);
            }
            if !command.targets.is_empty() {
                builder = builder.targets(command.targets.iter().cloned());
            }
            builder.bundle(action, command.single_file, &license())?
        }
    };
    let verb = match action {
        BundleAction::Write => "wrote",
        BundleAction::Locked => "up to date:",
        BundleAction::Verify => "verified, byte for byte:",
    };
    out(&format!("{verb} {}\n{}", report.path.display(), sizes(&report)))
}

/// The folder of the package that a manifest belongs to.
pub(crate) fn package(manifest: &Path) -> Option<PathBuf> {
    let manifest = std::path::absolute(manifest).ok()?;
    let mut folders = manifest.ancestors().skip(1);
    folders
        .find(|folder| folder.join("Cargo.toml").is_file())
        .map(Path::to_path_buf)
}

/// The sizes of a bundle: one line per kernel, and the sum.
fn sizes(report: &BundleReport) -> String {
    let width = report
        .kernels
        .iter()
        .map(|kernel| kernel.name.len())
        .max()
        .unwrap_or(0);
    let mut text = String::new();
    let (mut all, mut packed) = (0, 0);
    for kernel in &report.kernels {
        let bytes: usize = kernel.images.iter().map(|(_, bytes)| bytes).sum();
        let each: Vec<String> = kernel
            .images
            .iter()
            .map(|(target, bytes)| format!("{target} {}", shown(*bytes as u64)))
            .collect();
        all += bytes;
        packed += kernel.packed;
        text.push_str(&format!(
            "  {:width$}  {} (packed {})\n",
            kernel.name,
            each.join(", "),
            shown(kernel.packed as u64)
        ));
    }
    text + &format!(
        "{} by nvcc {}: {}, packed {}\n",
        counted(report.kernels.len(), "kernel"),
        report.nvcc,
        shown(all as u64),
        shown(packed as u64)
    )
}

/// The license in the Cargo.toml of a manifest's package.
fn license(manifest: &Path) -> String {
    let cargo = package(manifest).map(|folder| folder.join("Cargo.toml"));
    let text = cargo.and_then(|cargo| std::fs::read_to_string(cargo).ok());
    let text = text.unwrap_or_default();
    let found = text
        .lines()
        .map(str::trim)
        .find_map(|line| line.strip_prefix("license")?.trim_start().strip_prefix('='));
    match found.map(|value| value.trim().trim_matches('"').to_string()) {
        Some(license) if !license.is_empty() => license,
        _ => "see the package".to_string(),
    }
}
