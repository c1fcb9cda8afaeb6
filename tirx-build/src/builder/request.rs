//! Bundles of packages whose build script declares kernels: only the script knows these kernels, so it makes the
//! bundle.
//!
//! [`bundle_by_build_script`] runs Cargo on the package with `TIRX_BUNDLE` naming a file that says what is wanted. The
//! [`Builder`] of that package and manifest does it before it builds, and answers in a file beside that one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Builder, BundleAction, BundleReport, BundledKernel};
use crate::document::{self, Fields, FromTable, Mistake, Record, quoted, quoted_list};
use crate::environment::Environment;
use crate::error::{Error, Result};

/// The variable that names a request, or says how a build uses a bundle: [`BundleUse`].
const VARIABLE: &str = "TIRX_BUNDLE";

/// How a build uses the bundle of its manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BundleUse {
    /// A stale kernel is an error if nothing can compile it.
    Required,
    /// A stale kernel runs on the simulator only if nothing can compile it.
    Optional,
    /// The bundle is not looked at.
    Ignored,
}

impl BundleUse {
    /// The words of the variable.
    const WORDS: [(&str, BundleUse); 2] = [("optional", BundleUse::Optional), ("ignore", BundleUse::Ignored)];

    /// What the variable says, if it says this and names no request.
    pub(super) fn of_variable(environment: &Environment) -> Option<BundleUse> {
        let said = environment.get(VARIABLE)?;
        let known = BundleUse::WORDS.iter().find(|(word, _)| said == **word);
        known.map(|(_, bundle_use)| *bundle_use)
    }
}

/// The task of [`bundle_by_build_script`].
#[derive(Clone, Debug)]
pub struct BundleRequest {
    /// Write, or check.
    pub action: BundleAction,
    /// Where the bundle is; by default where a build of the package looks for it.
    pub path: Option<PathBuf>,
    /// Whether to write one file instead of a folder.
    pub single: bool,
    /// The targets to compile for, instead of each kernel's own.
    pub targets: Vec<String>,
    /// The package's license.
    pub license: String,
}

/// A request as a file.
struct File {
    /// The package's folder and the manifest's path, which need not exist.
    package: PathBuf,
    manifest: PathBuf,
    action: String,
    path: Option<PathBuf>,
    single: bool,
    targets: Vec<String>,
    license: String,
}

/// An answer as a file.
struct Answer {
    error: Option<String>,
    path: PathBuf,
    nvcc: String,
    kernels: Vec<AnswerKernel>,
}

struct AnswerKernel {
    name: String,
    packed: usize,
    images: Vec<(String, usize)>,
}

impl File {
    /// `None` where a path is no Unicode, which TOML cannot hold.
    fn text(&self) -> Option<String> {
        let mut lines = vec![
            format!("package = {}", quoted(self.package.to_str()?)),
            format!("manifest = {}", quoted(self.manifest.to_str()?)),
            format!("action = {}", quoted(&self.action)),
        ];
        if let Some(path) = &self.path {
            lines.push(format!("path = {}", quoted(path.to_str()?)));
        }
        lines.push(format!("single = {}", self.single));
        lines.push(format!("targets = {}", quoted_list(&self.targets)));
        lines.push(format!("license = {}\n", quoted(&self.license)));
        Some(lines.join("\n"))
    }
}

impl FromTable for File {
    const KEYS: &'static [&'static str] = &[
        "package", "manifest", "action", "path", "single", "targets", "license",
    ];

    fn from_table(fields: &Fields<'_, '_>) -> std::result::Result<File, Mistake> {
        Ok(File {
            package: fields.required("package")?,
            manifest: fields.required("manifest")?,
            action: fields.required("action")?,
            path: fields.optional("path")?,
            single: fields.required("single")?,
            targets: fields.required("targets")?,
            license: fields.required("license")?,
        })
    }
}

impl Answer {
    /// `None` where a path is no Unicode, which TOML cannot hold.
    fn text(&self) -> Option<String> {
        let mut lines: Vec<String> = self
            .error
            .iter()
            .map(|error| format!("error = {}", quoted(error)))
            .collect();
        lines.push(format!("path = {}", quoted(self.path.to_str()?)));
        lines.push(format!("nvcc = {}", quoted(&self.nvcc)));
        for kernel in &self.kernels {
            let image = |(target, bytes): &(String, usize)| format!("[{}, {bytes}]", quoted(target));
            let images: Vec<String> = kernel.images.iter().map(image).collect();
            lines.push(format!(
                "[[kernels]]\nname = {}\npacked = {}\nimages = [{}]",
                quoted(&kernel.name),
                kernel.packed,
                images.join(", ")
            ));
        }
        Some(lines.join("\n") + "\n")
    }
}

impl FromTable for Answer {
    const KEYS: &'static [&'static str] = &["error", "path", "nvcc", "kernels"];

    fn from_table(fields: &Fields<'_, '_>) -> std::result::Result<Answer, Mistake> {
        let kernels: Vec<Record<AnswerKernel>> = fields.or_default("kernels")?;
        Ok(Answer {
            error: fields.optional("error")?,
            path: fields.required("path")?,
            nvcc: fields.required("nvcc")?,
            kernels: kernels.into_iter().map(|kernel| kernel.0).collect(),
        })
    }
}

