//! The build: manifest in, generated Rust and images out, and what Cargo must know of it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::generate;
use crate::kernels::{compile_manifest, jobs, write_outputs};
use crate::manifest::{Manifest, Toolchain};
use crate::nvcc::{self, Outcome};
use crate::target::{Architecture, Targets};
use crate::toolchain::{self, Discovered, Nvcc, Search};

/// A build with settings of its own. [`compile_kernels`](crate::compile_kernels) is this with none.
///
/// ```no_run
/// fn main() -> tirx_build::Result<()> {
///     tirx_build::Builder::new()
///         .manifest("gpu/kernels.toml")
///         .targets(["sm_90a"])
///         .compile()
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Builder {
    manifest: PathBuf,
    out_dir: Option<PathBuf>,
    targets: Option<Vec<String>>,
    ptx: Option<String>,
    nvcc: Option<PathBuf>,
    auto_install: Option<bool>,
    environment: Environment,
    prefixes: Option<Vec<PathBuf>>,
}

impl Default for Builder {
    fn default() -> Builder {
        Builder::new()
    }
}

/// What a build did.
#[derive(Clone, Debug)]
pub struct Report {
    /// Lines for Cargo, as a build script prints them: `cargo::rerun-if-changed=…`, at most one `cargo::warning=…`.
    pub directives: Vec<String>,
    /// The nvcc that was used; `None` where there was none.
    pub nvcc: Option<Nvcc>,
    /// Fat binaries that nvcc made in this build.
    pub compiled: usize,
    /// Fat binaries of an earlier build that still held.
    pub cached: usize,
}

impl Builder {
    /// `kernels.toml` of the package, into Cargo's `OUT_DIR`, with the process's environment.
    pub fn new() -> Builder {
        Builder {
            manifest: PathBuf::from("kernels.toml"),
            out_dir: None,
            targets: None,
            ptx: None,
            nvcc: None,
            auto_install: None,
            environment: Environment::process(),
            prefixes: None,
        }
    }

    /// The manifest's path.
    pub fn manifest(mut self, path: impl Into<PathBuf>) -> Builder {
        self.manifest = path.into();
        self
    }

    /// Where to write; `OUT_DIR` otherwise.
    pub fn out_dir(mut self, path: impl Into<PathBuf>) -> Builder {
        self.out_dir = Some(path.into());
        self
    }

    /// Compiles every kernel for these, whatever the manifest says: `["sm_90a"]`. The manifest's PTX is left out.
    pub fn targets<S: Into<String>>(mut self, targets: impl IntoIterator<Item = S>) -> Builder {
        self.targets = Some(targets.into_iter().map(Into::into).collect());
        self
    }

    /// PTX for newer GPUs, whatever the manifest says: `"compute_90"`.
    pub fn ptx(mut self, target: impl Into<String>) -> Builder {
        self.ptx = Some(target.into());
        self
    }

    /// The nvcc to use, as if `TIRX_NVCC` named it.
    pub fn nvcc(mut self, path: impl Into<PathBuf>) -> Builder {
        self.nvcc = Some(path.into());
        self
    }

    /// Whether the pinned nvcc may be fetched when there is none, whatever the manifest says.
    pub fn auto_install(mut self, allow: bool) -> Builder {
        self.auto_install = Some(allow);
        self
    }

    /// Environment variables to go by instead of the process's.
    pub fn environment(mut self, environment: Environment) -> Builder {
        self.environment = environment;
        self
    }

    /// Installed toolkits to look into instead of `/usr/local/cuda` and the like.
    pub fn prefixes(mut self, prefixes: Vec<PathBuf>) -> Builder {
        self.prefixes = Some(prefixes);
        self
    }

    /// Builds, and tells Cargo what the result depends on.
    ///
    /// # Errors
    /// What is wrong with the manifest, a kernel or the toolchain, rendered for the build's output.
    pub fn compile(&self) -> Result<()> {
        let report = self.build().inspect_err(|error| {
            // Cargo shows these before all other output of the script.
            for message in error.messages() {
                println!("cargo::error={}", message.short());
            }
        })?;
        for line in &report.directives {
            println!("{line}");
        }
        Ok(())
    }

