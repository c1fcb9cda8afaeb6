//! One run of nvcc: looks in the store, runs nvcc in a folder of its own, and checks its output.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use super::host_compiler;
use super::messages::FILE;
use super::{Job, Unit, VARIABLES};
use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::process;
use crate::store::{Entry, Store};
use crate::toolchain::Nvcc;
use tirx_bundle::fatbin;

/// Default time after which a running nvcc is reported.
const SLOW: Duration = Duration::from_secs(20);

/// A name of the folder that a process runs in, on Linux.
const HERE: &str = "/proc/self/cwd";

/// Whether an argument makes nvcc write line tables.
fn names_lines(argument: &str) -> bool {
    ["-lineinfo", "--generate-line-info", "-G", "--device-debug"].contains(&argument)
}

/// State shared by all runs of a build.
pub(super) struct Runner<'a> {
    pub(super) nvcc: &'a Nvcc,
    pub(super) store: &'a Store,
    pub(super) work: &'a Path,
    pub(super) say: &'a (dyn Fn(&str) + Sync),
    limit: Option<Duration>,
    /// Time after which a running nvcc is reported.
    slow: Duration,
    wrapper: Option<PathBuf>,
    /// The variables that nvcc reads, from the build's environment.
    variables: Vec<(&'static str, Option<OsString>)>,
}

