//! How each tile primitive is lowered: the chosen variant, the reasons of the others, the plan and the code.

use serde::Serialize;
use tirx_core::ir::{Gpu, IRModule};
use tirx_core::script::print_stmt;
use tirx_core::transform::lower_tirx::{Decision, Outcome, explain};
use tirx_core::transform::{Options, PassContext, Target};

/// A variant of an operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Variant {
    /// Its name.
    pub name: String,
    /// `chosen`, `not asked` or `declines`.
    pub outcome: &'static str,
    /// The reason of a variant that declines.
    pub reason: String,
}

/// A call of a tile primitive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explained {
    /// The file.
    pub file: Option<String>,
    /// The line, from 1.
    pub line: Option<u32>,
    /// The line's text.
    pub text: String,
    /// The variants, in the order in which they were tried.
    pub variants: Vec<Variant>,
    /// Rounds, threads, and elements of a vector.
    pub partition: Option<[i64; 3]>,
    /// Lines of the chosen variant about its plan.
    pub plan: Vec<String>,
    /// What the caller waits for before it uses the result.
    pub completion: Option<String>,
    /// The code, as IR.
    pub code: Option<String>,
}

/// The tile primitives of a module that has not been lowered.
pub fn explained(module: &IRModule, gpu: Gpu) -> Vec<Explained> {
    let context = PassContext::new(Target::cuda(gpu), &Options::default());
    let decisions = explain(module, &context);
    decisions
        .iter()
        .map(|decision| described(module, decision))
        .collect()
}

fn described(module: &IRModule, decision: &Decision) -> Explained {
    let at = module.sources.locate(decision.span);
    let variant = |(name, outcome): &(&'static str, Outcome)| {
        let (outcome, reason) = match outcome {
            Outcome::Chosen => ("chosen", String::new()),
            Outcome::NotAsked => ("not asked", String::new()),
            Outcome::Declined(reason) => ("declines", reason.to_string()),
        };
        Variant {
            name: (*name).to_string(),
            outcome,
            reason,
        }
    };
    Explained {
        file: at.as_ref().map(|at| at.file.to_string()),
        line: at.as_ref().map(|at| at.line),
        text: at
            .as_ref()
            .map_or(String::new(), |at| at.line_text.trim().to_string()),
        variants: decision.rows.iter().map(variant).collect(),
        partition: decision.partition.map(|parts| parts.map(|part| part as i64)),
        plan: decision.lines.clone(),
        completion: decision.completion.as_ref().map(ToString::to_string),
        code: decision.code.as_ref().map(print_stmt),
    }
}
