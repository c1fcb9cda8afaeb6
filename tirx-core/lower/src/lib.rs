//! From the functions a user wrote to device functions and a host function: the passes.

#![warn(missing_docs)]
#![forbid(unsafe_code)]

use tirx_arith as arith;
use tirx_ir as ir;
use tirx_ir::intrin;
use tirx_layout as layout;
use tirx_source::{diagnostic, source};

pub mod transform;
