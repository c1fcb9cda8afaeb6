//! `cargo tirx fix`: kernel files of TVM 0.26 in the language of 0.27.
//!
//! A file is written only where both texts make the same IR, and nothing of 0.26 is left in the new one.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use tirx_build::compile::{FileImports, Loaded};
use tirx_build::manifest::{Kernel, Manifest, Text};
use tirx_core::diagnostic::{Level, Message};
use tirx_core::ir::IRModule;
use tirx_core::script::{ConstValue, Entry, Release};
use tirx_expect::expressions;
use tirx_fix::{Attempt, Fixed, to_v27};

use crate::failure::{Failure, Result, message, usage, user};
use crate::input::imports;
use crate::literal;
use crate::output::{Output, counted, out};

#[derive(clap::Args, Debug)]
pub(crate) struct Fix {
    /// Kernel files.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The TVM release to rewrite the files for.
    #[arg(long, value_name = "RELEASE", value_parser = ["0.27"])]
    tvm: String,
    /// Writes nothing; fails if a file would change.
    #[arg(long, conflicts_with = "stdout")]
    check: bool,
    /// Prints the new text instead of writing it, even if some calls of 0.26 could not be rewritten.
    #[arg(long)]
    stdout: bool,
    /// The kernel to compare before and after, or the function that makes it; may be repeated. Without it, the manifest's kernels of
    /// the file and those with `# sim:` lines, or else every kernel in the file.
    #[arg(long, value_name = "NAME")]
    entry: Vec<String>,
    /// A compile-time value for comparing the IR before and after; needed only if neither the manifest nor a `# sim:` line gives it.
    #[arg(short = 'D', value_name = "NAME=VALUE")]
    define: Vec<String>,
    /// The manifest whose kernels are compared before and after, with their specializations [default: kernels.toml, if there is one].
    #[arg(long, value_name = "FILE")]
    manifest: Option<PathBuf>,
    /// The GPU's number of multiprocessors, for files that query it: 132 on an H100 SXM, 148 on a B200.
    #[arg(long, value_name = "COUNT")]
    multiprocessors: Option<u32>,
}

type Values = BTreeMap<String, ConstValue>;

pub(crate) fn run(command: &Fix, _: &Output) -> Result<()> {
    let mut values = Values::new();
    for text in &command.define {
        let bad = |reason: String| usage(format_args!("bad -D: {reason}"));
        let (name, value) = literal::assignment(text).map_err(bad)?;
        values.insert(name, literal::value(&value).map_err(bad)?);
    }
    let manifest = manifest(command)?;
    let mut errors = Vec::new();
    for file in &command.files {
        match fix_file(command, file, &values, manifest.as_ref()) {
            Ok(()) => {}
            Err(Failure::User(messages)) => errors.extend(messages),
            Err(usage) => return Err(usage),
        }
    }
    match errors.is_empty() {
        true => Ok(()),
        false => Err(Failure::User(errors)),
    }
}

/// The manifest, and the folder to which its paths are relative.
fn manifest(command: &Fix) -> Result<Option<(PathBuf, Manifest)>> {
    let default = Path::new("kernels.toml");
    let path = match &command.manifest {
        Some(path) => path,
        None if default.is_file() => default,
        None => return Ok(None),
    };
    let shown = path.to_string_lossy();
    let text = std::fs::read_to_string(path)
        .map_err(|error| user(format_args!("cannot read `{shown}`: {error}")))?;
    let manifest = Manifest::parse(&shown, &text)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    Ok(Some((folder.to_path_buf(), manifest)))
}

/// A kernel to build, the one of the file if it has no name, with these values.
type Build = (Option<String>, Values, Option<u32>);

/// The manifest's kernels of a file.
fn declared(file: &Path, manifest: Option<&(PathBuf, Manifest)>, loaded: &Loaded) -> Vec<Build> {
    let Some((folder, manifest)) = manifest else {
        return Vec::new();
    };
    let of_file = |kernel: &&Kernel| match &kernel.text {
        Text::File(source) => is_same(&folder.join(source), file),
        _ => false,
    };
    let named = |name: &String| loaded.file().entries().iter().any(|entry| entry.name == *name);
    let mut builds = Vec::new();
    for kernel in manifest.kernels.iter().filter(of_file) {
        let own_name = || Some(kernel.name.clone()).filter(named);
        let entry = kernel.entry.clone().or_else(own_name);
        let mut values = kernel.specialize.clone();
        if values.is_empty() {
            values.push(Values::new());
        }
        let build = |values| (entry.clone(), values, kernel.multiprocessors);
        builds.extend(values.into_iter().map(build));
    }
    builds
}

