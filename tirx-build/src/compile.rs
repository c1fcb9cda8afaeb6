//! Compiles one kernel in memory, from text to all outputs: the only place that calls the compiler.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use tirx_core::codegen::cuda::CudaSource;
use tirx_core::codegen::rust::Launcher;
use tirx_core::codegen::{cuda, host, rust};
use tirx_core::diagnostic::{Diagnostics, Level, Message};
use tirx_core::ir::{AttrValue, Gpu, IRModule, PrimFunc, image};
use tirx_core::judge::{self, Checked, is_lowered, on_first};
use tirx_core::script::eval::Lint;
use tirx_core::script::{Built, ConstValue, Imports, KernelFile, ModuleText, Release, Rewrite, print};
use tirx_core::source::SourceMap;
use tirx_core::transform::{Lowering, Options, Step, Target, lower};

use crate::environment::Environment;
use crate::error::Error;
use crate::libraries::Libraries;

/// Answers [`Imports::rewrite_in_v27`].
pub type Rewriter = fn(&str, Range<usize>) -> Option<Rewrite>;

/// Imports between kernel files. A file whose folder has an `__init__.py` is a module of that package, as in Python, and
/// the folder around the outermost package is searched for `import package.name`; before it the file's own folder is, as
/// for a script.
#[derive(Debug)]
pub struct FileImports {
    folder: PathBuf,
    shown: String,
    /// The packages that the file is in, from the outermost.
    packages: Vec<String>,
    multiprocessors: Option<u32>,
    release: Option<Release>,
    libraries: Libraries,
    rewriter: Option<Rewriter>,
    asked: RefCell<Vec<PathBuf>>,
    /// The last file that there is but that cannot be read, and why.
    refused: RefCell<Option<(String, String)>>,
}

impl FileImports {
    /// Imports of a file in `folder`; `shown` is what messages call the folder (empty, or ending in `/`).
    pub fn new(folder: impl Into<PathBuf>, shown: impl Into<String>) -> FileImports {
        let folder = folder.into();
        let mut packages = Vec::new();
        // A relative folder may be inside of a package that only its absolute path shows.
        let mut around = fs::canonicalize(if folder.as_os_str().is_empty() {
            Path::new(".")
        } else {
            &folder
        });
        while let Ok(path) = &around
            && path.join(PACKAGE).is_file()
            && let Some(name) = path.file_name().and_then(|name| name.to_str())
            && let Some(parent) = path.parent()
        {
            packages.insert(0, name.to_string());
            around = Ok(parent.to_path_buf());
        }
        FileImports {
            folder,
            shown: shown.into(),
            packages,
            multiprocessors: None,
            release: None,
            libraries: Libraries::default(),
            rewriter: None,
            asked: RefCell::default(),
            refused: RefCell::default(),
        }
    }

    /// The number of multiprocessors that kernel files are told, by `torch.cuda.get_device_properties`.
    #[must_use]
    pub fn with_multiprocessors(mut self, count: impl Into<Option<u32>>) -> FileImports {
        self.multiprocessors = count.into();
        self
    }

    /// The release of TVM that kernel files are written for, where they do not show it.
    #[must_use]
    pub fn with_release(mut self, release: impl Into<Option<Release>>) -> FileImports {
        self.release = release.into();
        self
    }

    /// How messages translate calls of TVM 0.26; without it they name the mnemonics of the table.
    #[must_use]
    pub fn with_rewriter(mut self, rewriter: Rewriter) -> FileImports {
        self.rewriter = Some(rewriter);
        self
    }

    /// Kernel files of the crates that `DEP_…_TIRX_KERNELS` variables name, as Cargo sets them for build scripts, and of
    /// those that [`Environment::with_libraries`] finds.
    #[must_use]
    pub fn with_libraries_of(self, environment: &Environment) -> FileImports {
        self.with_libraries(&Libraries::from_environment(environment))
    }

    /// Kernel files of other crates.
    #[must_use]
    pub(crate) fn with_libraries(mut self, libraries: &Libraries) -> FileImports {
        self.libraries = libraries.clone();
        self
    }

    /// The text of a file; `None` if there is no such file, or if it cannot be read: the reason is kept then.
    fn text(&self, path: &Path, shown: impl FnOnce() -> String) -> Option<String> {
        match crate::source::read(path) {
            Ok(text) => Some(text),
            Err(error) if path.is_file() => {
                *self.refused.borrow_mut() = Some((shown(), error.to_string()));
                None
            }
            Err(_) => None,
        }
    }

