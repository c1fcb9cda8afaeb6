//! TVMScript text to IR and back.

#[cfg(feature = "frontend")]
pub mod eval;
#[cfg(feature = "frontend")]
pub mod lang;
pub mod typing;
