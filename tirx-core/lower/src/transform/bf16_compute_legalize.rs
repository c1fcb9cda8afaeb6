//! BF16ComputeLegalize: bfloat16 arithmetic for targets that have none.
//!
//! CUDA has bfloat16 arithmetic from compute capability 8.0 on, so for those targets nothing changes, as in
//! TVM 0.26. For older ones operations are done in float32 (see `legalize_compute`).

use super::legalize_compute::legalize;
use super::{PassContext, Target};
use crate::diagnostic::Diagnostics;
use crate::ir::{DType, IRModule};

/// The first compute capability with bfloat16 arithmetic.
const FIRST_WITH_BFLOAT16: u32 = 80;

/// Legalizes every function whose target needs it.
pub fn run(module: IRModule, context: &PassContext) -> Result<IRModule, Diagnostics> {
    Ok(module.map(|func| {
        let target = func.attr("target").and_then(Target::from_attr);
        let target = target.unwrap_or(context.target);
        if target.gpu.number() >= FIRST_WITH_BFLOAT16 {
            func
        } else {
            legalize(func, DType::is_bfloat16)
        }
    }))
}