    /// A module of another crate.
    fn in_library(&self, relative: &str) -> Option<(String, String)> {
        let (path, shown) = self.libraries.find(&self.folder, relative)?;
        let text = self.text(&path, || shown.clone())?;
        let mut asked = self.asked.borrow_mut();
        if !asked.contains(&path) {
            asked.push(path);
        }
        Some((shown, text))
    }

    /// The files that were read, in order.
    pub fn files(&self) -> Vec<PathBuf> {
        self.asked.borrow().clone()
    }

    /// A path from the folder that is `up` folders above the file's.
    fn find(&self, up: usize, relative: &str) -> Option<(String, String)> {
        let above = "../".repeat(up);
        let path = self.folder.join(format!("{above}{relative}"));
        let shown = || {
            let above = self.above(up);
            format!("{above}{relative}")
        };
        let text = self.text(&path, shown)?;
        let mut asked = self.asked.borrow_mut();
        if !asked.contains(&path) {
            asked.push(path);
        }
        Some((shown(), text))
    }

    /// How messages call the folder that is `up` folders above the file's.
    fn above(&self, up: usize) -> String {
        // `a/b/` and two folders up is the working folder.
        let mut shown: Vec<&str> = self.shown.split_inclusive('/').collect();
        let mut left = up;
        while left > 0
            && shown
                .last()
                .is_some_and(|part| *part != "/" && *part != "../" && *part != "./")
        {
            shown.pop();
            left -= 1;
        }
        let shown: String = shown.concat();
        format!("{shown}{}", "../".repeat(left))
    }
}

/// The file that makes a folder a package.
const PACKAGE: &str = "__init__.py";

impl Imports for FileImports {
    fn package(&self) -> String {
        self.packages.join(".")
    }

    fn multiprocessors(&self) -> Option<u32> {
        self.multiprocessors
    }

    fn release(&self) -> Option<Release> {
        self.release
    }

    fn rewrite_in_v27(&self, text: &str, function: Range<usize>) -> Option<Rewrite> {
        self.rewriter?(text, function)
    }

    fn unreadable(&self, _module: &str) -> Option<(String, String)> {
        self.refused.take()
    }

    fn read(&self, module: &str) -> Option<ModuleText> {
        self.refused.take();
        let named = module
            .split('.')
            .all(|part| !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || c == '_'));
        if !named {
            return None;
        }
        let path = module.replace('.', "/");
        let files = [(format!("{path}/{PACKAGE}"), true), (format!("{path}.py"), false)];
        let mut folders = vec![0, self.packages.len()];
        folders.dedup();
        let own = folders.into_iter().flat_map(|up| {
            files
                .iter()
                .map(move |(file, is_package)| (self.find(up, file), *is_package))
        });
        let others = files
            .iter()
            .map(|(file, is_package)| (self.in_library(file), *is_package));
        own.chain(others).find_map(|(found, is_package)| {
            let (name, text) = found?;
            Some(ModuleText {
                name,
                text,
                is_package,
            })
        })
    }
}

/// A file whose definitions can be built.
pub struct Loaded {
    file: KernelFile,
    sources: SourceMap,
}

impl std::fmt::Debug for Loaded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loaded")
            .field("entries", &self.file.entries())
            .finish_non_exhaustive()
    }
}

impl Loaded {
    /// Reads a kernel file's text. `name` is what messages call it.
    pub fn new(name: &str, text: &str, imports: &dyn Imports) -> Result<Loaded, Error> {
        let mut sources = SourceMap::new();
        let file = KernelFile::load(&mut sources, name, text, imports);
        let file = file.map_err(|d| Error::from_diagnostics(&d, &sources))?;
        Ok(Loaded { file, sources })
    }

    /// The file's definitions.
    pub fn file(&self) -> &KernelFile {
        &self.file
    }

    /// The texts of the file and what it imports.
    pub fn sources(&self) -> &SourceMap {
        &self.sources
    }

    /// Builds an entry with values for its compile-time parameters.
    pub fn build(
        &self,
        entry: Option<&str>,
        values: &BTreeMap<String, ConstValue>,
    ) -> Result<IRModule, Error> {
        self.file
            .build(entry, values)
            .map_err(|d| Error::from_diagnostics(&d, &self.sources))
    }

