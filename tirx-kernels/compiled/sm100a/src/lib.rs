//! The kernels of [tirx-kernels](https://docs.rs/tirx-kernels), compiled for Blackwell (`sm_100a`). The feature `sm_100a` of `tirx-kernels` takes its kernels from
//! here, so that a build needs no CUDA toolkit and does not compile the compiler.

#[cfg(made)]
#[allow(missing_docs)]
mod generated {
    tirx_rt::include_kernels!("../kernels/tirx_kernels.rs");
}
#[cfg(made)]
#[doc(hidden)]
pub use generated::kernels;
