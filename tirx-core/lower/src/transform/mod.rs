//! The lowering pipeline: from the functions a user wrote to device functions and a host function.
//!
//! One pass is one file. A pass is a function `IRModule → Result<IRModule, Diagnostics>` (`run` in its file) that keeps
//! spans; its head comment states what it assumes and what it establishes. [`pipeline`] has their order, the manager
//! that runs them and the options they read.

pub mod annotate_entry_func;
pub mod bf16_compute_legalize;
pub mod bf16_storage_legalize;
pub mod bind_target;
pub mod common_subexpr_elim;
mod context;
mod fixed_point;
pub mod flatten_buffer;
pub mod fp8_compute_legalize;
pub mod fp8_storage_legalize;
mod legalize_compute;
mod legalize_storage;
pub mod lower_intrin;
pub mod lower_tirx;
pub mod lower_tirx_opaque;
pub mod lower_tvm_builtin;
pub mod lower_warp_memory;
pub mod make_packed_api;
pub mod narrow_data_type;
pub mod pipeline;
mod polls;
mod print_buffer;
pub mod split_host_device;
pub mod split_unaligned_access;
pub mod stmt_simplify;
mod target_choices;
pub mod unify_thread_binding;
pub mod unroll_loop;
pub mod vectorize_loop;
pub mod verify_memory;

pub use crate::ir::abi::Target;
pub use context::{Options, PassContext};
pub use pipeline::{Lowering, PIPELINE, Pass, PassFn, Step, lower, pass_names};

#[cfg(test)]
mod simplification_tests;
#[cfg(test)]
mod tests;
