//! Which packages of a workspace a command is for: `--workspace` and `-p NAME`, with the packages that `cargo metadata` lists.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use tirx_core::diagnostic::{Level, Message};

use crate::failure::{Failure, Result, choice, message, usage, user};
use crate::output::Output;

/// The name of a package's manifest of kernels, beside its `Cargo.toml`.
pub(crate) const KERNELS: &str = "kernels.toml";

#[derive(clap::Args, Debug)]
pub(crate) struct Selection {
    /// Selects every package of the workspace that has a kernels.toml.
    #[arg(long, conflicts_with = "manifest")]
    workspace: bool,
    /// Selects this package of the workspace; can be repeated.
    #[arg(
        long = "package",
        short = 'p',
        value_name = "NAME",
        conflicts_with_all = ["manifest", "workspace"]
    )]
    packages: Vec<String>,
}

/// A package with kernels.
pub(crate) struct Package {
    pub(crate) name: String,
    /// Its kernels.toml, as messages name it.
    pub(crate) manifest: PathBuf,
    /// What its Cargo.toml says, or inherits.
    pub(crate) license: Option<String>,
}

impl Package {
    /// Messages about this package, which name it.
    pub(crate) fn prefixed(&self, messages: Vec<Message>) -> Vec<Message> {
        let prefix = |mut message: Message| {
            message.text = format!("package `{}`: {}", self.name, message.text);
            message
        };
        messages.into_iter().map(prefix).collect()
    }
}

/// The manifest that a command is for: the one that is given, or the kernels.toml of this folder or of the nearest folder above that has one.
pub(crate) fn manifest(given: Option<&Path>) -> Result<PathBuf> {
    if let Some(given) = given {
        return Ok(given.to_path_buf());
    }
    let here = std::env::current_dir()
        .map_err(|error| user(format_args!("the current folder cannot be read: {error}")))?;
    let mut above = PathBuf::new();
    for folder in here.ancestors() {
        if folder.join(KERNELS).is_file() {
            return Ok(above.join(KERNELS));
        }
        above.push("..");
    }
    let error = message(&format!(
        "there is no {KERNELS} in `{}` or a folder above it",
        here.display()
    ));
    let packages = members().map(|(_, all)| all).unwrap_or_default();
    let with: Vec<&str> = packages
        .iter()
        .filter(|package| package.manifest.is_file())
        .map(|package| package.name.as_str())
        .collect();
    let help = match with.as_slice() {
        [] => "name it with --manifest; `cargo tirx new NAME` makes a package with kernels".to_string(),
        with => format!(
            "`--workspace` selects the packages of the workspace with kernels: {}; `-p NAME` selects one",
            with.join(", ")
        ),
    };
    Err(Failure::User(vec![error.child(Level::Help, help)]))
}

impl Selection {
    /// Whether the command line names packages.
    pub(crate) fn is_given(&self) -> bool {
        self.workspace || !self.packages.is_empty()
    }

    /// The packages asked for, in the order of their names; `None` where the command line names none.
    pub(crate) fn packages(&self) -> Result<Option<Vec<Package>>> {
        if !self.is_given() {
            return Ok(None);
        }
        let (root, all) = members()?;
        if self.workspace {
            let with: Vec<Package> = all.into_iter().filter(|p| p.manifest.is_file()).collect();
            if with.is_empty() {
                return Err(user(format_args!(
                    "`--workspace`: no package of the workspace `{}` has a {KERNELS} beside its Cargo.toml",
                    root.display()
                )));
            }
            return Ok(Some(with));
        }
        let names: Vec<&str> = all.iter().map(|package| package.name.as_str()).collect();
        for wanted in &self.packages {
            let Some(package) = all.iter().find(|package| package.name == *wanted) else {
                let help = choice(wanted, &names, "the packages are");
                return Err(usage(format_args!(
                    "the workspace `{}` has no package `{wanted}`\n  = help: {help}",
                    root.display()
                )));
            };
            if !package.manifest.is_file() {
                return Err(user(format_args!(
                    "package `{wanted}` has no kernels: there is no `{}`",
                    package.manifest.display()
                )));
            }
        }
        let chosen = |package: &Package| self.packages.contains(&package.name);
        Ok(Some(all.into_iter().filter(chosen).collect()))
    }
}

/// Does something for each package, and shows what is wrong with each. The others go on where one fails.
pub(crate) fn each(
    packages: &[Package],
    output: &Output,
    action: impl Fn(&Package) -> Result<()>,
) -> Result<()> {
    let mut failed: Vec<&str> = Vec::new();
    for package in packages {
        match action(package) {
            Ok(()) => {}
            Err(Failure::User(messages)) => {
                output.show(&package.prefixed(messages));
                failed.push(&package.name);
            }
            Err(usage) => return Err(usage),
        }
    }
    match failed.is_empty() {
        true => Ok(()),
        false => Err(user(format_args!(
            "{} of {} packages failed: {}",
            failed.len(),
            packages.len(),
            failed.join(", ")
        ))),
    }
}

/// What is used of the answer of `cargo metadata`.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Member>,
    workspace_root: PathBuf,
}

#[derive(Deserialize)]
struct Member {
    name: String,
    manifest_path: PathBuf,
    license: Option<String>,
}

/// The root of the workspace around the current folder, and its packages.
fn members() -> Result<(PathBuf, Vec<Package>)> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let run = Command::new(&cargo)
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .output()
        .map_err(|error| user(format_args!("`{}` cannot be run: {error}", cargo.display())))?;
    if !run.status.success() {
        let said = String::from_utf8_lossy(&run.stderr);
        return Err(user(format_args!(
            "`cargo metadata`, which lists the workspace's packages, failed\n{}",
            said.trim_end()
        )));
    }
    let metadata: Metadata = serde_json::from_slice(&run.stdout).map_err(|error| {
        user(format_args!(
            "the answer of `cargo metadata` cannot be read: {error}"
        ))
    })?;
    let here = std::env::current_dir().and_then(|here| here.canonicalize()).ok();
    let package = |member: Member| Package {
        manifest: named_from(here.as_deref(), &member.manifest_path.with_file_name(KERNELS)),
        name: member.name,
        license: member.license,
    };
    let mut packages: Vec<Package> = metadata.packages.into_iter().map(package).collect();
    packages.sort_by(|one, other| one.name.cmp(&other.name));
    Ok((metadata.workspace_root, packages))
}

/// A path relative to the current folder where it is inside.
fn named_from(here: Option<&Path>, path: &Path) -> PathBuf {
    let inside = here.and_then(|here| path.strip_prefix(here).ok());
    inside.unwrap_or(path).to_path_buf()
}