    /// The lints of the file so far, as warnings.
    pub fn warnings(&self) -> Vec<Message> {
        let lints = self.file.lints();
        let warning = |lint: &Lint| {
            let mut message = Message::from_diagnostic(&lint.diagnostic, &self.sources);
            message.level = Level::Warning;
            message
        };
        lints.iter().map(warning).collect()
    }

    /// Builds every kernel that an entry gives: one, unless it is a function that returns several.
    pub fn build_all(
        &self,
        entry: Option<&str>,
        values: &BTreeMap<String, ConstValue>,
    ) -> Result<Vec<Built>, Error> {
        self.file
            .build_all(entry, values)
            .map_err(|d| Error::from_diagnostics(&d, &self.sources))
    }
}

/// Options of lowering.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The GPU.
    pub gpu: Gpu,
    /// Other GPUs that the same text is compiled for.
    pub also: Vec<Gpu>,
    /// Switches of passes.
    pub options: Options,
    /// The registers that a thread may use, beside what the kernel says itself.
    pub max_registers: Option<u32>,
    /// Last pass to run; `None` for all.
    pub stop_after: Option<String>,
    /// Where to write the IR after each pass.
    pub dump: Option<PathBuf>,
}

impl Settings {
    /// The same, without writing the IR of passes.
    #[must_use]
    pub fn without_dump(self) -> Settings {
        Settings { dump: None, ..self }
    }

    /// All passes for a GPU.
    pub fn new(gpu: Gpu) -> Settings {
        Settings {
            gpu,
            also: Vec::new(),
            options: Options::default(),
            max_registers: None,
            stop_after: None,
            dump: None,
        }
    }
}

