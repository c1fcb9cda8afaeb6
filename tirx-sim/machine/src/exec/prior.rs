//! The grid before a programmatic dependent launch, which may still be running.
//!
//! A dependent launch may start when all blocks of the previous grid have executed `griddepcontrol.launch_dependents` or have
//! ended, and is ordered behind that grid's accesses only by `griddepcontrol.wait`. The simulator runs one grid after the
//! other and records which places each has read and written: an access of the dependent grid before its wait that conflicts
//! with them is a race. Memory that the previous grid does not touch may be accessed before the wait; prefetching it is the
//! purpose of such launches.
//!
//! Of a grid that executes `launch_dependents` the memory contents before the launch are kept too. Blocks of the dependent
//! grid read these until one of their threads has waited, if the schedule lets them run early: all blocks for seed 0, half of
//! them for other seeds.

use std::sync::Arc;

use super::schedule::mixed;
use super::{Context, Shared};
use crate::memory::{Prior, Storage, WRITTEN};

/// The memory that a dependent launch may not use before it has waited.
#[derive(Clone, Debug)]
pub(crate) enum Before {
    /// All global memory.
    Any,
    /// Places that a grid has used.
    Grid(Arc<Prior>),
}

impl Before {
    /// The reason why an access before the wait is a race, if it is one.
    pub(super) fn forbids(
        &self,
        storage: &Storage,
        at: usize,
        bits: u32,
        writes: bool,
    ) -> Option<&'static str> {
        match self {
            Before::Any => Some("which the previous grid may still write"),
            Before::Grid(prior) => match prior.conflict(storage, at, bits, writes)? {
                WRITTEN => Some("which the previous grid, which may still be running, writes"),
                _ => Some("which the previous grid, which may still be running, reads"),
            },
        }
    }
}

/// The contents of an allocation that a block reads before it has waited, if it runs early.
pub(super) fn early<'m>(ctx: &'m Context<'_>, shared: &Shared, storage: &Storage) -> Option<&'m Storage> {
    let Some(Before::Grid(prior)) = &ctx.before else {
        return None;
    };
    let runs_early = ctx.seed == 0 || mixed(ctx.seed, shared.linear) & 1 == 0;
    (runs_early && !shared.waited)
        .then(|| prior.before.get(&storage.address))
        .flatten()
}
