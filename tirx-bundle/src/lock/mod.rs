//! `kernels.lock`: the inputs of each kernel of a bundle, for builds and programs to compare and for people to read in a
//! diff.
//!
//! The file is TOML. [`Lock::text`] writes a part of that language, and `reader` reads that part: a program that opens a
//! bundle needs no reader of all of TOML.

mod reader;

use std::fmt::Write;

use crate::files::{Files, LOCK};
use crate::kernel::{EXTENSION, Kernel};
use crate::problem::Problem;
use reader::{Table, Value};

/// The version of the format that this crate writes and reads.
pub const VERSION: u32 = 1;

/// A lock file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    /// The file's format version.
    pub version: u32,
    /// The compiler's version.
    pub tirx: String,
    /// Release and build of nvcc.
    pub nvcc: String,
    /// The kernels, in the manifest's order.
    pub kernels: Vec<Locked>,
}

/// A kernel of a lock file. Hashes are SHA-256 in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Locked {
    /// Its path in Rust: `add::n256`.
    pub name: String,
    /// Its file in the bundle, without extension.
    pub file: String,
    /// Hash over all fields below but `images`, the compiler's version and nvcc's: [`Locked::hash_of_inputs`].
    pub hash: String,
    /// Hash of the CUDA text, which depends on source, specialization and compiler.
    pub cuda: String,
    /// Hash of the IR for the simulator, which includes the kernel's lines.
    pub ir: String,
    /// Hash of the launcher: arguments, checks and launch dimensions.
    pub signature: String,
    /// Further arguments of nvcc.
    pub flags: Vec<String>,
    /// Targets, as `sm_90a`; PTX as `compute_90`.
    pub targets: Vec<String>,
    /// Hash of the images: [`Kernel::hash_of_images`].
    pub images: String,
}

/// Why a text is not a lock file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// It has another format version.
    Version(u32),
    /// It is corrupt.
    Damaged(String),
}

/// The keys of a kernel.
const KEYS_OF_KERNEL: [&str; 9] = [
    "name",
    "file",
    "hash",
    "cuda",
    "ir",
    "signature",
    "flags",
    "targets",
    "images",
];

/// Longer texts are rejected.
const LONGEST: usize = 64 << 20;

impl Locked {
    /// The hash over the kernel's inputs, for a bundle of this compiler and nvcc.
    pub fn hash_of_inputs(&self, tirx: &str, nvcc: &str) -> String {
        let (flags, targets) = (self.flags.join("\n"), self.targets.join("\n"));
        crate::hash_of_parts(&[
            tirx,
            nvcc,
            &self.cuda,
            &self.ir,
            &self.signature,
            &flags,
            &targets,
        ])
    }

    fn read(table: Table) -> Result<Locked, String> {
        let mut fields = Fields::from_table(table, &KEYS_OF_KERNEL)?;
        Ok(Locked {
            name: fields.text("name")?,
            file: fields.text("file")?,
            hash: fields.text("hash")?,
            cuda: fields.text("cuda")?,
            ir: fields.text("ir")?,
            signature: fields.text("signature")?,
            flags: fields.list("flags")?,
            targets: fields.list("targets")?,
            images: fields.text("images")?,
        })
    }
}

/// A table whose values are taken by key.
struct Fields(Table);

impl Fields {
    /// A table with no other keys than these.
    fn from_table(table: Table, known: &[&str]) -> Result<Fields, String> {
        match table.keys().find(|key| !known.contains(&key.as_str())) {
            Some(key) => Err(format!("unknown key `{key}`")),
            None => Ok(Fields(table)),
        }
    }

    fn value(&mut self, key: &str) -> Result<Value, String> {
        let missing = || format!("missing key `{key}`");
        self.0.remove(key).ok_or_else(missing)
    }

    fn number(&mut self, key: &str) -> Result<u32, String> {
        match self.value(key)? {
            Value::Number(number) => Ok(number),
            _ => Err(format!("`{key}` is an integer of 0 or more")),
        }
    }

    fn text(&mut self, key: &str) -> Result<String, String> {
        match self.value(key)? {
            Value::Text(text) => Ok(text),
            _ => Err(format!("`{key}` is a string")),
        }
    }

    fn list(&mut self, key: &str) -> Result<Vec<String>, String> {
        match self.value(key)? {
            Value::List(list) => Ok(list),
            _ => Err(format!("`{key}` is a list of strings")),
        }
    }
}

