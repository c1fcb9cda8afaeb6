//! Installs a pinned nvcc through pip into a per-user cache.
//!
//! ```text
//! <cache>/toolchains/cuda-13.0/nvidia/cu13/bin/nvcc     what pip unpacks
//! <cache>/installed/cuda-13.0                           written last: a small place for build scripts to watch
//! ```
//!
//! `<cache>` is `TIRX_CACHE_DIR`, else `$XDG_CACHE_HOME/tirx`, else the platform's place for caches. An installation
//! goes to a temporary directory under a lock and is renamed when complete, so a build never sees half of one.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use super::discover::{ask_version, in_site_packages, on_path};
use super::{Nvcc, Pin, Version};
use crate::environment::Environment;
use crate::error::Error;

/// The packages that make a working `nvcc -fatbin`, for each release: exact versions, and the hashes of their wheels, as
/// a requirements file of pip.
const PACKAGES: [(Version, &str); 4] = [
    (Version::new(13, 0), include_str!("packages/cuda-13.0.txt")),
    (Version::new(13, 1), include_str!("packages/cuda-13.1.txt")),
    (Version::new(13, 2), include_str!("packages/cuda-13.2.txt")),
    (Version::new(13, 3), include_str!("packages/cuda-13.3.txt")),
];

/// The size of an installation in megabytes, for those who wait for it.
const SIZE: u32 = 280;

/// Whether `TIRX_OFFLINE` forbids fetching anything.
pub(crate) fn offline(environment: &Environment) -> bool {
    environment.get("TIRX_OFFLINE").is_some_and(|value| value != "0")
}

/// Where tirx keeps downloaded files; `None` where the platform has no cache folder.
pub fn cache_dir(environment: &Environment) -> Option<PathBuf> {
    if let Some(dir) = environment.path("TIRX_CACHE_DIR") {
        return Some(dir);
    }
    if let Some(dir) = environment.path("XDG_CACHE_HOME").filter(|dir| dir.is_absolute()) {
        return Some(dir.join("tirx"));
    }
    if cfg!(windows) {
        return Some(environment.path("LOCALAPPDATA")?.join("tirx").join("cache"));
    }
    let home = environment.path("HOME")?;
    let below = if cfg!(target_os = "macos") {
        "Library/Caches"
    } else {
        ".cache"
    };
    Some(home.join(below).join("tirx"))
}

/// A small directory that changes when a toolchain is installed or removed.
pub fn stamp_dir(environment: &Environment) -> Option<PathBuf> {
    Some(cache_dir(environment)?.join("installed"))
}

/// The directory of [`stamp_dir`], created if necessary, for Cargo to watch.
pub(crate) fn watched_stamp_dir(environment: &Environment) -> Option<PathBuf> {
    let dir = stamp_dir(environment)?;
    if !dir.is_dir() {
        fs::create_dir_all(&dir).ok()?;
        backdate(&dir);
    }
    Some(dir)
}

/// Cargo reruns a build script when a file it watches is newer than the script's last start. The directory is therefore
/// given an old time, so that creating it does not cause a second build. If setting the time fails, it does.
fn backdate(path: &Path) {
    let past = SystemTime::UNIX_EPOCH + Duration::from_secs(24 * 60 * 60);
    let _ = fs::File::open(path).and_then(|file| file.set_modified(past));
}

fn toolchain_dir(cache: &Path, pin: Pin) -> PathBuf {
    cache.join("toolchains").join(format!("cuda-{pin}"))
}

/// The nvcc of every toolchain in the cache, newest first.
pub(super) fn cached(environment: &Environment) -> Vec<PathBuf> {
    let Some(cache) = cache_dir(environment) else {
        return Vec::new();
    };
    let mut toolchains: Vec<(Version, PathBuf)> = fs::read_dir(cache.join("toolchains"))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let name = name.strip_prefix("cuda-")?;
            let (major, minor) = name.split_once('.').unwrap_or((name, "0"));
            Some((
                Version::new(major.parse().ok()?, minor.parse().ok()?),
                entry.path(),
            ))
        })
        .collect();
    toolchains.sort_by_key(|(version, _)| std::cmp::Reverse(*version));
    toolchains
        .iter()
        .flat_map(|(_, dir)| in_site_packages(dir))
        .collect()
}

