//! Reasons why a device rejects a launch that another device would accept.
//!
//! Evaluated after a launch has failed, because the driver only reports that a value is invalid.

use std::sync::Arc;

use cudarc::driver::{CudaContext, result, sys};
use sys::CUdevice_attribute_enum as Device;
use sys::CUfunction_attribute_enum as Attribute;

use crate::Error;
use crate::image::LaunchConfig;

fn product(extents: [u32; 3]) -> u64 {
    extents.iter().map(|e| u64::from(*e)).product()
}

/// The limit of the device that a launch exceeds, if one is found.
///
/// # Safety
/// `function` is loaded in `context`, which is current; `launch` and what it points to are whole.
pub(super) unsafe fn explain(
    kernel: &'static str,
    context: &Arc<CudaContext>,
    function: sys::CUfunction,
    config: &LaunchConfig,
    launch: &sys::CUlaunchConfig,
) -> Option<Error> {
    let too_large = |what: &'static str, value: u64, limit: u64| {
        (value > limit).then_some(Error::LaunchLimit {
            kernel,
            what,
            value,
            limit,
        })
    };
    let threads = product(config.block);
    // SAFETY: the caller's promise.
    let most = unsafe {
        result::function::get_function_attribute(function, Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)
    };
    if let Ok(most) = most
        && let Some(error) = too_large("threads per block", threads, most.max(0) as u64)
    {
        return Some(error);
    }
    if product(config.cluster) > 1 {
        if context.attribute(Device::CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH) == Ok(0) {
            let message = "this device has no clusters of blocks".to_string();
            return Some(Error::Launch { kernel, message });
        }
        let mut most = 0;
        // SAFETY: the caller's promise; `most` lives across the call.
        let status = unsafe { sys::cuOccupancyMaxPotentialClusterSize(&mut most, function, launch) };
        if status.result().is_ok()
            && let Some(error) = too_large("blocks per cluster", product(config.cluster), most.max(0) as u64)
        {
            return Some(error);
        }
    }
    if config.cooperative {
        let mut resident = 0;
        // SAFETY: the caller's promise; `resident` lives across the call.
        let status = unsafe {
            sys::cuOccupancyMaxActiveBlocksPerMultiprocessor(
                &mut resident,
                function,
                threads as i32,
                config.shared_bytes as usize,
            )
        };
        let units = context.attribute(Device::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
        if let (Ok(()), Ok(units)) = (status.result(), units) {
            let most = u64::from(resident.unsigned_abs()) * u64::from(units.unsigned_abs());
            return too_large("blocks that wait for each other", product(config.grid), most);
        }
    }
    None
}