impl Lock {
    /// The file's text.
    pub fn text(&self) -> String {
        let mut text =
            String::from("# Written by `cargo tirx bundle`, read by builds. Commit it with the bundle.\n");
        let _ = writeln!(text, "version = {}", self.version);
        let _ = writeln!(text, "tirx = {}", quoted(&self.tirx));
        let _ = writeln!(text, "nvcc = {}", quoted(&self.nvcc));
        for kernel in &self.kernels {
            text.push_str("\n[[kernel]]\n");
            for (key, value) in [
                ("name", quoted(&kernel.name)),
                ("file", quoted(&kernel.file)),
                ("hash", quoted(&kernel.hash)),
                ("cuda", quoted(&kernel.cuda)),
                ("ir", quoted(&kernel.ir)),
                ("signature", quoted(&kernel.signature)),
                ("flags", quoted_list(&kernel.flags)),
                ("targets", quoted_list(&kernel.targets)),
                ("images", quoted(&kernel.images)),
            ] {
                let _ = writeln!(text, "{key} = {value}");
            }
        }
        text
    }

    /// Reads a file's bytes.
    ///
    /// # Errors
    /// They are no lock file, or one of another version of the format.
    pub fn read(bytes: &[u8]) -> Result<Lock, Unreadable> {
        let damaged = |reason: &str| Unreadable::Damaged(reason.to_string());
        if bytes.len() > LONGEST {
            return Err(damaged("it is longer than any lock file"));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| damaged("it is no UTF-8"))?;
        // Another format has other keys, so the version is checked first.
        let version = reader::first_number(text, "version").map_err(Unreadable::Damaged)?;
        if version != VERSION {
            return Err(Unreadable::Version(version));
        }
        let read = || {
            let (head, kernels) = reader::read(text)?;
            let mut fields = Fields::from_table(head, &["version", "tirx", "nvcc"])?;
            Ok(Lock {
                version: fields.number("version")?,
                tirx: fields.text("tirx")?,
                nvcc: fields.text("nvcc")?,
                kernels: kernels.into_iter().map(Locked::read).collect::<Result<_, _>>()?,
            })
        };
        read().map_err(Unreadable::Damaged)
    }
}

impl Files {
    /// The lock file and the kernels that it names, each compared with its hashes.
    ///
    /// # Errors
    /// There is no lock file, it is not readable, or the kernels are not those that it names.
    pub fn locked_kernels(&self) -> Result<(Lock, Vec<Kernel>), Problem> {
        let lock = self
            .get(LOCK)
            .ok_or_else(|| Problem::new(format!("has no {LOCK}: it is not whole, or no bundle")))?;
        let lock = Lock::read(lock).map_err(|why| {
            let reason = match why {
                Unreadable::Version(version) => {
                    format!("is of version {version}, this program reads version {VERSION}")
                }
                Unreadable::Damaged(reason) => format!("is damaged: {reason}"),
            };
            Problem::new(reason).in_file(LOCK)
        })?;
        let mut kernels = Vec::new();
        for locked in &lock.kernels {
            let wrong = |reason: String| Err(Problem::new(reason).in_file(LOCK));
            if locked.hash != locked.hash_of_inputs(&lock.tirx, &lock.nvcc) {
                return wrong(format!(
                    "is damaged: the hash of kernel `{}` is not that of its inputs",
                    locked.name
                ));
            }
            let Some(kernel) = self.kernel(&locked.file)? else {
                return wrong(format!(
                    "names kernel `{}`, and there is no file `{}.{EXTENSION}`",
                    locked.name, locked.file
                ));
            };
            let targets = kernel.images.iter().map(|(target, _)| target);
            let same = kernel.name == locked.name
                && kernel.hash == locked.hash
                && kernel.signature == locked.signature
                && targets.eq(&locked.targets)
                && kernel.hash_of_images() == locked.images
                && crate::hash(&kernel.ir) == locked.ir;
            if !same {
                let file = format!("{}.{EXTENSION}", locked.file);
                return Err(Problem::new(format!(
                    "is not the kernel `{}` that {LOCK} names: one of the two is of another bundle",
                    locked.name
                ))
                .in_file(&file));
            }
            kernels.push(kernel);
        }
        let files = self.iter().filter_map(|(name, _)| {
            let stem = name.strip_suffix(EXTENSION)?.strip_suffix('.')?;
            Some((name, stem))
        });
        for (name, stem) in files {
            if !lock.kernels.iter().any(|locked| locked.file == stem) {
                return Err(Problem::new(format!("is not named by {LOCK}")).in_file(name));
            }
        }
        Ok((lock, kernels))
    }
}

/// A text as TOML writes it: between quotes that need no escapes, where there are such.
pub fn quoted(text: &str) -> String {
    let literal = text.contains(['"', '\\']) && !text.contains(|c: char| c == '\'' || c.is_control());
    if literal {
        return format!("'{text}'");
    }
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04X}", c as u32)),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

