//! How a tile primitive was lowered, and what was decided about each variant on the way.

use super::variant::Completion;
use crate::diagnostic::Diagnostic;
use crate::ir::{Stmt, TileCall};
use crate::source::Span;

/// The outcome for one variant at a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It was chosen.
    Chosen,
    /// It was not tried: an earlier one was chosen, or another one was forced.
    NotAsked,
    /// It declined, for this reason.
    Declined(String),
}

/// How a tile primitive was lowered.
#[derive(Clone, Debug)]
pub struct Decision {
    /// The call.
    pub call: TileCall,
    /// Its place.
    pub span: Span,
    /// The operation's variants and their outcomes, in the order in which they were tried.
    pub rows: Vec<(&'static str, Outcome)>,
    /// The partition: rounds, threads, elements per vector.
    pub partition: Option<[i128; 3]>,
    /// What the chosen variant says of its plan.
    pub lines: Vec<String>,
    /// What the caller does before the result is used.
    pub completion: Option<Completion>,
    /// Whether a variant that was tried suits some of the GPUs and not others.
    pub separates: bool,
    /// The resulting code.
    pub code: Option<Stmt>,
    /// A warning about the choice.
    pub warning: Option<NamedWarning>,
}

/// A warning that `# tirx: allow(name)` turns off.
#[derive(Clone, Debug)]
pub struct NamedWarning {
    /// Its name.
    pub name: &'static str,
    /// Its message.
    pub diagnostic: Diagnostic,
}
