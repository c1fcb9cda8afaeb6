//! The build: manifest in, generated Rust and images out, and what Cargo must know of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use tirx_core::codegen::rust::ParamKind;
use tirx_core::diagnostic::Diagnostic;
use tirx_core::script::{Entry, NoImports};

use crate::compile::{self, FileImports, Loaded, Settings};
use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::generate::{self, GeneratedKernel, Variant};
use crate::manifest::{Kernel, Manifest, Text, Toolchain};
use crate::nvcc::{self, Job, Outcome};
use crate::suggest::nearest;
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
        let report = self.build()?;
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
        if let Some(stamps) = toolchain::stamp_dir(environment)
            && fs::create_dir_all(&stamps).is_ok()
        {
            watches.push(stamps);
        }
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

/// Compiles every kernel of a manifest; gathers the errors of all of them.
fn compile_manifest(
    manifest: &Manifest,
    manifest_path: &Path,
    dump: Option<&Path>,
    inputs: &mut BTreeSet<PathBuf>,
) -> Result<Vec<GeneratedKernel>> {
    let folder = manifest_path.parent().unwrap_or(Path::new(""));
    let mut files: BTreeMap<String, Loaded> = BTreeMap::new();
    let mut broken: BTreeSet<String> = BTreeSet::new();
    let mut kernels = Vec::new();
    let mut errors = Vec::new();
    for kernel in &manifest.kernels {
        let shown = match &kernel.text {
            Text::File(path) => path.clone(),
            Text::Inline(_) => format!("<kernel \"{}\">", kernel.name),
        };
        if broken.contains(&shown) {
            continue;
        }
        if !files.contains_key(&shown) {
            match load(manifest, kernel, folder, &shown, inputs) {
                Ok(loaded) => {
                    files.insert(shown.clone(), loaded);
                }
                Err(error) => {
                    errors.push(error);
                    broken.insert(shown);
                    continue;
                }
            }
        }
        match compile_kernel(manifest, kernel, &files[&shown], dump) {
            Ok(compiled) => kernels.push(compiled),
            Err(error) => errors.push(error),
        }
    }
    Error::all(errors)?;
    Ok(kernels)
}

fn load(
    manifest: &Manifest,
    kernel: &Kernel,
    folder: &Path,
    shown: &str,
    inputs: &mut BTreeSet<PathBuf>,
) -> Result<Loaded> {
    match &kernel.text {
        Text::Inline(text) => Loaded::new(shown, text, &NoImports),
        Text::File(relative) => {
            let path = folder.join(relative);
            let text = fs::read_to_string(&path).map_err(|error| {
                let message = format!("cannot read `{relative}`: {error}");
                let diagnostic = Diagnostic::new(kernel.source_span, message)
                    .help("the path is relative to the manifest's folder");
                Error::from_diagnostic(&diagnostic, &manifest.sources)
            })?;
            inputs.insert(path.clone());
            let shown_folder = relative
                .rsplit_once('/')
                .map_or(String::new(), |(folder, _)| format!("{folder}/"));
            let imports = FileImports::new(path.parent().unwrap_or(Path::new("")), shown_folder);
            let loaded = Loaded::new(shown, &text, &imports);
            inputs.extend(imports.files());
            loaded
        }
    }
}

/// The definition that a kernel means.
fn entry<'a>(manifest: &Manifest, kernel: &Kernel, loaded: &'a Loaded) -> Result<&'a Entry> {
    let entries = loaded.file().entries();
    let names: Vec<&str> = entries.iter().map(|e| e.name.as_str()).collect();
    let wanted = kernel.entry.as_deref().unwrap_or(&kernel.name);
    if let Some(entry) = entries.iter().find(|e| e.name == wanted) {
        return Ok(entry);
    }
    if let (None, [only]) = (&kernel.entry, entries) {
        return Ok(only);
    }
    let file = match &kernel.text {
        Text::File(path) => format!("`{path}`"),
        Text::Inline(_) => "the script".to_string(),
    };
    let message = match (&kernel.entry, entries.is_empty()) {
        (_, true) => format!("{file} defines no kernel"),
        (Some(entry), false) => format!("{file} defines no kernel `{entry}`"),
        (None, false) => format!("{file} defines several kernels, none of them `{wanted}`"),
    };
    let help = match (nearest(wanted, names.iter().copied()), names.as_slice()) {
        (_, []) => "decorate a function with @T.prim_func or @T.jit".to_string(),
        (Some(near), _) if kernel.entry.is_some() => format!("did you mean `{near}`?"),
        _ => format!("choose with `entry`: it defines {}", names.join(", ")),
    };
    let diagnostic = Diagnostic::new(kernel.entry_span, message).help(help);
    Err(Error::from_diagnostic(&diagnostic, &manifest.sources))
}

