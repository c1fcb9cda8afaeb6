//! FP8ComputeLegalize: float8, float6 and float4 arithmetic, which no CUDA target has outside of tensor cores.
//!
//! Operations are done in float32 (see `legalize_compute`). TVM 0.26 leaves them as they are on CUDA, and nvcc then
//! rejects them: its narrow types support conversions only.

use super::PassContext;
use super::legalize_compute::legalize;
use crate::diagnostic::Diagnostics;
use crate::ir::{DType, IRModule};

/// Legalizes every function.
pub fn run(module: IRModule, _context: &PassContext) -> Result<IRModule, Diagnostics> {
    Ok(module.map(|func| legalize(func, DType::is_small_float)))
}