impl FromTable for AnswerKernel {
    const KEYS: &'static [&'static str] = &["name", "packed", "images"];

    fn from_table(fields: &Fields<'_, '_>) -> std::result::Result<AnswerKernel, Mistake> {
        Ok(AnswerKernel {
            name: fields.required("name")?,
            packed: fields.required("packed")?,
            images: fields.required("images")?,
        })
    }
}

const ACTIONS: [(&str, BundleAction); 3] = [
    ("write", BundleAction::Write),
    ("locked", BundleAction::Locked),
    ("verify", BundleAction::Verify),
];

/// Whether the build script of the package in this folder seems to declare kernels: its text names
/// [`Kernel`](crate::Kernel)'s functions.
pub fn build_script_declares_kernels(package: &Path) -> bool {
    let cargo = fs::read_to_string(package.join("Cargo.toml")).unwrap_or_default();
    let cargo = document::parse(&cargo).ok();
    let of_package = cargo.as_ref().and_then(|cargo| cargo.get_ref().get("package"));
    let named = of_package.and_then(|package| package.get_ref().get("build")?.get_ref().as_str());
    let text = fs::read_to_string(package.join(named.unwrap_or("build.rs"))).unwrap_or_default();
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code: String = code.flat_map(str::split_whitespace).collect();
    ["Kernel::script(", "Kernel::source(", "Kernel::ir("]
        .iter()
        .any(|function| code.contains(function))
}

/// Makes or checks the bundle of a package through its build script, with the kernels of the manifest and those that the
/// script declares. Cargo compiles the package for it, as `cargo build` does.
///
/// # Errors
/// As [`Builder::bundle`]; Cargo fails; the build script builds no such manifest.
pub fn bundle_by_build_script(
    package: &Path,
    manifest: &Path,
    request: &BundleRequest,
) -> Result<BundleReport> {
    let absolute = |path: &Path| std::path::absolute(path).map_err(|e| Error::io("find", path, &e));
    let action = ACTIONS.iter().find(|(_, action)| *action == request.action);
    let file = File {
        package: absolute(package)?,
        manifest: absolute(manifest)?,
        action: action.map_or("", |(name, _)| name).to_string(),
        path: request.path.as_deref().map(absolute).transpose()?,
        single: request.single,
        targets: request.targets.clone(),
        license: request.license.clone(),
    };
    let text = file.text().ok_or_else(|| {
        Error::new(format_args!(
            "the package's path `{}` is no Unicode",
            package.display()
        ))
    })?;
    // A new name each time, so that Cargo runs the build script.
    let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let nanoseconds = time.map_or(0, |time| time.as_nanos());
    let name = format!("tirx-bundle-{}-{nanoseconds}.toml", std::process::id());
    let place = std::env::temp_dir().join(name);
    fs::write(&place, text).map_err(|e| Error::io("write", &place, &e))?;
    let answered = ask(&file, &place);
    let _ = fs::remove_file(&place);
    let _ = fs::remove_file(answer_of(&place));
    let answer = answered?;
    if let Some(error) = answer.error {
        return Err(Error::new(error));
    }
    let kernels = answer.kernels.into_iter().map(|kernel| BundledKernel {
        name: kernel.name,
        images: kernel.images,
        packed: kernel.packed,
    });
    Ok(BundleReport {
        path: request.path.clone().unwrap_or(answer.path),
        kernels: kernels.collect(),
        nvcc: answer.nvcc,
    })
}

/// Runs Cargo, and reads what the build script answered.
fn ask(file: &File, place: &Path) -> Result<Answer> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(&cargo)
        .args(["build", "--quiet", "--manifest-path"])
        .arg(file.package.join("Cargo.toml"))
        .env(VARIABLE, place)
        .output()
        .map_err(|error| Error::new(format_args!("`{}` cannot be run: {error}", cargo.display())))?;
    if let Ok(text) = fs::read_to_string(answer_of(place)) {
        return document::read(&text)
            .map_err(|error| Error::new(format_args!("the build script's answer is damaged: {error}")));
    }
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        let text = text.trim_end();
        return Err(Error::new(format_args!(
            "the package cannot be built, which its bundle needs: its build script declares kernels\n{text}"
        )));
    }
    let manifest = file
        .manifest
        .strip_prefix(&file.package)
        .unwrap_or(&file.manifest);
    let error = Error::new(format_args!(
        "the build script of `{}` builds no `{}`",
        file.package.display(),
        manifest.display()
    ));
    Err(error.help(
        "a bundle holds the kernels of one `Builder`: `--manifest` names the manifest that it was given",
    ))
}

fn answer_of(request: &Path) -> PathBuf {
    request.with_extension("answer")
}