/// Texts as a list in TOML.
pub fn quoted_list<'t>(items: impl IntoIterator<Item = &'t String>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| quoted(item)).collect();
    format!("[{}]", items.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::tests::kernel;

    fn lock() -> Lock {
        Lock {
            version: VERSION,
            tirx: "0.1.0".into(),
            nvcc: "13.0 V13.0.88".into(),
            kernels: vec![Locked {
                name: "add::n256".into(),
                file: "add-n256".into(),
                hash: "h".into(),
                cuda: "c".into(),
                ir: "i".into(),
                signature: "s".into(),
                flags: vec!["-DX=\"a\\b\"".into(), "it's \"x\"\n".into()],
                targets: vec!["sm_90a".into(), "compute_90".into()],
                images: "m".into(),
            }],
        }
    }

    #[test]
    fn a_lock_comes_back() {
        let text = lock().text();
        assert_eq!(Lock::read(text.as_bytes()), Ok(lock()));
        let newer = text.replace("version = 1", "version = 2\nnew = true");
        assert_eq!(Lock::read(newer.as_bytes()), Err(Unreadable::Version(2)));
        for bad in ["", "version = 1\n", "version = 1\ntirx = 1\n", "\u{0}"] {
            assert!(
                matches!(Lock::read(bad.as_bytes()), Err(Unreadable::Damaged(_))),
                "{bad}"
            );
        }
        let damaged = |reason: &str| Err(Unreadable::Damaged(reason.to_string()));
        assert_eq!(Lock::read(&[0xff]), damaged("it is no UTF-8"));
        let long = vec![b' '; LONGEST + 1];
        assert_eq!(Lock::read(&long), damaged("it is longer than any lock file"));
        let unknown = text.replace("images = ", "picture = ");
        assert!(
            matches!(Lock::read(unknown.as_bytes()), Err(Unreadable::Damaged(why)) if why.contains("picture"))
        );
        let more = text.replace("images = ", "picture = \"x\"\nimages = ");
        assert_eq!(Lock::read(more.as_bytes()), damaged("unknown key `picture`"));
    }

    /// A bundle of one kernel, and what is wrong with it after a change.
    fn refused(change: impl FnOnce(&mut Files, &mut Lock)) -> String {
        let mut kernel = kernel();
        let mut lock = lock();
        let locked = &mut lock.kernels[0];
        locked.images = kernel.hash_of_images();
        locked.ir = crate::hash(&kernel.ir);
        locked.hash = locked.hash_of_inputs(&lock.tirx, &lock.nvcc);
        kernel.hash = locked.hash.clone();
        let mut files = Files::new();
        files.add("add-n256.tirxk", kernel.encode());
        change(&mut files, &mut lock);
        if files.get(LOCK).is_none() {
            files.add(LOCK, lock.text().into_bytes());
        }
        match files.locked_kernels() {
            Ok((read, kernels)) => format!("{} of {}", kernels.len(), read.kernels.len()),
            Err(problem) => problem.to_string(),
        }
    }

    #[test]
    fn kernels_are_those_that_the_lock_names() {
        assert_eq!(refused(|_, _| {}), "1 of 1");
        let mut without = Files::new();
        without.add("add-n256.tirxk", kernel().encode());
        assert_eq!(
            without.locked_kernels().unwrap_err().to_string(),
            "the bundle has no kernels.lock: it is not whole, or no bundle"
        );
        assert_eq!(
            refused(|files, _| files.add(LOCK, b"version = 7\n".to_vec())),
            "`kernels.lock` is of version 7, this program reads version 1"
        );
        assert_eq!(
            refused(|files, _| files.add(LOCK, b"hello".to_vec())),
            "`kernels.lock` is damaged: line 1: there is no `=` behind the key"
        );
        assert_eq!(
            refused(|_, lock| lock.kernels[0].cuda.push('x')),
            "`kernels.lock` is damaged: the hash of kernel `add::n256` is not that of its inputs"
        );
        let other = "`add-n256.tirxk` is not the kernel `add::n256` that kernels.lock names: one of the two is of another bundle";
        assert_eq!(refused(|_, lock| lock.kernels[0].images.push('x')), other);
        assert_eq!(
            refused(|files, _| files.add("add-n256.tirxk", kernel().encode())),
            other
        );
        assert_eq!(
            refused(|files, _| files.add("sub.tirxk", kernel().encode())),
            "`sub.tirxk` is not named by kernels.lock"
        );
        assert_eq!(
            refused(|_, lock| lock.kernels[0].file = "sub".into()),
            "`kernels.lock` names kernel `add::n256`, and there is no file `sub.tirxk`"
        );
    }
}
