//! LowerTIRx: from the launch hierarchy and layouts to hardware indices and flat memory.
//!
//! **Idea.** A kernel as written uses scope ids (`T.cta_id`, `T.warp_id`, …) and buffers whose layout maps a coordinate
//! to an address. Afterwards it is plain TIR: each region after `T.device_entry()` stands under one `thread_extent`
//! attribute per hardware index, each scope id is bound to an expression of those, and each access of a buffer has one
//! index, an element offset.
//!
//! **Phases.** `launch` finds the device regions, collects their scope ids, has `tile` replace their tile primitives
//! and wraps the region; `hierarchy` infers the extents and `scope_ids` computes each id; `layouts` flattens the
//! buffers, over the whole function, and simplifies the offsets with what is known of the variables.
//!
//! **Afterwards** no `ScopeId` statement, no `tirx.device_entry` attribute and no buffer with a layout is left. A
//! parameter's buffer keeps its shape (the host checks it) and gets a flat view `DeclBuffer` at the top of the
//! function, last parameter first, through which the body accesses it. `elem_offset` stays with the view;
//! FlattenBuffer adds it.
//!
//! **Differences from TVM 0.26**, all on purpose: strides of a buffer whose layout is the default are honoured (TVM
//! ignores them); extents of lanes, of warps in a warpgroup and of threads in a warpgroup have defaults (TVM requires
//! them); a cluster launch of several dimensions multiplies dimension by dimension (TVM makes a one-dimensional grid of
//! the product); `warp_id_in_cta` is not computed where nothing reads it; the order of thread attributes is fixed
//! (TVM's is that of a hash map).
//!
//! **Cost.** Two walks of the function.

mod hierarchy;
mod launch;
mod layouts;
mod scope_ids;
mod tile;

pub(super) use launch::LARGEST_WRITTEN_OUT;
pub use tile::{Completion, Decision, NamedWarning, OptionKind, Outcome, TileOption, VariantInfo, variants};

use super::{PassContext, target_choices};
use crate::diagnostic::Diagnostics;
use crate::ir::IRModule;

/// Lowers every function.
pub fn run(module: IRModule, context: &PassContext) -> Result<IRModule, Diagnostics> {
    run_deciding(module, context, &mut Vec::new())
}

/// [`run`]; appends the decisions about the tile primitives, without their warnings, also if it fails.
pub(super) fn run_deciding(
    module: IRModule,
    context: &PassContext,
    all: &mut Vec<Decision>,
) -> Result<IRModule, Diagnostics> {
    let sources = module.sources.clone();
    module.try_map(|func| {
        let targets = context.targets(&func);
        let mut decisions = Vec::new();
        let lowered = launch::lower(func, &targets, &mut decisions);
        if decisions.iter().any(|decision| decision.separates) {
            context.separated.set(true);
        }
        let warnings: Vec<NamedWarning> = decisions
            .iter_mut()
            .filter_map(|decision| decision.warning.take())
            .collect();
        all.append(&mut decisions);
        let func = lowered?;
        for warning in warnings {
            if !sources.allows(warning.name, warning.diagnostic.span) {
                context.warn(warning.diagnostic);
            }
        }
        Ok(layouts::lower(func)?)
    })
}

/// How each tile primitive of a module is lowered, in program order; the last may be one that no variant lowers.
pub fn explain(module: &IRModule, context: &PassContext) -> Vec<Decision> {
    let mut decisions = Vec::new();
    for (_, func) in &module.functions {
        let targets = context.targets(func);
        let mut func = func.clone();
        // As the pass before leaves it: of a kernel that asks for its target, the code for this one.
        if let Some(body) = target_choices::resolved(&func, context) {
            func.body = body;
        }
        // Where lowering fails, the decisions made before are kept.
        let _ = launch::lower(func, &targets, &mut decisions);
    }
    decisions
}