impl Builder {
    /// Handles a request that is meant for this build, if there is one: makes the bundle, and gives the builder that
    /// takes everything from it.
    pub(super) fn answer_request(&self, environment: &Environment) -> Result<Option<Builder>> {
        let Some(place) = environment.path(VARIABLE) else {
            return Ok(None);
        };
        if BundleUse::of_variable(environment).is_some() {
            return Ok(None);
        }
        let text = fs::read_to_string(&place).map_err(|e| {
            let words = "`TIRX_BUNDLE=ignore` builds without the bundle, `TIRX_BUNDLE=optional` builds with a stale bundle";
            Error::io("read", &place, &e).help(words)
        })?;
        let file: File = document::read(&text)
            .map_err(|error| Error::new(format_args!("{VARIABLE} names no request: {error}")))?;
        // Dependencies build their kernels as usual.
        let package = environment.path_peek("CARGO_MANIFEST_DIR").unwrap_or_default();
        if !same(&package, &file.package) || !same(&package.join(&self.manifest), &file.manifest) {
            return Ok(None);
        }
        let action = ACTIONS.iter().find(|(name, _)| *name == file.action);
        let Some((_, action)) = action else {
            return Err(Error::new(format_args!("{VARIABLE} asks for `{}`", file.action)));
        };
        let mut builder = self.clone();
        builder.bundle = file.path.or(builder.bundle);
        if !file.targets.is_empty() {
            builder.targets = Some(file.targets);
        }
        let result = builder.bundle(*action, file.single, &file.license);
        let answer = match &result {
            Ok(report) => Answer {
                error: None,
                path: report.path.clone(),
                nvcc: report.nvcc.clone(),
                kernels: report.kernels.iter().map(answered).collect(),
            },
            Err(error) => Answer {
                error: Some(format!("{error:?}")),
                path: PathBuf::new(),
                nvcc: String::new(),
                kernels: Vec::new(),
            },
        };
        let text = answer.text().ok_or_else(|| {
            Error::new(format_args!(
                "the bundle's path `{}` is no Unicode",
                answer.path.display()
            ))
        })?;
        let answer = answer_of(&place);
        fs::write(&answer, text).map_err(|e| Error::io("write", &answer, &e))?;
        result?;
        Ok(Some(builder))
    }
}

fn answered(kernel: &BundledKernel) -> AnswerKernel {
    AnswerKernel {
        name: kernel.name.clone(),
        packed: kernel.packed,
        images: kernel.images.clone(),
    }
}

/// Whether two paths are the same place. A manifest need not exist.
fn same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| {
        let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
        let whole = path.canonicalize().ok();
        whole.or_else(|| Some(folder?.join(path.file_name()?)))
    };
    one == other || real(one).is_some_and(|path| Some(path) == real(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declared_kernels_are_seen_in_the_script() {
        let folder = tempfile::tempdir().unwrap();
        let declares = |file: &str, text: &str, cargo: &str| {
            fs::write(folder.path().join("Cargo.toml"), cargo).unwrap();
            fs::write(folder.path().join(file), text).unwrap();
            build_script_declares_kernels(folder.path())
        };
        assert!(!build_script_declares_kernels(folder.path()));
        let plain =
            "fn main() { tirx_build::compile_kernels(\"kernels.toml\"); }\n// Kernel::script(\"x\")\n";
        assert!(!declares("build.rs", plain, "[package]\nname = \"a\"\n"));
        let declaring = "fn main() { b.kernel(Kernel::\n    script (\"x\", text)) }";
        assert!(declares("build.rs", declaring, "[package]\nname = \"a\"\n"));
        assert!(!declares("other.rs", plain, "[package]\nbuild = \"other.rs\"\n"));
        assert!(declares(
            "other.rs",
            declaring,
            "[package]\nbuild = \"other.rs\"\n"
        ));
    }

    #[test]
    fn a_request_that_is_none_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |place: &Path| {
            let environment = Environment::empty().with(VARIABLE, place);
            Builder::new()
                .answer_request(&environment)
                .unwrap_err()
                .to_string()
        };
        let place = folder.path().join("request.toml");
        assert!(refused(&place).starts_with("error: cannot read `"));
        fs::write(&place, "x = 1").unwrap();
        assert!(refused(&place).starts_with("error: TIRX_BUNDLE names no request: "));
        let manifest = folder.path().join("kernels.toml");
        let text = format!(
            "package = {:?}\nmanifest = {manifest:?}\naction = \"burn\"\nsingle = false\ntargets = []\nlicense = \"MIT\"\n",
            folder.path()
        );
        fs::write(&place, text).unwrap();
        let environment = Environment::empty().with(VARIABLE, &place);
        let of = |package: &Path| {
            let environment = environment.clone().with("CARGO_MANIFEST_DIR", package);
            Builder::new().answer_request(&environment)
        };
        let error = of(folder.path()).unwrap_err().to_string();
        assert_eq!(error, "error: TIRX_BUNDLE asks for `burn`");
        // A request for another package is ignored.
        assert!(of(Path::new("/another/package")).unwrap().is_none());
    }
}
