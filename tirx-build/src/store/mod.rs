//! The store of nvcc's results, so that nothing is compiled twice.
//!
//! A store is a folder of files named by their key: a hash over everything that a result depends on (see
//! `nvcc.rs`). A file is written under a temporary name and renamed when complete, so a reader sees all of it or
//! nothing, and a file never changes.
//!
//! ```text
//! <store>/v1/ab/abcdef….tirx    an entry
//! <store>/v1/locks/ab           held while an entry whose key begins with ab is made
//! <store>/v1/new/…              what is being written
//! ```
//!
//! A build uses two: one in Cargo's target directory, which `cargo clean` removes, and one per user, which all packages
//! share. New results are written to both. `TIRX_STORE=none` leaves the shared one out, `TIRX_STORE=dir` puts it
//! elsewhere.

mod entry;
mod prune;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

pub(crate) use entry::{Entry, Key};
pub use prune::{Pruned, Usage, prune, usage};

use crate::environment::Environment;
use crate::hash::hex;
use crate::toolchain::cache_dir;

/// The version of the format: another version is another folder.
const FORM: &str = "v1";

/// Default size of the shared store where `TIRX_STORE_LIMIT` is not set: 2 GiB.
pub const DEFAULT_LIMIT: u64 = 2 << 30;

/// The stores of a build.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    /// In the order in which they are searched.
    roots: Vec<PathBuf>,
    /// The shared one, and its size limit.
    shared: Option<(PathBuf, u64)>,
}

/// The folder of the per-user store; `None` where `TIRX_STORE` is `none` or the platform names no place for caches.
pub fn shared_dir(environment: &Environment) -> Option<PathBuf> {
    match environment.peek("TIRX_STORE") {
        Some(off) if off == "none" => None,
        Some(dir) => Some(PathBuf::from(dir)),
        None => Some(cache_dir(environment)?.join("store")),
    }
}

/// Bytes that the shared store may take: `TIRX_STORE_LIMIT` in MiB, else [`DEFAULT_LIMIT`].
pub fn shared_limit(environment: &Environment) -> u64 {
    let mebibytes = environment
        .peek("TIRX_STORE_LIMIT")
        .and_then(|text| text.to_str()?.parse::<u64>().ok());
    mebibytes.map_or(DEFAULT_LIMIT, |mebibytes| mebibytes.saturating_mul(1 << 20))
}

/// The store of the target directory that `out_dir` is in: below the folder with Cargo's `CACHEDIR.TAG`, so that
/// profiles and targets share it; else in `out_dir` itself.
pub(crate) fn target_dir(out_dir: &Path) -> PathBuf {
    let tagged = out_dir
        .ancestors()
        .skip(1)
        .take(8)
        .filter(|dir| dir.join("CACHEDIR.TAG").is_file())
        .last();
    tagged.unwrap_or(out_dir).join("tirx-store")
}

impl Store {
    /// The stores of a build.
    pub(crate) fn open(environment: &Environment, out_dir: &Path, share: bool) -> Store {
        let shared = shared_dir(environment).filter(|_| share);
        let mut roots = vec![target_dir(out_dir)];
        roots.extend(shared.clone());
        Store {
            roots,
            shared: shared.map(|dir| (dir, shared_limit(environment))),
        }
    }

    fn file(root: &Path, key: &Key) -> PathBuf {
        let name = hex(key);
        root.join(FORM).join(&name[..2]).join(format!("{name}.tirx"))
    }

    /// The entry of a key. A store that lacks it gets a copy from the other.
    pub(crate) fn get(&self, key: &Key) -> Option<Entry> {
        let read = |root: &PathBuf| {
            let path = Self::file(root, key);
            let entry = Entry::decode(key, &fs::read(&path).ok()?)?;
            // Sets the time of last use: the oldest entries are removed first.
            let _ = File::open(&path).and_then(|file| file.set_modified(SystemTime::now()));
            Some(entry)
        };
        let (at, entry) = self
            .roots
            .iter()
            .enumerate()
            .find_map(|(at, root)| Some((at, read(root)?)))?;
        for (other, root) in self.roots.iter().enumerate() {
            if other < at || (other > at && !Self::file(root, key).is_file()) {
                let _ = write(root, key, &entry);
            }
        }
        Some(entry)
    }

    /// Stores an entry. A failure to write is ignored, since the result is available.
    pub(crate) fn put(&self, key: &Key, entry: &Entry) {
        for root in &self.roots {
            let _ = write(root, key, entry);
        }
    }

