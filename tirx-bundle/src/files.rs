//! A bundle as a folder, or as one file: "TIRXBND1", SHA-256 of what follows, a count, and for each file its name and
//! content.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::kernel::{EXTENSION, Kernel};
use crate::problem::Problem;
use crate::reader::{Reader, Writer};
use crate::seal::{self, unseal};

/// The file with the inputs of each kernel.
pub const LOCK: &str = "kernels.lock";
/// The file with copyright notices.
pub const NOTICE: &str = "NOTICE.txt";

/// No file of a bundle is longer: 4 GiB.
const LONGEST: u64 = 4 << 30;

/// The files of a bundle, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    files: BTreeMap<String, Vec<u8>>,
}

/// Whether a name is valid for a file of a bundle: on every system, and without leaving the folder.
fn is_name(name: &str) -> bool {
    let known = [LOCK, NOTICE].contains(&name)
        || name
            .strip_suffix(EXTENSION)
            .is_some_and(|stem| stem.len() > 1 && stem.ends_with('.') && !stem.starts_with('.'));
    known
        && name.len() <= 255
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
}

impl Files {
    /// No files.
    pub fn new() -> Files {
        Files::default()
    }

    /// Adds a file. Names are those of kernels' files, [`LOCK`] and [`NOTICE`].
    pub fn add(&mut self, name: impl Into<String>, content: Vec<u8>) {
        self.files.insert(name.into(), content);
    }

