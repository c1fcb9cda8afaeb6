//! `cargo tirx fix`: kernel files of TVM 0.26 in the language of 0.27.
//!
//! A file is written only where both texts make the same IR, and nothing of 0.26 is left in the new one.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use tirx_build::compile::{FileImports, Loaded};
use tirx_core::diagnostic::{Level, Message};
use tirx_core::ir::IRModule;
use tirx_core::script::fix::{Attempt, Fixed, to_v27};
use tirx_core::script::{ConstValue, Entry, Release};
use tirx_expect::expressions;

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
    /// A compile-time value for comparing the IR before and after; needed only if no `# sim:` line gives it.
    #[arg(short = 'D', value_name = "NAME=VALUE")]
    define: Vec<String>,
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
    let mut errors = Vec::new();
    for file in &command.files {
        match fix_file(command, file, &values) {
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

/// A file, as its kernels are built for the comparison.
struct Kernels<'a> {
    command: &'a Fix,
    file: &'a Path,
    shown: String,
    /// What is built: each kernel with each list of values that is known for it.
    builds: Vec<(String, Values)>,
}

impl Kernels<'_> {
    fn imports(&self, release: Option<Release>) -> FileImports {
        imports(self.file)
            .with_multiprocessors(self.command.multiprocessors)
            .with_release(release)
    }

    fn load(&self, text: &str, release: Option<Release>) -> Result<Loaded> {
        Ok(Loaded::new(&self.shown, text, &self.imports(release))?)
    }

    /// The kernels of a text.
    fn modules(&self, attempt: &Attempt) -> Result<Vec<IRModule>> {
        let loaded = self.load(attempt.text, attempt.release)?;
        let trials = attempt.trials.as_ref();
        loaded.file().with_trials(trials, |_| {
            let mut modules = Vec::new();
            for (entry, values) in &self.builds {
                let built = loaded.build_all(Some(entry), values)?;
                modules.extend(built.into_iter().map(|built| built.module));
            }
            Ok(modules)
        })
    }
}

fn fix_file(command: &Fix, file: &Path, values: &Values) -> Result<()> {
    let text = tirx_build::source::read(file)
        .map_err(|error| user(format_args!("cannot read `{}`: {error}", file.display())))?;
    let mut kernels = Kernels {
        command,
        file,
        shown: file.to_string_lossy().into_owned(),
        builds: Vec::new(),
    };
    let loaded = kernels.load(&text, None)?;
    let described = expressions::read_with(&kernels.shown, &text, &kernels.imports(None));
    let described = described.map_err(|error| user(format_args!("{}: {error}", kernels.shown)))?;
    for entry in loaded.file().entries() {
        let runs = described.iter().filter(|run| run.kernel == entry.name);
        let mut known: Vec<Values> = runs.map(|run| run.values.clone()).collect();
        if known.is_empty() {
            let own = values.iter().filter(|(name, _)| entry.takes(name));
            known.push(own.map(|(name, value)| (name.clone(), value.clone())).collect());
        }
        for values in known {
            complete(entry, &values, &kernels.shown)?;
            kernels.builds.push((entry.name.clone(), values));
        }
    }
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
    let summary = summary(&kernels, &fixed);
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
    let help = format!("give {}", missing.join(" "));
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
    let help = "--stdout prints the text with the others rewritten; a file is written for one release";
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
    let _ = writeln!(
        text,
        "{}: {} in the language of 0.27; the IR of {} is the same",
        kernels.shown,
        counted(calls, "call"),
        counted(builds, "build")
    );
    text
}
