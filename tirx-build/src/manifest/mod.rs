//! `kernels.toml`: its contents and its errors.
//!
//! Reading is pure: no file but the text given is looked at. Every error points at its line and column.
//!
//! | file | question |
//! |---|---|
//! | `keys` | which keys are there, and what do they mean? |
//! | `raw` | which types have the values of its keys? |
//! | `forms` | what is said where they have others? |
//! | `read` | what is a manifest, once its values are checked? It reads kernels of the build script, too |
//! | `checks` | which names, targets, releases and flags are there? |
//! | `values` | which specializations does a kernel have? |
//! | `tune` | which candidates does a tuned kernel have? |
//! | `resolve` | which GPUs does `native` mean? |

mod checks;
mod features;
mod forms;
pub mod keys;
mod raw;
mod read;
mod resolve;
#[cfg(test)]
mod tests;
mod tune;
mod values;

use std::collections::BTreeMap;

use tirx_core::diagnostic::{Diagnostics, TextRange};
use tirx_core::ir::PrimFunc;
use tirx_core::script::{ConstValue, Release};
use tirx_core::source::{SourceMap, Span};

use crate::document;
use crate::error::Error;
use crate::nvcc::NvccOptions;
use crate::target::Targets;
use crate::toolchain::Pin;
use raw::RawManifest;
pub(crate) use raw::{RawKernel, RawTune};
use read::Reader;
pub use tune::TunedSizes;
pub(crate) use values::Values;

/// A manifest that was read and checked.
#[derive(Clone, Debug)]
pub struct Manifest {
    /// The kernels in the order of the file.
    pub kernels: Vec<Kernel>,
    /// The contents of `[toolchain]`.
    pub toolchain: Toolchain,
    /// The place of the bundle from `[bundle]`, relative to the manifest's folder.
    pub bundle: Option<String>,
    /// Whether a kernel that the bundle lacks, or has in an older form, may run on the simulator only.
    pub bundle_is_optional: bool,
    /// The position of the release in `[toolchain]`.
    pub pin_span: Span,
    /// The manifest's text; kernels' spans point into it.
    pub sources: SourceMap,
}

/// `[toolchain]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Toolchain {
    /// The CUDA release that nvcc must be of.
    pub cuda: Option<Pin>,
    /// Whether a build may fetch the pinned nvcc when there is none.
    pub auto_install: bool,
}

/// The source of a kernel's text.
#[derive(Clone, Debug)]
pub enum Text {
    /// A file; the path as the manifest gives it, relative to the manifest.
    File(String),
    /// Text in the manifest itself, or in a build script.
    Inline(String),
    /// No text: a function that a build script made.
    Function(PrimFunc),
}

/// One `[[kernel]]`.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// The name of the generated function and module.
    pub name: String,
    /// Its text.
    pub text: Text,
    /// Which definition of the file; `None` for the one named like the kernel, or the only one.
    pub entry: Option<String>,
    /// Values of its compile-time parameters; empty for a kernel that has none.
    pub specialize: Vec<BTreeMap<String, ConstValue>>,
    /// The choice between its specializations, if they are candidates.
    pub tune: Option<TunedSizes>,
    /// The targets to compile for.
    pub targets: Targets,
    /// The position of `native` among its targets, for `Manifest::resolve_native`.
    pub native_span: Option<Span>,
    /// Whether it has no code, because none of its targets is wanted (`Builder::only_targets`). It keeps its targets, for which its launcher is
    /// made.
    pub left_out: bool,
    /// Whether a build without an nvcc is an error.
    pub require: bool,
    /// Multiprocessors of the GPU that it is built for, for kernel files that ask.
    pub multiprocessors: Option<u32>,
    /// The release of TVM that its file is written for, where the file does not show it.
    pub tvm: Option<Release>,
    /// The Cargo feature without which it is not built.
    pub feature: Option<String>,
    /// How nvcc compiles it.
    pub options: NvccOptions,
    /// The position of the source (or the script) in the manifest.
    pub source_span: Span,
    /// The position of the entry, or of the name.
    pub entry_span: Span,
    /// The position of each specialization.
    pub specialize_spans: Vec<Span>,
}

/// A kernel that a build script declares: its keys, without positions, and its text, which may be a function.
pub(crate) struct Declared {
    pub(crate) raw: RawKernel,
    pub(crate) text: Text,
}

impl Manifest {
    /// Reads a manifest's text. `name` is the file's name in messages.
    pub fn parse(name: &str, text: &str) -> Result<Manifest, Error> {
        Manifest::with_declared(name, text, Vec::new())
    }

    /// A manifest's text with the kernels that a build script declares.
    pub(crate) fn with_declared(name: &str, text: &str, declared: Vec<Declared>) -> Result<Manifest, Error> {
        let mut sources = SourceMap::new();
        let file = sources.add(name, text);
        let raw: RawManifest = document::read(text)
            .map_err(|mistake| Error::from_diagnostic(&forms::diagnostic(file, &mistake, text), &sources))?;
        let mut reader = Reader {
            file,
            errors: Vec::new(),
        };
        let manifest = reader.manifest(raw, declared);
        if reader.errors.is_empty() {
            Ok(Manifest { sources, ..manifest })
        } else {
            Err(Error::from_diagnostics(&Diagnostics(reader.errors), &sources))
        }
    }

    /// The position of the release in `[toolchain]`, for messages.
    pub(crate) fn pin_place(&self) -> Option<TextRange> {
        TextRange::from_span(&self.sources, self.pin_span)
    }

    /// The text of an inline script, at its line and column in the manifest, so that errors in it are reported there.
    /// `None` where the manifest writes it with escapes.
    pub(crate) fn inline_text(&self, kernel: &Kernel) -> Option<String> {
        let Text::Inline(script) = &kernel.text else {
            return None;
        };
        let literal = self.sources.text(kernel.source_span);
        let inside = literal.find(script.as_str())?;
        let file = self.sources.file(kernel.source_span.file)?;
        let before = file.text.get(..kernel.source_span.start as usize + inside)?;
        let lines = before.matches('\n').count();
        Some(format!("{}{script}", "\n".repeat(lines)))
    }
}

/// The target that stands for the GPUs of the machine that builds.
pub(crate) const NATIVE: &str = "native";
