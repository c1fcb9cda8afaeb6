//! The order of the passes, and the manager that runs them.
//!
//! The order is that of the TIRx pipeline of TVM 0.26, followed by its finalization of host and device functions. The
//! list is complete. Each entry's name is unique, so that a run can be stopped after it; the second run of a pass has
//! its number appended (`StmtSimplify2`).

use std::fmt;

use super::context::{Options, PassContext};
use super::lower_tirx::Decision;
use super::{
    annotate_entry_func, bf16_compute_legalize, bf16_storage_legalize, bind_target, common_subexpr_elim,
    flatten_buffer, fp8_compute_legalize, fp8_storage_legalize, lower_intrin, lower_tirx, lower_tirx_opaque,
    lower_tvm_builtin, lower_warp_memory, make_packed_api, narrow_data_type, split_host_device,
    split_unaligned_access, stmt_simplify, unify_thread_binding, unroll_loop, vectorize_loop, verify_memory,
};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::ir::abi::Target;
use crate::ir::{IRModule, with_stack};
use crate::source::Span;

/// A pass.
pub type PassFn = fn(IRModule, &PassContext) -> Result<IRModule, Diagnostics>;

/// An entry of the pipeline.
#[derive(Clone, Copy)]
pub struct Pass {
    /// Its name, unique in the pipeline.
    pub name: &'static str,
    /// What it does.
    pub run: PassFn,
}

impl fmt::Debug for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

const fn pass(name: &'static str, run: PassFn) -> Pass {
    Pass { name, run }
}

/// The pass that lowers tile primitives.
const LOWER_TIRX: &str = "LowerTIRx";

/// The passes in order.
#[rustfmt::skip]
pub static PIPELINE: &[Pass] = &[
    // Keep one row a line, in TVM's order: LowerTIRx, UnifyThreadBinding, StmtSimplify, LowerTIRxOpaque,
    // FlattenBuffer, BF16ComputeLegalize, NarrowDataType, VectorizeLoop, UnrollLoop, StmtSimplify2,
    // CommonSubexprElim, FP8ComputeLegalize, VerifyMemory, AnnotateEntryFunc, SplitHostDevice, MakePackedAPI,
    // FP8StorageLegalize, BF16StorageLegalize; then LowerTVMBuiltin of host functions, LowerWarpMemory and StmtSimplify3
    // of device functions, and LowerIntrin of both; before it SplitUnalignedAccess, which is not TVM's: there the CUDA
    // printer does its work in part.
    pass("BindTarget", bind_target::run),
    pass(LOWER_TIRX, lower_tirx::run),
    pass("UnifyThreadBinding", unify_thread_binding::run),
    pass("StmtSimplify", stmt_simplify::run),
    pass("LowerTIRxOpaque", lower_tirx_opaque::run),
    pass("FlattenBuffer", flatten_buffer::run),
    pass("BF16ComputeLegalize", bf16_compute_legalize::run),
    pass("NarrowDataType", narrow_data_type::run),
    pass("VectorizeLoop", vectorize_loop::run),
    pass("UnrollLoop", unroll_loop::run),
    pass("StmtSimplify2", stmt_simplify::run),
    pass("CommonSubexprElim", common_subexpr_elim::run),
    pass("FP8ComputeLegalize", fp8_compute_legalize::run),
    pass("VerifyMemory", verify_memory::run),
    pass("AnnotateEntryFunc", annotate_entry_func::run),
    pass("SplitHostDevice", split_host_device::run),
    pass("MakePackedAPI", make_packed_api::run),
    pass("FP8StorageLegalize", fp8_storage_legalize::run),
    pass("BF16StorageLegalize", bf16_storage_legalize::run),
    pass("LowerTVMBuiltin", lower_tvm_builtin::run),
    pass("LowerWarpMemory", lower_warp_memory::run),
    pass("StmtSimplify3", stmt_simplify::run_on_device),
    pass("SplitUnalignedAccess", split_unaligned_access::run),
    pass("LowerIntrin", lower_intrin::run),
];

/// The names that `stop_after` takes.
pub fn pass_names() -> Vec<&'static str> {
    PIPELINE.iter().map(|p| p.name).collect()
}

/// The argument of an observer, after each pass.
#[derive(Debug)]
pub struct Step<'a> {
    /// Position in the pipeline.
    pub index: usize,
    /// The pass that ran.
    pub pass: &'static str,
    /// The resulting module.
    pub module: &'a IRModule,
    /// How long it took, where there is a timer.
    pub nanoseconds: Option<u64>,
}

