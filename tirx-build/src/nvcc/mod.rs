//! Runs nvcc: once per text and target, several at a time, and never for results that a store holds.
//!
//! An image depends on the CUDA text, the arguments, the release and build of nvcc with its `nvcc.profile`, and the
//! environment variables that nvcc and the host compiler's preprocessor read. All of these are its key. The text
//! contains no positions of the kernel file (unless `lineinfo` is set), so comments and formatting do not change the
//! key.

mod host_compiler;
pub(crate) mod messages;
mod options;
mod parallel;
mod report;
mod unit;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tirx_core::codegen::cuda::Since;
use tirx_core::diagnostic::{Level, Message, TextRange};
use tirx_core::source::{SourceMap, Span};

pub use options::NvccOptions;

use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::hash::{digest, hex};
use crate::store::{Key, Store};
use crate::target::Targets;
use crate::toolchain::Nvcc;
use messages::{FILE, Origin};
use parallel::Slots;
use report::Report;
use unit::{Failed, Ran, Runner};

/// What every kernel is compiled with.
const FLAGS: [&str; 5] = ["-std=c++17", "-O3", "--fatbin", "-Xptxas", "--warn-on-spills"];

/// Environment variables that affect nvcc's output: its own, and those of the host compiler's preprocessor.
pub(crate) const VARIABLES: [&str; 6] = [
    "NVCC_PREPEND_FLAGS",
    "NVCC_APPEND_FLAGS",
    "NVCC_CCBIN",
    "CPATH",
    "C_INCLUDE_PATH",
    "CPLUS_INCLUDE_PATH",
];

/// A kernel's CUDA text that is to be compiled.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    /// The name of its files in the output folder, without extension: `add-n256`.
    pub(crate) file: String,
    /// Its name in messages: "kernel `add::n256`".
    pub(crate) what: String,
    /// The position of its source.
    pub(crate) place: Option<TextRange>,
    /// The CUDA text.
    pub(crate) text: String,
    /// Where each line of the text came from.
    pub(crate) lines: Vec<Span>,
    /// Features of the text that earlier releases of CUDA do not know.
    pub(crate) since: Vec<Since>,
    /// The texts that these point into.
    pub(crate) sources: SourceMap,
    /// What to compile for.
    pub(crate) targets: Targets,
    /// The manifest's options for nvcc.
    pub(crate) options: NvccOptions,
}

impl Job {
    /// The text that nvcc gets.
    pub(crate) fn text_for_nvcc(&self, debug_profile: bool) -> String {
        match self.options.names_lines(debug_profile) {
            true => with_line_directives(self),
            false => self.text.clone(),
        }
    }
}

/// The results of the jobs.
#[derive(Debug, Default)]
pub(crate) struct Made {
    /// For each job, the fat binary of each target, in the order of [`Targets::each`].
    pub(crate) images: Vec<Vec<Vec<u8>>>,
    /// What nvcc said when it made each of them.
    pub(crate) said: Vec<Vec<String>>,
    /// Images that nvcc made.
    pub(crate) compiled: usize,
    /// Images that a store held.
    pub(crate) cached: usize,
    /// Warnings of nvcc, at the kernels' lines.
    pub(crate) warnings: Vec<Message>,
}

/// Settings of the compilation.
pub(crate) struct Compilation<'a> {
    /// The compiler.
    pub(crate) nvcc: &'a Nvcc,
    /// Where results are kept.
    pub(crate) store: &'a Store,
    /// A folder for temporary files; created and removed here.
    pub(crate) work: &'a Path,
    /// The environment variables.
    pub(crate) environment: &'a Environment,
    /// Receives lines about the progress.
    pub(crate) say: &'a (dyn Fn(&str) + Sync),
}

/// One run of nvcc, for all jobs that need the same result.
struct Unit {
    key: Key,
    /// The first job that needs it.
    job: usize,
    /// The target, as `sm_90a`.
    target: String,
    /// The key of the PTX for the same GPU, if the run makes both: they share the work before ptxas.
    ptx: Option<Key>,
    arguments: Vec<String>,
    text: String,
}

