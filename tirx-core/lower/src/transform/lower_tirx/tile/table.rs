//! The variants of each operation: name, priority, predicates, and lowering function.

use super::context::Context;
use super::{copy, copy_async, elementwise, reduction};
use crate::ir::{Stmt, TileCall, TileOp};

/// A named condition.
pub(super) struct Predicate {
    /// Its description, for tables.
    pub(super) name: &'static str,
    /// Whether it holds; otherwise the reason.
    pub(super) holds: fn(&TileCall, &mut Context<'_>) -> Result<(), String>,
}

/// One implementation of an operation.
pub(super) struct Variant {
    /// The operations it lowers.
    pub(super) ops: &'static [TileOp],
    /// Its name, for `dispatch=`.
    pub(super) name: &'static str,
    /// Other names for it.
    pub(super) aliases: &'static [&'static str],
    /// Higher ones are tried first; of equals the earlier row.
    pub(super) priority: i32,
    /// Whether it is tried only when `dispatch=` names it.
    pub(super) only_forced: bool,
    /// Its predicates.
    pub(super) predicates: &'static [Predicate],
    /// Generates the code, or declines with a reason.
    pub(super) lower: fn(&TileCall, &mut Context<'_>) -> Result<Stmt, String>,
    /// Its description, for tables.
    pub(super) doc: &'static str,
}

impl Variant {
    pub(super) fn is_named(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }
}

/// All variants.
static VARIANTS: &[&[Variant]] = &[
    copy::VARIANTS,
    copy_async::VARIANTS,
    elementwise::VARIANTS,
    reduction::VARIANTS,
];

/// The variants of an operation in the order in which they are tried.
pub(super) fn of(op: TileOp) -> Vec<&'static Variant> {
    let all = VARIANTS.iter().flat_map(|list| list.iter());
    let mut found: Vec<&Variant> = all.filter(|v| v.ops.contains(&op)).collect();
    found.sort_by_key(|v| -v.priority);
    found
}

/// A row of the table, for documentation.
#[derive(Clone, Debug)]
pub struct VariantInfo {
    /// The operation.
    pub op: &'static str,
    /// The variant.
    pub name: &'static str,
    /// Higher ones are tried first.
    pub priority: i32,
    /// Whether `dispatch=` must name it.
    pub only_forced: bool,
    /// Its predicates.
    pub predicates: Vec<&'static str>,
    /// Its description.
    pub doc: &'static str,
}

/// Every variant of every operation.
pub fn variants() -> Vec<VariantInfo> {
    let mut all = Vec::new();
    for operation in &crate::ir::tile::OPERATIONS {
        for variant in of(operation.op) {
            all.push(VariantInfo {
                op: operation.name,
                name: variant.name,
                priority: variant.priority,
                only_forced: variant.only_forced,
                predicates: variant.predicates.iter().map(|p| p.name).collect(),
                doc: variant.doc,
            });
        }
    }
    all
}
