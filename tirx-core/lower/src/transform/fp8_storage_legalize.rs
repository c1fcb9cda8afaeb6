//! FP8StorageLegalize: float8 memory for targets whose language has no such type.
//!
//! CUDA C++ has the narrow types, so device functions stay; in host functions they are `uint8` memory
//! (see `legalize_storage`).

use super::PassContext;
use super::legalize_storage::{legalize, runs_on_host};
use crate::diagnostic::Diagnostics;
use crate::ir::{DType, IRModule};

/// Legalizes the host functions.
pub fn run(module: IRModule, _context: &PassContext) -> Result<IRModule, Diagnostics> {
    fn container(dtype: DType) -> Option<DType> {
        dtype.is_float8().then(|| DType::UINT8.with_lanes(dtype.lanes))
    }
    Ok(module.map(|func| {
        if runs_on_host(&func) {
            legalize(func, container)
        } else {
            func
        }
    }))
}