/// The toolchains in the cache that run, newest first.
pub fn installed(environment: &Environment) -> Vec<Nvcc> {
    let ask = |path: PathBuf| ask_version(&path, "cargo tirx toolchain", environment).ok();
    cached(environment).into_iter().filter_map(ask).collect()
}

/// Removes a toolchain from the cache; `false` where there is none of this release.
///
/// # Errors
/// It cannot be removed.
pub fn remove(environment: &Environment, pin: Pin) -> Result<bool, Error> {
    let Some(cache) = cache_dir(environment) else {
        return Ok(false);
    };
    let place = toolchain_dir(&cache, pin);
    if !place.is_dir() {
        return Ok(false);
    }
    // Builds watch this folder for changes.
    let stamp = cache.join("installed").join(format!("cuda-{pin}"));
    remove_tree(&place)?;
    match fs::remove_file(&stamp) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io("remove", &stamp, &error))
        }
        _ => Ok(true),
    }
}

/// The Python to use: `TIRX_PYTHON`, else `python3`, else `python`.
pub fn python(environment: &Environment) -> Option<PathBuf> {
    environment
        .path("TIRX_PYTHON")
        .or_else(|| on_path(environment, "python3"))
        .or_else(|| on_path(environment, "python"))
}

/// Installs the nvcc of a release into the per-user cache, unless it is there already. Needs Python with pip (or with
/// venv) and the network. `progress` receives one line per step.
pub fn install(environment: &Environment, pin: Pin, progress: &mut dyn FnMut(&str)) -> Result<Nvcc, Error> {
    let fail = |reason: String| Error::new(format_args!("cannot install nvcc {pin}: {reason}"));
    if pin.major() < 13 {
        let error = fail("pip has complete toolchains from CUDA 13.0 on".to_string());
        return Err(error.help("install the CUDA toolkit, or pin `cuda = \"13.0\"`"));
    }
    // The newest release that the pin accepts.
    let known = PACKAGES.iter().rfind(|(version, _)| pin.accepts(*version));
    let Some((_, packages)) = known else {
        let releases: Vec<String> = PACKAGES.iter().map(|(version, _)| version.to_string()).collect();
        let error = fail("the hashes of its packages are not known".to_string());
        return Err(error.help(format_args!(
            "this tirx knows the packages of {}; for another release, name an installed nvcc by TIRX_NVCC or PATH",
            releases.join(", ")
        )));
    };
    let cache = cache_dir(environment)
        .ok_or_else(|| fail("there is no cache directory; set TIRX_CACHE_DIR or HOME".to_string()))?;
    let place = toolchain_dir(&cache, pin);
    let parent = cache.join("toolchains");
    fs::create_dir_all(&parent).map_err(|e| Error::io("create", &parent, &e))?;

    // Held until the function ends, so that two builds on one machine install once.
    let lock_path = parent.join(format!(".cuda-{pin}.lock"));
    let lock = fs::File::create(&lock_path).map_err(|e| Error::io("create", &lock_path, &e))?;
    lock.lock().map_err(|e| Error::io("lock", &lock_path, &e))?;
    if let Some(nvcc) = usable(&place, environment) {
        return Ok(nvcc);
    }
    if offline(environment) {
        let error = fail("TIRX_OFFLINE forbids fetching it".to_string());
        return Err(error.help("unset TIRX_OFFLINE, or set TIRX_NVCC to an nvcc that is there"));
    }

    let python = python(environment)
        .ok_or_else(|| fail("there is no python3 on PATH".to_string()).help("pip comes with Python 3"))?;
    let work = parent.join(format!(".cuda-{pin}.new"));
    remove_tree(&work)?;
    fs::create_dir_all(&work).map_err(|e| Error::io("create", &work, &e))?;
    progress(&format!("fetching nvcc {pin} through pip"));
    progress(&format!("it takes about {SIZE} MB in `{}`", parent.display()));
    let result = fetch(environment, &python, packages, &work, progress).and_then(|()| {
        usable(&work.join("site"), environment)
            .ok_or_else(|| "the package that pip unpacked has no nvcc that runs".to_string())
    });
    if let Err(reason) = result {
        remove_tree(&work)?;
        return Err(fail(reason));
    }
    // The installation does not run, or `usable` would have found it.
    remove_tree(&place)?;
    fs::rename(work.join("site"), &place).map_err(|e| Error::io("rename into", &place, &e))?;
    remove_tree(&work)?;
    let nvcc = usable(&place, environment)
        .ok_or_else(|| fail("it does not run from its place in the cache".to_string()))?;

    backdate(&nvcc.path);
    nvcc.path.parent().into_iter().for_each(backdate);
    let stamps = cache.join("installed");
    let stamp = stamps.join(format!("cuda-{pin}"));
    fs::create_dir_all(&stamps)
        .and_then(|()| fs::write(&stamp, format!("{}\n", nvcc.build)))
        .map_err(|e| Error::io("write", &stamp, &e))?;
    let megabytes = bytes_in(&place).div_ceil(1_000_000);
    progress(&format!(
        "installed {nvcc}: {megabytes} MB in `{}`",
        place.display()
    ));
    Ok(nvcc)
}