impl Compilation<'_> {
    /// Compiles every job for each of its targets. All failures are reported together.
    pub(crate) fn run(&self, jobs: &[Job]) -> Result<Made> {
        Error::all(
            jobs.iter()
                .flat_map(|job| unknown(self.nvcc, &job.since, &job.sources)),
        )?;
        let (units, needs) = self.units(jobs);
        let runner = Runner::new(self)?;
        let progress = Progress::new(self.say, units.len());
        let results = Slots::new(self.environment).run(units.len(), |index| {
            let unit = &units[index];
            let result = runner.unit(unit, &jobs[unit.job], index);
            progress.done(&jobs[unit.job].what, &unit.target, &result);
            result
        });
        progress.end();
        let _ = fs::remove_dir_all(self.work);
        let mut report = Report::default();
        let mut made = Made::default();
        let mut entries: BTreeMap<Key, Vec<u8>> = BTreeMap::new();
        let mut said: BTreeMap<Key, (String, bool)> = BTreeMap::new();
        for (unit, result) in units.iter().zip(results) {
            let job = &jobs[unit.job];
            match result {
                Ok(Ran {
                    entry, ptx, compiled, ..
                }) => {
                    for (key, entry) in [(unit.key, entry)].into_iter().chain(unit.ptx.zip(ptx)) {
                        made.compiled += usize::from(compiled);
                        made.cached += usize::from(!compiled);
                        said.insert(key, (entry.messages, true));
                        entries.insert(key, entry.image);
                    }
                }
                Err(Failed::Said(text)) => {
                    said.insert(unit.key, (text, false));
                }
                Err(Failed::Other(error)) => report.other(error, job, &unit.target),
            }
        }
        // Jobs with the same text have messages of their own: each points into its own kernel.
        for (job, keys) in jobs.iter().zip(&needs) {
            for ((target, _), key) in job.targets.each().into_iter().zip(keys) {
                if let Some((text, success)) = said.get(key) {
                    let origin = Origin {
                        text: &job.text,
                        lines: &job.lines,
                        sources: &job.sources,
                    };
                    report.add_run(&messages::findings(text, &origin), job, &target, *success, text);
                }
            }
        }
        report.errors(self.nvcc)?;
        made.warnings = report.warnings();
        made.images = needs
            .iter()
            .map(|keys| keys.iter().filter_map(|key| entries.get(key).cloned()).collect())
            .collect();
        made.said = needs
            .iter()
            .map(|keys| {
                let texts = keys.iter().filter_map(|key| said.get(key));
                texts.map(|(text, _)| text.clone()).collect()
            })
            .collect();
        if made.compiled > 0 {
            self.store.keep_within_limit();
        }
        Ok(made)
    }

    /// The runs to make, and the keys that each job needs.
    fn units(&self, jobs: &[Job]) -> (Vec<Unit>, Vec<Vec<Key>>) {
        let identity = self.identity();
        let debug_profile = self
            .environment
            .peek("PROFILE")
            .is_some_and(|profile| profile == "debug");
        let mut units: Vec<Unit> = Vec::new();
        let mut known: BTreeSet<Key> = BTreeSet::new();
        let mut needs = Vec::new();
        for (index, job) in jobs.iter().enumerate() {
            let text = job.text_for_nvcc(debug_profile);
            let arguments = |gencode: String| {
                let mut arguments: Vec<String> = FLAGS.map(String::from).to_vec();
                arguments.extend(["-gencode".to_string(), gencode]);
                arguments.extend(job.options.arguments(debug_profile));
                arguments
            };
            let key = |arguments: &[String]| {
                let mut parts = vec![text.as_str()];
                parts.extend(identity.iter().map(String::as_str));
                parts.push("arguments");
                parts.extend(arguments.iter().map(String::as_str));
                digest(&parts)
            };
            // An image has the key of a run of its own, so that the targets of a kernel may change.
            let each = job.targets.each();
            let keys: Vec<Key> = each
                .iter()
                .map(|(_, gencode)| key(&arguments(gencode.clone())))
                .collect();
            for (at, (target, gencode)) in each.iter().enumerate() {
                if known.contains(&keys[at]) {
                    continue;
                }
                let with_ptx = job.targets.with_ptx(at);
                let (target, ptx, gencode) = match with_ptx.filter(|(ptx, _)| !known.contains(&keys[*ptx])) {
                    Some((ptx, both)) => (format!("{target} and {}", each[ptx].0), Some(keys[ptx]), both),
                    None => (target.clone(), None, gencode.clone()),
                };
                known.extend([keys[at]].into_iter().chain(ptx));
                units.push(Unit {
                    key: keys[at],
                    job: index,
                    target,
                    ptx,
                    arguments: arguments(gencode),
                    text: text.clone(),
                });
            }
            needs.push(keys);
        }
        (units, needs)
    }

    /// The inputs of an image besides the text and the arguments.
    fn identity(&self) -> Vec<String> {
        let mut parts = vec![
            "nvcc".to_string(),
            self.nvcc.version.to_string(),
            self.nvcc.build.clone(),
        ];
        // A file beside nvcc, where an administrator can set flags; its paths are relative.
        let profile = fs::read(self.nvcc.path.with_file_name("nvcc.profile")).unwrap_or_default();
        parts.push(hex(&digest(&[profile])));
        for name in VARIABLES {
            if let Some(value) = self.environment.get(name) {
                parts.push(format!("{name}={}", value.to_string_lossy()));
            }
        }
        parts
    }
}