    /// A lock held while an entry is made, so that two builds do not make it at the same time.
    pub(crate) fn lock(&self, key: &Key) -> Option<File> {
        let root = self.roots.last()?;
        let folder = root.join(FORM).join("locks");
        fs::create_dir_all(&folder).ok()?;
        let file = File::create(folder.join(&hex(key)[..2])).ok()?;
        file.lock().ok()?;
        Some(file)
    }

    /// Removes the least recently used entries where the shared store exceeds its limit.
    pub(crate) fn keep_within_limit(&self) {
        if let Some((dir, limit)) = &self.shared {
            let _ = prune(dir, *limit);
        }
    }
}

fn write(root: &Path, key: &Key, entry: &Entry) -> std::io::Result<()> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let path = Store::file(root, key);
    let new = root.join(FORM).join("new");
    fs::create_dir_all(&new)?;
    fs::create_dir_all(path.parent().unwrap_or(root))?;
    let count = NEXT.fetch_add(1, Ordering::Relaxed);
    let temporary = new.join(format!("{}-{}-{count}", &hex(key)[..16], std::process::id()));
    let written = fs::write(&temporary, entry.encode(key)).and_then(|()| fs::rename(&temporary, &path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// A fat binary with one PTX entry.
#[cfg(test)]
pub(crate) fn test_fatbin(payload: &[u8]) -> Vec<u8> {
    let mut entry = vec![1, 0, 1, 1, 64, 0, 0, 0];
    entry.extend((payload.len() as u64).to_le_bytes());
    entry.resize(64, 0);
    entry.extend(payload);
    let mut bytes = vec![0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0];
    bytes.extend((entry.len() as u64).to_le_bytes());
    bytes.extend(entry);
    bytes
}

#[cfg(test)]
mod tests {
    use super::test_fatbin as fatbin;
    use super::*;

    fn entry(bytes: usize) -> Entry {
        Entry {
            image: fatbin(&vec![7; bytes]),
            messages: String::new(),
        }
    }

    fn open(dir: &Path) -> Store {
        let environment = Environment::empty().with("TIRX_STORE", dir.join("shared"));
        Store::open(&environment, &dir.join("out"), true)
    }

    #[test]
    fn what_is_put_is_found_in_both_and_damage_is_not_believed() {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path());
        let key = [3; 32];
        assert_eq!(store.get(&key), None);
        store.put(&key, &entry(10));
        assert_eq!(store.get(&key), Some(entry(10)));
        let files: Vec<PathBuf> = store.roots.iter().map(|root| Store::file(root, &key)).collect();
        // The first copy is corrupt: the other store repairs it.
        fs::write(&files[0], b"TIRXSTO1").unwrap();
        assert_eq!(store.get(&key), Some(entry(10)));
        fs::remove_file(&files[1]).unwrap();
        assert_eq!(store.get(&key), Some(entry(10)));
        fs::remove_file(&files[0]).unwrap();
        assert_eq!(store.get(&key), Some(entry(10)));
        assert!(files[0].is_file());
        // Both copies are removed.
        files.iter().for_each(|file| fs::write(file, b"").unwrap());
        assert_eq!(store.get(&key), None);
        let left = fs::read_dir(dir.path().join("shared/v1/new")).unwrap().count();
        assert_eq!(left, 0);
    }

    #[test]
    fn the_target_store_is_beside_the_tag_of_the_target_directory() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("target/debug/build/app-1/out");
        fs::create_dir_all(&out).unwrap();
        assert_eq!(target_dir(&out), out.join("tirx-store"));
        fs::write(dir.path().join("target/CACHEDIR.TAG"), "").unwrap();
        assert_eq!(target_dir(&out), dir.path().join("target/tirx-store"));
        let without = Environment::empty()
            .with("TIRX_STORE", "none")
            .with("HOME", "/home/user");
        assert_eq!(shared_dir(&without), None);
    }

    #[test]
    fn the_shared_store_is_bounded_and_what_was_used_last_stays() {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path());
        let shared = dir.path().join("shared");
        for n in 0..4u8 {
            store.put(&[n; 32], &entry(1000));
            let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1000 + u64::from(n));
            let file = File::options()
                .write(true)
                .open(Store::file(&shared, &[n; 32]))
                .unwrap();
            file.set_modified(time).unwrap();
        }
        let before = usage(&shared).unwrap();
        assert_eq!(before.entries, 4);
        let each = before.bytes / 4;
        let pruned = prune(&shared, each * 2 + 1).unwrap();
        assert_eq!((pruned.entries, pruned.bytes), (2, each * 2));
        assert!(!Store::file(&shared, &[0; 32]).exists() && Store::file(&shared, &[3; 32]).exists());
        assert_eq!(usage(&shared).unwrap().entries, 2);
        assert_eq!(usage(&dir.path().join("nowhere")).unwrap().entries, 0);
    }
}