    /// Builds and prints nothing.
    ///
    /// # Errors
    /// As [`compile`](Builder::compile).
    pub fn build(&self) -> Result<Report> {
        let environment = match &self.nvcc {
            Some(path) => self.environment.clone().with("TIRX_NVCC", path),
            None => self.environment.clone(),
        };
        let out_dir = self
            .out_dir
            .clone()
            .or_else(|| environment.path("OUT_DIR"))
            .ok_or_else(|| {
                Error::new("OUT_DIR is not set")
                    .help("call this from a build script, or give Builder::out_dir")
            })?;
        let shown = self.manifest.to_string_lossy().replace('\\', "/");
        let text = fs::read_to_string(&self.manifest).map_err(|error| {
            let error = Error::io("read", &self.manifest, &error);
            error.help("the path is relative to the package, where its Cargo.toml is")
        })?;
        let mut manifest = Manifest::parse(&shown, &text)?;
        self.override_targets(&mut manifest)?;

        let mut inputs = BTreeSet::from([self.manifest.clone()]);
        let dump = environment.path("TIRX_DUMP");
        let mut kernels = compile_manifest(&manifest, &self.manifest, dump.as_deref(), &mut inputs)?;

        let folder = out_dir.join("tirx");
        fs::create_dir_all(&folder).map_err(|e| Error::io("create", &folder, &e))?;
        let toolchain = Toolchain {
            auto_install: self.auto_install.unwrap_or(manifest.toolchain.auto_install),
            ..manifest.toolchain.clone()
        };
        let (nvcc, warning) = self.find_nvcc(&environment, &toolchain, &manifest)?;
        let mut outcomes = Vec::new();
        if let Some(nvcc) = &nvcc {
            let jobs = jobs(&manifest, &kernels);
            outcomes = nvcc::compile_all(nvcc, &folder, &jobs, parallelism(&environment))?;
        }
        write_outputs(&manifest, &mut kernels, nvcc.as_ref(), &folder)?;
        let manifest_name = self
            .manifest
            .file_name()
            .map(|n| n.to_string_lossy().into_owned());
        let generated = generate::file(manifest_name.as_deref().unwrap_or("kernels.toml"), &kernels)?;
        nvcc::write_if_changed(&out_dir.join("tirx_kernels.rs"), generated.as_bytes())?;

        let mut directives: Vec<String> = inputs
            .iter()
            .map(|path| format!("cargo::rerun-if-changed={}", path.display()))
            .collect();
        directives.extend(
            toolchain_watches(&environment, nvcc.as_ref())
                .iter()
                .map(|path| format!("cargo::rerun-if-changed={}", path.display())),
        );
        let variables: BTreeSet<String> = environment
            .names_read()
            .into_iter()
            .chain(TOOLCHAIN_VARIABLES.map(String::from))
            // Cargo's own: it reruns for them anyway, or they say nothing about the result.
            .filter(|name| !["OUT_DIR", "NUM_JOBS", "HOME"].contains(&name.as_str()))
            .collect();
        directives.extend(
            variables
                .iter()
                .map(|name| format!("cargo::rerun-if-env-changed={name}")),
        );
        directives.extend(warning.map(|text| format!("cargo::warning={text}")));
        Ok(Report {
            directives,
            nvcc,
            compiled: outcomes.iter().filter(|o| **o == Outcome::Compiled).count(),
            cached: outcomes.iter().filter(|o| **o == Outcome::Cached).count(),
        })
    }

    fn override_targets(&self, manifest: &mut Manifest) -> Result<()> {
        let unknown = |error: crate::target::UnknownArchitecture| {
            let message = Error::new(format_args!("Builder::targets: {}", error.message));
            match error.suggestion {
                Some(near) => message.help(format_args!("did you mean `{near}`?")),
                None => message,
            }
        };
        let ptx = self
            .ptx
            .as_deref()
            .map(Architecture::from_compute)
            .transpose()
            .map_err(unknown)?;
        if let Some(targets) = &self.targets {
            let native = targets
                .iter()
                .map(|t| t.parse())
                .collect::<std::result::Result<Vec<_>, _>>();
            let native: Vec<Architecture> = native.map_err(unknown)?;
            for kernel in &mut manifest.kernels {
                kernel.targets = Targets {
                    native: native.clone(),
                    ptx: None,
                };
            }
        }
        if ptx.is_some() {
            manifest
                .kernels
                .iter_mut()
                .for_each(|kernel| kernel.targets.ptx = ptx.clone());
        }
        Ok(())
    }

