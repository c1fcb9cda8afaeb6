//! A variant: one implementation of a tile primitive, with the conditions under which it applies.

use super::context::Context;
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
