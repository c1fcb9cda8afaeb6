//! `kernels.lock`: the inputs of each kernel of a bundle, for builds to compare and for people to read in a diff.

use std::fmt::Write;

use crate::document::{self, Fields, FromTable, Mistake, Record, quoted, quoted_list};

/// The version of the format that this compiler writes and reads.
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
    /// Hash over all fields below, the compiler's version and nvcc's.
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
    /// Hash of the images.
    pub images: String,
}

impl FromTable for Lock {
    const KEYS: &'static [&'static str] = &["version", "tirx", "nvcc", "kernel"];

    fn from_table(fields: &Fields<'_, '_>) -> Result<Lock, Mistake> {
        let kernels: Vec<Record<Locked>> = fields.or_default("kernel")?;
        Ok(Lock {
            version: fields.required("version")?,
            tirx: fields.required("tirx")?,
            nvcc: fields.required("nvcc")?,
            kernels: kernels.into_iter().map(|kernel| kernel.0).collect(),
        })
    }
}

impl FromTable for Locked {
    const KEYS: &'static [&'static str] = &[
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

    fn from_table(fields: &Fields<'_, '_>) -> Result<Locked, Mistake> {
        Ok(Locked {
            name: fields.required("name")?,
            file: fields.required("file")?,
            hash: fields.required("hash")?,
            cuda: fields.required("cuda")?,
            ir: fields.required("ir")?,
            signature: fields.required("signature")?,
            flags: fields.required("flags")?,
            targets: fields.required("targets")?,
            images: fields.required("images")?,
        })
    }
}

/// Why a text is not a lock file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// It has another format version.
    Version(u32),
    /// It is corrupt.
    Damaged(String),
}

/// Longer texts are rejected.
const LONGEST: usize = 64 << 20;

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
    pub fn read(bytes: &[u8]) -> Result<Lock, Unreadable> {
        let damaged = |reason: &str| Unreadable::Damaged(reason.to_string());
        if bytes.len() > LONGEST {
            return Err(damaged("it is longer than any lock file"));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| damaged("it is no UTF-8"))?;
        // Another format has other keys, so the version is checked first.
        let first = |mistake: Mistake| Unreadable::Damaged(mistake.to_string());
        let table = document::parse(text).map_err(first)?;
        let head = Fields::open(table.get_ref(), table.span());
        let version = head.required("version").map_err(first)?;
        if version != VERSION {
            return Err(Unreadable::Version(version));
        }
        document::read(text).map_err(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
                flags: vec!["-DX=\"a\\b\"".into()],
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
    }
}
