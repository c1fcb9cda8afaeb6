//! TVMScript text to IR and back.

#[cfg(feature = "frontend")]
pub mod eval;
#[cfg(feature = "frontend")]
pub mod lang;
mod printer;
#[cfg(feature = "frontend")]
pub mod typing;

pub use printer::{print, print_expr, print_func, print_stmt};
