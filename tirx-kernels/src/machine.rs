//! The device that a launch is for.

use tirx_rt::Device;

use crate::Result;

/// Whether there are kernels for Hopper: of the packages of compiled kernels, that for `sm_90a` alone has them.
const HAS_HOPPER: bool = cfg!(any(
    feature = "sm_90a",
    not(any(feature = "sm_80", feature = "sm_100a"))
));
/// Whether there are kernels for Blackwell: of the packages, that for `sm_100a` alone has them.
const HAS_BLACKWELL: bool = cfg!(any(
    feature = "sm_100a",
    not(any(feature = "sm_80", feature = "sm_90a"))
));

/// The kernels that are for a device alone, as far as the program has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(any(feature = "gemm", feature = "attention")), allow(dead_code))]
pub(crate) enum Generation {
    /// None: those from `sm_80` on.
    Any,
    /// Those with the instructions of `sm_90a`.
    Hopper,
    /// Those with the instructions of `sm_100a`.
    Blackwell,
}

/// Bytes that the memory of an H100 moves in a microsecond, as products show it.
pub(crate) const MEMORY: f64 = 2.7e6;
/// Their part of those that its memory transfers at most.
const REACHED: f64 = MEMORY / 3.352e6;
/// That of a B200, whose memory transfers 8 TB/s at most.
const MEMORY_OF_B200: f64 = REACHED * 8e6;

/// The properties of a device that the choice of a kernel and its blocks depend on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Machine {
    pub(crate) multiprocessors: f64,
    /// Bytes that the memory moves in a microsecond.
    #[cfg_attr(not(feature = "gemm"), allow(dead_code))]
    pub(crate) memory: f64,
    #[cfg_attr(not(any(feature = "gemm", feature = "attention")), allow(dead_code))]
    pub(crate) generation: Generation,
}

impl Machine {
    /// Those of a device. The simulator has those of an H100 or, if it stands for `sm_100a`, of a B200, as far as there are kernels for it.
    pub(crate) fn of_device(device: &Device) -> Result<Machine> {
        let simulated = if HAS_HOPPER || !HAS_BLACKWELL {
            (9, 0)
        } else {
            (10, 0)
        };
        let (capability, multiprocessors, memory) = match device.properties()? {
            Some(properties) => (
                properties.compute_capability,
                f64::from(properties.multiprocessors),
                REACHED * properties.peak_bytes_per_second() / 1e6,
            ),
            None => match device.compute_capability()?.unwrap_or(simulated) {
                (10, 0) => ((10, 0), 148.0, MEMORY_OF_B200),
                other => (other, 132.0, MEMORY),
            },
        };
        let generation = match capability {
            (9, 0) if HAS_HOPPER => Generation::Hopper,
            (10, 0) if HAS_BLACKWELL => Generation::Blackwell,
            _ => Generation::Any,
        };
        Ok(Machine {
            multiprocessors,
            memory,
            generation,
        })
    }
}
