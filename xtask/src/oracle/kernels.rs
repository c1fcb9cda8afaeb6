//! The kernels to compare: those of `kernels.toml`, each specialization, and those of the filetests.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use tirx_build::manifest::{Manifest, Text};
use tirx_core::ir::IRModule;
use tirx_core::script::{ConstValue, Imports, KernelFile, ModuleText, Release};
use tirx_core::source::SourceMap;

use crate::process::Result;

/// Kernels that are written as their difference from another one; the tests' own reading of them.
#[path = "../../../tests/src/variants.rs"]
#[expect(unreachable_pub, reason = "it is public in the crate of the tests")]
mod variants;

/// The release that a file is read for.
pub(super) struct For(pub(super) Release);

/// `_NAME.py` of a folder of filetests: what those beside it import.
fn imported(root: &Path, module: &str) -> Option<ModuleText> {
    let name = format!("{module}.py");
    let folders = std::fs::read_dir(root.join("tests/kernels"))
        .ok()
        .filter(|_| module.starts_with('_'))?;
    let read = |folder: PathBuf| std::fs::read_to_string(folder.join(&name)).ok();
    let text = folders.flatten().find_map(|folder| read(folder.path()))?;
    Some(ModuleText {
        name,
        text,
        is_package: false,
    })
}

/// The folders in which Python finds the same files, behind its own.
pub(super) fn import_path(root: &Path) -> Result<std::ffi::OsString> {
    let folders = std::fs::read_dir(root.join("tests/kernels"))?;
    Ok(std::env::join_paths(
        folders.flatten().map(|folder| folder.path()),
    )?)
}

impl Imports for For {
    fn read(&self, module: &str) -> Option<ModuleText> {
        imported(crate::root(), module)
    }

    fn release(&self) -> Option<Release> {
        Some(self.0)
    }
}

/// The same where no release is named.
struct AnyRelease;

impl Imports for AnyRelease {
    fn read(&self, module: &str) -> Option<ModuleText> {
        imported(crate::root(), module)
    }
}

/// Whether a file, which loads where no release is named, is valid in this one.
fn is_of(text: &str, release: Release) -> bool {
    KernelFile::load(&mut SourceMap::new(), "kernels.py", text, &For(release)).is_ok()
}

/// One kernel of a file with the values of its compile-time parameters.
pub(super) struct Kernel {
    /// A name, unique among the kernels of a run and valid as a file name.
    pub(super) id: String,
    /// The file, from the workspace's root.
    pub(super) path: PathBuf,
    pub(super) entry: String,
    pub(super) constants: BTreeMap<String, ConstValue>,
    pub(super) release: Release,
    /// Whether it is one of the examples, which have a row in `docs/developing/performance.md`.
    pub(super) example: bool,
    /// Whether its filetest ends in a fault, which the compiler may find first.
    pub(super) faults: bool,
}

impl Kernel {
    /// The name in tables: the entry and what it is specialized to.
    pub(super) fn name(&self) -> String {
        let constants = self.constants.iter().map(|(k, v)| format!(" {k}={}", json(v)));
        format!("{}{}", self.entry, constants.collect::<String>())
    }

    /// The module as written.
    pub(super) fn build(&self, root: &Path) -> std::result::Result<IRModule, String> {
        let text = std::fs::read_to_string(root.join(&self.path)).map_err(|e| e.to_string())?;
        let mut sources = SourceMap::new();
        let name = self.path.to_string_lossy();
        let file = KernelFile::load(&mut sources, &name, &text, &For(self.release))
            .map_err(|e| e.render(&sources))?;
        file.build(Some(&self.entry), &self.constants)
            .map_err(|e| e.render(&sources))
    }

    /// The line of the reference's job list.
    pub(super) fn job(&self, root: &Path, id: &str, arch: &str, stages: bool) -> String {
        let text = |s: &str| json(&ConstValue::Str(s.into()));
        let constants: Vec<String> = self
            .constants
            .iter()
            .map(|(k, v)| format!("{}: {}", text(k), json(v)))
            .collect();
        format!(
            "{{\"id\": {}, \"path\": {}, \"entry\": {}, \"constants\": {{{}}}, \"arch\": {}, \"stages\": {stages}}}",
            text(id),
            text(&root.join(&self.path).to_string_lossy()),
            text(&self.entry),
            constants.join(", "),
            text(arch),
        )
    }
}

/// The kernels of `kernels.toml` that are valid in a release.
pub(super) fn examples(root: &Path, release: Release) -> Result<Vec<Kernel>> {
    let manifest = std::fs::read_to_string(root.join("kernels.toml"))?;
    let manifest = Manifest::parse("kernels.toml", &manifest)?;
    let mut kernels = Vec::new();
    for kernel in &manifest.kernels {
        let Text::File(source) = &kernel.text else {
            continue;
        };
        if !is_of(&std::fs::read_to_string(root.join(source))?, release) {
            continue;
        }
        let once = vec![BTreeMap::new()];
        let all = if kernel.specialize.is_empty() {
            &once
        } else {
            &kernel.specialize
        };
        for constants in all {
            let name = &kernel.name;
            let suffix = constants.iter().map(|(k, v)| format!("-{k}{}", json(v)));
            kernels.push(Kernel {
                id: format!("{name}{}", suffix.collect::<String>()),
                path: source.into(),
                entry: kernel.entry.as_ref().unwrap_or(name).clone(),
                constants: constants.clone(),
                release,
                example: true,
                faults: false,
            });
        }
    }
    Ok(kernels)
}

