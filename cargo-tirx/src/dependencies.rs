//! The libraries whose kernel files those of a package may import: what Cargo tells build scripts by `DEP_…_TIRX_KERNELS`, and
//! a command has to ask for.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::SystemTime;

use serde::Deserialize;

use tirx_build::{Builder, Environment};

/// The process's environment, where Cargo is asked for a package's dependencies as soon as a kernel file imports one.
pub(crate) fn environment() -> Environment {
    Environment::process().with_libraries(libraries)
}

/// A build of a manifest in that environment.
pub(crate) fn builder(manifest: impl Into<PathBuf>) -> Builder {
    Builder::new().environment(environment()).manifest(manifest)
}

type Libraries = BTreeMap<String, PathBuf>;

/// What Cargo has answered, by the package's Cargo.toml and when that was written.
type Answers = HashMap<(PathBuf, Option<SystemTime>), Libraries>;

static ANSWERS: LazyLock<Mutex<Answers>> = LazyLock::new(Mutex::default);

/// The libraries with kernels that the package around a folder depends on; none where there is no package, or where Cargo
/// cannot say it without fetching something.
fn libraries(folder: &Path) -> Libraries {
    let Some(package) = package(folder) else {
        return Libraries::new();
    };
    let written = package.metadata().and_then(|about| about.modified()).ok();
    let mut answers = ANSWERS.lock().unwrap_or_else(PoisonError::into_inner);
    let answer = answers.entry((package.clone(), written));
    answer
        .or_insert_with(|| asked(&package).unwrap_or_default())
        .clone()
}

/// The Cargo.toml of a folder, or of the nearest one around it.
fn package(folder: &Path) -> Option<PathBuf> {
    let folder = match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    };
    let folder = folder.canonicalize().ok()?;
    let mut files = folder.ancestors().map(|folder| folder.join("Cargo.toml"));
    files.find(|file| file.is_file())
}

/// What is used of the answer of `cargo metadata`.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    links: Option<String>,
    manifest_path: PathBuf,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
    root: Option<String>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<DependencyKind>,
}

#[derive(Deserialize)]
struct DependencyKind {
    /// None for one that the package itself uses; Cargo tells build scripts of these alone.
    kind: Option<String>,
}

fn asked(package: &Path) -> Option<Libraries> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // Of this machine's dependencies alone, since Cargo needs the others only to list them.
    let run = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--offline"])
        .args(["--filter-platform", "host-tuple", "--manifest-path"])
        .arg(package)
        .output()
        .ok()?;
    if !run.status.success() {
        return None;
    }
    let Metadata { packages, resolve } = serde_json::from_slice(&run.stdout).ok()?;
    let root = resolve.root?;
    let root = resolve.nodes.into_iter().find(|node| node.id == root)?;
    let used = |dependency: &Dependency| dependency.dep_kinds.iter().any(|kind| kind.kind.is_none());
    let direct: Vec<String> = root.deps.into_iter().filter(used).map(|d| d.pkg).collect();
    let library = |package: Package| {
        let name = package.links.filter(|_| direct.contains(&package.id))?;
        let folder = package.manifest_path.parent()?.to_path_buf();
        let has_kernels = folder.join(crate::packages::KERNELS).is_file();
        has_kernels.then(|| (name.replace('-', "_").to_lowercase(), folder))
    };
    Some(packages.into_iter().filter_map(library).collect())
}
