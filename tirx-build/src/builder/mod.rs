//! The build: from a manifest to generated Rust and images, and the lines for Cargo.

mod bundle;
mod code;
mod images;
mod request;
mod sources;
mod tunings;

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::c_api::CApi;
use tirx_core::source::Span;

use crate::claim::Claim;
use crate::declare::Kernel;
use crate::environment::Environment;
use crate::error::{Error, Result, rename_files};
use crate::generate::{self, Form};
use crate::kernels::{compile_manifest, fill_in, write_outputs};
use crate::libraries::{self, Libraries};
use crate::manifest::{Manifest, NATIVE, Toolchain};
use crate::nvcc::{self};
use crate::paths::{self, FileNames};
use crate::source;
use crate::target::{self, Targets};
use crate::toolchain::{self, Discovered, Nvcc};
use crate::watch;
use tirx_core::ir::Gpu;

pub use bundle::{BundleAction, BundleReport, BundledKernel};
pub use code::{CodeForm, KernelCode, disassembler};
pub use request::{BundleRequest, build_script_declares_kernels, bundle_by_build_script};
pub use sources::SourcesReport;
pub use tunings::TunedKernel;

/// The default name of the manifest.
const MANIFEST: &str = "kernels.toml";

/// A build with custom settings; [`compile_kernels`](crate::compile_kernels) uses the defaults.
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
    only: Vec<String>,
    ptx: Option<String>,
    nvcc: Option<PathBuf>,
    auto_install: Option<bool>,
    share: bool,
    bundle: Option<PathBuf>,
    environment: Environment,
    prefixes: Option<Vec<PathBuf>>,
    c_api: Option<CApi>,
    declared: Vec<Kernel>,
}

impl Default for Builder {
    fn default() -> Builder {
        Builder::new()
    }
}

/// The result of a build.
#[derive(Clone, Debug)]
pub struct Report {
    /// Lines for Cargo, as a build script prints them: `cargo::rerun-if-changed=…`, `cargo::warning=…`.
    pub directives: Vec<String>,
    /// The nvcc that was used; `None` where there was none.
    pub nvcc: Option<Nvcc>,
    /// Runs of nvcc: one for each kernel and target that no store held.
    pub compiled: usize,
    /// Images that were taken from a store.
    pub cached: usize,
    /// Kernels that were taken from a bundle.
    pub bundled: usize,
}

impl Builder {
    /// `kernels.toml` of the package, into Cargo's `OUT_DIR`, with the process's environment.
    pub fn new() -> Builder {
        Builder {
            manifest: PathBuf::from(MANIFEST),
            out_dir: None,
            targets: None,
            only: Vec::new(),
            ptx: None,
            nvcc: None,
            auto_install: None,
            share: true,
            bundle: None,
            environment: Environment::process(),
            prefixes: None,
            c_api: None,
            declared: Vec::new(),
        }
    }

    /// The manifest's path.
    pub fn manifest(mut self, path: impl Into<PathBuf>) -> Builder {
        self.manifest = path.into();
        self
    }

