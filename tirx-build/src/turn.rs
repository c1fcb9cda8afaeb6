//! Whose output is it? Builds into one `OUT_DIR` exclude each other, and the one that began last has the last word.
//!
//! A build script can outlive its Cargo: after `kill -9` it goes on, and would finish after the next build did. Each
//! build therefore takes a turn before it reads its first input, by writing a name of its own into a file, and writes
//! its outputs only while that file still has this name, both under a lock. A build that lost its turn writes nothing:
//! the one that took it read its inputs later.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::error::{Error, Result};

/// A build's turn.
#[derive(Debug)]
pub(crate) struct Turn {
    lock: PathBuf,
    holder: PathBuf,
    name: String,
}

impl Turn {
    /// Takes the turn from whoever has it; waits while that one writes.
    pub(crate) fn take(out_dir: &Path) -> Result<Turn> {
        let nanoseconds = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0, |time| time.as_nanos());
        let turn = Turn {
            lock: out_dir.join("tirx.lock"),
            holder: out_dir.join("tirx.turn"),
            name: format!("{}-{nanoseconds}", std::process::id()),
        };
        let _held = turn.hold()?;
        fs::write(&turn.holder, &turn.name).map_err(|e| Error::io("write", &turn.holder, &e))?;
        Ok(turn)
    }

    fn hold(&self) -> Result<File> {
        let file = File::create(&self.lock).map_err(|e| Error::io("create", &self.lock, &e))?;
        match file.lock() {
            // Some network file systems have no locks; the name alone still tells most late ones.
            Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(file),
            Err(error) => Err(Error::io("lock", &self.lock, &error)),
            Ok(()) => Ok(file),
        }
    }

    /// Runs `write` if the turn is still this build's; nobody can take it meanwhile.
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
    fn the_one_that_began_last_has_the_last_word() {
        let dir = tempfile::tempdir().unwrap();
        let first = Turn::take(dir.path()).unwrap();
        first.write(|| Ok(())).unwrap();
        let second = Turn::take(dir.path()).unwrap();
        let message = first
            .write(|| -> Result<()> { panic!("it wrote") })
            .unwrap_err()
            .to_string();
        assert!(message.contains("began later took over"), "{message}");
        assert_eq!(second.write(|| Ok(5)).unwrap(), 5);
    }
}
