//! What a kernel file says that its kernels leave, and whether they do.
//!
//! | module | question |
//! |---|---|
//! | [`expressions`] | what do the `# sim:` lines of a kernel file say, computed by the evaluator? |
//! | [`runs`] | is a run what it must be? Values as text, comparison with tolerances, expected faults, schedules |
//! | [`machine`] | who runs it: the simulator, or another device with memory and launches |
//!
//! `cargo tirx test` and the compiler's own filetests use it.

#![forbid(unsafe_code)]

pub mod expressions;
pub mod machine;
pub mod runs;
mod values;

pub use runs::Run;