fn usable(dir: &Path, environment: &Environment) -> Option<Nvcc> {
    in_site_packages(dir)
        .into_iter()
        .find_map(|file| ask_version(&file, "cargo tirx toolchain", environment).ok())
}

pub(super) fn remove_tree(dir: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::io("remove", dir, &error)),
        _ => Ok(()),
    }
}

/// Runs pip so that the packages are unpacked in `work/site`. The error is a reason.
pub(super) fn fetch(
    environment: &Environment,
    python: &Path,
    packages: &str,
    work: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<(), String> {
    let requirements = work.join("packages.txt");
    fs::write(&requirements, packages)
        .map_err(|error| format!("cannot write `{}`: {error}", requirements.display()))?;
    let mut arguments: Vec<OsString> = [
        "-m",
        "pip",
        "install",
        "--progress-bar",
        "off",
        "--no-input",
        "--disable-pip-version-check",
        "--no-compile",
        "--no-warn-script-location",
        "--only-binary",
        ":all:",
        // Only the listed packages are installed, with their hashes; the list is complete.
        "--require-hashes",
        "--no-deps",
        "--timeout",
        "20",
        "--retries",
        "1",
        "--target",
    ]
    .map(OsString::from)
    .to_vec();
    arguments.push(work.join("site").into());
    arguments.extend(["--requirement".into(), requirements.into()]);
    let python = if run(
        environment,
        python,
        &["-m".into(), "pip".into(), "--version".into()],
    )
    .is_ok()
    {
        python.to_path_buf()
    } else {
        // Debian's python3 has no pip of its own; a virtual environment brings one.
        let venv = work.join("venv");
        run(
            environment,
            python,
            &["-m".into(), "venv".into(), venv.clone().into()],
        )
        .map_err(|reason| format!("python3 has neither pip nor venv ({reason})"))?;
        venv.join(if cfg!(windows) { "Scripts" } else { "bin" })
            .join("python")
    };
    // pip names each file with its size before it fetches it.
    let mut downloads = |line: &str| {
        let line = line.trim();
        if line.starts_with("Downloading ") || line.starts_with("Using cached ") {
            progress(line);
        }
    };
    run_and_follow(environment, &python, &arguments, &mut downloads)
        .map_err(|reason| format!("pip failed: {reason}"))
}

/// The bytes of all files in a folder.
fn bytes_in(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let bytes = |entry: fs::DirEntry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => bytes_in(&entry.path()),
        Ok(_) => entry.metadata().map_or(0, |data| data.len()),
        Err(_) => 0,
    };
    entries.map(bytes).sum()
}

/// Runs a program; the error is the last error line that it printed, otherwise its last line.
fn run(environment: &Environment, program: &Path, arguments: &[OsString]) -> Result<(), String> {
    run_and_follow(environment, program, arguments, &mut |_| {})
}

