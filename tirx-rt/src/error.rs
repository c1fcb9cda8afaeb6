//! What can go wrong at run time.

use std::fmt;

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong. `Debug` prints the text of `Display`, which `unwrap`, a test and `fn main() -> Result<…>` show: for a fault the
/// file, the line and the notes.
#[derive(Clone)]
#[non_exhaustive]
pub enum Error {
    /// The requested device does not exist.
    NoDevice {
        /// The device.
        device: String,
        /// The reason.
        reason: String,
    },
    /// A CUDA driver call failed.
    Driver {
        /// What was attempted.
        attempt: String,
        /// The driver's name for the error, e.g. `CUDA_ERROR_OUT_OF_MEMORY`.
        name: String,
        /// The driver's description.
        message: String,
    },
    /// An argument of a launch does not fit the kernel.
    Argument {
        /// The kernel.
        kernel: &'static str,
        /// Position, from 0.
        index: u32,
        /// The parameter's name in Rust.
        argument: &'static str,
        /// The property that does not fit: `ndim`, `shape[0]`, `strides`, `data`, `device`.
        field: &'static str,
        /// What the kernel needs.
        expected: String,
        /// What was passed.
        actual: String,
    },
    /// A check of the host function failed that is not about a single argument.
    Check {
        /// The kernel.
        kernel: &'static str,
        /// The check's message.
        message: String,
    },
    /// The requested specialization was not built.
    NotBuilt {
        /// The kernel.
        kernel: &'static str,
        /// The requested values, e.g. `N = 512`.
        requested: String,
        /// The specializations that exist.
        built: &'static [&'static str],
    },
    /// The image has no code for the device.
    NoCodeForDevice {
        /// The kernel.
        kernel: &'static str,
        /// The device.
        device: String,
        /// Its compute capability.
        compute_capability: (i32, i32),
        /// What the image holds, e.g. `sm_90a`.
        targets: Vec<&'static str>,
    },
    /// A launch configuration that no device accepts.
    Launch {
        /// The kernel.
        kernel: &'static str,
        /// What is wrong with it.
        message: String,
    },
    /// A launch extent that is negative or does not fit 32 bits.
    LaunchExtent {
        /// The kernel.
        kernel: &'static str,
        /// The extent: `blockIdx.x`, `threadIdx.y`, ….
        what: &'static str,
        /// Its value; `None` where that does not fit 64 bits.
        value: Option<i64>,
        /// The expression that computes it, as in the kernel.
        expression: &'static str,
        /// The values of its variables.
        values: Vec<(&'static str, i64)>,
    },
    /// A launch that is larger than a device allows.
    LaunchLimit {
        /// The kernel.
        kernel: &'static str,
        /// The limit that is exceeded: `threads per block`, `blocks along y`, `bytes of dynamic shared memory`, …
        what: &'static str,
        /// The requested amount.
        value: u64,
        /// The maximum.
        limit: u64,
    },
    /// The simulator found a fault in the kernel.
    #[cfg(feature = "simulator")]
    Fault(Box<tirx_sim::Fault>),
    /// The embedded IR image cannot be used.
    Image {
        /// The kernel.
        kernel: &'static str,
        /// The reason.
        message: String,
    },
    /// A bundle, or a kernel of one, cannot be used.
    #[cfg(feature = "bundle")]
    Bundle {
        /// The reason.
        message: String,
    },
    /// A tensor operation that its shape does not allow.
    Shape(String),
    /// Work that cannot be recorded in a graph.
    Capture {
        /// The reason.
        message: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            #[cfg(feature = "bundle")]
            Error::Bundle { message } => write!(f, "bundle: {message}"),
            Error::NoDevice { device, reason } => write!(f, "no {device}: {reason}"),
            Error::Driver {
                attempt,
                name,
                message,
            } => write!(f, "{attempt}: {message} ({name})"),
            Error::Argument {
                kernel,
                index,
                argument,
                field,
                expected,
                actual,
            } => {
                write!(
                    f,
                    "kernel `{kernel}`, argument {index} `{argument}`: {field} is {actual}, expected {expected}"
                )?;
                match *field {
                    "device" | "device_id" => f.write_str(
                        ": all tensors of a launch are on the device of its stream; `Tensor::to` copies a tensor to a device",
                    ),
                    _ => Ok(()),
                }
            }
            Error::Check { kernel, message } => write!(f, "kernel `{kernel}`: {message}"),
            Error::NotBuilt {
                kernel,
                requested,
                built,
            } => {
                write!(f, "kernel `{kernel}` was not built for {requested}; built: ")?;
                write!(
                    f,
                    "{}",
                    if built.is_empty() {
                        "nothing".to_string()
                    } else {
                        built.join("; ")
                    }
                )?;
                write!(f, ". Add the specialization to kernels.toml")
            }
            Error::NoCodeForDevice {
                kernel,
                device,
                compute_capability: (major, minor),
                targets,
            } => {
                write!(
                    f,
                    "kernel `{kernel}` has no code for {device} (compute capability {major}.{minor}): "
                )?;
                if targets.is_empty() {
                    write!(
                        f,
                        "it was built without nvcc. Install nvcc (`cargo tirx toolchain install`) and rebuild"
                    )
                } else {
                    let list = targets.join(", ");
                    write!(
                        f,
                        "the image holds {list}. Add \"sm_{major}{minor}\" to `targets` in kernels.toml and rebuild"
                    )
                }
            }
            Error::Launch { kernel, message } => write!(f, "kernel `{kernel}`: {message}"),
            Error::LaunchExtent {
                kernel,
                what,
                value,
                expression,
                values,
            } => {
                write!(
                    f,
                    "kernel `{kernel}` cannot be launched: {what}, `{expression}`, "
                )?;
                match value {
                    Some(value) => write!(f, "would be {value}")?,
                    None => f.write_str("does not fit 64 bits")?,
                }
                let values: Vec<String> = values.iter().map(|(n, v)| format!("{n} = {v}")).collect();
                match values.is_empty() {
                    true => Ok(()),
                    false => write!(f, " ({})", values.join(", ")),
                }
            }
            Error::LaunchLimit {
                kernel,
                what,
                value,
                limit,
            } => write!(
                f,
                "kernel `{kernel}` cannot be launched with {value} {what}: {limit} is the most"
            ),
            #[cfg(feature = "simulator")]
            Error::Fault(fault) => fault.fmt(f),
            Error::Image { kernel, message } => write!(f, "kernel `{kernel}`: unusable IR image: {message}"),
            Error::Shape(message) | Error::Capture { message } => f.write_str(message),
        }
    }
}