    /// A file's content.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.files.get(name).map(Vec::as_slice)
    }

    /// All files, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files
            .iter()
            .map(|(name, content)| (name.as_str(), content.as_slice()))
    }

    /// The kernel in a file `stem.tirxk`; `None` where there is none.
    ///
    /// # Errors
    /// The file is damaged, or no kernel's.
    pub fn kernel(&self, stem: &str) -> Result<Option<Kernel>, Problem> {
        let name = format!("{stem}.{EXTENSION}");
        let Some(content) = self.get(&name) else {
            return Ok(None);
        };
        Kernel::decode(content)
            .map(Some)
            .map_err(|problem| problem.in_file(&name))
    }

    /// All kernels.
    ///
    /// # Errors
    /// A file is damaged, or no kernel's.
    pub fn kernels(&self) -> Result<Vec<Kernel>, Problem> {
        let named = self
            .iter()
            .filter(|(name, _)| name.ends_with(&format!(".{EXTENSION}")));
        named
            .map(|(name, content)| Kernel::decode(content).map_err(|problem| problem.in_file(name)))
            .collect()
    }

    /// Reads a bundle, a folder or a file. Kernels are not looked into yet.
    ///
    /// # Errors
    /// There is none, or it cannot be read.
    pub fn read(path: &Path) -> Result<Files, Problem> {
        let failed = |error: std::io::Error| Problem::new(format!("cannot be read: {error}"));
        if !path.is_dir() {
            return Files::decode(&fs::read(path).map_err(failed)?);
        }
        let mut files = Files::new();
        for entry in fs::read_dir(path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            // Other files (`.gitattributes`, an editor's copy) are ignored.
            if !is_name(&name) {
                continue;
            }
            let failed =
                |error: std::io::Error| Problem::new(format!("cannot be read: {error}")).in_file(&name);
            if entry.metadata().map_err(failed)?.len() > LONGEST {
                return Err(Problem::new("is longer than any kernel").in_file(&name));
            }
            let content = fs::read(entry.path()).map_err(failed)?;
            files.add(name, content);
        }
        Ok(files)
    }

    /// Writes a folder, or a file where `single` is set. Kernel files of an older bundle that are not in this one are
    /// removed.
    ///
    /// # Errors
    /// Something cannot be written.
    pub fn write(&self, path: &Path, single: bool) -> std::io::Result<()> {
        if single {
            let mut name = path.file_name().unwrap_or_default().to_os_string();
            name.push(".new");
            let new = path.with_file_name(name);
            fs::write(&new, self.encode())?;
            return fs::rename(new, path);
        }
        fs::create_dir_all(path)?;
        for entry in fs::read_dir(path)?.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if is_name(&name) && !self.files.contains_key(&name) {
                fs::remove_file(entry.path())?;
            }
        }
        for (name, content) in &self.files {
            let file = path.join(name);
            if fs::read(&file).ok().as_ref() != Some(content) {
                fs::write(file, content)?;
            }
        }
        Ok(())
    }

    /// The one file's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut body = Writer::default();
        body.u32(self.files.len());
        for (name, content) in &self.files {
            body.text(name);
            body.content(content);
        }
        seal::seal(seal::BUNDLE, &body.out)
    }

    /// Reads the bytes of a single file.
    ///
    /// # Errors
    /// They are not a whole, undamaged bundle.
    pub fn decode(file: &[u8]) -> Result<Files, Problem> {
        let content = unseal(seal::BUNDLE, file, "is no bundle: its first bytes are wrong")?;
        let mut reader = Reader::new(content);
        let mut files = Files::new();
        for _ in 0..reader.count(12)? {
            let name = reader.text()?;
            if !is_name(&name) {
                return Err(Problem::new(format!(
                    "has a file of the name {name:?}, which cannot be"
                )));
            }
            let content = reader.content()?.to_vec();
            if files.files.insert(name.clone(), content).is_some() {
                return Err(Problem::new(format!("has `{name}` twice")));
            }
        }
        reader.end()?;
        Ok(files)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::tests::kernel;

    fn files() -> Files {
        let mut files = Files::new();
        files.add(LOCK, b"version = 1\n".to_vec());
        files.add("add-n256.tirxk", kernel().encode());
        files
    }

    #[test]
    fn both_forms_come_back() {
        let dir = tempfile::tempdir().unwrap();
        for (name, single) in [("folder", false), ("file", true)] {
            let path = dir.path().join(name);
            files().write(&path, single).unwrap();
            if !single {
                fs::write(path.join("old.tirxk"), "x").unwrap();
                fs::write(path.join(".gitattributes"), "x").unwrap();
                files().write(&path, single).unwrap();
                assert!(!path.join("old.tirxk").exists() && path.join(".gitattributes").exists());
            }
            let read = Files::read(&path).unwrap();
            assert_eq!(read, files());
            assert_eq!(read.kernels().unwrap(), [kernel()]);
            assert_eq!(read.kernel("add-n256").unwrap(), Some(kernel()));
            assert_eq!(read.kernel("sub").unwrap(), None);
        }
        let missing = Files::read(&dir.path().join("nothing")).unwrap_err();
        assert!(
            missing.to_string().starts_with("the bundle cannot be read"),
            "{missing}"
        );
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("folder");
        fs::create_dir_all(folder.join("a.tirxk")).unwrap();
        let problem = Files::read(&folder).unwrap_err().to_string();
        assert!(problem.starts_with("`a.tirxk` cannot be read: "), "{problem}");
        // A file without contents, as long as no kernel is.
        let long = dir.path().join("long");
        fs::create_dir(&long).unwrap();
        let file = fs::File::create(long.join("b.tirxk")).unwrap();
        file.set_len(LONGEST + 1).unwrap();
        let problem = Files::read(&long).unwrap_err();
        assert_eq!(problem.to_string(), "`b.tirxk` is longer than any kernel");
    }

    #[test]
    fn damage_is_found() {
        let file = files().encode();
        for length in 0..file.len() {
            assert!(Files::decode(&file[..length]).is_err(), "{length}");
        }
        for at in 0..file.len() {
            let mut damaged = file.clone();
            damaged[at] ^= 32;
            assert!(Files::decode(&damaged).is_err(), "{at}");
        }
        let mut evil = Files::new();
        evil.add("../evil.tirxk", Vec::new());
        let problem = Files::decode(&evil.encode()).unwrap_err();
        assert!(problem.reason.contains("which cannot be"), "{problem}");
    }

    #[test]
    fn each_damage_has_its_message() {
        let refused = |names: &[&str]| {
            let mut body = Writer::default();
            body.u32(names.len());
            for name in names {
                body.text(name);
                body.content(b"x");
            }
            Files::decode(&seal::seal(seal::BUNDLE, &body.out))
                .unwrap_err()
                .reason
        };
        assert_eq!(refused(&[LOCK, LOCK]), "has `kernels.lock` twice");
        for name in ["", ".tirxk", "a/b.tirxk", "..tirxk", "x.txt", "a\0.tirxk"] {
            assert_eq!(
                refused(&[name]),
                format!("has a file of the name {name:?}, which cannot be")
            );
        }
        let mut newer = files().encode();
        newer[7] = b'2';
        let reason = |bytes: &[u8]| Files::decode(bytes).unwrap_err().reason;
        assert_eq!(reason(&newer), "is of another version of the format");
        assert_eq!(reason(b"hello, world"), "is no bundle: its first bytes are wrong");
        assert_eq!(reason(b"TIRX"), "is cut off, or a length in it is wrong");
        let mut long = files().encode()[seal::HEADER..].to_vec();
        long.push(0);
        assert_eq!(
            reason(&seal::seal(seal::BUNDLE, &long)),
            "is longer than its content"
        );
    }
}
