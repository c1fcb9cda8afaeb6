//! Finding an nvcc.
//!
//! The order, first match wins:
//!
//! 1. `TIRX_NVCC`: a path; `none` says that there is none.
//! 2. `NVCC`: a path, or a command on `PATH`.
//! 3. `CUDA_HOME`, then `CUDA_PATH`: `bin/nvcc` below it.
//! 4. `PATH`.
//! 5. pip's `nvidia/cu*/bin/nvcc`: of the active virtual environment, of `python3`, of the toolchains that
//!    [`install`](super::install()) fetched.
//! 6. `/usr/local/cuda`, `/usr/local/cuda-*` (newest first), `/opt/cuda`; on Windows
//!    `%ProgramFiles%/NVIDIA GPU Computing Toolkit/CUDA/v*` (newest first).
//!
//! The first two are explicit: an nvcc there that does not run, or has the wrong release, is an error. The others are
//! searched: an nvcc there of a release that the pin or a target excludes is skipped, and named in the error if none is
//! found.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::{Nvcc, Pin, Version, install};
use crate::environment::Environment;
use crate::error::Error;
use crate::process;

/// What to look for, and where.
#[derive(Clone, Debug)]
pub struct Search<'a> {
    /// The variables that say where to look.
    pub environment: &'a Environment,
    /// The release it must be of.
    pub pin: Option<Pin>,
    /// The oldest release that can do the job, with the target that needs it.
    pub needs: Option<(String, Version)>,
    /// Directories with an installed toolkit, `bin/nvcc` below each; `None` for the usual ones.
    pub prefixes: Option<Vec<PathBuf>>,
}

/// The outcome of a search.
#[derive(Clone, Debug)]
pub enum Discovered {
    /// The nvcc to use.
    Found(Nvcc),
    /// There is none at all.
    Nothing,
    /// `TIRX_NVCC=none` says that none is to be used.
    Refused,
    /// There are some, but none is suitable; the error gives the reasons.
    Unsuitable(Error),
}

/// Looks for an nvcc. An error where a variable names one that cannot be used.
pub fn discover(search: &Search<'_>) -> Result<Discovered, Error> {
    let environment = search.environment;
    if let Some(named) = environment.get("TIRX_NVCC") {
        if named == "none" {
            return Ok(Discovered::Refused);
        }
        return named_nvcc(search, "TIRX_NVCC", PathBuf::from(named)).map(Discovered::Found);
    }
    if let Some(named) = environment.path("NVCC") {
        let path = if named.components().count() == 1 {
            on_path(environment, &named.to_string_lossy()).unwrap_or(named)
        } else {
            named
        };
        return named_nvcc(search, "NVCC", path).map(Discovered::Found);
    }
    let mut passed_over = Vec::new();
    for (origin, path) in places(search) {
        let candidate = examine(search, origin, path);
        match candidate.verdict {
            Ok(nvcc) => return Ok(Discovered::Found(nvcc)),
            Err(reason) => passed_over.push((candidate.shown, reason)),
        }
    }
    if passed_over.is_empty() {
        return Ok(Discovered::Nothing);
    }
    let wanted = match (search.pin, &search.needs) {
        (Some(pin), _) => format!("CUDA {pin}, as the manifest pins it"),
        (None, Some((target, version))) => format!("CUDA {version} or newer, which {target} needs"),
        (None, None) => "a working one".to_string(),
    };
    let mut error = Error::new(format_args!("no suitable nvcc was found; wanted {wanted}"));
    for (what, reason) in passed_over {
        error = error.note(format_args!("{what}: {reason}"));
    }
    Ok(Discovered::Unsuitable(error.help(install_help(search.pin))))
}

/// A candidate.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Its description in messages: release, path and origin, as far as they are known.
    pub shown: String,
    /// The nvcc, or why it cannot be used.
    pub verdict: Result<Nvcc, String>,
}

/// All candidates in the order of [`discover`], which uses the first suitable one.
pub fn survey(search: &Search<'_>) -> Vec<Candidate> {
    let environment = search.environment;
    let named = ["TIRX_NVCC", "NVCC"].into_iter().find_map(|variable| {
        let path = environment.path(variable)?;
        let path = match path.components().count() {
            1 => on_path(environment, &path.to_string_lossy()).unwrap_or(path),
            _ => path,
        };
        Some((variable.to_string(), path))
    });
    match named {
        Some((_, path)) if path.as_os_str() == "none" => Vec::new(),
        Some((origin, path)) => vec![examine(search, origin, path)],
        None => places(search)
            .map(|(origin, path)| examine(search, origin, path))
            .collect(),
    }
}

