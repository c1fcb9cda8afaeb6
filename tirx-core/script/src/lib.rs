//! TVMScript text to IR and back.

#![warn(missing_docs)]
#![forbid(unsafe_code)]

use tirx_arith as arith;
use tirx_ir as ir;
use tirx_ir::{intrin, typing};
use tirx_layout as layout;
use tirx_source::{diagnostic, source};

pub mod alternatives;
pub mod eval;
mod kernel_file;
pub mod lang;
pub mod parse;
pub mod release;

pub use kernel_file::{
    Built, ConstValue, ConstexprParam, Entry, EntryKind, Imports, KernelFile, ModuleText, NoImports, Rewrite,
};
pub use release::Release;
