//! The build.rs side of TIRx: kernels become a build dependency.
//!
//! The [book](https://github.com/tirx-rs/tirx/blob/main/docs/book/src/introduction.md) teaches the kernel language.
//!
//! # A first kernel
//!
//! `kernels/vector.py`, in the language of TIRx:
//!
//! ```python
//! from tvm.script import tirx as T
//!
//! @T.jit
//! def add(A: T.Buffer((N,), "float32"), B: T.Buffer((N,), "float32"),
//!         C: T.Buffer((N,), "float32"), *, N: T.constexpr):
//!     T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([N])
//!     C[tx] = A[tx] + B[tx]
//! ```
//!
//! `kernels.toml`, beside `Cargo.toml`:
//!
//! ```toml
//! [defaults]
//! targets = ["sm_90a", "sm_100a"]      # one native image each
//! ptx     = "compute_90"               # optional: PTX for newer GPUs
//!
//! [toolchain]
//! cuda = "13.0"                        # the release that nvcc must be of
//! auto-install = true                  # fetch it through pip if it is missing
//!
//! [[kernel]]
//! name   = "add"
//! source = "kernels/vector.py"         # or: script = """ … """
//! entry  = "add"                       # optional if it is the kernel's name, or the file's only kernel
//! specialize = [{ N = 256 }, { N = 1024 }]
//! ```
//!
//! `docs/reference/kernels-toml.md` describes every key.
//!
//! A `T.Optional` parameter of a `@T.jit` is left out of a specialization, and of its launcher, by the value `"None"`:
//! `specialize = [{ N = 256 }, { N = 256, Bias = "None" }]`.
//!
//! `build.rs`, with `tirx-build` among the build dependencies and `tirx-rt` among the dependencies:
//!
//! ```no_run
//! fn main() -> tirx_build::Result<()> {
//!     tirx_build::compile_kernels("kernels.toml")
//! }
//! ```
//!
//! `main.rs`:
//!
//! ```ignore
//! tirx_rt::include_kernels!();
//! // kernels::add::n256(&stream, &a, &b, &mut c)?;
//! ```
//!
//! # nvcc
//!
//! A build uses the first of these that exists:
//!
//! 1. `TIRX_NVCC` (a path; `none` builds without nvcc), then `NVCC`;
//! 2. `bin/nvcc` below `CUDA_HOME`, then `CUDA_PATH`;
//! 3. `nvcc` on `PATH`;
//! 4. pip's `nvidia/cu*/bin/nvcc` of the active virtual environment, of `python3`, of the toolchain that
//!    `cargo tirx toolchain install` fetched;
//! 5. `/usr/local/cuda`, `/usr/local/cuda-*`, `/opt/cuda`.
//!
//! A build skips a release that the manifest does not pin, or that is too old for a target (for the variables of 1 this
//! is an error). If no nvcc is left and `auto-install` is set, the build fetches the pinned release through pip into a
//! per-user cache and checks the hashes of its packages; under `TIRX_OFFLINE=1` a fetch is an error. If the fetch
//! fails, the build succeeds with IR images, which the simulator runs, and gives
//! one warning; for a kernel with `require = true` it is an error.
//!
//! `TIRX_NVCC_TIMEOUT=<seconds>` limits a run of nvcc. `TIRX_NVCC_WRAPPER=<program>` starts nvcc through another program,
//! for example `sccache`. Cargo runs the build script again when the nvcc in use changes or disappears, and when a toolkit appears
//! at `CUDA_HOME` or `CUDA_PATH`. If no nvcc was found, it also does so when `PATH` or a folder on it changes.
//!
//! # Repeated builds
//!
//! nvcc runs once per kernel and target, unless a store has the result. The key of a result is the CUDA text, nvcc's
//! release and build, the arguments, the target and the variables that nvcc reads (`NVCC_APPEND_FLAGS`, …), so a
//! comment, another profile, or a target that is removed and added again compile nothing. One store is in Cargo's
//! target directory, and all packages of the user share another: `TIRX_STORE=<dir>` names its folder, `TIRX_STORE=none`
//! turns it off, `TIRX_STORE_LIMIT=<MiB>` bounds it (2 GiB otherwise), and `cargo tirx cache` shows and prunes it.
//! The build validates nvcc's output: an incomplete fat binary is an error, and a damaged entry of a store is compiled
//! again.
//!
//! Builds into one `OUT_DIR` exclude each other. If a build script outlives its Cargo, it writes nothing after another
//! build has begun.
//!
//! # Output
//!
//! A build writes `tirx_kernels.rs` into `OUT_DIR`, and for each kernel (`tirx/add-n256.*`) the CUDA text, the IR image and
//! the fat binary. The texts and the image depend only on the inputs: they contain no path and no time. `TIRX_DUMP=dir` writes the IR
//! after every pass, too.

// On docs.rs, what a feature adds says so.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(missing_docs)]
#![warn(clippy::undocumented_unsafe_blocks)]
#![deny(unsafe_code)]

mod builder;
pub mod bundle;
mod c_api;
mod claim;
pub mod compile;
mod declare;
mod document;
mod environment;
mod error;

mod generate;
mod hash;
mod kernels;
mod libraries;
pub mod manifest;
mod nvcc;
mod paths;
mod process;
pub mod source;
pub mod specialize;
pub mod stats;
pub mod store;
pub mod target;
pub mod toolchain;
mod tuned;
pub mod tuning;
mod version;
mod watch;

use std::path::PathBuf;

pub use builder::{
    Builder, BundleAction, BundleReport, BundleRequest, BundledKernel, CodeForm, KernelCode, Report,
    SourcesReport, TunedKernel, build_script_declares_kernels, bundle_by_build_script, disassembler,
};
pub use c_api::CApi;
pub use declare::{Kernel, Tune};
pub use environment::Environment;
pub use error::{Error, Result};
pub use nvcc::NvccOptions;
// For build scripts that make kernels.
pub use tirx_core::ir;
pub use tirx_core::script::ConstValue;

/// Compiles the kernels of a manifest into Cargo's `OUT_DIR` and tells Cargo what they depend on. For build scripts.
///
/// # Errors
/// What is wrong with the manifest, a kernel or the toolchain, rendered for the build's output.
pub fn compile_kernels(manifest: impl Into<PathBuf>) -> Result<()> {
    Builder::new().manifest(manifest).compile()
}
