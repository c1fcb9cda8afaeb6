//! Throw-away packages, built by Cargo as a user's are, and a real nvcc whose runs are counted.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use tirx_tests::{nvcc, stand_in};

pub(crate) const BUILD: &str =
    "fn main() -> tirx_build::Result<()> {\n    tirx_build::compile_kernels(\"kernels.toml\")\n}\n";

/// The nvcc of the tests.
pub(crate) fn real_nvcc() -> Option<PathBuf> {
    nvcc::nvcc().map(|nvcc| nvcc.path)
}

/// A folder of packages and an nvcc, with variables of its own. Everything is compiled into the workspace's target
/// directory, so that what the tests have compiled is used again.
pub(crate) struct ScratchPackages {
    folder: tempfile::TempDir,
    target: PathBuf,
    variables: Vec<(String, String)>,
}

impl ScratchPackages {
    pub(crate) fn new() -> ScratchPackages {
        let program = std::env::current_exe().unwrap();
        let folder = tempfile::Builder::new()
            .prefix("mit Leerzeichen ä中 ")
            .tempdir()
            .unwrap();
        let mut place = ScratchPackages {
            target: program.ancestors().nth(3).unwrap().into(),
            variables: Vec::new(),
            folder,
        };
        fs::create_dir(place.path("bin")).unwrap();
        // Part of every key: what earlier runs of the tests left in the target directory's store is not found.
        let name = place
            .folder
            .path()
            .file_name()
            .unwrap()
            .to_string_lossy()
            .into_owned();
        let unique: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        place.set("NVCC_PREPEND_FLAGS", &format!("-DPLACE_{unique}"));
        place.set("TIRX_STORE", place.path("store").to_str().unwrap());
        place.set("TIRX_CACHE_DIR", place.path("cache").to_str().unwrap());
        place.set("TIRX_PYTHON", "/nowhere/python3");
        let path = std::env::var("PATH").unwrap();
        place.set("PATH", &format!("{}:{path}", place.path("bin").display()));
        place
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    /// Sets a variable for all that follows.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.unset(name);
        self.variables.push((name.into(), value.into()));
    }

    pub(crate) fn unset(&mut self, name: &str) {
        self.variables.retain(|(known, _)| known != name);
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

    /// A package with these kernels, which depends on the workspace's crates and on `more`.
    pub(crate) fn package(&self, name: &str, manifest: &str, kernels: &str, main: &str, more: &str) {
        let cargo = format!(
            "[dependencies]\ntirx-rt = {{ path = \"…/tirx-rt\" }}\n{more}\
             [build-dependencies]\ntirx-build = {{ path = \"…/tirx-build\" }}\n"
        );
        self.manifest(name, &cargo);
        for (file, text) in [
            ("kernels.py", kernels),
            ("kernels.toml", manifest),
            ("build.rs", BUILD),
            ("src/main.rs", main),
        ] {
            self.write(&format!("{name}/{file}"), text);
        }
    }

    /// A package's `Cargo.toml`, in which `…` is the workspace's root. Its profiles are replaced by the workspace's, so
    /// that nothing is compiled twice.
    pub(crate) fn manifest(&self, name: &str, text: &str) {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("..")
            .canonicalize()
            .unwrap();
        let package = match text.contains("[package]") {
            true => String::new(),
            false => format!("[package]\nname = \"{name}\"\nedition = \"2024\"\n"),
        };
        let mut profile = false;
        let kept = text.lines().filter(|line| {
            profile = line.starts_with("[profile.") || profile && !line.starts_with('[');
            !profile && !line.starts_with("[workspace]")
        });
        let kept: String = kept.map(|line| format!("{line}\n")).collect();
        let cargo = format!(
            "{package}{kept}[profile.dev]\ndebug = \"line-tables-only\"\n\
             [profile.dev.package.tirx-sim-machine]\nopt-level = 2\n[workspace]\n"
        );
        let cargo = cargo.replace('…', root.to_str().unwrap());
        self.write(&format!("{name}/Cargo.toml"), &cargo);
        fs::copy(root.join("Cargo.lock"), self.path(name).join("Cargo.lock")).unwrap();
    }

    /// A script in `bin/` that counts and runs the real nvcc. `release` answers for it where given.
    pub(crate) fn nvcc(&self, real: &Path, release: Option<&str>) -> PathBuf {
        let answer = match release {
            Some(release) => format!("echo 'Cuda compilation tools, release {release}'; exit"),
            None => format!("exec '{}' --version", real.display()),
        };
        self.script(&format!(
            "case $1 in --version) echo >> '{asked}'; {answer};; esac\necho \"$@\" >> '{runs}'\nexec '{real}' \"$@\"",
            asked = self.path("asked").display(),
            runs = self.path("runs").display(),
            real = real.display()
        ))
    }

    pub(crate) fn script(&self, body: &str) -> PathBuf {
        stand_in::script(self.path("bin/nvcc"), body)
    }

    /// An nvcc that is a shell script.
    pub(crate) fn fake_nvcc(&self) -> PathBuf {
        stand_in::nvcc(self.path("bin/nvcc"), "13.0", "")
    }

    fn lines(&self, file: &str) -> usize {
        fs::read_to_string(self.path(file)).map_or(0, |text| text.lines().count())
    }

    /// Number of compilations and of version queries of nvcc since the last call.
    pub(crate) fn counted(&self) -> (usize, usize) {
        let counts = (self.lines("runs"), self.lines("asked"));
        let _ = fs::remove_file(self.path("runs"));
        let _ = fs::remove_file(self.path("asked"));
        counts
    }

    pub(crate) fn command(&self, package: &str, arguments: &[&str]) -> Command {
        let mut command = self.prepared(Command::new(env!("CARGO")), package);
        command.args(arguments).arg("--offline");
        command
    }

    /// A command in a package's folder, with this place's variables and no others that matter.
    pub(crate) fn prepared(&self, mut command: Command, package: &str) -> Command {
        command
            .current_dir(self.path(package))
            .env("CARGO_TARGET_DIR", &self.target)
            .env_remove("RUSTFLAGS")
            .env_remove("VIRTUAL_ENV");
        for name in [
            "TIRX_NVCC",
            "NVCC",
            "CUDA_HOME",
            "CUDA_PATH",
            "CARGO_MANIFEST_DIR",
            "OUT_DIR",
            "TIRX_DRIVER",
        ] {
            command.env_remove(name);
        }
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs Cargo: whether it succeeded, stdout and stderr.
    pub(crate) fn cargo(&self, package: &str, arguments: &[&str]) -> (bool, String, String) {
        texts(self.command(package, arguments).output().unwrap())
    }

    /// Builds, and counts how often nvcc compiled.
    pub(crate) fn build(&self, package: &str) -> usize {
        let (success, _, err) = self.cargo(package, &["build"]);
        assert!(success, "{err}");
        self.counted().0
    }

    pub(crate) fn spawn(&self, package: &str, arguments: &[&str]) -> Child {
        let mut command = self.command(package, arguments);
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }
}

pub(crate) fn texts(output: Output) -> (bool, String, String) {
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (output.status.success(), text(output.stdout), text(output.stderr))
}
