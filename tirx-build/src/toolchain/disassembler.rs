//! nvdisasm, which shows machine code as text: where it is, and how it is fetched.
//!
//! It is no part of what builds need. Where there is none, PTX is shown.

use std::fs;
use std::path::{Path, PathBuf};

use super::discover::on_path;
use super::install::{cache_dir, fetch, offline, python, remove_tree};
use crate::environment::Environment;
use crate::error::Error;

/// The package, with its version and hashes, as a requirements file of pip.
const PACKAGE: &str = include_str!("packages/nvdisasm.txt");
/// The folder of the cache that it is unpacked into.
const FOLDER: &str = "nvdisasm-13.3";

fn program(folder: &Path) -> Option<PathBuf> {
    let file = folder.join(format!("nvdisasm{}", std::env::consts::EXE_SUFFIX));
    file.is_file().then_some(file)
}

/// Where pip has put it below a folder.
fn unpacked(site: &Path) -> Option<PathBuf> {
    let releases = fs::read_dir(site.join("nvidia")).ok()?;
    let mut folders: Vec<PathBuf> = releases.flatten().map(|entry| entry.path().join("bin")).collect();
    folders.sort();
    folders.iter().rev().find_map(|folder| program(folder))
}

/// The nvdisasm to use: `TIRX_NVDISASM`, else that beside nvcc, on `PATH`, or in the per-user cache.
pub fn disassembler(environment: &Environment, beside: Option<&Path>) -> Option<PathBuf> {
    match environment.path("TIRX_NVDISASM") {
        Some(named) if named == Path::new("none") => None,
        Some(named) => Some(named),
        None => beside
            .and_then(program)
            .or_else(|| on_path(environment, "nvdisasm"))
            .or_else(|| unpacked(&cache_dir(environment)?.join("tools").join(FOLDER))),
    }
}

/// Fetches nvdisasm through pip into the per-user cache, unless it is there. `progress` receives one line per step.
///
/// # Errors
/// There is no Python with pip, no network, or `TIRX_OFFLINE` is set.
pub fn install_disassembler(
    environment: &Environment,
    progress: &mut dyn FnMut(&str),
) -> Result<PathBuf, Error> {
    let fail = |reason: String| Error::new(format_args!("cannot install nvdisasm: {reason}"));
    let cache = cache_dir(environment)
        .ok_or_else(|| fail("there is no cache directory; set TIRX_CACHE_DIR or HOME".to_string()))?;
    let parent = cache.join("tools");
    let place = parent.join(FOLDER);
    fs::create_dir_all(&parent).map_err(|e| Error::io("create", &parent, &e))?;
    // Held until the function ends.
    let lock_path = parent.join(format!(".{FOLDER}.lock"));
    let lock = fs::File::create(&lock_path).map_err(|e| Error::io("create", &lock_path, &e))?;
    lock.lock().map_err(|e| Error::io("lock", &lock_path, &e))?;
    if let Some(file) = unpacked(&place) {
        return Ok(file);
    }
    if offline(environment) {
        return Err(fail("TIRX_OFFLINE forbids fetching it".to_string()));
    }
    let python = python(environment)
        .ok_or_else(|| fail("there is no python3 on PATH".to_string()).help("pip comes with Python 3"))?;
    let work = parent.join(format!(".{FOLDER}.new"));
    remove_tree(&work)?;
    fs::create_dir_all(&work).map_err(|e| Error::io("create", &work, &e))?;
    progress("fetching nvdisasm through pip");
    let fetched = fetch(environment, &python, PACKAGE, &work, progress).and_then(|()| {
        let found = unpacked(&work.join("site")).ok_or("the package that pip unpacked has no nvdisasm")?;
        executable(&found).map_err(|error| format!("it cannot be made executable: {error}"))
    });
    if let Err(reason) = fetched {
        remove_tree(&work)?;
        return Err(fail(reason));
    }
    remove_tree(&place)?;
    fs::rename(work.join("site"), &place).map_err(|e| Error::io("rename into", &place, &e))?;
    remove_tree(&work)?;
    unpacked(&place).ok_or_else(|| fail("it is not at its place in the cache".to_string()))
}

/// Wheels do not always say that a file is a program.
fn executable(file: &Path) -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(file, fs::Permissions::from_mode(0o755))?;
    }
    #[cfg(not(unix))]
    let _ = file;
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn it_is_looked_for_in_order_and_fetched_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let script = |name: &str, text: &str| {
            tirx_test_tools::stand_in::script(path(name), text);
        };
        script("nvcc/nvdisasm", "");
        script("path/nvdisasm", "");
        // What pip does: unpacks below `--target`.
        let unpack = "while [ $# -gt 0 ]; do [ \"$1\" = --target ] && target=$2; shift; done\n\
                      [ -z \"$target\" ] && exit 0\nmkdir -p $target/nvidia/cu13/bin; echo x > $target/nvidia/cu13/bin/nvdisasm";
        script("path/python3", unpack);
        let search = std::env::join_paths([path("path"), "/usr/bin".into(), "/bin".into()]).unwrap();
        let environment = Environment::empty()
            .with("PATH", search)
            .with("TIRX_CACHE_DIR", path("cache"));
        let named = environment.clone().with("TIRX_NVDISASM", "/some/nvdisasm");
        assert_eq!(disassembler(&named, None), Some("/some/nvdisasm".into()));
        assert_eq!(
            disassembler(&environment.clone().with("TIRX_NVDISASM", "none"), None),
            None
        );
        assert_eq!(
            disassembler(&environment, Some(&path("nvcc"))),
            Some(path("nvcc/nvdisasm"))
        );
        assert_eq!(disassembler(&environment, None), Some(path("path/nvdisasm")));
        fs::remove_file(path("path/nvdisasm")).unwrap();
        assert_eq!(disassembler(&environment, None), None);
        let refused = install_disassembler(&environment.clone().with("TIRX_OFFLINE", "1"), &mut |_| {});
        assert!(refused.unwrap_err().to_string().contains("TIRX_OFFLINE"));
        let mut said = Vec::new();
        let file = install_disassembler(&environment, &mut |line| said.push(line.to_string())).unwrap();
        assert_eq!(disassembler(&environment, None), Some(file.clone()));
        assert_eq!(
            install_disassembler(&environment, &mut |line| said.push(line.to_string())).unwrap(),
            file
        );
        assert_eq!(said, ["fetching nvdisasm through pip"]);
    }
}