impl Error {
    /// CUDA's name of the error, `CUDA_ERROR_OUT_OF_MEMORY`: where the driver says it, and where the run time has found out
    /// before what the driver would say.
    pub fn cuda_name(&self) -> Option<&str> {
        match self {
            Error::Driver { name, .. } => Some(name),
            Error::NoDevice { .. } => Some("CUDA_ERROR_NO_DEVICE"),
            Error::NoCodeForDevice { .. } => Some("CUDA_ERROR_NO_BINARY_FOR_GPU"),
            Error::Argument { .. }
            | Error::Check { .. }
            | Error::Launch { .. }
            | Error::LaunchExtent { .. }
            | Error::LaunchLimit { .. } => Some("CUDA_ERROR_INVALID_VALUE"),
            Error::Capture { .. } => Some("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"),
            Error::Image { .. } => Some("CUDA_ERROR_INVALID_IMAGE"),
            #[cfg(feature = "simulator")]
            Error::Fault(fault) => Some(match fault.kind {
                tirx_sim::FaultKind::OutOfBounds => "CUDA_ERROR_ILLEGAL_ADDRESS",
                tirx_sim::FaultKind::Misaligned => "CUDA_ERROR_MISALIGNED_ADDRESS",
                tirx_sim::FaultKind::Assertion => "CUDA_ERROR_ASSERT",
                tirx_sim::FaultKind::Launch => "CUDA_ERROR_INVALID_VALUE",
                tirx_sim::FaultKind::Deadlock | tirx_sim::FaultKind::StepLimit => "CUDA_ERROR_LAUNCH_TIMEOUT",
                _ => "CUDA_ERROR_LAUNCH_FAILED",
            }),
            #[cfg(feature = "bundle")]
            Error::Bundle { .. } => None,
            Error::NotBuilt { .. } | Error::Shape(_) => None,
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}

#[cfg(feature = "simulator")]
impl From<tirx_sim::Fault> for Error {
    fn from(fault: tirx_sim::Fault) -> Error {
        Error::Fault(Box::new(fault))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_shown_to_people_by_debug_too() {
        let error = Error::LaunchLimit {
            kernel: "k",
            what: "threads per block",
            value: 2048,
            limit: 1024,
        };
        assert_eq!(
            format!("{:?}", Err::<(), Error>(error)),
            "Err(kernel `k` cannot be launched with 2048 threads per block: 1024 is the most)"
        );
    }

    #[test]
    fn an_image_without_code_for_the_device_says_what_to_add() {
        let error = |targets| Error::NoCodeForDevice {
            kernel: "add::n256",
            device: "NVIDIA A100".to_string(),
            compute_capability: (8, 0),
            targets,
        };
        assert_eq!(
            error(vec!["sm_90a", "sm_100a"]).to_string(),
            "kernel `add::n256` has no code for NVIDIA A100 (compute capability 8.0): the image holds sm_90a, sm_100a. \
             Add \"sm_80\" to `targets` in kernels.toml and rebuild"
        );
        assert!(error(vec![]).to_string().ends_with(
            "it was built without nvcc. Install nvcc (`cargo tirx toolchain install`) and rebuild"
        ));
    }
}
