//! Final IR to CUDA C++ and launcher code.

#![warn(missing_docs)]
#![forbid(unsafe_code)]

use tirx_arith as arith;
use tirx_ir as ir;
use tirx_ir::intrin;
use tirx_source::{diagnostic, source};

pub mod c;
pub mod cuda;
pub mod rust;