fn compile_kernel(
    manifest: &Manifest,
    kernel: &Kernel,
    loaded: &Loaded,
    dump: Option<&Path>,
) -> Result<GeneratedKernel> {
    let entry = entry(manifest, kernel, loaded)?;
    let order: Vec<String> = entry.constexprs.iter().map(|p| p.name.clone()).collect();
    let refuse = |index: usize, message: String, help: String| {
        let span = kernel
            .specialize_spans
            .get(index)
            .copied()
            .unwrap_or(kernel.entry_span);
        Error::from_diagnostic(&Diagnostic::new(span, message).help(help), &manifest.sources)
    };
    // A kernel without `specialize` is one variant without values.
    let specializations = if kernel.specialize.is_empty() {
        vec![BTreeMap::new()]
    } else {
        kernel.specialize.clone()
    };
    let mut variants: Vec<Variant> = Vec::new();
    let mut errors = Vec::new();
    for (index, given) in specializations.iter().enumerate() {
        if let Some(unknown) = given.keys().find(|name| !order.contains(name)) {
            let help = match (
                nearest(unknown, order.iter().map(String::as_str)),
                order.as_slice(),
            ) {
                (_, []) => "the kernel has no compile-time parameters: remove `specialize`".to_string(),
                (Some(near), _) => format!("did you mean `{near}`?"),
                (None, order) => format!("its compile-time parameters are {}", order.join(", ")),
            };
            let message = format!(
                "kernel `{}` has no compile-time parameter `{unknown}`",
                kernel.name
            );
            errors.push(refuse(index, message, help));
            continue;
        }
        let missing: Vec<&str> = entry
            .constexprs
            .iter()
            .filter(|p| p.required && !given.contains_key(&p.name))
            .map(|p| p.name.as_str())
            .collect();
        if !missing.is_empty() {
            let message = format!(
                "kernel `{}` needs a value for {}",
                kernel.name,
                missing.join(", ")
            );
            errors.push(refuse(
                index,
                message,
                format!("specialize = [{{ {} = … }}]", missing.join(" = …, ")),
            ));
            continue;
        }
        let values: Vec<_> = order
            .iter()
            .filter_map(|name| {
                let parameter = entry.constexprs.iter().find(|p| p.name == *name);
                let value = given
                    .get(name)
                    .or_else(|| parameter.and_then(|p| p.default.as_ref()));
                // A default is part of the choice only where some specialization gives that parameter.
                let used = specializations.iter().any(|s| s.contains_key(name));
                Some((name.clone(), value.filter(|_| used)?.clone()))
            })
            .collect();
        let name = (!kernel.specialize.is_empty()).then(|| generate::names::specialization(&order, given));
        let name = name.map(|name| {
            if name.is_empty() {
                "default".to_string()
            } else {
                name
            }
        });
        if let Some(clash) = variants.iter().find(|v| v.name == name) {
            let message = format!(
                "two specializations of kernel `{}` would both be named `{}`",
                kernel.name,
                clash.name.as_deref().unwrap_or_default()
            );
            errors.push(refuse(
                index,
                message,
                "their values differ in characters that Rust names cannot hold".into(),
            ));
            continue;
        }
        let file = match &name {
            Some(name) => format!("{}-{name}", kernel.name),
            None => kernel.name.clone(),
        };
        let settings = Settings {
            dump: dump.map(|folder| folder.join(&file)),
            ..Settings::new(kernel.targets.primary())
        };
        let compiled = loaded
            .build(Some(&entry.name), given)
            .and_then(|module| compile::compile(module, &settings));
        match compiled {
            Ok(compiled) => variants.push(Variant {
                name,
                values,
                file,
                compiled,
                fatbin: false,
                targets: kernel.targets.native.iter().map(Architecture::sm).collect(),
                ptx: kernel.targets.ptx.as_ref().map(Architecture::compute),
                hash: String::new(),
            }),
            Err(error) => errors.push(error),
        }
    }
    Error::all(errors)?;
    write_alike(&mut variants);
    Ok(GeneratedKernel {
        name: kernel.name.clone(),
        entry: entry.name.clone(),
        variants,
    })
}