/// As [`run`]; `line` receives each line that the program prints to stdout while it runs.
fn run_and_follow(
    environment: &Environment,
    program: &Path,
    arguments: &[OsString],
    line: &mut dyn FnMut(&str),
) -> Result<(), String> {
    let cannot = |error: std::io::Error| format!("`{}` cannot be run: {error}", program.display());
    let mut child = Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(environment.variables())
        // User settings that would redirect the packages are removed from the environment.
        .env_remove("PIP_TARGET")
        .env_remove("PIP_PREFIX")
        .env_remove("PIP_USER")
        .env_remove("PIP_REQUIRE_HASHES")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(cannot)?;
    let stdout = child.stdout.take();
    let output = std::thread::scope(|scope| {
        // Its errors are read beside its output, so that no full pipe blocks it.
        let rest = scope.spawn(|| child.wait_with_output());
        for text in stdout.into_iter().flat_map(|out| BufReader::new(out).lines()) {
            text.iter().for_each(|text| line(text));
        }
        rest.join()
            .unwrap_or_else(|_| Err(std::io::Error::other("its output cannot be read")))
    });
    let output = output.map_err(cannot)?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    let last = lines.iter().rfind(|l| l.starts_with("ERROR")).or(lines.last());
    Err(last.map_or_else(|| output.status.to_string(), |line| line.to_string()))
}

#[cfg(all(test, unix))]
mod tests {
    use tirx_test_tools::stand_in;

    use super::*;

    /// A folder with a `python3` that does what `body` says and logs its arguments, and a cache.
    fn place(body: &str) -> (tempfile::TempDir, Environment) {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let logged = format!("echo \"$@\" >> {}\n{body}", log.display());
        stand_in::script(dir.path().join("python3"), &logged);
        let path = std::env::join_paths([dir.path(), Path::new("/usr/bin"), Path::new("/bin")]).unwrap();
        let environment = Environment::empty()
            .with("PATH", path)
            .with("TIRX_CACHE_DIR", dir.path().join("cache"));
        (dir, environment)
    }

    /// What pip does: unpacks an nvcc below `--target`.
    const UNPACK: &str = "target=\nwhile [ $# -gt 0 ]; do [ \"$1\" = --target ] && target=$2; \
        [ \"$1\" = --requirement ] && cp $2 $(dirname $target)/../../packages; shift; done\n\
        [ -z \"$target\" ] && exit 0\nmkdir -p $target/nvidia/cu13/bin\ncd $target/nvidia/cu13/bin\n\
        printf '#!/bin/sh\\necho release 13.0, V13.0.88\\n' > nvcc; chmod +x nvcc";

    fn pin() -> Pin {
        "13.0".parse().unwrap()
    }

    #[test]
    fn an_installation_is_fetched_once() {
        let pip = format!("echo 'Collecting nvcc'; echo '  Downloading nvcc.whl (38.2 MB)'\n{UNPACK}");
        let (dir, environment) = place(&pip);
        let mut said = Vec::new();
        let nvcc = install(&environment, pin(), &mut |line| said.push(line.to_string())).unwrap();
        let cache = dir.path().join("cache");
        assert_eq!(nvcc.path, cache.join("toolchains/cuda-13.0/nvidia/cu13/bin/nvcc"));
        assert_eq!(
            fs::read_to_string(cache.join("installed/cuda-13.0")).unwrap(),
            "V13.0.88\n"
        );
        assert_eq!(said[0], "fetching nvcc 13.0 through pip");
        assert!(
            said[1].starts_with("it takes about ") && said[1].contains(" MB in `"),
            "{said:?}"
        );
        let downloads = said
            .iter()
            .filter(|line| *line == "Downloading nvcc.whl (38.2 MB)");
        assert!(downloads.count() > 0, "{said:?}");
        assert!(said[said.len() - 1].contains(": 1 MB in `"), "{said:?}");
        // Cargo must not consider it newer than the build that installed it.
        let modified = fs::metadata(&nvcc.path).unwrap().modified().unwrap();
        assert!(modified.elapsed().unwrap() > Duration::from_secs(3600));
        let log = fs::read_to_string(dir.path().join("log")).unwrap();
        assert!(log.contains("--require-hashes --no-deps"), "{log}");
        let packages = fs::read_to_string(cache.join("packages")).unwrap();
        assert_eq!(packages, PACKAGES[0].1);
        assert_eq!(install(&environment, pin(), &mut |_| {}).unwrap(), nvcc);
        assert_eq!(fs::read_to_string(dir.path().join("log")).unwrap(), log);
        assert_eq!(installed(&environment), [nvcc]);
        // No incomplete installation is left.
        let names: Vec<_> = fs::read_dir(cache.join("toolchains"))
            .unwrap()
            .flatten()
            .map(|e| e.file_name())
            .collect();
        assert!(
            !names.iter().any(|n| n.to_string_lossy().ends_with(".new")),
            "{names:?}"
        );
    }

