//! `cargo tirx test`: the runs that kernel files describe in `# sim:` lines, on the simulator.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tirx_build::compile::{Loaded, Settings, judge};
use tirx_build::manifest::{Manifest, Text};
use tirx_build::target;
use tirx_core::diagnostic::{Level, Message};
use tirx_core::ir::Gpu;
use tirx_expect::{Run, expressions};

use crate::failure::{Failure, Result, message, usage, user};
use crate::input::imports;
use crate::output::{Output, counted, out};
use crate::packages::{self, Selection};

#[derive(clap::Args, Debug)]
pub(crate) struct Test {
    /// Kernel files or folders; defaults to the files in the manifest.
    files: Vec<PathBuf>,
    /// Runs only kernels whose name contains this.
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Selects a schedule: the order of warps and asynchronous operations; defaults to TIRX_SIM_SEED, or 0.
    #[arg(long, value_name = "NUMBER", conflicts_with = "all_schedules")]
    seed: Option<u64>,
    /// Simulator schedules to try per run, starting at --seed; the lowest failing seed is printed.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    schedules: u64,
    /// Runs each kernel in every order of its synchronizing operations (mbarriers, atomics, flags) that can make a difference,
    /// up to this many runs.
    #[arg(
        long,
        value_name = "RUNS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "20000",
        value_parser = clap::value_parser!(u64).range(1..),
        conflicts_with = "schedules"
    )]
    all_schedules: Option<u64>,
    /// The manifest whose files are tested; defaults to the kernels.toml of this folder or of the nearest folder above.
    #[arg(long, value_name = "FILE", conflicts_with = "files")]
    manifest: Option<PathBuf>,
    #[command(flatten)]
    packages: Selection,
    /// The GPU architecture that kernels are lowered for; without it sm_90a, or the first GPU that has the kernel's instructions.
    #[arg(long, value_name = "ARCH")]
    arch: Option<String>,
    /// Fails if the compiler warns of a kernel that is tested.
    #[arg(long, value_name = "WHAT", value_enum)]
    deny: Vec<Denied>,
}

/// What --deny may name.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Denied {
    /// Warnings of the compiler.
    Warnings,
}

/// The outcomes so far.
#[derive(Default)]
struct Tally {
    passed: usize,
    failed: usize,
    filtered: usize,
    /// The compiler's warnings, each once.
    warnings: Vec<Message>,
}

impl Tally {
    /// Shows warnings that were not shown before.
    fn warn(&mut self, warnings: Vec<Message>, output: &Output) {
        for warning in warnings {
            if !self.warnings.contains(&warning) {
                output.show(std::slice::from_ref(&warning));
                self.warnings.push(warning);
            }
        }
    }
}

pub(crate) fn run(command: &Test, output: &Output) -> Result<()> {
    if let Some(arch) = &command.arch {
        crate::input::gpu_named(arch)?;
    }
    let mut tally = Tally::default();
    let files = files(command)?;
    for file in &files {
        if let Err(failure) = test_file(command, file, &mut tally, output) {
            let Failure::User(messages) = failure else {
                return Err(failure);
            };
            tally.failed += 1;
            output.show(&messages);
        }
    }
    let Tally {
        passed,
        failed,
        filtered,
        warnings,
    } = tally;
    if passed + failed == 0 {
        let none = match filtered {
            0 => "no kernel file describes a run".to_string(),
            _ => format!("none of {filtered} runs is of a kernel that --filter selects"),
        };
        let help = "write `# sim: KERNEL` above a kernel, and below it a line for each argument";
        return Err(Failure::User(vec![message(&none).child(Level::Help, help)]));
    }
    let summary = format!("{passed} passed, {failed} failed\n");
    out(&summary)?;
    let warned = warnings.len();
    match failed {
        0 if warned > 0 && command.deny.contains(&Denied::Warnings) => Err(user(format_args!(
            "{}, denied by `--deny warnings`",
            counted(warned, "warning")
        ))),
        0 => Ok(()),
        1 => Err(user("a run is not as its file describes it")),
        _ => Err(user(format_args!(
            "{failed} runs are not as their files describe them"
        ))),
    }
}

/// The files to test, in order, each once.
fn files(command: &Test) -> Result<Vec<PathBuf>> {
    if !command.files.is_empty() {
        if command.packages.is_given() {
            return Err(usage(
                "`--workspace` and `-p` test the files of manifests\n  = help: leave the files out",
            ));
        }
        let mut files = Vec::new();
        for place in &command.files {
            match place.is_dir() {
                true => files.extend(below(place)?),
                false => files.push(place.clone()),
            }
        }
        return Ok(files);
    }
    let mut files = Vec::new();
    match command.packages.packages()? {
        Some(packages) => {
            for package in packages {
                files.extend(of_manifest(&package.manifest)?);
            }
        }
        None => files.extend(of_manifest(&packages::manifest(command.manifest.as_deref())?)?),
    }
    Ok(files)
}

/// The kernel files of a manifest.
fn of_manifest(path: &Path) -> Result<Vec<PathBuf>> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        let message = message(&format!("cannot read `{}`: {error}", path.display()));
        Failure::User(vec![
            message.child(Level::Help, "name kernel files, or the manifest with --manifest"),
        ])
    })?;
    let manifest = Manifest::parse(&path.to_string_lossy(), &text)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let sources = manifest.kernels.iter().filter_map(|kernel| match &kernel.text {
        Text::File(file) => Some(folder.join(file)),
        _ => None,
    });
    let unique: BTreeSet<PathBuf> = sources.collect();
    Ok(unique.into_iter().collect())
}

