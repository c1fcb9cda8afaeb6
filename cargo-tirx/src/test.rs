//! `cargo tirx test`: the runs that kernel files describe in `# sim:` lines, on the simulator.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tirx_build::compile::{Loaded, Settings, run_passes};
use tirx_build::manifest::{Manifest, Text};
use tirx_core::diagnostic::{Level, Message};
use tirx_expect::{Run, expressions};

use crate::failure::{Failure, Result, message, user};
use crate::input::imports;
use crate::output::{Output, out};

/// The GPU that kernels are lowered for unless something else is asked for.
const DEFAULT_ARCH: &str = "sm_90a";

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
    /// The manifest whose files are tested.
    #[arg(long, value_name = "FILE", default_value = "kernels.toml")]
    manifest: PathBuf,
    /// The GPU architecture that kernels are lowered for.
    #[arg(long, value_name = "ARCH", default_value = DEFAULT_ARCH)]
    arch: String,
}

/// The outcomes so far.
#[derive(Default)]
struct Tally {
    passed: usize,
    failed: usize,
    filtered: usize,
}

pub(crate) fn run(command: &Test, output: &Output) -> Result<()> {
    crate::input::architecture(&command.arch)?;
    let mut tally = Tally::default();
    let files = files(command)?;
    for file in &files {
        if let Err(failure) = test_file(command, file, &mut tally) {
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
    match failed {
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
        let mut files = Vec::new();
        for place in &command.files {
            match place.is_dir() {
                true => files.extend(below(place)?),
                false => files.push(place.clone()),
            }
        }
        return Ok(files);
    }
    let text = std::fs::read_to_string(&command.manifest).map_err(|error| {
        let message = message(&format!("cannot read `{}`: {error}", command.manifest.display()));
        Failure::User(vec![
            message.child(Level::Help, "name kernel files, or the manifest with --manifest"),
        ])
    })?;
    let manifest = Manifest::parse(&command.manifest.to_string_lossy(), &text)?;
    let folder = command.manifest.parent().unwrap_or(Path::new(""));
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

fn test_file(command: &Test, file: &Path, tally: &mut Tally) -> Result<()> {
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
        match test(command, &shown, &loaded, described) {
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
    for arch in described.archs(&command.arch) {
        said = on(command, shown, loaded, described, arch)?;
    }
    Ok(said)
}

/// The same as one GPU.
fn on(
    command: &Test,
    shown: &str,
    loaded: &Loaded,
    described: &Run,
    arch: &str,
) -> std::result::Result<String, String> {
    let text = |error: tirx_build::Error| error.to_string();
    let module = loaded
        .build(Some(&described.kernel), &described.values)
        .map_err(text)?;
    let settings = Settings::new(arch);
    let lowered = run_passes(module, &settings, None, &mut |_| {}).map_err(text)?;
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
        let arch = match command.arch == DEFAULT_ARCH {
            true => String::new(),
            false => format!(" --arch {}", command.arch),
        };
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