    #[test]
    fn without_pip_a_virtual_environment_brings_it() {
        let body = format!(
            "case \"$*\" in \"-m pip --version\") exit 1;; \"-m venv\"*) mkdir -p $3/bin; cp $0 $3/bin/python; exit;; \
             esac\n{UNPACK}"
        );
        let (dir, environment) = place(&body);
        install(&environment, pin(), &mut |_| {}).unwrap();
        assert!(
            fs::read_to_string(dir.path().join("log"))
                .unwrap()
                .contains("-m venv")
        );
    }

    #[test]
    fn what_pip_says_is_in_the_message() {
        let failing = "case $3 in install) echo 'WARNING: retrying' >&2; echo 'ERROR: No matching distribution' >&2; \
            exit 1;; esac";
        let (dir, environment) = place(failing);
        let message = install(&environment, pin(), &mut |_| {}).unwrap_err().to_string();
        assert_eq!(
            message,
            "error: cannot install nvcc 13.0: pip failed: ERROR: No matching distribution"
        );
        assert!(!dir.path().join("cache/toolchains/cuda-13.0").exists());
        let (_dir, environment) = place("exit 0");
        let message = install(&environment, pin(), &mut |_| {}).unwrap_err().to_string();
        assert!(
            message.contains("the package that pip unpacked has no nvcc that runs"),
            "{message}"
        );
        let message = install(&environment, "12.4".parse().unwrap(), &mut |_| {})
            .unwrap_err()
            .to_string();
        assert!(message.contains("from CUDA 13.0 on"), "{message}");
        let message = install(&environment, "13.99".parse().unwrap(), &mut |_| {})
            .unwrap_err()
            .to_string();
        assert!(
            message.contains("the hashes of its packages are not known")
                && message.contains("this tirx knows the packages of 13.0, 13.1, "),
            "{message}"
        );
    }

    #[test]
    fn an_installation_that_cannot_be_done_says_why() {
        let refused = |environment: &Environment| {
            let result = install(environment, pin(), &mut |_| {});
            result.unwrap_err().to_string()
        };
        assert_eq!(
            refused(&Environment::empty()),
            "error: cannot install nvcc 13.0: there is no cache directory; set TIRX_CACHE_DIR or HOME"
        );
        let (dir, environment) = place("echo 'No module named it' >&2; exit 1");
        assert_eq!(
            refused(&environment),
            "error: cannot install nvcc 13.0: python3 has neither pip nor venv (No module named it)"
        );
        let nowhere = environment
            .clone()
            .with("TIRX_PYTHON", dir.path().join("nowhere"));
        let message = refused(&nowhere);
        assert!(message.contains("nowhere` cannot be run: "), "{message}");
        // An nvcc that knows where it was unpacked.
        let (_dir, moved) = place(&UNPACK.replace(
            "printf '#!/bin/sh\\n",
            "printf '#!/bin/sh\\ncase $0 in *.new/*) ;; *) exit 1;; esac\\n",
        ));
        assert_eq!(
            refused(&moved),
            "error: cannot install nvcc 13.0: it does not run from its place in the cache"
        );
        // Files where folders are to be.
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        let message = refused(&environment.with("TIRX_CACHE_DIR", &file));
        assert!(
            message.starts_with("error: cannot create `") && message.contains("file/toolchains`: "),
            "{message}"
        );
        let (dir, environment) = place(UNPACK);
        fs::create_dir_all(dir.path().join("cache")).unwrap();
        fs::write(dir.path().join("cache/installed"), "").unwrap();
        let message = refused(&environment);
        assert!(
            message.starts_with("error: cannot write `") && message.contains("installed/cuda-13.0`: "),
            "{message}"
        );
        let nowhere = dir.path().join("nowhere");
        let reason = fetch(&environment, Path::new("python3"), "", &nowhere, &mut |_| {}).unwrap_err();
        assert!(
            reason.starts_with("cannot write `") && reason.contains("nowhere/packages.txt`: "),
            "{reason}"
        );
    }