/// The places where an nvcc may be, with their names. Running python3 takes time, so it is delayed until its candidates
/// are needed.
fn places<'a>(search: &'a Search<'_>) -> impl Iterator<Item = (String, PathBuf)> + 'a {
    let environment = search.environment;
    let on_path = move || on_path(environment, "nvcc").map(|path| ("PATH".to_string(), path));
    std::iter::once_with(move || home_candidates(environment))
        .chain(std::iter::once_with(move || on_path().into_iter().collect()))
        .chain(std::iter::once_with(move || pip_candidates(environment)))
        .chain(std::iter::once_with(move || prefix_candidates(search)))
        .flatten()
}

fn examine(search: &Search<'_>, origin: String, path: PathBuf) -> Candidate {
    match ask_version(&path, &origin, search.environment) {
        Ok(nvcc) => Candidate {
            shown: nvcc.to_string(),
            verdict: match unsuitable(search, &nvcc) {
                None => Ok(nvcc),
                Some(reason) => Err(reason),
            },
        },
        Err(reason) => Candidate {
            shown: format!("`{}` (from {origin})", path.display()),
            verdict: Err(reason),
        },
    }
}

/// How to install an nvcc, in one line.
pub(crate) fn install_help(pin: Option<Pin>) -> String {
    let option = pin.map_or(String::new(), |pin| format!(" --cuda {pin}"));
    format!("run `cargo tirx toolchain install{option}`, or set TIRX_NVCC to the nvcc to use")
}

fn named_nvcc(search: &Search<'_>, variable: &str, path: PathBuf) -> Result<Nvcc, Error> {
    let nvcc = ask_version(&path, variable, search.environment)
        .map_err(|reason| Error::new(format_args!("{variable} names `{}`: {reason}", path.display())))?;
    match unsuitable(search, &nvcc) {
        None => Ok(nvcc),
        Some(reason) => Err(Error::new(format_args!(
            "{variable} names `{}`: {reason}",
            path.display()
        ))),
    }
}

/// The reason why an nvcc is not suitable, if it is not.
fn unsuitable(search: &Search<'_>, nvcc: &Nvcc) -> Option<String> {
    if let Some(pin) = search.pin.filter(|pin| !pin.accepts(nvcc.version)) {
        return Some(format!("it is CUDA {}, the manifest pins {pin}", nvcc.version));
    }
    match &search.needs {
        Some((target, needed)) if nvcc.version < *needed => Some(format!(
            "it is CUDA {}, too old for {target}, which needs {needed} or newer",
            nvcc.version
        )),
        _ => None,
    }
}

/// Runs `nvcc --version`. The error is a reason that follows the path in a message.
pub(super) fn ask_version(path: &Path, origin: &str, environment: &Environment) -> Result<Nvcc, String> {
    /// Far more time than it needs.
    const LIMIT: Duration = Duration::from_secs(30);
    let set = environment
        .peek("TIRX_NVCC_TIMEOUT")
        .and_then(|text| text.to_str()?.parse().ok());
    let set = set.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let limit = set.map_or(LIMIT, |set| set.min(LIMIT));
    let mut command = Command::new(path);
    let finished = process::run(command.arg("--version"), Some(limit), &mut |_| {})
        .map_err(|error| format!("it cannot be run: {error}"))?;
    let Some(status) = finished.status else {
        return Err(format!(
            "it does not answer `--version` within {} s",
            limit.as_secs_f64()
        ));
    };
    let text = finished.stdout;
    let version = Version::from_nvcc(&text)
        .filter(|_| status.success())
        .ok_or("it does not answer `--version` as nvcc does")?;
    let build = text
        .split_whitespace()
        .rfind(|word| word.starts_with('V') && word.contains('.'))
        .unwrap_or_default();
    Ok(Nvcc {
        path: path.to_path_buf(),
        version,
        build: build.to_string(),
        origin: origin.to_string(),
    })
}

/// The file of a command on `PATH`.
pub(super) fn on_path(environment: &Environment, command: &str) -> Option<PathBuf> {
    let path = environment.get("PATH")?;
    std::env::split_paths(&path)
        .map(|dir| dir.join(format!("{command}{}", std::env::consts::EXE_SUFFIX)))
        .find(|file| is_program(file))
}

#[cfg(unix)]
fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata()
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(file: &Path) -> bool {
    file.is_file()
}

fn nvcc_below(root: &Path) -> PathBuf {
    root.join("bin")
        .join(format!("nvcc{}", std::env::consts::EXE_SUFFIX))
}

