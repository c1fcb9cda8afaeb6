//! What the fuzzers start from: the kernels of the tests and of the example, and the manifests and images in `seeds/`.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders of kernel files, from this crate's.
const KERNELS: [&str; 2] = ["../kernels", "../tests/kernels"];

/// Names and texts of the seeds of `target`.
pub fn read(target: &str) -> Vec<(String, String)> {
    match target {
        "kernel" => KERNELS.iter().flat_map(|folder| kernels(folder)).collect(),
        _ => files(&format!("seeds/{target}"), ""),
    }
}

/// One seed per kernel: the text before the first definition of its file, and the definition.
fn kernels(folder: &str) -> Vec<(String, String)> {
    let mut seeds = Vec::new();
    for (name, text) in files(folder, "py") {
        let mut parts = text.split("\n\n\n@");
        let head = parts.next().unwrap_or_default();
        let definitions: Vec<&str> = parts.collect();
        if definitions.len() < 2 {
            seeds.push((name, text));
            continue;
        }
        for (i, definition) in definitions.iter().enumerate() {
            seeds.push((format!("{i}-{name}"), format!("{head}\n\n\n@{definition}\n")));
        }
    }
    seeds
}

/// Names and texts of the files of a folder and the folders in it, in order of their paths.
fn files(folder: &str, extension: &str) -> Vec<(String, String)> {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)];
    let mut paths = Vec::new();
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let (inner, found): (Vec<PathBuf>, Vec<PathBuf>) =
            entries.map(|e| e.path()).partition(|p| p.is_dir());
        folders.extend(inner);
        paths.extend(found);
    }
    paths.retain(|p| extension.is_empty() || p.extension().is_some_and(|e| e == extension));
    paths.sort();
    let named = |p: &PathBuf| {
        let name = p.file_name()?.to_string_lossy().into_owned();
        Some((name, fs::read_to_string(p).ok()?))
    };
    paths.iter().filter_map(named).collect()
}