/// A function that is called with each [`Step`].
pub type Observer<'a> = &'a mut (dyn FnMut(&Step<'_>) + Send);

/// How to lower.
pub struct Lowering<'a> {
    /// The target GPU. A function that has a `target` attribute keeps it.
    pub target: Target,
    /// Other GPUs that the same code will be compiled for: it must keep to their limits too.
    pub also: Vec<Target>,
    /// Switches.
    pub options: Options,
    /// The name of the last pass to run; `None` runs all.
    pub stop_after: Option<&'a str>,
    /// Whether to verify the IR before the first pass and after each.
    pub verify: bool,
    /// Called with the module after each pass.
    pub observer: Option<Observer<'a>>,
    /// A clock in nanoseconds (this crate does not read one itself).
    pub timer: Option<&'a (dyn Fn() -> u64 + Sync)>,
    /// Warnings of passes: [`lower`] appends to it.
    pub warnings: Vec<Diagnostic>,
    /// Whether the GPUs differ in what they offer to a tile primitive, so that each may get better code of its own: set by
    /// [`lower`], also where it fails.
    pub separated: bool,
    /// How the tile primitives were lowered, in program order, up to the first that no variant lowers: [`lower`] appends to it, also
    /// if it fails. Their warnings are in `warnings`.
    pub decisions: Vec<Decision>,
}

impl<'a> Lowering<'a> {
    /// All passes, default options; verifies in debug builds.
    pub fn new(target: Target) -> Lowering<'a> {
        Lowering {
            target,
            also: Vec::new(),
            options: Options::default(),
            stop_after: None,
            verify: cfg!(debug_assertions),
            observer: None,
            timer: None,
            warnings: Vec::new(),
            separated: false,
            decisions: Vec::new(),
        }
    }

    /// Stops after a pass.
    pub fn stop_after(mut self, pass: &'a str) -> Lowering<'a> {
        self.stop_after = Some(pass);
        self
    }
}

/// Runs the pipeline.
///
/// # Errors
///
/// What a pass found wrong with the program, or an unknown name in `stop_after`. The messages of a module that a
/// pass left malformed (a defect of the compiler, with `verify`) name the pass.
pub fn lower(module: IRModule, lowering: &mut Lowering<'_>) -> Result<IRModule, Diagnostics> {
    with_stack(STACK, || lower_here(module, lowering))
}

/// Stack of the passes, which walk expressions of up to [`MAX_LEVELS`](crate::ir::MAX_LEVELS) levels by recursion.
const STACK: usize = 512 << 20;

fn lower_here(module: IRModule, lowering: &mut Lowering<'_>) -> Result<IRModule, Diagnostics> {
    let last = match lowering.stop_after {
        None => PIPELINE.len(),
        Some(name) => position(name)? + 1,
    };
    for name in &lowering.options.skip {
        position(name)?;
    }
    let context = PassContext {
        also: lowering.also.clone(),
        ..PassContext::new(lowering.target, &lowering.options)
    };
    let mut module = module;
    if lowering.verify {
        verified(&module, "before lowering")?;
    }
    for (index, pass) in PIPELINE[..last].iter().enumerate() {
        if lowering.options.skip.iter().any(|name| name == pass.name) {
            continue;
        }
        let start = lowering.timer.map(|now| now());
        let result = match pass.name {
            LOWER_TIRX => lower_tirx::run_deciding(module, &context, &mut lowering.decisions),
            _ => (pass.run)(module, &context),
        };
        lowering.separated |= context.separated.get();
        module = result?;
        lowering.warnings.append(&mut context.warnings.borrow_mut());
        if lowering.verify {
            verified(&module, pass.name)?;
        }
        let nanoseconds = lowering
            .timer
            .zip(start)
            .map(|(now, start)| now().saturating_sub(start));
        if let Some(observer) = &mut lowering.observer {
            observer(&Step {
                index,
                pass: pass.name,
                module: &module,
                nanoseconds,
            });
        }
    }
    Ok(module)
}

/// The position of a pass in the pipeline.
fn position(name: &str) -> Result<usize, Diagnostics> {
    PIPELINE.iter().position(|p| p.name == name).ok_or_else(|| {
        let message = format!("there is no pass named \"{name}\"");
        let known = pass_names().join(", ");
        Diagnostic::new(Span::NONE, message)
            .help(format!("the passes are {known}"))
            .into()
    })
}

/// The verifier's errors, with the pass that caused them.
fn verified(module: &IRModule, pass: &str) -> Result<(), Diagnostics> {
    crate::ir::verify(module).map_err(|errors| {
        let named =
            |error: Diagnostic| error.note(Span::NONE, format!("the IR is that of {pass}; this is a bug"));
        Diagnostics(errors.0.into_iter().map(named).collect())
    })
}

/// Gives each function without a target the one of the run.
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut names = pass_names();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), PIPELINE.len());
    }

    #[test]
    fn an_unknown_pass_lists_the_known_ones() {
        let mut lowering = Lowering::new(Target::SM_90A).stop_after("Frobnicate");
        let error = lower(IRModule::default(), &mut lowering).unwrap_err();
        assert_eq!(error.0[0].message, "there is no pass named \"Frobnicate\"");
        assert!(error.0[0].help.as_ref().is_some_and(|h| h.contains("BindTarget")));
        let mut lowering = Lowering::new(Target::SM_90A);
        lowering.options.skip = vec!["Frobnicate".into()];
        let error = lower(IRModule::default(), &mut lowering).unwrap_err();
        assert_eq!(error.0[0].message, "there is no pass named \"Frobnicate\"");
    }

    #[test]
    fn a_skipped_pass_does_not_run() {
        let mut seen = Vec::new();
        let mut observe = |step: &Step<'_>| seen.push(step.pass);
        let mut lowering = Lowering::new(Target::SM_90A);
        lowering.options.skip = vec!["CommonSubexprElim".into()];
        lowering.observer = Some(&mut observe);
        lower(IRModule::default(), &mut lowering).unwrap();
        assert_eq!(seen.len(), PIPELINE.len() - 1);
        assert!(!seen.contains(&"CommonSubexprElim"));
    }
}