/// The text with `#line` before each line of the kernel's, so that the machine code names the kernel file.
fn with_line_directives(job: &Job) -> String {
    let mut text = String::with_capacity(job.text.len() * 2);
    let mut directed = false;
    for (at, line) in job.text.lines().enumerate() {
        let place = job.lines.get(at).and_then(|span| job.sources.locate(*span));
        match place {
            Some(place) => {
                let file = place.file.replace('\\', "/").replace('"', "'");
                text.push_str(&format!("#line {} \"{file}\"\n", place.line));
                directed = true;
            }
            None if directed => {
                text.push_str(&format!("#line {} \"{FILE}\"\n", at + 1));
                directed = false;
            }
            None => {}
        }
        text.push_str(line);
        text.push('\n');
    }
    text
}

/// Reports the progress of a long build.
struct Progress<'a> {
    say: &'a (dyn Fn(&str) + Sync),
    total: usize,
    done: AtomicUsize,
    start: Instant,
    slowest: Mutex<(Duration, String)>,
    said: Mutex<Duration>,
}

/// Builds shorter than this report nothing, longer ones at this interval.
const SAY_EVERY: Duration = Duration::from_secs(5);

impl<'a> Progress<'a> {
    fn new(say: &'a (dyn Fn(&str) + Sync), total: usize) -> Progress<'a> {
        Progress {
            say,
            total,
            done: AtomicUsize::new(0),
            start: Instant::now(),
            slowest: Mutex::default(),
            said: Mutex::default(),
        }
    }

    fn done(&self, what: &str, target: &str, result: &Result<Ran, Failed>) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        if let (Ok(ran), Ok(mut slowest)) = (result, self.slowest.lock())
            && ran.time > slowest.0
        {
            *slowest = (ran.time, format!("{what} for {target}"));
        }
        let elapsed = self.start.elapsed();
        if let Ok(mut said) = self.said.lock()
            && elapsed >= *said + SAY_EVERY
        {
            *said = elapsed;
            (self.say)(&format!("tirx: {done} of {} images", self.total));
        }
    }

    fn end(&self) {
        let elapsed = self.start.elapsed();
        if elapsed >= SAY_EVERY
            && let Ok(slowest) = self.slowest.lock()
        {
            (self.say)(&format!(
                "tirx: {} images in {:.1} s; the slowest was {} with {:.1} s",
                self.total,
                elapsed.as_secs_f64(),
                slowest.1,
                slowest.0.as_secs_f64()
            ));
        }
    }
}