impl<'a> Runner<'a> {
    pub(super) fn new(compilation: &super::Compilation<'a>) -> Result<Runner<'a>> {
        let environment = compilation.environment;
        Ok(Runner {
            nvcc: compilation.nvcc,
            store: compilation.store,
            work: compilation.work,
            say: compilation.say,
            limit: time_limit(environment)?,
            slow: SLOW,
            wrapper: environment.path_peek("TIRX_NVCC_WRAPPER"),
            variables: VARIABLES.map(|name| (name, environment.get(name))).to_vec(),
        })
    }

    pub(super) fn unit(&self, unit: &Unit, job: &Job, index: usize) -> Result<Ran, Failed> {
        let start = Instant::now();
        let ran = |(entry, ptx), compiled| Ran {
            entry,
            ptx,
            compiled,
            time: start.elapsed(),
        };
        let stored = || {
            let entry = self.store.get(&unit.key)?;
            Some(match &unit.ptx {
                Some(key) => (entry, Some(self.store.get(key)?)),
                None => (entry, None),
            })
        };
        if let Some(entries) = stored() {
            return Ok(ran(entries, false));
        }
        let _made_by_one = self.store.lock(&unit.key);
        if let Some(entries) = stored() {
            return Ok(ran(entries, false));
        }
        let folder = self.work.join(index.to_string());
        let entry = self.compile(unit, job, &folder)?;
        let _ = fs::remove_dir_all(&folder);
        let entries = match unit.ptx {
            Some(_) => divided(&entry)?,
            None => (entry, None),
        };
        self.store.put(&unit.key, &entries.0);
        if let (Some(key), Some(ptx)) = (&unit.ptx, &entries.1) {
            self.store.put(key, ptx);
        }
        Ok(ran(entries, true))
    }

    fn compile(&self, unit: &Unit, job: &Job, folder: &Path) -> Result<Entry, Failed> {
        const OUTPUT: &str = "kernel.fatbin";
        let other = |error: Error| Failed::Other(error);
        fs::create_dir_all(folder).map_err(|e| other(Error::io("create", folder, &e)))?;
        let source = folder.join(FILE);
        fs::write(&source, &unit.text).map_err(|e| other(Error::io("write", &source, &e)))?;
        // Line tables contain the source's modification time: it is set to a constant.
        let _ = fs::File::open(&source).and_then(|file| file.set_modified(SystemTime::UNIX_EPOCH));
        let mut command = match &self.wrapper {
            Some(wrapper) => {
                let mut command = Command::new(wrapper);
                command.arg(&self.nvcc.path);
                command
            }
            None => Command::new(&self.nvcc.path),
        };
        command
            // Relative names, so that the image does not depend on the folder.
            .current_dir(folder)
            .args(&unit.arguments)
            .args(["-o", OUTPUT, FILE]);
        host_compiler::prepare(&mut command, &self.variables);
        // Line tables also contain the current folder. This name of it is the same everywhere, and a profiler that is
        // started in the manifest's folder resolves it to the kernel file.
        if unit.arguments.iter().any(|argument| names_lines(argument)) && Path::new(HERE).is_dir() {
            command.env("PWD", HERE);
        }
        for (name, value) in &self.variables {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let mut next_note = self.slow;
        let program = Path::new(command.get_program()).to_path_buf();
        let finished = process::run(&mut command, self.limit, &mut |elapsed| {
            if elapsed >= next_note {
                (self.say)(&format!(
                    "tirx: nvcc has been compiling {} for {} for {} s (process {}); TIRX_NVCC_TIMEOUT=<seconds> limits it",
                    job.what,
                    unit.target,
                    elapsed.as_secs(),
                    program.display(),
                ));
                next_note *= 2;
            }
        });
        let finished = finished.map_err(|error| other(Error::io("run", &program, &error)))?;
        let said = [finished.stderr, finished.stdout].concat();
        match finished.status {
            None => {
                let seconds = self.limit.unwrap_or_default().as_secs_f64();
                let error = Error::new(format_args!("nvcc did not end within {seconds} s"));
                return Err(other(error.help("TIRX_NVCC_TIMEOUT sets the limit, in seconds")));
            }
            Some(status) if !status.success() => {
                return Err(Failed::Said(match said.trim().is_empty() {
                    true => format!("nvcc fatal : {status}, without a message"),
                    false => said,
                }));
            }
            Some(_) => {}
        }
        let image = fs::read(folder.join(OUTPUT)).unwrap_or_default();
        if let Err(reason) = fatbin::check(&image) {
            let reason = match image.is_empty() && !folder.join(OUTPUT).is_file() {
                true => "wrote no output".to_string(),
                false => format!("wrote an output that {reason}"),
            };
            let mut error = Error::new(format_args!("nvcc ended without an error, but {reason}"));
            for (name, value) in &self.variables {
                if let Some(value) = value.as_ref().filter(|_| name.ends_with("_FLAGS")) {
                    error = error.note(format_args!("{name} is `{}`", value.to_string_lossy()));
                }
            }
            if let Some(wrapper) = &self.wrapper {
                error = error.note(format_args!("TIRX_NVCC_WRAPPER is `{}`", wrapper.display()));
            }
            return Err(other(error));
        }
        Ok(Entry {
            image,
            messages: said,
        })
    }
}

/// The machine code and the PTX of a run that made both, each as a run of its own makes it. A run for PTX has no messages of ptxas.
fn divided(both: &Entry) -> Result<(Entry, Option<Entry>), Failed> {
    let part = |ptx| {
        let image = fatbin::part(&both.image, ptx).map_err(|reason| {
            Failed::Other(Error::new(format_args!(
                "nvcc was asked for machine code and PTX, but its output {reason}"
            )))
        })?;
        let lines = both.messages.split_inclusive('\n');
        let messages = lines.filter(|line| !(ptx && line.starts_with("ptxas"))).collect();
        Ok(Entry { image, messages })
    };
    Ok((part(false)?, Some(part(true)?)))
}

/// A unit that succeeded.
pub(super) struct Ran {
    pub(super) entry: Entry,
    /// The PTX, if the unit makes both.
    pub(super) ptx: Option<Entry>,
    /// Whether nvcc ran; otherwise a store had the result.
    pub(super) compiled: bool,
    pub(super) time: Duration,
}

/// A unit that failed.
pub(super) enum Failed {
    /// nvcc reported errors.
    Said(String),
    /// It could not be run, or wrote no valid output.
    Other(Error),
}

/// `TIRX_NVCC_TIMEOUT`, in seconds.
fn time_limit(environment: &Environment) -> Result<Option<Duration>> {
    let Some(text) = environment.peek("TIRX_NVCC_TIMEOUT") else {
        return Ok(None);
    };
    let seconds = text.to_str().and_then(|text| text.parse::<f64>().ok());
    match seconds
        .filter(|s| *s > 0.0)
        .and_then(|s| Duration::try_from_secs_f64(s).ok())
    {
        Some(limit) => Ok(Some(limit)),
        None => Err(Error::new(format_args!(
            "TIRX_NVCC_TIMEOUT is `{}`, which is no number of seconds",
            text.to_string_lossy()
        ))
        .help("for example TIRX_NVCC_TIMEOUT=300")),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::sync::Mutex;

    use tirx_core::source::SourceMap;
    use tirx_test_tools::stand_in;

    use super::super::Compilation;
    use super::*;
    use crate::hash::digest;
    use crate::toolchain::Version;

    #[test]
    fn a_run_that_takes_long_is_noted() {
        let dir = tempfile::tempdir().unwrap();
        let path = stand_in::script(dir.path().join("nvcc"), "sleep 0.6");
        let nvcc = Nvcc {
            path,
            version: Version::new(13, 0),
            build: "V13.0.88".into(),
            origin: "TIRX_NVCC".into(),
        };
        let environment = Environment::empty().with("TIRX_STORE", "none");
        let said = Mutex::new(Vec::new());
        let compilation = Compilation {
            nvcc: &nvcc,
            store: &Store::open(&environment, dir.path(), false),
            work: &dir.path().join("work"),
            environment: &environment,
            say: &|line| said.lock().unwrap().push(line.to_string()),
        };
        let job = Job {
            file: "add".into(),
            what: "kernel `add`".into(),
            place: None,
            text: String::new(),
            lines: Vec::new(),
            sources: SourceMap::new(),
            targets: Default::default(),
            options: Default::default(),
            since: Vec::new(),
        };
        let unit = Unit {
            key: digest(&["a key"]),
            job: 0,
            target: "sm_90a".into(),
            ptx: None,
            arguments: Vec::new(),
            text: String::new(),
        };
        let mut runner = Runner::new(&compilation).unwrap();
        assert_eq!(runner.slow, Duration::from_secs(20));
        runner.slow = Duration::from_millis(150);
        assert!(runner.unit(&unit, &job, 0).is_err(), "it wrote nothing");
        let said = said.into_inner().unwrap();
        // The interval between reports doubles.
        assert!((1..=3).contains(&said.len()), "{said:?}");
        for part in [
            "tirx: nvcc has been compiling kernel `add` for sm_90a for 0 s (process ",
            "/nvcc); TIRX_NVCC_TIMEOUT=<seconds> limits it",
        ] {
            assert!(said[0].contains(part), "{part}: {said:?}");
        }
    }
}
