//! Finished kernels for NVIDIA GPUs: call them like functions, with the tensors of [`tirx_rt`]. The [gallery](https://github.com/tirx-rs/tirx/blob/main/docs/book/src/gallery.md)
//! of the book shows each kernel and runs it in the browser.
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
//! | [`norm`] | `serving` | RMSNorm and LayerNorm of rows, also of the sum with a residual, also with results in 8 bits |
//! | [`rope`] | `serving` | rotary embedding, both conventions |
//! | [`paged`] | `serving` | attention to keys and values in pages, also float8 and latent: decoding, prompts in parts; the caches |
//! | [`activation`] | `serving` | SiLU, GELU, ReLU, alone and gated |
//! | [`sampling`] | `serving` | the next token: most likely, or random by temperature, top-k, top-p, min-p, penalties |
//! | [`softmax`], [`loss`] | `serving` | softmax of rows, cross-entropy |
//! | [`experts`] | `serving` | mixtures of experts: choice, order by expert, weighted sum |
//! | [`embedding`] | `serving` | rows of a table |
//! | [`cast`], [`quantize`] | `serving` | element types; 8 and 4 bits with factors of rows, blocks and groups |
//! | [`ranks`] | `ranks` | kernels of several GPUs: all-gather with a product, a product with reduce-scatter, all-reduce with RMSNorm |
//! | [`quant`] | `quant` | products of few rows with weights in 4, 6 and 8 bits (GGUF, GPTQ, AWQ, float8, MXFP4), and their numbers |
//!
//! Launches allocate no device memory and can be captured in a graph. A call with unsupported input is an error before the launch.
//! Without a GPU the same calls run on the simulator of [`tirx_rt`], with all of its checks.

#[cfg(feature = "attention")]
pub mod attention;
mod error;
#[cfg(feature = "gemm")]
pub mod gemm;
#[cfg(any(
    feature = "gemm",
    feature = "attention",
    feature = "serving",
    feature = "quant",
    feature = "ranks"
))]
mod machine;
#[cfg(feature = "quant")]
pub mod quant;
#[cfg(feature = "ranks")]
pub mod ranks;
#[cfg(feature = "serving")]
mod serving;

pub use error::{Error, Result};
#[cfg(feature = "serving")]
pub use serving::{
    Element, activation, cast, embedding, experts, loss, norm, paged, quantize, rope, sampling, softmax,
};

#[cfg(not(compiled))]
#[allow(missing_docs)]
mod generated {
    tirx_rt::include_kernels!();
}
#[cfg(compiled)]
mod generated {
    #[cfg(feature = "sm_80")]
    pub(crate) use tirx_kernels_sm80::kernels;
    #[cfg(feature = "sm_90a")]
    pub(crate) use tirx_kernels_sm90a::kernels;
    #[cfg(feature = "sm_100a")]
    pub(crate) use tirx_kernels_sm100a::kernels;
}