fn home_candidates(environment: &Environment) -> Vec<(String, PathBuf)> {
    ["CUDA_HOME", "CUDA_PATH"]
        .into_iter()
        .filter_map(|variable| Some((variable.to_string(), nvcc_below(&environment.path(variable)?))))
        .filter(|(_, file)| file.is_file())
        .collect()
}

/// `nvidia/cu*/bin/nvcc` in directories where pip puts packages, newest release first.
pub(super) fn in_site_packages(site: &Path) -> Vec<PathBuf> {
    let mut found: Vec<(u32, PathBuf)> = std::fs::read_dir(site.join("nvidia"))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let release = name.strip_prefix("cu")?.parse().ok()?;
            let file = nvcc_below(&entry.path());
            file.is_file().then_some((release, file))
        })
        .collect();
    found.sort_by_key(|(release, _)| std::cmp::Reverse(*release));
    found.into_iter().map(|(_, file)| file).collect()
}

fn pip_candidates(environment: &Environment) -> Vec<(String, PathBuf)> {
    let mut sites: Vec<(String, PathBuf)> = Vec::new();
    // `lib/python3.11/site-packages`; on Windows `Lib/site-packages`.
    let lib = |root: &Path| {
        let lib = root.join(if cfg!(windows) { "Lib" } else { "lib" });
        let versions = std::fs::read_dir(&lib).into_iter().flatten().flatten();
        let mut found: Vec<PathBuf> = std::iter::once(lib)
            .chain(versions.map(|entry| entry.path()))
            .map(|folder| folder.join("site-packages"))
            .filter(|site| site.is_dir())
            .collect();
        found.sort();
        found
    };
    if let Some(root) = environment.path("VIRTUAL_ENV") {
        sites.extend(
            lib(&root)
                .into_iter()
                .map(|site| ("VIRTUAL_ENV".to_string(), site)),
        );
    }
    sites.extend(
        python_sites(environment)
            .into_iter()
            .map(|site| ("pip".to_string(), site)),
    );
    let mut found: Vec<(String, PathBuf)> = sites
        .iter()
        .flat_map(|(origin, site)| {
            in_site_packages(site)
                .into_iter()
                .map(move |file| (origin.clone(), file))
        })
        .collect();
    found.extend(
        install::cached(environment)
            .into_iter()
            .map(|file| ("cargo tirx toolchain".to_string(), file)),
    );
    found
}

/// The directories where `python3` looks for packages.
fn python_sites(environment: &Environment) -> Vec<PathBuf> {
    let Some(python) = install::python(environment) else {
        return Vec::new();
    };
    const SCRIPT: &str = "import site, sysconfig\n\
        print(sysconfig.get_paths()['purelib'])\n\
        [print(p) for p in getattr(site, 'getsitepackages', list)()]\n\
        print(getattr(site, 'getusersitepackages', str)())";
    let output = Command::new(python)
        .args(["-c", SCRIPT])
        .env_clear()
        .envs(environment.variables())
        .output();
    let Ok(output) = output else { return Vec::new() };
    let mut sites: Vec<PathBuf> = Vec::new();
    for line in String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter(|l| !l.is_empty())
    {
        let site = PathBuf::from(line);
        if !sites.contains(&site) {
            sites.push(site);
        }
    }
    sites
}

fn prefix_candidates(search: &Search<'_>) -> Vec<(String, PathBuf)> {
    let prefixes = match &search.prefixes {
        Some(prefixes) => prefixes.clone(),
        None => usual_prefixes(search.environment),
    };
    prefixes
        .into_iter()
        .map(|prefix| (prefix.display().to_string(), nvcc_below(&prefix)))
        .filter(|(_, file)| file.is_file())
        .collect()
}

/// Where the toolkit's installers put it: `/usr/local/cuda`, the numbered ones beside it from new to old, `/opt/cuda`;
/// on Windows `NVIDIA GPU Computing Toolkit/CUDA/v*` below the folder of programs.
fn usual_prefixes(environment: &Environment) -> Vec<PathBuf> {
    if cfg!(windows) {
        let programs = environment
            .path("ProgramFiles")
            .unwrap_or_else(|| PathBuf::from("C:/Program Files"));
        return numbered(&programs.join("NVIDIA GPU Computing Toolkit").join("CUDA"), "v");
    }
    let mut all = vec![PathBuf::from("/usr/local/cuda")];
    all.extend(numbered(Path::new("/usr/local"), "cuda-"));
    all.push(PathBuf::from("/opt/cuda"));
    all
}