/// The kernels of a kernel file whose compile-time parameters are given in its first lines (`# -D N=256`). None where
/// the file is one that is not lowered, or of another release.
pub(super) fn of_file(root: &Path, path: &Path, release: Release) -> Result<Vec<Kernel>> {
    let (path, text) = written_out(root, path)?;
    let mut constants = BTreeMap::new();
    for line in text.lines().take_while(|l| l.starts_with('#') || l.is_empty()) {
        let line = line.trim_start_matches('#').trim();
        // Rejected, or text that is not a kernel.
        if line.starts_with("error:") || line == "test: parse only" || line == "test: messages" {
            return Ok(Vec::new());
        }
        if let Some((name, value)) = line.strip_prefix("-D").and_then(|d| d.split_once('=')) {
            constants.insert(name.trim().to_string(), literal(value.trim()));
        }
    }
    let faults = faulting(&text);
    let stem = path
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let mut sources = SourceMap::new();
    let file = KernelFile::load(&mut sources, &stem, &text, &AnyRelease)
        .map_err(|e| format!("{}: {}", path.display(), e.render(&sources)))?;
    if !is_of(&text, release) {
        return Ok(Vec::new());
    }
    let kernel = |entry: &tirx_core::script::Entry| Kernel {
        id: format!("{stem}.{}", entry.name),
        path: path.clone(),
        entry: entry.name.clone(),
        constants: constants
            .iter()
            .filter(|(name, _)| entry.takes(name))
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect(),
        release,
        example: false,
        faults: faults.contains(entry.name.as_str()),
    };
    Ok(file.entries().iter().map(kernel).collect())
}

/// The kernels whose runs (`# sim: NAME`) have a line `fault:`.
fn faulting(text: &str) -> BTreeSet<&str> {
    let (mut found, mut kernel) = (BTreeSet::new(), "");
    for line in text.lines() {
        let comment = line.strip_prefix('#').map(str::trim).unwrap_or_default();
        if let Some(run) = comment.strip_prefix("sim:") {
            kernel = run
                .split([' ', '('])
                .find(|word| !word.is_empty())
                .unwrap_or_default();
        } else if comment.starts_with("fault:") {
            found.insert(kernel);
        }
    }
    found
}

/// A kernel file for both compilers: itself, or a file with its variants written out.
fn written_out(root: &Path, path: &Path) -> Result<(PathBuf, String)> {
    let text = std::fs::read_to_string(root.join(path))?;
    let whole = variants::expand(&text)?;
    let Some(name) = path.file_name().filter(|_| whole != text) else {
        return Ok((path.into(), text));
    };
    let folder = root.join("target/oracle-variants");
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join(name), &whole)?;
    Ok((folder.join(name), whole))
}

/// The kernels of the filetests that are valid in a release.
pub(super) fn filetests(root: &Path, release: Release) -> Result<Vec<Kernel>> {
    let mut files = Vec::new();
    for folder in std::fs::read_dir(root.join("tests/kernels"))? {
        for file in std::fs::read_dir(folder?.path())? {
            files.push(file?.path().strip_prefix(root)?.to_path_buf());
        }
    }
    let imported = |path: &PathBuf| {
        path.file_name()
            .is_some_and(|n| n.to_string_lossy().starts_with('_'))
    };
    files.retain(|path| path.extension().is_some_and(|e| e == "py") && !imported(path));
    files.sort();
    let mut kernels = Vec::new();
    for path in files {
        kernels.extend(of_file(root, &path, release)?);
    }
    Ok(kernels)
}

/// A Python literal of a directive.
fn literal(text: &str) -> ConstValue {
    match text {
        "None" => ConstValue::None,
        "True" => ConstValue::Bool(true),
        "False" => ConstValue::Bool(false),
        _ => match (text.parse(), text.parse()) {
            (Ok(v), _) => ConstValue::Int(v),
            (_, Ok(v)) => ConstValue::Float(v),
            _ => ConstValue::Str(text.trim_matches(['"', '\'']).into()),
        },
    }
}

/// A constant as JSON.
fn json(value: &ConstValue) -> String {
    match value {
        ConstValue::Int(v) => v.to_string(),
        ConstValue::Float(v) => format!("{v:?}"),
        ConstValue::Bool(v) => v.to_string(),
        ConstValue::Str(s) => format!("\"{}\"", s.replace('\\', "\\\\").replace('"', "\\\"")),
        _ => "null".into(),
    }
}