/// The Python files of a folder and of those in it, in alphabetical order. Hidden folders are left out.
fn below(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder)
        .map_err(|error| user(format_args!("cannot read `{}`: {error}", folder.display())))?;
    let mut entries: Vec<_> = entries.flatten().collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.path();
        let hidden = entry.file_name().to_string_lossy().starts_with('.');
        // A link to a folder may lead back to it, and is not followed.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            if !hidden {
                files.extend(below(&path)?);
            }
        } else if path.extension().is_some_and(|e| e == "py") {
            files.push(path);
        }
    }
    Ok(files)
}

fn test_file(command: &Test, file: &Path, tally: &mut Tally, output: &Output) -> Result<()> {
    let text = tirx_build::source::read(file)
        .map_err(|error| user(format_args!("cannot read `{}`: {error}", file.display())))?;
    let shown = file.to_string_lossy().into_owned();
    let imports = imports(file);
    let described = expressions::read_with(&shown, &text, &imports);
    let runs = described.map_err(|error| Failure::User(vec![rendered(&shown, &error)]))?;
    if runs.is_empty() {
        return Ok(());
    }
    let loaded = Loaded::new(&shown, &text, &imports)?;
    for described in &runs {
        let skipped = command.filter.as_ref();
        if skipped.is_some_and(|filter| !described.kernel.contains(filter.as_str())) {
            tally.filtered += 1;
            continue;
        }
        let name = format!("{shown}:{} {}", described.line, described.kernel);
        let mut warnings = Vec::new();
        let result = test(command, &shown, &loaded, described, &mut warnings);
        warnings.extend(loaded.warnings());
        tally.warn(warnings, output);
        match result {
            Ok(said) => {
                tally.passed += 1;
                out(&format!("ok      {name}{said}\n"))?;
            }
            Err(reason) => {
                tally.failed += 1;
                let reason: String = reason.lines().map(|line| format!("        {line}\n")).collect();
                out(&format!("FAILED  {name}\n{reason}"))?;
            }
        }
    }
    Ok(())
}

/// One run, by all its schedules; what is to be said of it.
fn test(
    command: &Test,
    shown: &str,
    loaded: &Loaded,
    described: &Run,
    warnings: &mut Vec<Message>,
) -> std::result::Result<String, String> {
    if let Some(entry) = loaded.file().entry(&described.kernel) {
        let required = entry.constexprs.iter().filter(|p| p.required);
        let missing = required.filter(|p| !described.values.contains_key(&p.name));
        let missing: Vec<String> = missing.map(|p| format!("{}=…", p.name)).collect();
        if !missing.is_empty() {
            let missing = missing.join(", ");
            return Err(format!(
                "it needs compile-time values: `# sim: {}({missing})`",
                described.kernel
            ));
        }
    }
    let mut said = String::new();
    if described.archs.is_empty() {
        return on(
            command,
            shown,
            loaded,
            described,
            command.arch.as_deref(),
            warnings,
        );
    }
    for arch in &described.archs {
        said = on(command, shown, loaded, described, Some(arch), warnings)?;
    }
    Ok(said)
}

/// The same as one GPU; the one that the kernel needs, if none is named.
fn on(
    command: &Test,
    shown: &str,
    loaded: &Loaded,
    described: &Run,
    arch: Option<&str>,
    warnings: &mut Vec<Message>,
) -> std::result::Result<String, String> {
    let text = |error: tirx_build::Error| error.to_string();
    let module = loaded
        .build(Some(&described.kernel), &described.values)
        .map_err(text)?;
    let gpu = arch
        .map(target::parse)
        .transpose()
        .map_err(|unknown| unknown.to_string())?;
    let judged = judge(module, &Settings::new(gpu.unwrap_or(Gpu::SM_90A)), gpu).map_err(text)?;
    warnings.extend(judged.warnings);
    let lowered = judged.lowered;
    let described = described.bound_to(&judged.authored)?;
    if let Some(most) = command.all_schedules {
        let explored = described.explore(&lowered, most)?;
        let orders = match explored.runs {
            1 => "1 order".to_string(),
            runs => format!("{runs} orders"),
        };
        return Ok(match explored.cut {
            _ if described.faults() => String::new(),
            None => format!(", every order: {orders}"),
            Some(why) => format!(", {orders}, not every one: {why}"),
        });
    }
    let result = described.simulate_by(&lowered, command.seed, command.schedules);
    result.map(|()| String::new()).map_err(|failed| {
        let seed = failed.schedule;
        let arch = command.arch.as_ref();
        let arch = arch.map_or(String::new(), |arch| format!(" --arch {arch}"));
        let again = format!(
            "cargo tirx test {shown} --filter {}{arch} --seed {seed}",
            described.kernel
        );
        let message = failed.message.trim_end();
        format!("{message}\nwith schedule {seed}: `{again}` repeats it")
    })
}

/// An error of the file's description: rendered already, or a sentence.
fn rendered(shown: &str, error: &str) -> Message {
    match error.strip_prefix("error: ") {
        Some(text) => message(text),
        None => message(&format!("{shown}: {error}")),
    }
}
