//! `cargo tirx sources`: launchers and compiled kernels as source files, for crates without a build script.

use std::path::PathBuf;

use tirx_build::build_script_declares_kernels;

use crate::bundle::package;
use crate::cache::shown;
use crate::failure::{Result, usage};
use crate::output::{Output, counted, out};
use crate::packages;

#[derive(clap::Args, Debug)]
pub(crate) struct Sources {
    /// The folder to write or check, for these files alone: `src/kernels`.
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,
    /// The manifest; defaults to the kernels.toml of this folder or of the nearest folder above.
    #[arg(long, value_name = "PATH")]
    manifest: Option<PathBuf>,
    /// Compiles for these targets, such as `sm_90a,sm_100a`, and no PTX.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    targets: Vec<String>,
    /// Compiles each kernel for those of its targets that are in this list, such as `sm_80,compute_80`; a call of a kernel with none of them is an
    /// error.
    #[arg(long, value_name = "LIST", value_delimiter = ',', conflicts_with = "targets")]
    only_targets: Vec<String>,
    /// Writes nothing; fails if the files are out of date. Does not need nvcc.
    #[arg(long)]
    locked: bool,
}

pub(crate) fn run(command: &Sources, _: &Output) -> Result<()> {
    let manifest = packages::manifest(command.manifest.as_deref())?;
    if package(&manifest).is_some_and(|package| build_script_declares_kernels(&package)) {
        return Err(usage(
            "the build script of this package declares kernels, and only a build knows them\n  = help: declare them in \
             kernels.toml",
        ));
    }
    let mut builder = crate::dependencies::builder(&manifest);
    if !command.targets.is_empty() {
        builder = builder.targets(command.targets.iter().cloned());
    }
    if !command.only_targets.is_empty() {
        builder = builder.only_targets(command.only_targets.iter().cloned());
    }
    let report = builder.sources(&command.out, command.locked)?;
    let verb = if command.locked { "up to date:" } else { "wrote" };
    out(&format!(
        "{verb} {}\n{} by nvcc {}: {}\n",
        command.out.display(),
        counted(report.kernels, "kernel"),
        report.nvcc,
        shown(report.bytes as u64)
    ))
}
