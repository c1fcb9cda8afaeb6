//! Measures and prunes a store.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::FORM;

/// The contents of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Results of nvcc.
    pub entries: usize,
    /// Their size in bytes.
    pub bytes: u64,
}

/// The removed entries.
pub type Pruned = Usage;

struct File {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
}

fn files(store: &Path) -> io::Result<Vec<File>> {
    let mut files = Vec::new();
    let folders = match fs::read_dir(store.join(FORM)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(files),
        other => other?,
    };
    for folder in folders.flatten() {
        for entry in fs::read_dir(folder.path()).into_iter().flatten().flatten() {
            let path = entry.path();
            // Another build may remove entries while they are listed.
            let Ok(meta) = entry.metadata() else { continue };
            if path.extension().is_some_and(|extension| extension == "tirx") {
                files.push(File {
                    path,
                    bytes: meta.len(),
                    used: meta.modified().unwrap_or(SystemTime::UNIX_EPOCH),
                });
            }
        }
    }
    Ok(files)
}

/// Counts what a store holds; nothing where there is no such folder.
///
/// # Errors
/// The folder cannot be read.
pub fn usage(store: &Path) -> io::Result<Usage> {
    let files = files(store)?;
    Ok(Usage {
        entries: files.len(),
        bytes: files.iter().map(|file| file.bytes).sum(),
    })
}

/// Removes the least recently used entries until at most `limit` bytes are left, and incomplete files of builds that
/// were killed.
///
/// # Errors
/// The folder cannot be read, or a file cannot be removed.
pub fn prune(store: &Path, limit: u64) -> io::Result<Pruned> {
    let mut files = files(store)?;
    // The path decides between files of the same time, so that the order is deterministic.
    files.sort_by(|a, b| (a.used, &a.path).cmp(&(b.used, &b.path)));
    let mut bytes: u64 = files.iter().map(|file| file.bytes).sum();
    let mut pruned = Pruned::default();
    for file in files {
        if bytes <= limit {
            break;
        }
        match fs::remove_file(&file.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        bytes -= file.bytes;
        pruned.entries += 1;
        pruned.bytes += file.bytes;
    }
    let day = Duration::from_secs(24 * 60 * 60);
    for entry in fs::read_dir(store.join(FORM).join("new"))
        .into_iter()
        .flatten()
        .flatten()
    {
        let modified = entry.metadata().and_then(|meta| meta.modified());
        if modified.is_ok_and(|time| time.elapsed().is_ok_and(|age| age > day)) {
            let _ = fs::remove_file(entry.path());
        }
    }
    Ok(pruned)
}
