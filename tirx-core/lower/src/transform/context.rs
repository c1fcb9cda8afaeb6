//! The options of a lowering, and what a pass reads besides the module.

use std::cell::{Cell, RefCell};

use crate::diagnostic::Diagnostic;
use crate::ir::PrimFunc;
use crate::ir::abi::Target;

/// What a user may switch, as in TVM's `PassContext`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Options {
    /// Vectorized loops become serial ones (`tir.disable_vectorize`).
    pub disable_vectorize: bool,
    /// No common-subexpression elimination (`tir.disable_cse_tir`).
    pub disable_cse: bool,
    /// Host functions are lowered to their final form too (LowerTVMBuiltin, LowerIntrin), for callers in C. Launchers
    /// are printed from the form before it.
    pub finalize_host: bool,
    /// Names of passes to skip, to see the effect of one or to compare a program lowered with fewer transformations.
    /// Later passes and code generation need most passes.
    pub skip: Vec<String>,
}

/// The inputs of a pass besides the module, and its warnings.
#[derive(Clone, Debug)]
pub struct PassContext {
    /// The GPU.
    pub target: Target,
    /// See [`Lowering::also`](super::Lowering::also).
    pub also: Vec<Target>,
    /// See [`Options::disable_vectorize`].
    pub disable_vectorize: bool,
    /// See [`Options::disable_cse`].
    pub disable_cse: bool,
    /// See [`Options::finalize_host`].
    pub finalize_host: bool,
    pub(super) warnings: RefCell<Vec<Diagnostic>>,
    pub(super) separated: Cell<bool>,
}

impl PassContext {
    /// A context with an option set.
    pub fn new(target: Target, options: &Options) -> PassContext {
        PassContext {
            target,
            also: Vec::new(),
            disable_vectorize: options.disable_vectorize,
            disable_cse: options.disable_cse,
            finalize_host: options.finalize_host,
            warnings: RefCell::default(),
            separated: Cell::new(false),
        }
    }

    /// Reports a warning.
    pub fn warn(&self, warning: Diagnostic) {
        self.warnings.borrow_mut().push(warning);
    }

    /// The GPUs that a function with these attributes is compiled for: those of the context, or the one that it names
    /// itself.
    pub fn targets(&self, func: &PrimFunc) -> Vec<Target> {
        match func.attr("target").and_then(Target::from_attr) {
            Some(own) if own != self.target => vec![own],
            _ => std::iter::once(&self.target).chain(&self.also).cloned().collect(),
        }
    }
}
