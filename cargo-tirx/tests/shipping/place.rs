//! Packages in a folder of their own, and the ways to build them: with nvcc, and with nothing.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tirx_test_tools::nvcc;

/// The nvcc of the tests.
pub(crate) fn real_nvcc() -> Option<PathBuf> {
    nvcc::nvcc().map(|nvcc| nvcc.path)
}

pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

fn outcome(command: &mut Command) -> Outcome {
    let Output {
        status,
        stdout,
        stderr,
    } = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Outcome {
        code: status.code(),
        out: text(stdout),
        err: text(stderr),
    }
}

/// A folder of packages. What they depend on is compiled into the workspace's target directory, so that what the tests
/// have compiled is used again.
pub(crate) struct ShippedPackages {
    folder: tempfile::TempDir,
    target: PathBuf,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .canonicalize()
        .unwrap()
}

/// Variables that could name an nvcc, or change a build.
const FOREIGN: [&str; 12] = [
    "TIRX_NVCC",
    "NVCC",
    "CUDA_HOME",
    "CUDA_PATH",
    "VIRTUAL_ENV",
    "TIRX_LOCKED",
    "TIRX_OFFLINE",
    "TIRX_STORE",
    "CARGO_MANIFEST_DIR",
    "OUT_DIR",
    "RUSTFLAGS",
    "PROFILE",
];

impl ShippedPackages {
    pub(crate) fn new() -> ShippedPackages {
        let program = std::env::current_exe().unwrap();
        ShippedPackages {
            folder: tempfile::Builder::new()
                .prefix("with a space ")
                .tempdir()
                .unwrap(),
            target: program.ancestors().nth(3).unwrap().into(),
        }
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    /// A folder that is there.
    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        let folder = self.path(name);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    pub(crate) fn write(&self, file: &str, text: &str) {
        let path = self.path(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn edit(&self, file: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.path(file)).unwrap();
        assert!(text.contains(from), "{from} is not in {file}");
        self.write(file, &text.replacen(from, to, 1));
    }

    /// A package's Cargo.toml: one that could be on a registry, beside tirx.
    pub(crate) fn package(&self, name: &str) {
        let root = root();
        let root_text = root.display();
        let cargo = format!(
            "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\nlicense = \"MIT\"\n\
             description = \"Kernels that are finished.\"\n\
             [dependencies]\ntirx-rt = {{ path = \"{root_text}/tirx-rt\", version = \"0.1.0\" }}\n\
             [build-dependencies]\ntirx-build = {{ path = \"{root_text}/tirx-build\", version = \"0.1.0\" }}\n\
             [profile.dev]\ndebug = \"line-tables-only\"\n[profile.dev.package.tirx-sim-machine]\nopt-level = 2\n[workspace]\n"
        );
        self.write(&format!("{name}/Cargo.toml"), &cargo);
        fs::copy(root.join("Cargo.lock"), self.path(name).join("Cargo.lock")).unwrap();
    }

    /// A copy of a package, as a package of its own.
    pub(crate) fn copy(&self, from: &str, to: &str) {
        let status = Command::new("cp")
            .arg("-r")
            .args([self.path(from), self.path(to)])
            .status();
        assert!(status.unwrap().success());
        self.edit(&format!("{to}/Cargo.toml"), from, to);
    }

    /// `cargo package`, and what the tarball holds, unpacked: the folder's name.
    pub(crate) fn packaged(&self, name: &str) -> String {
        let target = self.path("package-target");
        let packaged = outcome(
            self.foreign(Command::new(env!("CARGO")).args([
                "package",
                "--no-verify",
                "--allow-dirty",
                "--offline",
                "--exclude-lockfile",
            ]))
            .current_dir(self.path(name))
            .env("CARGO_TARGET_DIR", &target),
        );
        assert_eq!(packaged.code, Some(0), "{}", packaged.err);
        let unpacked = self.folder("unpacked");
        let tar = outcome(
            Command::new("tar")
                .arg("-xzf")
                .arg(target.join(format!("package/{name}-0.1.0.crate")))
                .arg("-C")
                .arg(&unpacked),
        );
        assert_eq!(tar.code, Some(0), "{}", tar.err);
        let folder = format!("unpacked/{name}-0.1.0");
        // Exact versions come with the program that depends on the crate.
        fs::copy(root().join("Cargo.lock"), self.path(&folder).join("Cargo.lock")).unwrap();
        let manifest = fs::read_to_string(self.path(&folder).join("Cargo.toml")).unwrap();
        assert!(!manifest.contains(" path = \"/"), "{manifest}");
        folder
    }

    fn foreign<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        FOREIGN
            .iter()
            .fold(command, |command, name| command.env_remove(name))
    }

    /// The command line, in a package's folder.
    pub(crate) fn tirx(&self, package: &str, arguments: &[&str], nvcc: Option<&Path>) -> Outcome {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-tirx"));
        self.foreign(&mut command);
        command
            .args(arguments)
            .current_dir(self.path(package))
            .env("TIRX_NVCC", nvcc.unwrap_or(Path::new("none")));
        outcome(&mut command)
    }

    pub(crate) fn cargo_with_nvcc(&self, package: &str, arguments: &[&str]) -> Outcome {
        self.cargo_with_nvcc_and(package, arguments, &[])
    }

    pub(crate) fn cargo_with_nvcc_and(
        &self,
        package: &str,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Outcome {
        let nvcc = real_nvcc().expect("it was there");
        let mut command = Command::new(env!("CARGO"));
        self.foreign(&mut command);
        with_offline(&mut command, arguments)
            .current_dir(self.path(package))
            .env("CARGO_TARGET_DIR", &self.target)
            .env("TIRX_NVCC", nvcc)
            .envs(variables.iter().copied());
        outcome(&mut command)
    }
}

/// Cargo's arguments with `--offline` and tirx from the workspace, before those of the program.
fn with_offline<'a>(command: &'a mut Command, arguments: &[&str]) -> &'a mut Command {
    let (own, rest) = arguments.split_first().expect("a command of Cargo");
    let root = root();
    command.args([own, "--offline"]);
    for name in ["tirx-rt", "tirx-build"] {
        let path = root.join(name);
        command.args([
            "--config",
            &format!("patch.crates-io.{name}.path='{}'", path.display()),
        ]);
    }
    command.args(rest)
}