/// The entries of a folder whose names are `prefix` and a release, from new to old.
fn numbered(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let mut found: Vec<(Version, PathBuf)> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let (major, minor) = name.strip_prefix(prefix)?.split_once('.')?;
            Some((
                Version::new(major.parse().ok()?, minor.parse().ok()?),
                entry.path(),
            ))
        })
        .collect();
    found.sort_by_key(|(version, _)| std::cmp::Reverse(*version));
    found.into_iter().map(|(_, path)| path).collect()
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;

    use tirx_test_tools::stand_in;

    use super::*;

    /// A folder of fake toolkits.
    struct Toolkits(tempfile::TempDir);

    impl Toolkits {
        fn new() -> Toolkits {
            Toolkits(tempfile::tempdir().unwrap())
        }

        /// A script at `path` that behaves as the nvcc of `release`.
        fn nvcc(&self, path: &str, release: &str) -> PathBuf {
            self.script(
                path,
                &format!("echo 'Cuda compilation tools, release {release}, V{release}.88'"),
            )
        }

        fn script(&self, path: &str, body: &str) -> PathBuf {
            stand_in::script(self.0.path().join(path), body)
        }

        /// A site-packages folder below `path`, as the answer of a fake python3 in `python/`.
        fn python(&self, site: &str) {
            let site = self.0.path().join(site);
            self.script("python/python3", &format!("echo {}", site.display()));
        }

        fn dir(&self, path: &str) -> PathBuf {
            self.0.path().join(path)
        }
    }

    #[test]
    fn numbered_toolkits_are_ordered_by_release() {
        let place = Toolkits::new();
        for name in ["v9.2", "v13.0", "v12.10", "v12.9", "bin", "vNext.1"] {
            fs::create_dir(place.dir(name)).unwrap();
        }
        let found = numbered(place.0.path(), "v");
        assert_eq!(
            found,
            ["v13.0", "v12.10", "v12.9", "v9.2"].map(|name| place.dir(name))
        );
        assert!(numbered(&place.dir("nowhere"), "v").is_empty());
    }

    fn search<'a>(environment: &'a Environment, place: &Toolkits) -> Search<'a> {
        Search {
            environment,
            pin: None,
            needs: None,
            prefixes: Some(vec![place.dir("prefix")]),
        }
    }

    fn found(search: &Search<'_>) -> Nvcc {
        match discover(search).unwrap() {
            Discovered::Found(nvcc) => nvcc,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_order_is_the_documented_one() {
        let place = Toolkits::new();
        let named = place.nvcc("named/nvcc", "13.0");
        let other = place.nvcc("other/my-nvcc", "13.1");
        place.nvcc("home/bin/nvcc", "13.2");
        place.nvcc("cuda_path/bin/nvcc", "13.3");
        place.nvcc("path/nvcc", "13.4");
        place.nvcc("site/nvidia/cu13/bin/nvcc", "13.5");
        place.nvcc("cache/toolchains/cuda-13.6/nvidia/cu13/bin/nvcc", "13.6");
        place.nvcc("prefix/bin/nvcc", "13.7");
        place.python("site");
        let path = std::env::join_paths([
            place.dir("path"),
            place.dir("python"),
            place.dir("other"),
            "/bin".into(),
        ]);
        let all = Environment::empty()
            .with("TIRX_NVCC", &named)
            .with("NVCC", &other)
            .with("CUDA_HOME", place.dir("home"))
            .with("CUDA_PATH", place.dir("cuda_path"))
            .with("PATH", path.unwrap())
            .with("TIRX_CACHE_DIR", place.dir("cache"));
        let steps: [(&str, &str, &dyn Fn()); 8] = [
            ("13.0", "TIRX_NVCC", &|| {}),
            ("13.1", "NVCC", &|| {}),
            ("13.2", "CUDA_HOME", &|| {}),
            ("13.3", "CUDA_PATH", &|| {}),
            ("13.4", "PATH", &|| fs::remove_dir_all(place.dir("path")).unwrap()),
            ("13.5", "pip", &|| fs::remove_dir_all(place.dir("site")).unwrap()),
            ("13.6", "cargo tirx toolchain", &|| {
                fs::remove_dir_all(place.dir("cache")).unwrap()
            }),
            ("13.7", "prefix", &|| {
                fs::remove_dir_all(place.dir("prefix")).unwrap()
            }),
        ];
        let mut environment = all;
        for (release, origin, remove) in steps {
            let nvcc = found(&search(&environment, &place));
            assert_eq!(nvcc.version.to_string(), release, "{origin}");
            assert!(nvcc.origin.ends_with(origin), "{} is not {origin}", nvcc.origin);
            environment =
                environment.without(origin.split(' ').next().filter(|o| *o != "PATH").unwrap_or(""));
            remove();
        }
        assert!(matches!(
            discover(&search(&environment, &place)),
            Ok(Discovered::Nothing)
        ));
    }

    #[test]
    fn a_command_name_in_nvcc_is_looked_up() {
        let place = Toolkits::new();
        place.nvcc("other/nvcc-13.1", "13.1");
        let environment = Environment::empty()
            .with("NVCC", "nvcc-13.1")
            .with("PATH", place.dir("other"));
        assert_eq!(
            found(&search(&environment, &place)).path,
            place.dir("other/nvcc-13.1")
        );
    }

    #[test]
    fn a_named_nvcc_that_cannot_be_used_is_an_error() {
        let place = Toolkits::new();
        let message = |environment: &Environment, pin: Option<&str>, needs: Option<(&str, Version)>| {
            let mut search = search(environment, &place);
            search.pin = pin.map(|p| p.parse().unwrap());
            search.needs = needs.map(|(target, version)| (target.to_string(), version));
            discover(&search).unwrap_err().to_string()
        };
        let missing = Environment::empty().with("TIRX_NVCC", place.dir("nowhere/nvcc"));
        let text = message(&missing, None, None);
        assert!(
            text.contains("TIRX_NVCC names `") && text.contains("cannot be run"),
            "{text}"
        );
        let odd = Environment::empty().with("NVCC", place.script("odd/nvcc", "echo hello"));
        assert!(message(&odd, None, None).contains("does not answer `--version` as nvcc does"));
        let failing = place.script("bad/nvcc", "echo release 13.0, V13; exit 3");
        let failing = Environment::empty().with("TIRX_NVCC", failing);
        assert!(message(&failing, None, None).contains("does not answer"));
        let old = Environment::empty().with("TIRX_NVCC", place.nvcc("old/nvcc", "12.4"));
        let text = message(&old, None, Some(("sm_100a", Version::new(12, 8))));
        assert!(
            text.contains("it is CUDA 12.4, too old for sm_100a, which needs 12.8 or newer"),
            "{text}"
        );
        assert!(message(&old, Some("13.0"), None).contains("it is CUDA 12.4, the manifest pins 13.0"));
    }

    #[test]
    fn unsuitable_ones_are_passed_over_and_named_at_the_end() {
        let place = Toolkits::new();
        place.nvcc("home/bin/nvcc", "12.4");
        place.nvcc("prefix/bin/nvcc", "13.0");
        let environment = Environment::empty().with("CUDA_HOME", place.dir("home"));
        let mut wanted = search(&environment, &place);
        wanted.pin = Some("13.0".parse().unwrap());
        assert_eq!(found(&wanted).version, Version::new(13, 0));
        wanted.pin = Some("13.1".parse().unwrap());
        let Ok(Discovered::Unsuitable(error)) = discover(&wanted) else {
            panic!()
        };
        let text = error.to_string();
        assert!(
            text.contains("no suitable nvcc was found; wanted CUDA 13.1"),
            "{text}"
        );
        assert!(
            text.contains("it is CUDA 12.4") && text.contains("it is CUDA 13.0"),
            "{text}"
        );
        assert!(
            text.contains("cargo tirx toolchain install --cuda 13.1"),
            "{text}"
        );
    }

    #[test]
    fn what_was_wanted_is_said() {
        let place = Toolkits::new();
        place.nvcc("home/bin/nvcc", "12.4");
        let environment = Environment::empty().with("CUDA_HOME", place.dir("home"));
        let message = |search: &Search<'_>| match discover(search) {
            Ok(Discovered::Unsuitable(error)) => error.to_string(),
            other => panic!("{other:?}"),
        };
        let mut wanted = search(&environment, &place);
        wanted.needs = Some(("sm_100a".into(), Version::new(12, 8)));
        let text = message(&wanted);
        for part in [
            "no suitable nvcc was found; wanted CUDA 12.8 or newer, which sm_100a needs",
            "(from CUDA_HOME): it is CUDA 12.4, too old for sm_100a, which needs 12.8 or newer",
            "= help: run `cargo tirx toolchain install`, or set TIRX_NVCC to the nvcc to use",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        place.script("home/bin/nvcc", "exit 3");
        let text = message(&search(&environment, &place));
        for part in [
            "no suitable nvcc was found; wanted a working one",
            "(from CUDA_HOME): it does not answer `--version` as nvcc does",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn none_means_none() {
        let place = Toolkits::new();
        place.nvcc("prefix/bin/nvcc", "13.0");
        let environment = Environment::empty().with("TIRX_NVCC", "none");
        assert!(matches!(
            discover(&search(&environment, &place)),
            Ok(Discovered::Refused)
        ));
    }
}