/// Runs the pipeline. With a dump folder, `00-parsed.py` and `NN-Pass.py` are written there.
pub fn run_passes(
    module: IRModule,
    settings: &Settings,
    timer: Option<&(dyn Fn() -> u64 + Sync)>,
    on_pass: &mut (dyn FnMut(&Step<'_>) + Send),
) -> Result<IRModule, Error> {
    run_and_note(module, settings, timer, on_pass, &mut Notes::default())
}

/// As [`run_passes`]; appends the warnings of passes to `warnings`.
pub fn run_and_warn(
    module: IRModule,
    settings: &Settings,
    timer: Option<&(dyn Fn() -> u64 + Sync)>,
    on_pass: &mut (dyn FnMut(&Step<'_>) + Send),
    warnings: &mut Vec<Message>,
) -> Result<IRModule, Error> {
    let mut notes = Notes::default();
    let lowered = run_and_note(module, settings, timer, on_pass, &mut notes);
    warnings.append(&mut notes.warnings);
    lowered
}

/// What a lowering says besides its result.
#[derive(Default)]
struct Notes {
    warnings: Vec<Message>,
    /// See [`Lowering::separated`].
    separated: bool,
}

/// As [`run_passes`]; adds to `notes`.
fn run_and_note(
    module: IRModule,
    settings: &Settings,
    timer: Option<&(dyn Fn() -> u64 + Sync)>,
    on_pass: &mut (dyn FnMut(&Step<'_>) + Send),
    notes: &mut Notes,
) -> Result<IRModule, Error> {
    let sources = module.sources.clone();
    let mut failed: Option<Error> = None;
    if let Some(folder) = &settings.dump {
        fs::create_dir_all(folder).map_err(|e| Error::io("create", folder, &e))?;
        write_dump(folder, "00-parsed", &module)?;
    }
    let mut observe = |step: &Step<'_>| {
        on_pass(step);
        if let Some(folder) = &settings.dump
            && failed.is_none()
        {
            let name = format!("{:02}-{}", step.index + 1, step.pass);
            failed = write_dump(folder, &name, step.module).err();
        }
    };
    let mut lowering = Lowering {
        options: settings.options.clone(),
        stop_after: settings.stop_after.as_deref(),
        observer: Some(&mut observe),
        timer,
        // The verifier finds defects of the compiler, not of a kernel, and its cost is large (`docs/developing/performance.md`).
        // It runs where the IR is dumped, and in the compiler's own tests.
        verify: settings.dump.is_some(),
        also: settings.also.iter().copied().map(Target::cuda).collect(),
        ..Lowering::new(Target::cuda(settings.gpu))
    };
    let lowered = lower(module, &mut lowering).map_err(|d| Error::from_diagnostics(&d, &sources));
    notes.separated |= lowering.separated;
    notes.warnings.extend(lowering.warnings.iter().map(|warning| {
        let mut message = Message::from_diagnostic(warning, &sources);
        message.level = Level::Warning;
        message
    }));
    match failed {
        Some(error) => Err(error),
        None => lowered,
    }
}

fn write_dump(folder: &Path, name: &str, module: &IRModule) -> Result<(), Error> {
    let path = folder.join(format!("{name}.py"));
    fs::write(&path, print(module)).map_err(|e| Error::io("write", &path, &e))
}

/// The CUDA text of a lowered module.
pub fn cuda_source(module: &IRModule) -> Result<CudaSource, Error> {
    cuda::emit(module).map_err(|d| render(&d, module))
}

/// The user's function, in a module that has not been lowered.
pub fn authored(module: &IRModule) -> Result<&PrimFunc, Error> {
    match module.functions.as_slice() {
        [(_, func)] => Ok(func),
        functions => functions
            .iter()
            .find(|(name, _)| &**name == "main")
            .map(|(_, func)| func)
            .ok_or_else(|| {
                let names: Vec<&str> = functions.iter().map(|(name, _)| &**name).collect();
                Error::new(format_args!(
                    "the module has no function `main`; it has {}",
                    names.join(", ")
                ))
            }),
    }
}

/// The outputs for one specialization of a kernel.
#[derive(Debug)]
pub struct Compiled {
    /// The function as written, specialized.
    pub authored: PrimFunc,
    /// The text that its spans point into.
    pub sources: SourceMap,
    /// The CUDA text and its properties.
    pub cuda: CudaSource,
    /// The IR image of the device functions.
    pub ir: Vec<u8>,
    /// The pieces of the Rust launcher.
    pub launcher: Launcher,
    /// The lowered module, including the host function.
    pub lowered: IRModule,
    /// Warnings.
    pub warnings: Vec<Message>,
}

/// Compiles a module that was built from a kernel file, for all GPUs of the settings at once.
///
/// # Errors
/// What is wrong with the kernel.
pub fn compile(module: IRModule, settings: &Settings) -> Result<Compiled, Error> {
    compile_and_note(module, settings, &mut Notes::default())
}

/// A kernel that every command accepts.
#[derive(Debug)]
pub struct Judged {
    /// The function as written, specialized.
    pub authored: PrimFunc,
    /// The lowered module, including the host function.
    pub lowered: IRModule,
    /// The CUDA text and its properties.
    pub cuda: CudaSource,
    /// Warnings.
    pub warnings: Vec<Message>,
    /// Warnings of parameters that Rust has no type for: the simulator runs the kernel, but a build script makes no launcher for it.
    pub untyped: Vec<Message>,
}

/// Whether a kernel can be built, for the commands that print, check and simulate it, the language server, tests and tools. It is
/// compiled as a build script compiles it ([`compile`]), except for a launcher in Rust, for the GPU that is `named`, or else for the first that it compiles for
/// ([`tirx_core::judge`]); `gpu` of the settings is not used. A module that is lowered already (printed IR with device functions) is checked.
///
/// # Errors
/// What is wrong with the kernel; on all GPUs, if none is named.
pub fn judge(module: IRModule, settings: &Settings, named: Option<Gpu>) -> Result<Judged, Error> {
    if is_lowered(&module) {
        if let Some(gpu) = named {
            cuda::unsupported(&module, gpu).map_err(|d| render(&d, &module))?;
        }
        return Ok(Judged {
            authored: authored(&module)?.clone(),
            cuda: cuda_source(&module)?,
            lowered: module,
            warnings: Vec::new(),
            untyped: Vec::new(),
        });
    }
    on_first(module, named, |module, gpu| {
        let settings = Settings {
            gpu,
            ..settings.clone()
        };
        let mut notes = Notes::default();
        let (authored, lowered, checked) = checked(module, &settings, &mut notes)?;
        let untyped = checked.untyped.as_ref();
        Ok(Judged {
            untyped: untyped.map_or(Vec::new(), |d| untyped_warnings(d, &lowered.sources)),
            warnings: notes.warnings,
            cuda: checked.cuda,
            authored,
            lowered,
        })
    })
}

/// Warnings of parameters that Rust has no type for.
fn untyped_warnings(errors: &Diagnostics, sources: &SourceMap) -> Vec<Message> {
    let warning = |message: Message| Message {
        level: Level::Warning,
        ..message.child(Level::Note, "a build script makes no launcher for it, and fails")
    };
    errors.messages(sources).into_iter().map(warning).collect()
}

/// The outputs for GPUs that share them.
#[derive(Debug)]
pub struct Shared {
    /// The GPUs.
    pub targets: Vec<Gpu>,
    /// The outputs.
    pub compiled: Compiled,
}

/// Compiles a module for the GPUs of the settings: those with the same device code and launch share it. The
/// module is lowered for all at once; only where a tile primitive has an implementation that some of the GPUs
/// have and others lack is it lowered for each. `further` are GPUs that are compiled for in that case only; one
/// that the kernel cannot be compiled for is passed to `left_out` with the error.
///
/// # Errors
/// What is wrong with the kernel.
pub fn compile_each(
    module: IRModule,
    settings: &Settings,
    further: &[Gpu],
    left_out: &mut dyn FnMut(Gpu, &Error),
) -> Result<Vec<Shared>, Error> {
    let all = || std::iter::once(&settings.gpu).chain(&settings.also);
    let mut notes = Notes::default();
    let together = compile_and_note(module.clone(), settings, &mut notes);
    if !notes.separated {
        let targets = all().cloned().collect();
        let compiled = together?;
        return Ok(vec![Shared { targets, compiled }]);
    }
    let mut shared: Vec<Shared> = Vec::new();
    for gpu in all().chain(further) {
        let own = Settings {
            gpu: *gpu,
            also: Vec::new(),
            dump: settings.dump.as_ref().map(|folder| folder.join(gpu.to_string())),
            ..settings.clone()
        };
        let compiled = match compile(module.clone(), &own) {
            Ok(compiled) => compiled,
            Err(error) if further.contains(gpu) && !all().any(|native| native == gpu) => {
                left_out(*gpu, &error);
                continue;
            }
            Err(error) => {
                return Err(error.note(format_args!("compiled for {gpu}, which gets separate code")));
            }
        };
        match shared.iter_mut().find(|other| other.compiled.is_same(&compiled)) {
            Some(other) => other.targets.push(*gpu),
            None => shared.push(Shared {
                targets: vec![*gpu],
                compiled,
            }),
        }
    }
    Ok(shared)
}

impl Compiled {
    /// Whether both have one device code and one launch.
    fn is_same(&self, other: &Compiled) -> bool {
        self.cuda.text == other.cuda.text
            && self.ir == other.ir
            && self.launcher.host == other.launcher.host
            && self.launcher.parameters() == other.launcher.parameters()
    }
}

fn compile_and_note(module: IRModule, settings: &Settings, notes: &mut Notes) -> Result<Compiled, Error> {
    let (authored, lowered, Checked { cuda, .. }) = checked(module, settings, notes)?;
    let launcher = rust::launcher(&authored, &lowered).map_err(|d| render(&d, &lowered))?;
    Ok(Compiled {
        ir: image::encode(&host::device_module(&lowered)),
        sources: lowered.sources.clone(),
        authored,
        cuda,
        launcher,
        lowered,
        warnings: std::mem::take(&mut notes.warnings),
    })
}

/// A module as written, lowered, and what that becomes.
fn checked(
    module: IRModule,
    settings: &Settings,
    notes: &mut Notes,
) -> Result<(PrimFunc, IRModule, Checked), Error> {
    let authored = authored(&module)?.clone();
    let mut lowered = run_and_note(module, settings, None, &mut |_| {}, notes)?;
    if let Some(registers) = settings.max_registers {
        for (_, func) in &mut lowered.functions {
            limit_registers(func, registers.into());
        }
    }
    for gpu in &settings.also {
        cuda::unsupported(&lowered, *gpu).map_err(|d| render(&d, &lowered))?;
    }
    let checked = judge::checked(&authored, &lowered).map_err(|d| render(&d, &lowered))?;
    if let Some(folder) = &settings.dump {
        let path = folder.join("kernel.cu");
        fs::write(&path, &checked.cuda.text).map_err(|e| Error::io("write", &path, &e))?;
    }
    Ok((authored, lowered, checked))
}

/// Lets the threads of a kernel have this many registers at most.
fn limit_registers(func: &mut PrimFunc, registers: i64) {
    if host::is_device(func) {
        let own = func.attr(host::keys::MAX_REGISTERS).and_then(AttrValue::as_int);
        let least = own.map_or(registers, |own| own.min(registers));
        *func = func
            .clone()
            .with_attr(host::keys::MAX_REGISTERS, AttrValue::Int(least));
    }
}

fn render(diagnostics: &Diagnostics, module: &IRModule) -> Error {
    Error::from_diagnostics(diagnostics, &module.sources)
}
