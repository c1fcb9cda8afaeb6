//! The language and its tables: each name, intrinsic, instruction and rewriting, and the syntax of Python.

mod coverage;
mod fix;
mod intrinsics;
mod mnemonics;
mod python_syntax;
