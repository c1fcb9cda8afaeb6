//! Finished kernels for NVIDIA GPUs: call them like functions, with the tensors of [`tirx_rt`].
//!
//! ```
//! use tirx_kernels::gemm;
//! use tirx_rt::{Device, Tensor, bf16};
//!
//! # fn main() -> tirx_kernels::Result<()> {
//! let stream = Device::best()?.default_stream();
//! let a = Tensor::from_slice(&stream, &[bf16::from_f32(0.5); 40 * 24], [40, 24])?;
//! let b = Tensor::from_slice(&stream, &[bf16::from_f32(2.0); 24 * 72], [24, 72])?;
//! let mut c = Tensor::zeros(&stream, [40, 72])?;
//! gemm::matmul(&stream, &a, &b, &mut c)?; // C = A B
//! assert_eq!(c.to_vec()?[0].to_f32(), 24.0);
//! # Ok(())
//! # }
//! ```
//!
//! | module | feature | functions |
//! |---|---|---|
//! | [`gemm`] | `gemm` | matrix products of bfloat16 and float16, for any extents and strides; bias, activation, residual, gates, groups; fp8, int8, tf32 |
//! | [`attention`] | `attention` | attention forward and backward: grouped queries, causal, windows, bounded scores, packed sequences |
//!
//! Launches allocate no device memory and can be captured in a graph. A call with unsupported input is an error before the launch.
//! Without a GPU the same calls run on the simulator of [`tirx_rt`], with all of its checks.

#[cfg(feature = "attention")]
pub mod attention;
mod error;
#[cfg(feature = "gemm")]
pub mod gemm;
mod machine;

pub use error::{Error, Result};

#[allow(missing_docs)]
mod generated {
    tirx_rt::include_kernels!();
}
