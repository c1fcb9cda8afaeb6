//! Variants for the tensor cores and the tensor memory of Blackwell.
//!
//! | file | question |
//! |---|---|
//! | `memory.rs` | which lane and column of tensor memory has an element? |
//! | `transfer.rs` | `copy_async` between registers and tensor memory |
//! | `fill.rs` | `copy_async` from shared to tensor memory |
//! | `product.rs` | `gemm_async` |
//! | `datapath.rs` | which cells does a product write and read? |
//! | `scales.rs` | where are the scale factors of a product? |

mod datapath;
mod fill;
mod memory;
mod product;
mod scales;
mod transfer;

use super::variant::Variant;
use crate::intrin::GpuSet;

pub(super) use self::product::SHARED_DESCRIPTORS;

pub(super) static VARIANTS: &[Variant] = &[transfer::VARIANT, fill::VARIANT, product::VARIANT];

/// The GPUs with tensor memory.
const BLACKWELL: GpuSet = GpuSet::families(&[100, 110]);