    #[test]
    fn every_package_has_an_exact_version_and_hashes() {
        for (version, packages) in PACKAGES {
            let lines: Vec<&str> = packages.lines().filter(|line| !line.starts_with('#')).collect();
            let named: Vec<&&str> = lines.iter().filter(|line| !line.starts_with(' ')).collect();
            assert_eq!(named.len(), 5, "{version}");
            for line in &named {
                assert!(line.contains(&format!("=={version}.")), "{line}");
            }
            let hashes = lines
                .iter()
                .filter_map(|line| line.trim().strip_prefix("--hash=sha256:"));
            let hashes: Vec<&str> = hashes.map(|hash| hash.trim_end_matches([' ', '\\'])).collect();
            assert!(
                hashes.len() >= 5 && hashes.iter().all(|hash| hash.len() == 64),
                "{hashes:?}"
            );
        }
    }

    /// The real pip, offline, with packages of the right names and wrong contents.
    #[test]
    fn packages_of_another_hash_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let wheels = dir.path().join("wheels");
        fs::create_dir(&wheels).unwrap();
        for line in PACKAGES[0].1.lines().filter(|line| line.starts_with("nvidia")) {
            let (name, version) = line.trim_end_matches([' ', '\\']).split_once("==").unwrap();
            let file = format!("{}-{version}-py3-none-any.whl", name.replace('-', "_"));
            fs::write(wheels.join(file), "something else").unwrap();
        }
        let environment = Environment::process()
            .without("TIRX_OFFLINE")
            .with("PIP_NO_INDEX", "1")
            .with("PIP_FIND_LINKS", &wheels)
            .with("TIRX_CACHE_DIR", dir.path().join("cache"));
        let message = install(&environment, pin(), &mut |_| {}).unwrap_err().to_string();
        assert!(
            message.contains("pip failed: ERROR: THESE PACKAGES DO NOT MATCH THE HASHES"),
            "{message}"
        );
    }

    #[test]
    fn offline_nothing_is_fetched() {
        let (dir, environment) = place(UNPACK);
        let offline = environment.clone().with("TIRX_OFFLINE", "1");
        let message = install(&offline, pin(), &mut |_| {}).unwrap_err().to_string();
        assert_eq!(
            message,
            "error: cannot install nvcc 13.0: TIRX_OFFLINE forbids fetching it\n  \
             = help: unset TIRX_OFFLINE, or set TIRX_NVCC to an nvcc that is there"
        );
        assert!(!dir.path().join("log").exists(), "python was run");
        // An existing installation is not fetched again.
        let nvcc = install(&environment, pin(), &mut |_| {}).unwrap();
        assert_eq!(install(&offline, pin(), &mut |_| {}).unwrap(), nvcc);
        install(&environment.with("TIRX_OFFLINE", "0"), pin(), &mut |_| {}).unwrap();
    }

    #[test]
    fn a_toolchain_is_removed() {
        let (dir, environment) = place(UNPACK);
        assert_eq!(remove(&environment, pin()), Ok(false));
        install(&environment, pin(), &mut |_| {}).unwrap();
        assert_eq!(remove(&environment, pin()), Ok(true));
        assert!(installed(&environment).is_empty());
        assert!(!dir.path().join("cache/installed/cuda-13.0").exists());
        assert_eq!(remove(&environment, pin()), Ok(false));
        // A folder where a file is to be.
        install(&environment, pin(), &mut |_| {}).unwrap();
        let stamp = dir.path().join("cache/installed/cuda-13.0");
        fs::remove_file(&stamp).unwrap();
        fs::create_dir(&stamp).unwrap();
        let message = remove(&environment, pin()).unwrap_err().to_string();
        assert!(
            message.starts_with("error: cannot remove `") && message.contains("installed/cuda-13.0`: "),
            "{message}"
        );
    }

    #[test]
    fn the_cache_is_where_the_platform_keeps_caches() {
        let environment = Environment::empty().with("HOME", "/home/user");
        if cfg!(target_os = "linux") {
            assert_eq!(cache_dir(&environment), Some("/home/user/.cache/tirx".into()));
        }
        let environment = environment.with("XDG_CACHE_HOME", "/var/cache/user");
        assert_eq!(cache_dir(&environment), Some("/var/cache/user/tirx".into()));
        let environment = environment.with("TIRX_CACHE_DIR", "/elsewhere");
        assert_eq!(cache_dir(&environment), Some("/elsewhere".into()));
        assert_eq!(cache_dir(&Environment::empty()), None);
    }
}
