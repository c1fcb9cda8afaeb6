//! The device that a launch is for.

use std::sync::OnceLock;

use tirx_rt::Device;

use crate::Result;

/// Whether there are kernels for Hopper: the package for `sm_80` has none.
const HAS_HOPPER: bool = cfg!(any(not(feature = "sm_80"), feature = "sm_90a"));

/// Bytes that the memory of an H100 moves in a microsecond, as products show it.
pub(crate) const MEMORY: f64 = 2.7e6;
/// Their part of those that its memory transfers at most.
const REACHED: f64 = MEMORY / 3.352e6;

/// The properties of a device that the choice of a kernel and its blocks depend on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Machine {
    pub(crate) multiprocessors: f64,
    /// Bytes that the memory moves in a microsecond.
    #[cfg_attr(not(feature = "gemm"), allow(dead_code))]
    pub(crate) memory: f64,
    /// Whether it has the instructions of sm_90a, and the program has kernels with them.
    #[cfg_attr(not(feature = "gemm"), allow(dead_code))]
    pub(crate) hopper: bool,
}

impl Machine {
    /// Those of a device. The simulator has those of an H100, as far as there are kernels for it.
    pub(crate) fn of_device(device: &Device) -> Result<Machine> {
        // The driver's answers do not change; most programs have one GPU.
        static FIRST: OnceLock<Machine> = OnceLock::new();
        if device.id() == 0
            && let Some(machine) = FIRST.get()
        {
            return Ok(*machine);
        }
        let machine = match device.properties()? {
            Some(properties) => Machine {
                multiprocessors: f64::from(properties.multiprocessors),
                memory: REACHED * properties.peak_bytes_per_second() / 1e6,
                hopper: properties.compute_capability == (9, 0) && HAS_HOPPER,
            },
            None => Machine {
                multiprocessors: 132.0,
                memory: MEMORY,
                hopper: HAS_HOPPER,
            },
        };
        if device.id() == 0 {
            let _ = FIRST.set(machine);
        }
        Ok(machine)
    }
}
