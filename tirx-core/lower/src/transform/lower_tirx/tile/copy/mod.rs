//! Variants of `copy`, and their common predicates.

mod fallback;
mod matrix;
pub(super) mod partition;
mod reg;
mod vec_forced;
mod vectors;

use super::predicates::{DIVIDES, FULL_SCOPE, SAME_ELEMENTS, SCOPE};
use super::variant::{Completion, Predicate, Variant};
use crate::intrin::GpuSet;
use crate::ir::TileOp;

pub(super) static VARIANTS: &[Variant] = &[
    vec_forced::variant("vec_256b", GpuSet::least(100), vec_forced::plan::<32>),
    vec_forced::variant("vec_128b", GpuSet::ANY, vec_forced::plan::<16>),
    vec_forced::variant("vec_64b", GpuSet::ANY, vec_forced::plan::<8>),
    vec_forced::variant("vec_32b", GpuSet::ANY, vec_forced::plan::<4>),
    vec_forced::variant("vec_16b", GpuSet::ANY, vec_forced::plan::<2>),
    Variant {
        ops: &[TileOp::Copy],
        name: "gmem_smem",
        aliases: &["vec_auto"],
        predicates: &[
            SCOPE,
            FULL_SCOPE,
            SAME_ELEMENTS,
            Predicate {
                name: "between global and shared memory",
                holds: vectors::between_global_and_shared,
            },
            DIVIDES,
        ],
        completion: Completion::OwnPart,
        options: vec_forced::HINTS,
        plan: vectors::plan,
        doc: "vectors of up to 16 bytes, spread over the threads of the scope",
        ..Variant::DEFAULT
    },
    Variant {
        ops: &[TileOp::Copy],
        name: "ldstmatrix",
        arch: GpuSet::least(75),
        predicates: &[
            FULL_SCOPE,
            SAME_ELEMENTS,
            Predicate {
                name: "between local and shared memory",
                holds: matrix::between_local_and_shared,
            },
        ],
        completion: Completion::OwnPart,
        options: vectors::OPTIONS,
        plan: matrix::plan,
        doc: "fragments of 8x8 matrices by ldmatrix and stmatrix, up to four at a time",
        ..Variant::DEFAULT
    },
    Variant {
        ops: &[TileOp::Copy],
        name: "reg",
        aliases: &["vec_auto"],
        predicates: &[
            SCOPE,
            FULL_SCOPE,
            SAME_ELEMENTS,
            Predicate {
                name: "between local and global or shared memory",
                holds: reg::with_registers,
            },
        ],
        options: vec_forced::HINTS,
        completion: Completion::OwnPart,
        plan: reg::plan,
        doc: "each thread moves its own elements, in vectors of up to 16 bytes",
        ..Variant::DEFAULT
    },
    Variant {
        ops: &[TileOp::Copy],
        name: "same_memory",
        aliases: &["vec_auto"],
        predicates: &[
            SCOPE,
            FULL_SCOPE,
            SAME_ELEMENTS,
            Predicate {
                name: "within shared or within global memory, without overlap",
                holds: vectors::within_a_memory,
            },
            DIVIDES,
        ],
        completion: Completion::OwnPart,
        options: vec_forced::HINTS,
        plan: vectors::plan,
        doc: "vectors of up to 16 bytes, spread over the threads of the scope",
        ..Variant::DEFAULT
    },
    Variant {
        ops: &[TileOp::Copy],
        name: "ragged",
        priority: 5,
        predicates: &[
            SCOPE,
            FULL_SCOPE,
            SAME_ELEMENTS,
            Predicate {
                name: "both sides in global or shared memory, without overlap",
                holds: vectors::in_memory,
            },
        ],
        completion: Completion::OwnPart,
        options: vec_forced::HINTS,
        plan: vectors::plan_ragged,
        doc: "vectors of up to 16 bytes, spread over the threads of the scope, some of which have nothing to do in the last round",
        ..Variant::DEFAULT
    },
    Variant {
        ops: &[TileOp::Copy],
        name: "fallback",
        priority: 0,
        predicates: &[SAME_ELEMENTS],
        completion: Completion::OwnPart,
        options: vectors::OPTIONS,
        plan: fallback::plan,
        doc: "element by element, by the first active thread of the scope",
        ..Variant::DEFAULT
    },
];