/// Writes a file unless it already has that content, so that its modification time shows real changes. The write is
/// atomic.
pub(crate) fn write_if_changed(path: &Path, content: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|old| old == content) {
        return Ok(());
    }
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".new");
    let temporary = path.with_file_name(name);
    fs::write(&temporary, content)
        .and_then(|()| fs::rename(&temporary, path))
        .map_err(|error| Error::io("write", path, &error))
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::io("remove", path, &error)),
        _ => Ok(()),
    }
}

/// Deletes files of earlier builds that are not in `keep`.
pub(crate) fn sweep(folder: &Path, keep: &[String]) -> Result<()> {
    let entries = fs::read_dir(folder).map_err(|error| Error::io("read", folder, &error))?;
    let mut stale: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            let name = path
                .file_name()
                .map(|n| n.to_string_lossy().into_owned())
                .unwrap_or_default();
            path.is_file() && !keep.contains(&name)
        })
        .collect();
    stale.sort();
    stale.iter().try_for_each(|path| remove(path))
}

/// A warning without the level at its beginning: Cargo adds it.
pub(crate) fn warning_line(message: &Message) -> String {
    message
        .short()
        .replacen(&format!("{}: ", Level::Warning.name()), "", 1)
}

/// The features of a kernel that an nvcc does not know.
fn unknown(nvcc: &Nvcc, since: &[Since], sources: &SourceMap) -> Vec<Error> {
    let version = nvcc.version;
    let later = since
        .iter()
        .filter(|since| since.release > (version.major, version.minor));
    let error = |since: &Since| {
        let error = Error::from_diagnostics(&since.error.clone().into(), sources);
        error.note(format_args!("this is nvcc {version}, {}", nvcc.path.display()))
    };
    later.map(error).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Entry;
    use crate::toolchain::Version;
    use tirx_core::diagnostic::Diagnostic;

    #[test]
    fn what_an_nvcc_does_not_know_is_an_error_before_it_runs() {
        let since = [Since {
            release: (13, 2),
            error: Diagnostic::new(Span::NONE, "`T.x` needs CUDA 13.2 or later"),
        }];
        let by = |version| {
            let nvcc = Nvcc {
                path: "bin/nvcc".into(),
                version,
                build: String::new(),
                origin: String::new(),
            };
            unknown(&nvcc, &since, &SourceMap::default())
        };
        let errors = by(Version::new(13, 1));
        assert_eq!(errors.len(), 1);
        let text = errors[0].to_string();
        assert!(
            text.contains("needs CUDA 13.2") && text.contains("this is nvcc 13.1, bin/nvcc"),
            "{text}"
        );
        assert!(by(Version::new(13, 2)).is_empty() && by(Version::new(14, 0)).is_empty());
    }

    #[test]
    fn a_long_build_says_how_far_it_is_and_what_took_longest() {
        let said = Mutex::new(Vec::new());
        let say = |line: &str| said.lock().unwrap().push(line.to_string());
        let ran = |seconds| {
            Ok(Ran {
                entry: Entry {
                    image: Vec::new(),
                    messages: String::new(),
                },
                ptx: None,
                compiled: true,
                time: Duration::from_secs(seconds),
            })
        };
        let mut progress = Progress::new(&say, 3);
        progress.done("kernel `add`", "sm_90a", &ran(1));
        assert!(said.lock().unwrap().is_empty(), "a short build says nothing");
        progress.start = Instant::now().checked_sub(SAY_EVERY * 2).unwrap();
        progress.done("kernel `scale`", "sm_100a", &ran(8));
        progress.done("kernel `add`", "sm_100a", &ran(2));
        progress.end();
        let said = said.into_inner().unwrap();
        assert_eq!(
            (said.len(), said[0].as_str()),
            (2, "tirx: 2 of 3 images"),
            "{said:?}"
        );
        let last = "the slowest was kernel `scale` for sm_100a with 8.0 s";
        assert!(
            said[1].starts_with("tirx: 3 images in 10.") && said[1].ends_with(last),
            "{said:?}"
        );
    }
}
