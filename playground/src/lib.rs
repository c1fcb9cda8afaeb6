//! The compiler and the simulator for a page: questions about one kernel file, answered as data.
//!
//! | module | question |
//! |---|---|
//! | [`session`] | what is asked, and what is the answer? The same on every machine |
//! | `module` | how does JavaScript ask? The typed interface of the WebAssembly module |
//! | `memory` | how does a lack of memory end in a message? |
//!
//! `types.ts` has the types of questions and answers for TypeScript.

#![deny(unsafe_code)]
#![warn(clippy::undocumented_unsafe_blocks)]

#[cfg(target_family = "wasm")]
mod memory;
#[cfg(target_family = "wasm")]
pub mod module;
pub mod session;

pub use session::Session;
