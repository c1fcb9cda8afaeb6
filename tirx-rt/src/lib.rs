//! The runtime of programs with TIRx kernels: devices, streams, tensors and launches.
//!
//! The typed functions that `tirx-build` generates take these types:
//!
//! ```ignore
//! tirx_rt::include_kernels!(); // mod kernels { … }
//!
//! let device = tirx_rt::Device::best()?; // the first GPU, else the simulator
//! let stream = device.default_stream();
//! let a = tirx_rt::Tensor::from_slice(&stream, &[1.0f32; 256], [256])?;
//! let mut b = tirx_rt::Tensor::zeros(&stream, [256])?;
//! kernels::scale(&stream, &a, &mut b)?;
//! assert_eq!(b.to_vec()?[0], 2.0);
//! ```
//!
//! A build needs no part of CUDA. At run time the crate opens the NVIDIA driver if there is a driver. With the feature
//! `simulator` (default) every kernel also runs on the CPU. With the feature `half` (default) [`f16`](struct@f16) and
//! [`bf16`](struct@bf16) are the types of the crate `half`, which candle, burn and cudarc use. Without it they are types of this
//! crate, and a clean build is shorter.
//!
//! The book has a chapter on [the runtime](https://github.com/tirx-rs/tirx/blob/main/docs/book/src/runtime.md).
//!
//! The crate has three layers, from safe to raw: the generated functions; [`Kernel::launch`] with pointers and a launch
//! configuration; [`KernelImage`] with the bytes.

// On docs.rs, what a feature adds says so.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(missing_docs)]
#![warn(clippy::undocumented_unsafe_blocks)]

#[cfg(feature = "bundle")]
mod bundle;
mod completion;
#[doc(hidden)]
pub mod contract;
mod cuda;
#[cfg(feature = "cudart")]
mod cudart;
mod device;
mod dlpack;
mod element;
mod error;
mod event;
mod float4;
mod float8;
mod graph;
pub mod host;
mod image;
#[cfg(feature = "simulator")]
#[doc(hidden)]
pub mod interpreted;
mod kernel;
mod launch_attributes;
mod limits;
mod pinned;
mod profile;
mod shape;
#[cfg(feature = "simulator")]
mod simulator;
mod storage;
mod targets;
mod tensor;
mod tensor_map;
mod tuning;
mod world;

#[cfg(feature = "bundle")]
pub use bundle::Bundle;
pub use completion::Completion;
#[cfg(feature = "cudart")]
pub use cuda_runtime_sys;
pub use cudarc;
pub use device::{Device, DeviceProperties, Stream};
pub use dlpack::{DlManagedTensor, DlTensor};
pub use element::{CountingElement, Element, ElementType};
pub use error::{Error, Result};
pub use event::Event;
pub use float4::Float4E2m1;
pub use float8::{f4e2m1x2, f8e4m3, f8e5m2, f8e8m0};
pub use graph::Graph;
#[cfg(feature = "half")]
pub use half::{bf16, f16};
pub use image::{DeviceFunction, KernelImage, LaunchConfig, ParamKind};
pub use kernel::Kernel;
pub use launch_attributes::LaunchAttributes;
pub use pinned::{Pinned, PinnedSlice, PinnedSliceMut, PlainElement};
pub use profile::{Profile, ProfileEvent, ProfilePoint};
pub use shape::{IntoShape, MAX_RANK, Shape};
#[cfg(feature = "simulator")]
pub use simulator::{StandIn, StandInScalar};
pub use targets::{ForTargets, KernelForTargets};
pub use tensor::{AsTensor, AsTensorMut, Tensor, View, ViewMut};
pub use tensor_map::{Swizzle, TensorMap, TensorMapBuilder, TensorMapCache, TensorMapSpec};
#[cfg(not(feature = "half"))]
pub use tirx_dtype::{bf16, f16};
pub use tuning::{CandidateBlocks, Tuning, TuningCandidate, TuningRecord};
pub use world::{Symmetric, World};

/// Launches a device function with device pointers, for generated code. The keyword `unsafe` is in this macro and not
/// in the generated code, so that a crate with `#![forbid(unsafe_code)]` can include its kernels.
#[doc(hidden)]
#[macro_export]
macro_rules! raw_launch {
    ($(#[$meta:meta])* fn $name:ident($($param:ident: $ty:ty),* $(,)?) $launch:expr) => {
        $(#[$meta])*
        pub unsafe fn $name($($param: $ty),*) -> ::core::result::Result<(), $crate::Error> {
            // SAFETY: as many arguments as the function has parameters; the rest is the caller's promise.
            unsafe { $launch }
        }
    };
}

/// The call of such a function by the typed function, with checked tensors.
#[doc(hidden)]
#[macro_export]
macro_rules! call_raw {
    ($call:expr) => {
        // SAFETY: the pointers are those of tensors on the stream's device, borrowed and checked before.
        unsafe { $call }
    };
}

/// In generated code: the number of what it expects of this crate, and the version of the `tirx-build` that wrote it. See
/// `CONTRACT` of `tirx-build`, and [`contract`].
///
/// ```
/// tirx_rt::generated_contract!(2, env!("CARGO_PKG_VERSION"));
/// ```
///
/// Code of another release, older or newer, does not compile:
///
/// ```compile_fail
/// tirx_rt::generated_contract!(1);
/// ```
///
/// ```compile_fail
/// tirx_rt::generated_contract!(2, "99.0.0");
/// ```
#[doc(hidden)]
#[macro_export]
macro_rules! generated_contract {
    (2, $version:expr) => {
        const _: () = $crate::contract::generated_by($version);
    };
    ($other:literal $(, $version:literal)?) => {
        ::core::compile_error!(::core::concat!(
            "the kernels were generated for another tirx-rt (contract ",
            $other,
            $(" of tirx-build ", $version,)?
            ", this one has contract 2): give `tirx-build` and `tirx-rt` the same version in Cargo.toml"
        ));
    };
}

/// Includes the module that `tirx-build` generated: `pub mod kernels { … }`.
///
/// With a path it includes the launchers that `cargo tirx sources` wrote, relative to the file with the call: `include_kernels!("../kernels/tirx_kernels.rs")`.
///
/// The generated code reaches this crate through the macro's path, so that the crate may have another name in your
/// Cargo.toml, or be reached through the crate that re-exports it.
#[macro_export]
macro_rules! include_kernels {
    () => {
        // Generated code calls it for the name of this crate.
        macro_rules! tirx_rt_of_kernels {
            () => {
                use $crate as tirx_rt;
            };
        }
        include!(concat!(
            env!(
                "OUT_DIR",
                "the package has no build script, which makes the kernels that `include_kernels!` includes: add a \
                 `build.rs` beside Cargo.toml, `fn main() -> tirx_build::Result<()> { \
                 tirx_build::compile_kernels(\"kernels.toml\") }`, and `tirx-build` under [build-dependencies]"
            ),
            "/tirx_kernels.rs"
        ));
    };
    ($path:literal) => {
        // A macro of its own for each arm: rustc calls a name ambiguous that macros define at different depths.
        macro_rules! tirx_rt_of_kernels {
            () => {
                use $crate as tirx_rt;
            };
        }
        include!($path);
    };
}
