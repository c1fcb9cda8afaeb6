//! Ownership of `OUT_DIR`: builds into one folder exclude each other, and only the one that began last writes.
//!
//! A build script can outlive its Cargo: after `kill -9` it keeps running, and would finish after the next build did.
//! Each build therefore claims the folder before it reads its first input, by writing a unique name into a file, and
//! writes its outputs only while that file still has this name, both under a lock. A build that lost its claim writes
//! nothing: the build that made the later claim has read later inputs.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::error::{Error, Result};

/// A build's claim to its `OUT_DIR`.
#[derive(Debug)]
pub(crate) struct Claim {
    lock: PathBuf,
    holder: PathBuf,
    name: String,
}

impl Claim {
    /// Claims the folder, which ends an earlier claim; waits while its holder writes.
    pub(crate) fn take(out_dir: &Path) -> Result<Claim> {
        let nanoseconds = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0, |time| time.as_nanos());
        let claim = Claim {
            lock: out_dir.join("tirx.lock"),
            holder: out_dir.join("tirx.claim"),
            name: format!("{}-{nanoseconds}", std::process::id()),
        };
        let _held = claim.hold()?;
        fs::write(&claim.holder, &claim.name).map_err(|e| Error::io("write", &claim.holder, &e))?;
        Ok(claim)
    }

    fn hold(&self) -> Result<File> {
        let file = File::create(&self.lock).map_err(|e| Error::io("create", &self.lock, &e))?;
        match file.lock() {
            // Some network file systems have no locks; the name alone still stops most late builds.
            Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(file),
            Err(error) => Err(Error::io("lock", &self.lock, &error)),
            Ok(()) => Ok(file),
        }
    }

    /// Runs `write` if the claim is still valid; it cannot be lost meanwhile.
    pub(crate) fn write<T>(&self, write: impl FnOnce() -> Result<T>) -> Result<T> {
        let _held = self.hold()?;
        if fs::read_to_string(&self.holder).is_ok_and(|name| name == self.name) {
            return write();
        }
        let error = Error::new("a build of this package that began later took over: this one wrote nothing");
        Err(error.help("wait for the other build, or build again"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_build_that_began_last_writes() {
        let dir = tempfile::tempdir().unwrap();
        let first = Claim::take(dir.path()).unwrap();
        first.write(|| Ok(())).unwrap();
        let second = Claim::take(dir.path()).unwrap();
        let message = first
            .write(|| -> Result<()> { panic!("it wrote") })
            .unwrap_err()
            .to_string();
        assert!(message.contains("began later took over"), "{message}");
        assert_eq!(second.write(|| Ok(5)).unwrap(), 5);
    }
}
