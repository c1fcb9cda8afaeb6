//! Python text to a syntax tree: the grammar of Python 3.12, with the place of every node in bytes.
//!
//! ```
//! use tirx_python::{Limits, Ranged, Stmt, parse_module};
//!
//! let module = parse_module("x = 1 + y\n", Limits::STACK).expect("Python");
//! let Stmt::Assign(assign) = &module.body[0] else { panic!("an assignment") };
//! assert_eq!(assign.value.range().to_usize(), 4..9);
//!
//! let errors = parse_module("x = (1\ny = 2\n", Limits::STACK).expect_err("an open bracket");
//! assert_eq!(errors[0].message, "`(` is never closed");
//! assert_eq!(errors[0].range.to_usize(), 4..5);
//! ```
//!
//! What a text means is not asked: `return` outside functions, or a parameter that appears twice, is none of the
//! parser's business. Names and text are read as Python reads them, but for two things that take tables of all of
//! Unicode. Characters in names that Python replaces by others, or that are neither letters nor digits, and escapes by
//! name (`\N{…}`) are errors, as are template strings (`t"…"`, Python 3.14).

#![warn(missing_docs)]
#![forbid(unsafe_code)]

mod ast;
mod error;
mod free;
mod lexer;
mod parser;
mod position;
#[cfg(test)]
mod tests;
pub mod visitor;

pub use ast::*;
pub use error::SyntaxError;
pub use free::free;
pub use parser::{Limits, parse_expression, parse_module};
pub use position::{Ranged, TextRange, TextSize};
