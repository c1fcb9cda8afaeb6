//! Which kernel files are tested.

use std::collections::BTreeMap;
use std::io::Result;
use std::path::{Path, PathBuf};

use crate::root;

/// The kernel files of a folder and the folders in it, sorted by path. A file's name says which one it is in reports and
/// lists, so no two may have the same.
pub fn kernel_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let (mut folders, mut files) = (vec![folder.to_path_buf()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "py") {
                files.push(path);
            }
        }
    }
    files.sort();
    let mut named = BTreeMap::new();
    for path in &files {
        if let Some(other) = named.insert(path.file_name(), path) {
            let message = format!(
                "{} and {} have the same name: rename one",
                other.display(),
                path.display()
            );
            return Err(std::io::Error::other(message));
        }
    }
    Ok(files)
}

/// The filetests.
pub fn filetests() -> Result<Vec<PathBuf>> {
    kernel_files(&root().join("tests/kernels"))
}

/// The filetest of a name, `scale` for `tests/kernels/language/scale.py`.
pub fn filetest(name: &str) -> Result<PathBuf> {
    let named = |path: &PathBuf| path.file_stem().is_some_and(|stem| stem == name);
    let missing = || std::io::Error::other(format!("no file of tests/kernels is named {name}.py"));
    filetests()?.into_iter().find(named).ok_or_else(missing)
}