/// A tensor that one specialization writes is `&mut` in all: which stores the compiler could drop (`x * 1`) is not
/// part of a kernel's interface.
fn write_alike(variants: &mut [Variant]) {
    let count = |v: &Variant| v.compiled.launcher.signature.params.len();
    let Some(params) = variants.iter().map(count).min() else {
        return;
    };
    for index in 0..params {
        let any = variants.iter().any(|v| {
            let param = &v.compiled.launcher.signature.params[index];
            matches!(param.kind, ParamKind::Tensor { written: true, .. })
        });
        for variant in variants.iter_mut() {
            let param = &mut variant.compiled.launcher.signature.params[index];
            if let ParamKind::Tensor { written, .. } = &mut param.kind {
                *written = any;
            }
        }
    }
}

fn targets_of<'a>(manifest: &'a Manifest, name: &str) -> Option<&'a Targets> {
    manifest
        .kernels
        .iter()
        .find(|k| k.name == name)
        .map(|k| &k.targets)
}

fn jobs(manifest: &Manifest, kernels: &[GeneratedKernel]) -> Vec<Job> {
    let mut jobs = Vec::new();
    for kernel in kernels {
        let Some(targets) = targets_of(manifest, &kernel.name) else {
            continue;
        };
        for variant in &kernel.variants {
            let place = match variant.compiled.sources.locate(variant.compiled.authored.span) {
                Some(at) => format!("{}:{}:{} (`{}`)", at.file, at.line, at.column, kernel.entry),
                None => format!("`{}`", kernel.entry),
            };
            jobs.push(Job {
                file: variant.file.clone(),
                what: format!("kernel `{}`", variant.file.replace('-', "::")),
                place,
                text: variant.compiled.cuda.text.clone(),
                targets: targets.clone(),
            });
        }
    }
    jobs
}

/// Writes texts and IR images, fills in hashes, and removes what earlier builds left.
fn write_outputs(
    manifest: &Manifest,
    kernels: &mut [GeneratedKernel],
    nvcc: Option<&Nvcc>,
    folder: &Path,
) -> Result<()> {
    let mut keep = Vec::new();
    for kernel in kernels {
        let gencode = targets_of(manifest, &kernel.name)
            .map(Targets::gencode)
            .unwrap_or_default();
        for variant in &mut kernel.variants {
            let compiled = &variant.compiled;
            nvcc::write_if_changed(
                &folder.join(format!("{}.cu", variant.file)),
                compiled.cuda.text.as_bytes(),
            )?;
            nvcc::write_if_changed(&folder.join(format!("{}.ir", variant.file)), &compiled.ir)?;
            variant.fatbin = nvcc.is_some();
            let extensions: &[&str] = if variant.fatbin {
                &["cu", "ir", "fatbin", "key"]
            } else {
                &["cu", "ir"]
            };
            keep.extend(
                extensions
                    .iter()
                    .map(|extension| format!("{}.{extension}", variant.file)),
            );
            let nvcc_version = nvcc.map_or(String::new(), |nvcc| format!("{} {}", nvcc.version, nvcc.build));
            variant.hash = nvcc::digest(&[
                env!("CARGO_PKG_VERSION").as_bytes(),
                nvcc_version.as_bytes(),
                gencode.join(" ").as_bytes(),
                compiled.cuda.text.as_bytes(),
                &compiled.ir,
            ]);
        }
    }
    nvcc::sweep(folder, &keep)
}
