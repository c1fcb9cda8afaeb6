//! The TIRx compiler: kernel text → IR → CUDA C++ and host code.
//!
//! This crate is pure: it reads no files, starts no processes, looks at no clock and needs no GPU.
//! Callers hand it text ([`source::SourceMap`]) and get text or IR back.
//!
//! | folder | role |
//! |---|---|
//! | [`ir`] | what a program *is*: types, expressions, statements, functions, modules |
//! | [`intrin`] | the table of intrinsics: one row each, read by every other part |
//! | [`layout`] | how a logical coordinate becomes a physical offset |
//! | [`arith`] | what is provably true of integer expressions |
//! | [`script`] | TVMScript text to IR and back |
//! | [`transform`] | the lowering pipeline, one pass a file |
//! | [`codegen`] | final IR to CUDA C++ and launcher code |

#![warn(missing_docs)]
#![forbid(unsafe_code)]

pub mod arith;
pub mod codegen;
pub mod diagnostic;
pub mod intrin;
pub mod ir;
pub mod layout;
pub mod script;
pub mod source;
pub mod transform;

pub use diagnostic::{Diagnostic, Diagnostics, Result};