    /// A kernel beside those of the manifest. With kernels declared so, there need be no manifest at the default place.
    pub fn kernel(mut self, kernel: Kernel) -> Builder {
        self.declared.push(kernel);
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

    /// Compiles each kernel for those of its targets that the list names, PTX included: `["sm_80", "compute_80"]`. A kernel with none of these
    /// targets runs on the simulator only; its launch on a GPU is an error.
    pub fn only_targets<S: Into<String>>(mut self, targets: impl IntoIterator<Item = S>) -> Builder {
        self.only = targets.into_iter().map(Into::into).collect();
        self
    }

    /// PTX for newer GPUs, whatever the manifest says: `"compute_90"`; `"none"` for none.
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

    /// Environment variables to use instead of the process's.
    pub fn environment(mut self, environment: Environment) -> Builder {
        self.environment = environment;
        self
    }

    /// Installed toolkits to look into instead of `/usr/local/cuda` and the like.
    pub fn prefixes(mut self, prefixes: Vec<PathBuf>) -> Builder {
        self.prefixes = Some(prefixes);
        self
    }

    /// Also makes libraries and a header for programs in C, C++ and Python: see [`CApi`].
    pub fn c_api(mut self, api: CApi) -> Builder {
        self.c_api = Some(api);
        self
    }

    /// Whether results of nvcc are kept in, and taken from, the store that all packages of the user share; `true`
    /// unless `TIRX_STORE` is `none`.
    pub fn shared_store(mut self, share: bool) -> Builder {
        self.share = share;
        self
    }

    /// The bundle to use: a folder or a file that [`bundle`](Builder::bundle) or `cargo tirx bundle` wrote. By default what
    /// `[bundle]` of the manifest names, else `kernels.bundle` beside the manifest if it is there.
    ///
    /// Kernels are taken from it, and no nvcc is looked for. One that is stale is compiled where there is an nvcc, with a
    /// warning, and is an error where there is none, or where `TIRX_LOCKED` is set.
    pub fn bundle_dir(mut self, path: impl Into<PathBuf>) -> Builder {
        self.bundle = Some(path.into());
        self
    }

    /// Builds, and tells Cargo what the result depends on.
    ///
    /// # Errors
    /// What is wrong with the manifest, a kernel or the toolchain, rendered for the build's output.
    pub fn compile(&self) -> Result<()> {
        // Cargo shows a build script's stderr with -vv, and where the script failed.
        let report = self.build_and_say(&|line| {
            // A closed pipe is not an error.
            let _ = writeln!(io::stderr(), "{line}");
        })?;
        let lines: String = report.directives.iter().map(|line| format!("{line}\n")).collect();
        let told = io::stdout().write_all(lines.as_bytes());
        told.map_err(|error| {
            Error::new(format_args!(
                "cannot tell Cargo the files that the kernels depend on: {error}"
            ))
        })
    }

    /// Builds and prints nothing.
    ///
    /// # Errors
    /// As [`compile`](Builder::compile).
    pub fn build(&self) -> Result<Report> {
        self.build_and_say(&|_| {})
    }

    /// Compiles every kernel in all its specializations in memory, and gives the warnings. nvcc is not called and nothing
    /// is written.
    ///
    /// # Errors
    /// What is wrong with the manifest or a kernel.
    pub fn check(&self) -> Result<Vec<tirx_core::diagnostic::Message>> {
        let shown = self.manifest.to_string_lossy().replace('\\', "/");
        // Kernel files are named relative to the current folder, not to the manifest.
        let folder = self.manifest.parent().unwrap_or(Path::new("")).to_path_buf();
        let name = |file: &str| match file == shown || file.starts_with('<') {
            true => file.to_string(),
            false => folder.join(file).to_string_lossy().replace('\\', "/"),
        };
        let check = || {
            let mut manifest =
                self.parse_manifest(&shown, "name a kernel file, or the manifest with --manifest")?;
            manifest.resolve_native(|| toolchain::architectures(&self.environment))?;
            let mut warnings = Vec::new();
            compile_manifest(
                &manifest,
                &self.manifest,
                &Libraries::from_environment(&self.environment),
                None,
                &mut BTreeSet::new(),
                &mut warnings,
            )?;
            for warning in &mut warnings {
                rename_files(warning, &name);
            }
            Ok(warnings)
        };
        check().map_err(|error: Error| error.with_files_named(&name))
    }

    fn build_and_say(&self, say: &(dyn Fn(&str) + Sync)) -> Result<Report> {
        let environment = self.own_environment();
        let shown = self.manifest.to_string_lossy().replace('\\', "/");
        let names = FileNames::new(&environment, &self.manifest, &shown);
        let asked = self.answer_request(&environment)?;
        let builder = asked.as_ref().unwrap_or(self);
        let report = builder.build_in(&environment, &shown, &names, say);
        report.map_err(|error| error.with_files_named(&|file| names.name(file)))
    }

    fn build_in(
        &self,
        environment: &Environment,
        shown: &str,
        names: &FileNames,
        say: &(dyn Fn(&str) + Sync),
    ) -> Result<Report> {
        let out_dir = self
            .out_dir
            .clone()
            .or_else(|| environment.path("OUT_DIR"))
            .ok_or_else(|| {
                Error::new("OUT_DIR is not set")
                    .help("call this from a build script, or give Builder::out_dir")
            })?;
        let folder = out_dir.join("tirx");
        fs::create_dir_all(&folder).map_err(|e| Error::io("create", &folder, &e))?;
        // Before the first input is read, so that a build that claims the output later has read later inputs.
        let claim = Claim::take(&out_dir)?;
        let mut manifest = self.read_manifest(shown)?;
        // A documentation server has no GPU, and signatures do not depend on which one it is.
        let documented = environment.get("DOCS_RS").is_some();
        manifest.resolve_native(|| match documented {
            true => Ok(vec![Gpu::SM_90A]),
            false => toolchain::architectures(environment),
        })?;
        manifest.kernels.retain(|kernel| {
            kernel
                .feature
                .as_deref()
                .is_none_or(|feature| enabled(environment, feature))
        });

        let mut inputs = BTreeSet::from([self.manifest.clone()]);
        let dump = environment.path("TIRX_DUMP");
        let mut lints = Vec::new();
        let mut kernels = compile_manifest(
            &manifest,
            &self.manifest,
            &Libraries::from_environment(environment),
            dump.as_deref(),
            &mut inputs,
            &mut lints,
        )?;
        let mut images = self.images(environment, &manifest, &kernels, &out_dir, &claim, say)?;
        inputs.extend(images.bundle);
        let appears = images.missing_bundle.as_deref();
        inputs.extend(appears.and_then(|path| watch::appearance(&out_dir, "missing", path)));
        if kernels.iter().any(|kernel| kernel.tuned.is_some()) {
            let tunings = self.tunings(environment, &mut kernels, &mut images.warnings)?;
            match tunings.folder.exists() {
                true => inputs.extend([tunings.folder]),
                false => inputs.extend(watch::appearance(&out_dir, "untuned", &tunings.folder)),
            }
        }
        fill_in(&mut kernels, images.of_variants);
        let manifest_name = self
            .manifest
            .file_name()
            .map(|n| n.to_string_lossy().into_owned());
        let generated = generate::file(
            manifest_name.as_deref().unwrap_or(MANIFEST),
            &kernels,
            Form::BuildScript,
        );
        claim.write(|| {
            write_outputs(&kernels, &folder)?;
            nvcc::write_if_changed(&out_dir.join("tirx_kernels.rs"), generated.as_bytes())?;
            if let Some(api) = &self.c_api {
                api.build(&kernels, environment, &out_dir)?;
            }
            remove_work_of_others(&out_dir);
            Ok(())
        })?;

        let mut directives = watch::directives(environment, &inputs, &images.found.watched());
        if let Some(api) = &self.c_api {
            directives.extend(api.directives(environment, &out_dir));
        }
        let folder = self.manifest.parent().unwrap_or(Path::new(""));
        directives.extend(libraries::directive(environment, folder));
        directives.extend(
            images
                .warnings
                .iter()
                .map(|text| format!("cargo::warning={text}")),
        );
        for mut warning in lints.into_iter().chain(images.said) {
            rename_files(&mut warning, &|file| names.name(file));
            directives.push(format!("cargo::warning={}", nvcc::warning_line(&warning)));
        }
        Ok(Report {
            directives,
            nvcc: images.found.into_nvcc(),
            compiled: images.compiled,
            cached: images.cached,
            bundled: images.bundled,
        })
    }

    fn own_environment(&self) -> Environment {
        match &self.nvcc {
            Some(path) => self.environment.clone().with("TIRX_NVCC", path),
            None => self.environment.clone(),
        }
    }

    fn read_manifest(&self, shown: &str) -> Result<Manifest> {
        self.parse_manifest(
            shown,
            "the path is relative to the folder of the package's Cargo.toml",
        )
    }

    /// The manifest with the kernels of the build script.
    fn parse_manifest(&self, shown: &str, help: &str) -> Result<Manifest> {
        let text = match source::read(&self.manifest) {
            Ok(text) => text,
            Err(error)
                if error.kind() == std::io::ErrorKind::NotFound
                    && !self.declared.is_empty()
                    && self.manifest == Path::new(MANIFEST) =>
            {
                String::new()
            }
            Err(error) => {
                return Err(
                    Error::io("read", &paths::shown(&self.environment, &self.manifest), &error).help(help),
                );
            }
        };
        let mut manifest =
            Manifest::with_declared(shown, &text, self.declared.iter().map(Kernel::declared).collect())?;
        if let Some(folder) = self.manifest.parent() {
            manifest.check_features(folder)?;
        }
        self.override_targets(&mut manifest)?;
        match manifest
            .kernels
            .iter()
            .find(|kernel| kernel.targets.is_empty() && kernel.native_span.is_none())
        {
            Some(kernel) => Err(
                Error::new(format_args!("kernel `{}` names no targets", kernel.name)).help(
                    "give Kernel::targets, Builder::targets, or `targets` in [defaults] of the manifest",
                ),
            ),
            None => Ok(manifest),
        }
    }

    /// A message about a kernel, with instructions for bundling where this build script declares it.
    fn of_script(&self, file: &str, error: Error) -> Error {
        let declares = |kernel: &Kernel| {
            let rest = file.strip_prefix(kernel.name());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        match self.declared.iter().any(declares) {
            true => error.note("the build script declares it: `cargo tirx bundle --build-script` has the script make the bundle"),
            false => error,
        }
    }

    fn has_nvcc(&self, environment: &Environment, manifest: &Manifest) -> bool {
        let found = self.find_nvcc(environment, &manifest.toolchain, manifest, &|_| {});
        matches!(found, Ok((Found::Nvcc(_), _)))
    }

    fn override_targets(&self, manifest: &mut Manifest) -> Result<()> {
        let unknown = |error: tirx_core::ir::UnknownGpu| {
            let message = Error::new(format_args!("Builder::targets: {}", error.message));
            match error.suggestion {
                Some(near) => message.help(format_args!("did you mean `{near}`?")),
                None => message,
            }
        };
        let ptx = self
            .ptx
            .as_deref()
            .map(target::parse_ptx)
            .transpose()
            .map_err(unknown)?;
        if let Some(targets) = &self.targets {
            if targets.is_empty() && self.ptx.is_none() {
                return Err(Error::new("Builder::targets: names no targets").help("for example [\"sm_90a\"]"));
            }
            let named = targets.iter().filter(|target| *target != NATIVE);
            let native = named
                .map(|t| target::parse(t))
                .collect::<std::result::Result<Vec<_>, _>>();
            let native: Vec<Gpu> = native.map_err(unknown)?;
            let machine = targets.iter().any(|target| target == NATIVE);
            for kernel in &mut manifest.kernels {
                kernel.targets = Targets {
                    native: native.clone(),
                    ptx: None,
                };
                kernel.native_span = machine.then_some(Span::NONE);
            }
        }
        if let Some(ptx) = ptx {
            manifest
                .kernels
                .iter_mut()
                .for_each(|kernel| kernel.targets.ptx = ptx);
        }
        self.keep_only(manifest)
    }

    /// Leaves out the targets that [`only_targets`](Builder::only_targets) does not name.
    fn keep_only(&self, manifest: &mut Manifest) -> Result<()> {
        if self.only.is_empty() {
            return Ok(());
        }
        let (mut native, mut ptx) = (Vec::new(), Vec::new());
        for name in &self.only {
            match target::parse(name) {
                Ok(gpu) => native.push(gpu),
                Err(error) => match target::parse_ptx(name) {
                    Ok(Some(gpu)) => ptx.push(gpu),
                    _ => {
                        let message = Error::new(format_args!("Builder::only_targets: {}", error.message));
                        return Err(message.help("name targets as the manifest does: `sm_90a`, `compute_80`"));
                    }
                },
            }
        }
        for kernel in &mut manifest.kernels {
            let kept = Targets {
                native: kernel
                    .targets
                    .native
                    .iter()
                    .filter(|gpu| native.contains(gpu))
                    .copied()
                    .collect(),
                ptx: kernel.targets.ptx.filter(|gpu| ptx.contains(gpu)),
            };
            match kept.is_empty() {
                true => kernel.left_out = true,
                false => kernel.targets = kept,
            }
        }
        match manifest.kernels.iter().all(|kernel| kernel.left_out) && !manifest.kernels.is_empty() {
            true => Err(Error::new(format_args!(
                "no kernel has one of the targets {}",
                self.only.join(", ")
            ))
            .help("Builder::only_targets names some of the targets of the manifest")),
            false => Ok(()),
        }
    }

    /// The nvcc to use, or the single warning that there is none.
    fn find_nvcc(
        &self,
        environment: &Environment,
        toolchain: &Toolchain,
        manifest: &Manifest,
        say: &(dyn Fn(&str) + Sync),
    ) -> Result<(Found, Option<String>)> {
        if manifest.kernels.is_empty() {
            return Ok((Found::NotWanted, None));
        }
        let needs = manifest
            .kernels
            .iter()
            .filter_map(|kernel| kernel.targets.most_demanding());
        let search = toolchain::Search {
            environment,
            pin: toolchain.cuda,
            needs: needs.max_by_key(|(_, version)| *version),
            prefixes: self.prefixes.clone(),
        };
        let at_pin = |error: Error| match manifest.pin_place() {
            Some(place) if error.to_string().contains("the manifest pins") => error.at(place),
            _ => error,
        };
        let discovered = toolchain::discover(&search).map_err(at_pin)?;
        let (reason, unsuitable) = match discovered {
            Discovered::Found(nvcc) => return Ok((Found::Nvcc(nvcc), None)),
            Discovered::Refused => ("TIRX_NVCC is `none`".to_string(), None),
            Discovered::Nothing => ("no nvcc was found".to_string(), None),
            Discovered::Unsuitable(error) => (String::new(), Some(at_pin(error))),
        };
        let refused = reason.starts_with("TIRX_NVCC");
        let mut reason = reason;
        if let Some(pin) = toolchain.cuda.filter(|_| toolchain.auto_install && !refused) {
            if toolchain::offline(environment) {
                let text = format!("TIRX_OFFLINE forbids fetching nvcc {pin}");
                return Err(match unsuitable {
                    Some(unsuitable) => unsuitable.note(text),
                    None => Error::new(format_args!("{reason}, and {text}")).help(
                        "make a bundle on a machine with nvcc (`cargo tirx bundle`), or set TIRX_NVCC to an existing \
                         nvcc, or to `none` for the simulator only",
                    ),
                });
            }
            if environment.get("CARGO_NET_OFFLINE").is_some_and(|v| v == "true") {
                reason.push_str(", and Cargo is offline");
            } else {
                match toolchain::install(environment, pin, &mut |line| say(&format!("tirx: {line}"))) {
                    Ok(nvcc) => return Ok((Found::Nvcc(nvcc), None)),
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
            return Err(match refused {
                true => {
                    error.help("unset TIRX_NVCC, or leave `require` out: the simulator needs no machine code")
                }
                false => error.help(toolchain::install_help(toolchain.cuda)),
            });
        }
        let warning = format!(
            "tirx: {reason}: the kernels run on the simulator only ({})",
            if refused {
                "unset TIRX_NVCC for GPU code".to_string()
            } else {
                toolchain::install_help(toolchain.cuda)
            }
        );
        let found = if refused { Found::NotWanted } else { Found::Nothing };
        Ok((found, Some(warning)))
    }
}

/// Whether the package is built with a Cargo feature.
fn enabled(environment: &Environment, feature: &str) -> bool {
    let name = feature.to_uppercase().replace('-', "_");
    // Set, even to an empty text or 1.
    environment
        .variables()
        .contains_key(&format!("CARGO_FEATURE_{name}"))
}

/// Removes temporary files of builds that were killed.
fn remove_work_of_others(out_dir: &Path) {
    for entry in fs::read_dir(out_dir).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with("tirx-work-") {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The outcome of the search for an nvcc.
enum Found {
    Nvcc(Nvcc),
    NotWanted,
    Nothing,
}

impl Found {
    fn nvcc(&self) -> Option<&Nvcc> {
        match self {
            Found::Nvcc(nvcc) => Some(nvcc),
            _ => None,
        }
    }

    fn into_nvcc(self) -> Option<Nvcc> {
        match self {
            Found::Nvcc(nvcc) => Some(nvcc),
            _ => None,
        }
    }

    fn watched(&self) -> watch::Found<'_> {
        match self {
            Found::Nvcc(nvcc) => watch::Found::Nvcc(nvcc),
            Found::NotWanted => watch::Found::NotWanted,
            Found::Nothing => watch::Found::Nothing,
        }
    }
}
