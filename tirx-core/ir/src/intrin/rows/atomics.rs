//! Atomic updates of memory.

use super::kinds::*;
use super::memory::*;
use crate::intrin::ResultRule;
use crate::intrin::row::*;

const UPDATE: Traits = Traits::SYNC
    .synchronizes(Synchronizes::Memory)
    .memory(Memory::ReadsAndWrites);
const OPERATIONS: ArgKind = ArgKind::Text(&["and", "or", "xor", "exch", "add", "inc", "dec", "min", "max"]);
const SEM: ArgKind = ArgKind::Text(&["", "relaxed", "acquire", "release", "acq_rel"]);
const UPDATED: &[Arg] = &[
    arg("address", PLACE),
    arg("value", ANY),
    arg("cache_policy", U64),
    arg("sem", SEM),
    arg("scope", ArgKind::Text(&["", "cta", "cluster", "gpu", "sys"])),
    arg("space", SPACE),
    arg("op", OPERATIONS),
    arg("ptx_type", TYPE),
    arg("has_cache", ArgKind::Flag),
];
const SIGNATURE: &str =
    "(address, value, *, sem='', scope='', space='global', op, ptx_type, cache_hint='', cache_policy=None)";

const fn update(name: &'static str, script: &'static str) -> Row {
    Row::new(name, script, special())
        .args(UPDATED)
        .signature(SIGNATURE)
        .completed(HINT, policy)
        .checked(known)
        .traits(UPDATE)
        .aligned(of_the_access)
        .needs(NEWER)
}

rows! { $ atomics {
    /// Atomically adds to `*pointer`; gives the old value.
    AtomicAdd = Row::new("tirx.atomic_add", "atomic_add", special()).args(&[arg("pointer", NODE), arg("value", ANY)])
        .value(ResultRule::Arg(1)).traits(UPDATE.whole_vector());
    /// `atomicAdd(res_addr, value)`; gives the old value.
    CudaAtomicAdd = Row::new("tirx.cuda.atomic_add", "cuda.atomic_add", special())
        .args(&[arg("res_addr", GENERIC), arg("value", ANY)]).value(ResultRule::Arg(1)).traits(UPDATE.whole_vector())
        .section("Atomic Functions");
    /// `atomicCAS(ptr, old_val, new_val)`; gives the old value.
    CudaAtomicCas = Row::new("tirx.cuda.atomic_cas", "cuda.atomic_cas", special())
        .args(&[arg("ptr", GENERIC), arg("old_val", ANY), arg("new_val", ANY)]).value(ResultRule::Arg(1)).traits(UPDATE)
        .section("Atomic Functions");
    /// Updates the element at `address` with `value` atomically and gives its old value.
    PtxAtomScalar = update("tirx.ptx.atom_scalar", "ptx.atom_scalar").value(ResultRule::Of(value_dtype)).section("atom");
    /// Updates the element at `address` with `value` atomically.
    PtxRedScalar = update("tirx.ptx.red_scalar", "ptx.red_scalar").section("red");
} }
