//! The TIRx compiler: kernel text → IR → CUDA C++ and host code.
//!
//! The compiler is pure: it reads no files, starts no processes, looks at no clock and needs no GPU.
//! Callers hand it text ([`source::SourceMap`]) and get text or IR back.
//!
//! This crate re-exports the crates beside it, and judges whether a kernel can be built. Each of these crates sees only the crates below it.
//!
//! | module | crate | role |
//! |---|---|---|
//! | [`source`], [`diagnostic`] | `tirx-source` | texts, spans, errors that point at them |
//! | [`ir`] | `tirx-ir` | the definition of a program: types, expressions, statements, functions, modules |
//! | [`ir::abi`] | `tirx-ir` | conventions between host code and device code: targets, fields, launch parameters, checks |
//! | [`intrin`] | `tirx-ir` | the table of intrinsics: one row each, read by every other part |
//! | [`arith`] | `tirx-arith` | analysis and proofs of integer expressions |
//! | [`layout`] | `tirx-layout`, types in `tirx-ir` | the locations of elements: axes, and operations on layouts |
//! | [`transform`] | `tirx-lower` | the lowering pipeline, one pass per file |
//! | [`codegen`] | `tirx-codegen` | final IR to CUDA C++ and launcher code |
//! | [`judge`] | this one | whether a lowered kernel can be built for a GPU |
//! | [`script`] | `tirx-script` (feature `frontend`), printer in `tirx-ir` | TVMScript text to IR and back |

#![warn(missing_docs)]
#![forbid(unsafe_code)]

pub mod judge;

pub use tirx_arith as arith;
pub use tirx_ir as ir;
pub use tirx_ir::intrin;
pub use tirx_layout as layout;
pub use tirx_lower::transform;
pub use tirx_source::{Diagnostic, Diagnostics, Result, diagnostic, source, suggest};

/// Final IR to CUDA C++ and launcher code.
pub mod codegen {
    pub use tirx_codegen::{c, cuda, rust};
    pub use tirx_ir::abi as host;
}

/// TVMScript text to IR and back.
pub mod script {
    pub use tirx_ir::{print, print_expr, print_func, print_stmt, typing};
    #[cfg(feature = "frontend")]
    pub use tirx_script::{
        Built, ConstValue, ConstexprParam, Entry, EntryKind, Imports, KernelFile, ModuleText, NoImports,
        Release, Rewrite, alternatives, eval, lang,
    };
}
