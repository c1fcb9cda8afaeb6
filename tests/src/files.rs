//! Which kernel files are tested.

use std::collections::BTreeMap;
use std::io::Result;
use std::path::{Path, PathBuf};

use tirx_core::script::{Imports, ModuleText};

use crate::root;

/// The kernel files of a folder and the folders in it, sorted by path, without those whose names begin with `_`: these
/// have no kernels, and others import them. A file's name says which one it is in reports and
/// lists, so no two may have the same.
pub fn kernel_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let (mut folders, mut files) = (vec![folder.to_path_buf()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if is_kernel_file(&path) {
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

fn is_kernel_file(path: &Path) -> bool {
    let imported = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with('_');
    path.extension().is_some_and(|e| e == "py") && !path.file_name().is_some_and(imported)
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

/// What the kernels of a test import.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Imported {
    /// `_NAME.py` beside a filetest. A file's name is unique, so the folder need not be known.
    #[default]
    Filetests,
    /// `NAME.py` in a folder.
    Folder(PathBuf),
}

impl Imports for Imported {
    fn read(&self, module: &str) -> Option<ModuleText> {
        let name = format!("{module}.py");
        let read = |folder: &Path| std::fs::read_to_string(folder.join(&name)).ok();
        let text = match self {
            Imported::Folder(folder) => read(folder)?,
            Imported::Filetests if !module.starts_with('_') => return None,
            Imported::Filetests => {
                let folders = std::fs::read_dir(root().join("tests/kernels")).ok()?;
                folders.flatten().find_map(|folder| read(&folder.path()))?
            }
        };
        Some(ModuleText {
            name,
            text,
            is_package: false,
        })
    }
}