fn is_same(a: &Path, b: &Path) -> bool {
    let found = |path: &Path| path.canonicalize().ok();
    found(a).is_some() && found(a) == found(b)
}

/// A file, as its kernels are built for the comparison.
struct Kernels<'a> {
    command: &'a Fix,
    file: &'a Path,
    shown: String,
    /// Each kernel with each list of values that is known for it.
    builds: Vec<Build>,
}

impl Kernels<'_> {
    fn imports(&self, release: Option<Release>, multiprocessors: Option<u32>) -> FileImports {
        imports(self.file)
            .with_multiprocessors(self.command.multiprocessors.or(multiprocessors))
            .with_release(release)
    }

    fn load(&self, text: &str, release: Option<Release>, multiprocessors: Option<u32>) -> Result<Loaded> {
        let imports = self.imports(release, multiprocessors);
        Ok(Loaded::new(&self.shown, text, &imports)?)
    }

    /// The kernels of a text.
    fn modules(&self, attempt: &Attempt) -> Result<Vec<IRModule>> {
        let trials = attempt.trials.as_ref();
        let mut modules = Vec::new();
        // Kernels for GPUs of one size are built by one load of the file.
        for builds in self.builds.chunk_by(|a, b| a.2 == b.2) {
            let loaded = self.load(attempt.text, attempt.release, builds[0].2)?;
            loaded.file().with_trials(trials, |_| {
                for (entry, values, _) in builds {
                    let built = loaded.build_all(entry.as_deref(), values)?;
                    modules.extend(built.into_iter().map(|built| built.module));
                }
                Ok::<(), Failure>(())
            })?;
        }
        Ok(modules)
    }
}

impl Kernels<'_> {
    /// Whether the release of a new text must be named: nothing in the text shows it, and the text has another meaning in 0.26.
    fn needs_release(&self, text: &str) -> Result<bool> {
        let printed = |release| -> Result<Vec<String>> {
            let modules = self.modules(&Attempt {
                text,
                release,
                trials: None,
            })?;
            Ok(modules.iter().map(tirx_core::script::print).collect())
        };
        Ok(printed(None)? != printed(Some(Release::V27))?)
    }

    /// The kernels of the file that can be compared, with their values.
    fn known(
        &self,
        text: &str,
        values: &Values,
        manifest: Option<&(PathBuf, Manifest)>,
    ) -> Result<Vec<Build>> {
        let loaded = self.load(text, None, None)?;
        let entries = loaded.file().entries();
        let of_entry = |entry: &Entry| -> Values {
            let own = values.iter().filter(|(name, _)| entry.takes(name));
            own.map(|(name, value)| (name.clone(), value.clone())).collect()
        };
        if !self.command.entry.is_empty() {
            let build = |name: &String| {
                let own = entries.iter().find(|entry| entry.name == *name);
                let values = own.map_or_else(|| values.clone(), of_entry);
                (Some(name.clone()), values, None)
            };
            return Ok(self.command.entry.iter().map(build).collect());
        }
        let mut builds = declared(self.file, manifest, &loaded);
        let described = expressions::read_with(&self.shown, text, &self.imports(None, None));
        let described = described.map_err(|error| user(format_args!("{}: {error}", self.shown)))?;
        let known = !builds.is_empty();
        for entry in entries {
            let runs = described.iter().filter(|run| run.kernel == entry.name);
            let mut all: Vec<Values> = runs.map(|run| run.values.clone()).collect();
            if all.is_empty() {
                let values = of_entry(entry);
                if known && !is_complete(entry, &values) {
                    continue;
                }
                all.push(values);
            }
            for values in all {
                complete(entry, &values, &self.shown)?;
                builds.push((Some(entry.name.clone()), values, None));
            }
        }
        Ok(builds)
    }
}

fn is_complete(entry: &Entry, values: &Values) -> bool {
    let mut required = entry.constexprs.iter().filter(|p| p.required);
    required.all(|p| values.contains_key(&p.name))
}

