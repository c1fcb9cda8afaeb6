//! The files and variables that Cargo is told to watch.
//!
//! Cargo runs a build script again, and compiles the package again, when a file or variable that the script named has
//! changed. PATH is named only where no nvcc was found: with one, another PATH changes nothing.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::environment::Environment;
use crate::toolchain::{self, Nvcc};

/// The outcome of the search for an nvcc, as far as it matters here.
pub(crate) enum Found<'a> {
    /// One is used.
    Nvcc(&'a Nvcc),
    /// None is requested, or none is needed.
    NotWanted,
    /// There is none.
    Nothing,
}

/// `cargo::rerun-if-…` lines.
pub(crate) fn directives(
    environment: &Environment,
    inputs: &BTreeSet<PathBuf>,
    found: &Found<'_>,
) -> Vec<String> {
    let mut lines: Vec<String> = inputs
        .iter()
        .map(|path| format!("cargo::rerun-if-changed={}", path.display()))
        .collect();
    lines.extend(
        toolchain_files(environment, found)
            .iter()
            .map(|path| format!("cargo::rerun-if-changed={}", path.display())),
    );
    let looked_for = matches!(found, Found::Nothing);
    let variables: BTreeSet<String> = environment
        .names_read()
        .into_iter()
        .chain(TOOLCHAIN_VARIABLES.map(String::from))
        .filter(|name| name != "PATH" || looked_for)
        // Cargo watches these itself, or they do not affect the result.
        .filter(|name| !["OUT_DIR", "HOME"].contains(&name.as_str()))
        .collect();
    lines.extend(
        variables
            .iter()
            .map(|name| format!("cargo::rerun-if-env-changed={name}")),
    );
    lines
}

/// The path that Cargo watches to notice that a file or folder appears at `missing`; `None` if there is none. `name` tells the
/// missing things of a build apart.
///
/// Cargo knows changed files, by their times, and runs a build script at every build while a file that it named is
/// missing. It looks into a folder that the script named, follows links there, and passes over those that lead
/// nowhere. So a folder of the build's output has two links: one to the missing place, and one through it to a file
/// from the future. If a folder appears, the second one leads to the future, whatever the age of the folder's files; a
/// file is noticed if it is newer than the build.
pub(crate) fn appearance(out_dir: &Path, name: &str, missing: &Path) -> Option<PathBuf> {
    let absolute = |path: &Path| std::path::absolute(path).ok();
    let (out_dir, missing) = (absolute(out_dir)?, absolute(missing)?);
    let folder = out_dir.join(format!("tirx-{name}"));
    let future = out_dir.join("tirx-future");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).ok()?;
    let day = std::time::Duration::from_secs(24 * 60 * 60);
    let later = std::time::SystemTime::now() + day * 365 * 100;
    fs::File::create(&future).ok()?.set_modified(later).ok()?;
    // From any depth this leads to the root.
    let mut through = missing.join("../".repeat(64));
    through.push(future.strip_prefix("/").ok()?);
    link(&missing, &folder.join("here"))?;
    link(&through, &folder.join("through"))?;
    // The folder itself is older than any build.
    let past = std::time::SystemTime::UNIX_EPOCH + day;
    fs::File::open(&folder).ok()?.set_modified(past).ok()?;
    Some(folder)
}

#[cfg(unix)]
fn link(target: &Path, at: &Path) -> Option<()> {
    std::os::unix::fs::symlink(target, at).ok()
}

/// Links need a right that users of other systems do not have.
#[cfg(not(unix))]
fn link(_: &Path, _: &Path) -> Option<()> {
    None
}

/// The variables that determine which nvcc is used, whether or not this build has searched for one.
const TOOLCHAIN_VARIABLES: [&str; 5] = ["TIRX_NVCC", "NVCC", "CUDA_HOME", "CUDA_PATH", "TIRX_DUMP"];

/// Files and folders whose change can change which nvcc is used, or its version. Only existing ones: Cargo reruns a
/// build script at every build while a file it named is missing.
fn toolchain_files(environment: &Environment, found: &Found<'_>) -> Vec<PathBuf> {
    let mut watches = Vec::new();
    if let Found::Nvcc(nvcc) = found {
        watches.push(nvcc.path.clone());
        // A package manager keeps modification times of files; the folder's time changes when a file is replaced.
        watches.extend(nvcc.path.parent().filter(|dir| small(dir)).map(Path::to_path_buf));
    }
    if !matches!(found, Found::NotWanted) {
        watches.extend(homes_without_nvcc(environment));
    }
    if matches!(found, Found::Nothing) {
        // Where an nvcc may appear: `PATH`, our own installations, and the linker configuration that the toolkit's
        // packages add.
        let path = environment.peek("PATH").unwrap_or_default();
        watches.extend(std::env::split_paths(&path).filter(|dir| dir.is_absolute() && small(dir)));
        watches.push(PathBuf::from("/etc/ld.so.conf.d"));
        watches.extend(toolchain::watched_stamp_dir(environment));
    }
    let mut seen = BTreeSet::new();
    watches.retain(|path| path.exists() && seen.insert(path.clone()));
    watches
}

/// The folders to watch if `CUDA_HOME` or `CUDA_PATH` names a toolkit without an nvcc. For each variable it is the nearest existing
/// folder that changes when an nvcc is installed there, unless Cargo would take too long to scan that folder.
fn homes_without_nvcc(environment: &Environment) -> Vec<PathBuf> {
    let named = ["CUDA_HOME", "CUDA_PATH"]
        .into_iter()
        .filter_map(|name| environment.path_peek(name));
    named
        .filter(|home| !home.join("bin").join("nvcc").is_file())
        .filter_map(|home| {
            let places = [home.join("bin"), home.clone(), home.parent()?.to_path_buf()];
            places.into_iter().find(|place| place.is_dir())
        })
        .filter(|dir| small_with_subfolders(dir))
        .collect()
}

/// Whether a folder has no subfolders and is small enough for Cargo to scan at every build without a noticeable delay.
fn small(dir: &Path) -> bool {
    let entries = fs::read_dir(dir).map(|entries| entries.flatten().take(4000).collect::<Vec<_>>());
    entries.is_ok_and(|entries| {
        entries.len() < 4000
            && !entries
                .iter()
                .any(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
    })
}

/// Whether a folder is small enough, like [`small`], counting its subfolders: Cargo scans them, too.
fn small_with_subfolders(dir: &Path) -> bool {
    let mut left = 2000usize;
    let mut folders = vec![dir.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            left = match left.checked_sub(1) {
                Some(left) => left,
                None => return false,
            };
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            }
        }
    }
    true
}