/// The command prefix that starts a program without a network; `None` where the system does not permit it.
fn without_network() -> Option<&'static [&'static str]> {
    let ways: [&[&str]; 2] = [&["unshare", "--map-root-user", "--net"], &["unshare", "--net"]];
    ways.into_iter().find(|way| {
        let tried = Command::new(way[0]).args(&way[1..]).arg("true").output();
        tried.is_ok_and(|output| output.status.success())
    })
}

/// Runs Cargo in a package with no network, and with no programs but Rust's and a linker: no nvcc, no Python.
pub(crate) fn isolated(place: &ShippedPackages, package: &str, arguments: &[&str]) -> Outcome {
    let cargo = Path::new(env!("CARGO"));
    let programs = place.folder("programs");
    let path = std::env::var_os("PATH").unwrap_or_default();
    for name in ["cc", "gcc", "ld", "as", "ar"] {
        let found = std::env::split_paths(&path)
            .map(|folder| folder.join(name))
            .find(|file| file.is_file());
        let link = programs.join(name);
        if let Some(found) = found.filter(|_| !link.exists()) {
            std::os::unix::fs::symlink(found, link).unwrap();
        }
    }
    let mut command = match without_network() {
        Some(way) => {
            let mut command = Command::new(way[0]);
            command.args(&way[1..]).arg(cargo);
            command
        }
        None => {
            eprintln!("`unshare` is not permitted here: built with Cargo's --offline alone");
            Command::new(cargo)
        }
    };
    let kept = std::env::vars_os().filter(|(name, _)| {
        let name = name.to_string_lossy();
        name == "HOME"
            || name == "CARGO_HOME"
            || name.starts_with("RUSTUP_")
            || name.starts_with("CARGO_PROFILE_")
            || name == "CARGO_INCREMENTAL"
    });
    let kept: Vec<(OsString, OsString)> = kept.collect();
    // `unshare` is looked for on this PATH, too.
    let folders = [cargo.parent().unwrap(), programs.as_path()];
    let unshare = std::env::split_paths(&path)
        .map(|folder| folder.join("unshare"))
        .find(|file| file.is_file());
    if let (Some(unshare), false) = (unshare, programs.join("unshare").exists()) {
        std::os::unix::fs::symlink(unshare, programs.join("unshare")).unwrap();
    }
    with_offline(&mut command, arguments)
        .current_dir(place.path(package))
        .env_clear()
        .envs(kept)
        .env("PATH", std::env::join_paths(folders).unwrap())
        .env("CARGO_TARGET_DIR", &place.target)
        .env("TIRX_OFFLINE", "1")
        .env("TIRX_STORE", "none")
        .env("TIRX_CACHE_DIR", place.path("no cache"));
    outcome(&mut command)
}