fn fix_file(
    command: &Fix,
    file: &Path,
    values: &Values,
    manifest: Option<&(PathBuf, Manifest)>,
) -> Result<()> {
    let text = tirx_build::source::read(file)
        .map_err(|error| user(format_args!("cannot read `{}`: {error}", file.display())))?;
    let mut kernels = Kernels {
        command,
        file,
        shown: file.to_string_lossy().into_owned(),
        builds: Vec::new(),
    };
    kernels.builds = kernels.known(&text, values, manifest)?;
    let mut wrong = None;
    let mut build = |attempt: &Attempt| match kernels.modules(attempt) {
        Ok(modules) => Some(modules),
        Err(error) => {
            wrong.get_or_insert(error);
            None
        }
    };
    let fixed =
        to_v27(&text, &mut build).map_err(|error| user(format_args!("{}: {error}", kernels.shown)))?;
    if let Some(wrong) = wrong {
        return Err(wrong);
    }
    if !fixed.left.is_empty() {
        if command.stdout {
            out(&fixed.text)?;
        }
        return Err(Failure::User(left(&kernels.shown, &fixed)));
    }
    if fixed.replaced.is_empty() && text == fixed.text {
        if command.stdout {
            out(&text)?;
        }
        return Ok(());
    }
    if fixed.differs {
        return Err(user(format_args!(
            "{}: in the language of 0.27 the file would not make the same IR; it is not changed",
            kernels.shown
        )));
    }
    if command.stdout {
        return out(&fixed.text);
    }
    let mut summary = summary(&kernels, &fixed);
    if kernels.needs_release(&fixed.text)? {
        // Writing to a String cannot fail.
        let _ = writeln!(
            summary,
            "{}: nothing in the file says that it is written for 0.27, and some calls mean something else in 0.26: build it with \
             `--tvm 0.27`, or with `tvm = \"0.27\"` in the manifest",
            kernels.shown
        );
    }
    if command.check {
        out(&summary)?;
        return Err(user(format_args!("{} is written for TVM 0.26", kernels.shown)));
    }
    std::fs::write(file, &fixed.text)
        .map_err(|error| user(format_args!("cannot write `{}`: {error}", file.display())))?;
    out(&summary)
}

/// The error of a kernel whose IR cannot be compared.
fn complete(entry: &Entry, values: &Values, shown: &str) -> Result<()> {
    let required = entry.constexprs.iter().filter(|p| p.required);
    let missing = required.filter(|p| !values.contains_key(&p.name));
    let missing: Vec<String> = missing.map(|p| format!("-D {}=…", p.name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let text = format!(
        "{shown}: the IR of `{}` before and after can be compared only with compile-time values",
        entry.name
    );
    let help = format!(
        "give {}, name another kernel with --entry, or declare the file's kernels in `kernels.toml`",
        missing.join(" ")
    );
    Err(Failure::User(vec![message(&text).child(Level::Help, &help)]))
}

/// The messages of calls that stay.
fn left(shown: &str, fixed: &Fixed) -> Vec<Message> {
    let mut messages: Vec<Message> = fixed
        .left
        .iter()
        .map(|left| message(&format!("{shown}:{}: {}: {}", left.line, left.name, left.reason)))
        .collect();
    let text = format!(
        "{shown}: {} of {} calls cannot be rewritten; the file is not changed",
        fixed.left.len(),
        fixed.left.len() + fixed.replaced.len()
    );
    let help =
        "--stdout prints the text with the other calls rewritten; fix writes no file that mixes two releases";
    messages.push(message(&text).child(Level::Help, help));
    messages
}

/// What changed, by lines.
fn summary(kernels: &Kernels<'_>, fixed: &Fixed) -> String {
    let mut text = String::new();
    for replaced in &fixed.replaced {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}:{}", kernels.shown, replaced.line);
        for (sign, part) in [('-', &replaced.before), ('+', &replaced.after)] {
            for line in part.lines() {
                let _ = writeln!(text, "{sign} {}", line.trim());
            }
        }
    }
    let (calls, builds) = (fixed.replaced.len(), kernels.builds.len());
    let unreached: Vec<String> = fixed
        .replaced
        .iter()
        .filter(|replaced| !replaced.compared)
        .map(|replaced| replaced.line.to_string())
        .collect();
    let _ = writeln!(
        text,
        "{}: {} in the language of 0.27; the IR of {} is the same",
        kernels.shown,
        counted(calls, "call"),
        counted(builds, "build")
    );
    if !unreached.is_empty() {
        let _ = writeln!(
            text,
            "{}: not compared, since no build reaches them: line{} {}",
            kernels.shown,
            if unreached.len() == 1 { "" } else { "s" },
            unreached.join(", ")
        );
    }
    text
}
