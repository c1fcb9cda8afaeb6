//! The variants of each operation, in the order in which they are tried.

use super::option::TileOption;
use super::variant::{Completion, Variant};
use super::{
    cluster_copy, compose, copy, copy_async, elementwise, mma, permute_layout, reduction, tcgen05,
    tensor_copy, wgmma,
};
use crate::intrin::GpuSet;
use crate::ir::TileOp;

/// All variants.
static VARIANTS: &[&[Variant]] = &[
    copy::VARIANTS,
    copy_async::VARIANTS,
    tensor_copy::VARIANTS,
    cluster_copy::VARIANTS,
    elementwise::VARIANTS,
    reduction::VARIANTS,
    tcgen05::VARIANTS,
    wgmma::VARIANTS,
    mma::VARIANTS,
    permute_layout::VARIANTS,
    compose::VARIANTS,
];

/// The variants of an operation in the order in which they are tried.
pub(super) fn variants_for(op: TileOp) -> Vec<&'static Variant> {
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
    /// The GPUs that have its instructions.
    pub arch: GpuSet,
    /// The options it reads.
    pub options: &'static [TileOption],
    /// What the caller does before the result is used.
    pub completion: Completion,
    /// Its predicates.
    pub predicates: Vec<&'static str>,
    /// Its description.
    pub doc: &'static str,
}

/// Every variant of every operation.
pub fn variants() -> Vec<VariantInfo> {
    let mut all = Vec::new();
    for operation in &crate::ir::tile::OPERATIONS {
        for variant in variants_for(operation.op) {
            all.push(VariantInfo {
                op: operation.name,
                name: variant.name,
                priority: variant.priority,
                only_forced: variant.only_forced,
                arch: variant.arch,
                options: variant.options,
                completion: variant.completion,
                predicates: variant.predicates.iter().map(|p| p.name).collect(),
                doc: variant.doc,
            });
        }
    }
    all
}