    /// The nvcc to use, or the one warning that there is none.
    fn find_nvcc(
        &self,
        environment: &Environment,
        toolchain: &Toolchain,
        manifest: &Manifest,
    ) -> Result<(Option<Nvcc>, Option<String>)> {
        if manifest.kernels.is_empty() {
            return Ok((None, None));
        }
        let needs = manifest
            .kernels
            .iter()
            .filter_map(|kernel| kernel.targets.most_demanding());
        let search = Search {
            environment,
            pin: toolchain.cuda,
            needs: needs.max_by_key(|(_, version)| *version),
            prefixes: self.prefixes.clone(),
        };
        let discovered = toolchain::discover(&search)?;
        let (reason, unsuitable) = match discovered {
            Discovered::Found(nvcc) => return Ok((Some(nvcc), None)),
            Discovered::Refused => ("TIRX_NVCC is `none`".to_string(), None),
            Discovered::Nothing => ("no nvcc was found".to_string(), None),
            Discovered::Unsuitable(error) => (String::new(), Some(error)),
        };
        let refused = reason.starts_with("TIRX_NVCC");
        let mut reason = reason;
        if let Some(pin) = toolchain.cuda.filter(|_| toolchain.auto_install && !refused) {
            if environment.get("CARGO_NET_OFFLINE").is_some_and(|v| v == "true") {
                reason.push_str(", and Cargo is offline");
            } else {
                match toolchain::install(environment, pin, &mut |_| {}) {
                    Ok(nvcc) => return Ok((Some(nvcc), None)),
                    Err(error) => {
                        let text = error.to_string();
                        let first = text
                            .lines()
                            .next()
                            .unwrap_or_default()
                            .trim_start_matches("error: ");
                        if let Some(unsuitable) = unsuitable {
                            return Err(unsuitable.note(first));
                        }
                        reason = format!("{reason}, and {first}");
                    }
                }
            }
        }
        if let Some(error) = unsuitable {
            return Err(error);
        }
        let required: Vec<&str> = manifest
            .kernels
            .iter()
            .filter(|k| k.require)
            .map(|k| k.name.as_str())
            .collect();
        if !required.is_empty() {
            let names = required
                .iter()
                .map(|n| format!("`{n}`"))
                .collect::<Vec<_>>()
                .join(", ");
            let error = Error::new(format_args!(
                "{reason}; the manifest requires machine code for {names}"
            ));
            return Err(error.help(toolchain::install_help(toolchain.cuda)));
        }
        let warning = format!(
            "tirx: {reason}: the kernels run on the simulator only ({})",
            if refused {
                "unset TIRX_NVCC for GPU code".to_string()
            } else {
                toolchain::install_help(toolchain.cuda)
            }
        );
        Ok((None, Some(warning)))
    }
}

/// What decides which nvcc is found, whether or not this build got as far as to ask.
const TOOLCHAIN_VARIABLES: [&str; 9] = [
    "TIRX_NVCC",
    "NVCC",
    "CUDA_HOME",
    "CUDA_PATH",
    "PATH",
    "VIRTUAL_ENV",
    "TIRX_CACHE_DIR",
    "TIRX_PYTHON",
    "TIRX_DUMP",
];

/// How many nvcc run at a time: Cargo's job count.
fn parallelism(environment: &Environment) -> usize {
    let cargo = environment
        .get("NUM_JOBS")
        .and_then(|jobs| jobs.to_str()?.parse().ok());
    cargo.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get()))
}

/// Files and folders whose change can change which nvcc is used, or what it is. Only what exists: Cargo reruns a build
/// script at every build while a file it named is missing.
fn toolchain_watches(environment: &Environment, nvcc: Option<&Nvcc>) -> Vec<PathBuf> {
    let mut watches = Vec::new();
    if let Some(nvcc) = nvcc {
        watches.push(nvcc.path.clone());
        // A package manager keeps the times of files; the folder's changes when one is replaced.
        watches.extend(nvcc.path.parent().filter(|dir| small(dir)).map(Path::to_path_buf));
    } else {
        // Where one may appear: commands, our own installations, and what the toolkit's packages add to the linker.
        let path = environment.get("PATH").unwrap_or_default();
        watches.extend(std::env::split_paths(&path).filter(|dir| dir.ends_with("bin") && small(dir)));
        watches.push(PathBuf::from("/etc/ld.so.conf.d"));
        watches.extend(toolchain::watched_stamp_dir(environment));
    }
    let mut seen = BTreeSet::new();
    watches.retain(|path| path.exists() && seen.insert(path.clone()));
    watches
}

/// Whether Cargo can look through a folder at every build without anybody noticing.
fn small(dir: &Path) -> bool {
    let entries = fs::read_dir(dir).map(|entries| entries.flatten().take(4000).collect::<Vec<_>>());
    entries.is_ok_and(|entries| {
        entries.len() < 4000
            && !entries
                .iter()
                .any(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
    })
}
