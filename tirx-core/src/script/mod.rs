//! TVMScript text to IR and back.

#[cfg(feature = "frontend")]
pub mod eval;
#[cfg(feature = "frontend")]
mod kernel_file;
#[cfg(feature = "frontend")]
pub mod lang;
#[cfg(feature = "frontend")]
mod parse;
mod printer;
pub mod typing;

#[cfg(feature = "frontend")]
pub use kernel_file::{ConstValue, ConstexprParam, Entry, EntryKind, Imports, KernelFile, NoImports};
pub use printer::{print, print_expr, print_func, print_stmt};
