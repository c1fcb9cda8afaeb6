//! Kernel files in memory: loaded, built, lowered, with errors as messages.

use std::collections::BTreeMap;

use tirx_core::codegen::cuda::{self, CudaSource};
use tirx_core::diagnostic::{Diagnostics, Level, Message};
use tirx_core::ir::{Gpu, IRModule, PrimFunc, UnknownGpu};
use tirx_core::judge::checked;
use tirx_core::script::{Built, ConstValue, Imports, KernelFile};
use tirx_core::source::SourceMap;
use tirx_core::transform::lower_tirx::Decision;
use tirx_core::transform::{Lowering, Step, Target, lower};

/// A kernel file whose definitions can be built.
pub struct Loaded {
    file: KernelFile,
    sources: SourceMap,
}

/// A result, or the errors of the kernel.
pub type Result<T> = std::result::Result<T, Vec<Message>>;

impl Loaded {
    /// Reads a kernel file's text. `name` is the file in messages.
    ///
    /// # Errors
    /// Errors of the text.
    pub fn new(name: &str, text: &str, imports: &dyn Imports) -> Result<Loaded> {
        let mut sources = SourceMap::new();
        match KernelFile::load(&mut sources, name, text, imports) {
            Ok(file) => Ok(Loaded { file, sources }),
            Err(errors) => Err(errors.messages(&sources)),
        }
    }

    /// The file's definitions.
    pub fn file(&self) -> &KernelFile {
        &self.file
    }

    /// The kernels of an entry with values for its compile-time parameters.
    ///
    /// # Errors
    /// Errors of the kernel.
    pub fn build_all(&self, entry: &str, values: &BTreeMap<String, ConstValue>) -> Result<Vec<Built>> {
        let built = self.file.build_all(Some(entry), values);
        built.map_err(|errors| errors.messages(&self.sources))
    }

    /// The kernel of an entry with values for its compile-time parameters.
    ///
    /// # Errors
    /// Errors of the kernel.
    pub fn build(&self, entry: &str, values: &BTreeMap<String, ConstValue>) -> Result<IRModule> {
        let built = self.file.build(Some(entry), values);
        built.map_err(|errors| errors.messages(&self.sources))
    }

    /// The lints of the file so far, as warnings.
    pub fn warnings(&self) -> Vec<Message> {
        let lints = self.file.lints();
        let lints = lints
            .iter()
            .map(|lint| Message::from_diagnostic(&lint.diagnostic, &self.sources));
        lints.map(as_warning).collect()
    }
}

fn as_warning(message: Message) -> Message {
    Message {
        level: Level::Warning,
        ..message
    }
}

fn messages(errors: &Diagnostics, module: &IRModule) -> Vec<Message> {
    errors.messages(&module.sources)
}

/// The GPU of a name such as `sm_90a`.
///
/// # Errors
/// The name is unknown.
pub fn gpu_named(name: &str) -> Result<Gpu> {
    name.parse()
        .map_err(|unknown: UnknownGpu| vec![Message::new(Level::Error, unknown.to_string())])
}

/// A module after all passes, with the warnings of the passes.
#[derive(Debug)]
pub struct Lowered {
    /// The module.
    pub module: IRModule,
    /// Warnings.
    pub warnings: Vec<Message>,
}

/// Runs all passes for a GPU (`sm_90a`). `on_pass` sees the module after each.
///
/// # Errors
/// Errors of the kernel.
pub fn lowered(module: IRModule, gpu: Gpu, on_pass: &mut (dyn FnMut(&Step<'_>) + Send)) -> Result<Lowered> {
    lowered_with(module, gpu, on_pass, &mut Vec::new())
}

/// [`lowered`], with the decisions about the tile primitives, also if it fails.
fn lowered_with(
    module: IRModule,
    gpu: Gpu,
    on_pass: &mut (dyn FnMut(&Step<'_>) + Send),
    decisions: &mut Vec<Decision>,
) -> Result<Lowered> {
    let sources = module.sources.clone();
    let mut lowering = Lowering {
        observer: Some(on_pass),
        ..Lowering::new(Target::cuda(gpu))
    };
    let result = lower(module, &mut lowering);
    *decisions = std::mem::take(&mut lowering.decisions);
    let module = result.map_err(|errors| errors.messages(&sources))?;
    let warnings = lowering
        .warnings
        .iter()
        .map(|warning| Message::from_diagnostic(warning, &sources));
    Ok(Lowered {
        module,
        warnings: warnings.map(as_warning).collect(),
    })
}

/// The CUDA text of a lowered module.
///
/// # Errors
/// Operations that the GPU does not have, and others that have no CUDA text.
pub fn cuda_source(module: &IRModule) -> Result<CudaSource> {
    cuda::emit(module).map_err(|errors| messages(&errors, module))
}

/// A kernel that can be built.
#[derive(Debug)]
pub struct Judged {
    /// The function as written, specialized.
    pub authored: PrimFunc,
    /// The module after all passes.
    pub lowered: IRModule,
    /// The CUDA text and its properties.
    pub cuda: CudaSource,
    /// Warnings.
    pub warnings: Vec<Message>,
    /// Warnings of parameters that Rust has no type for: a build script makes no launcher for the kernel.
    pub untyped: Vec<Message>,
}

/// Compiles a module for the GPU that is `named`, or else for the first that has what the kernel uses ([`tirx_core::judge`]).
///
/// # Errors
/// Errors of the kernel.
pub fn judge(module: IRModule, named: Option<Gpu>) -> Result<Judged> {
    judge_with(module, named, &mut Vec::new())
}

/// [`judge`], with the decisions about the tile primitives for the GPU that it ends with, also if it fails.
///
/// # Errors
/// Errors of the kernel.
pub fn judge_with(module: IRModule, named: Option<Gpu>, decisions: &mut Vec<Decision>) -> Result<Judged> {
    tirx_core::judge::on_first(module, named, |module, gpu| {
        let authored = authored(&module)?.clone();
        let Lowered { module, warnings } = lowered_with(module, gpu, &mut |_| {}, decisions)?;
        let checked = checked(&authored, &module).map_err(|errors| messages(&errors, &module))?;
        Ok(Judged {
            untyped: untyped(checked.untyped.as_ref(), &module.sources),
            cuda: checked.cuda,
            lowered: module,
            authored,
            warnings,
        })
    })
}

/// Warnings of the parameters that Rust has no type for.
pub fn untyped(errors: Option<&Diagnostics>, sources: &SourceMap) -> Vec<Message> {
    let errors = errors.map_or(Vec::new(), |errors| errors.messages(sources));
    let note = "a build script makes no launcher for it, and fails";
    let warning = |error: Message| as_warning(error.child(Level::Note, note));
    errors.into_iter().map(warning).collect()
}

/// The user's function, in a module that has not been lowered.
///
/// # Errors
/// A module of several functions none of which is `main`.
pub fn authored(module: &IRModule) -> Result<&PrimFunc> {
    let functions = &module.functions;
    let main = || functions.iter().find(|(name, _)| &**name == "main");
    let found = match functions.as_slice() {
        [only] => Some(only),
        _ => main(),
    };
    found.map(|(_, func)| func).ok_or_else(|| {
        let names: Vec<&str> = functions.iter().map(|(name, _)| &**name).collect();
        let text = format!("the module has no function `main`; it has {}", names.join(", "));
        vec![Message::new(Level::Error, text)]
    })
}
