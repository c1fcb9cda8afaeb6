//! The build.rs side of TIRx: kernels become a build dependency.
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
//! auto-install = true                  # fetch it through pip where it is missing
//!
//! [[kernel]]
//! name   = "add"
//! source = "kernels/vector.py"         # or: script = """ … """
//! entry  = "add"                       # optional where it is the kernel's name, or the file's only kernel
//! specialize = [{ N = 256 }, { N = 1024 }]
//! ```
//!
//! Every key is described in `docs/reference/kernels-toml.md`.
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
//! The first of these that exists is used:
//!
//! 1. `TIRX_NVCC` (a path; `none` builds without nvcc), then `NVCC`;
//! 2. `bin/nvcc` below `CUDA_HOME`, then `CUDA_PATH`;
//! 3. `nvcc` on `PATH`;
//! 4. pip's `nvidia/cu*/bin/nvcc` of the active virtual environment, of `python3`, of what
//!    `cargo tirx toolchain install` fetched;
//! 5. `/usr/local/cuda`, `/usr/local/cuda-*`, `/opt/cuda`.
//!
//! A release that the manifest does not pin, or that is too old for a target, is passed over (for the variables of 1
//! it is an error). Where nothing is left and `auto-install` is set, the pinned release is fetched through pip into a
//! per-user cache, with packages whose hashes are known here; under `TIRX_OFFLINE=1` that is an error instead. Where it
//! fails, the build succeeds with IR images, which the simulator runs, and says so in
//! one warning; a kernel with `require = true` makes it an error.
//!
//! `TIRX_NVCC_TIMEOUT=<seconds>` limits a run of nvcc, `TIRX_NVCC_WRAPPER=<program>` has it started by another program
//! (`sccache`, say). Cargo runs the build script again when the nvcc that was used changes or goes, when a toolkit appears
//! where `CUDA_HOME` or `CUDA_PATH` points, and, where none was found, when `PATH` or a folder on it changes.
//!
//! # What is compiled again
//!
//! nvcc runs once per kernel and target, and only for what no store holds. The key of a result is the CUDA text, nvcc's
//! release and build, the arguments, the target and the variables that nvcc reads (`NVCC_APPEND_FLAGS`, …), so a
//! comment, another profile, or a target that is removed and added again compile nothing. One store is in Cargo's
//! target directory, one is shared by all packages of the user: `TIRX_STORE=<dir>` puts it elsewhere, `TIRX_STORE=none`
//! turns it off, `TIRX_STORE_LIMIT=<MiB>` bounds it (2 GiB otherwise), and `cargo tirx cache` shows and prunes it.
//! Nothing that nvcc wrote is believed unseen: what is no whole fat binary is an error, and an entry that was damaged
//! is made anew.
//!
//! Builds into one `OUT_DIR` exclude each other; a build script that outlived its Cargo writes nothing once another
//! build has begun.
//!
//! # What is written
//!
//! Into `OUT_DIR`: `tirx_kernels.rs`, and per kernel (`tirx/add-n256.*`) the CUDA text, the IR image and the fat
//! binary. The texts and the image depend on nothing but the inputs: no path, no time. `TIRX_DUMP=dir` writes the IR
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
mod version;
mod watch;

use std::path::PathBuf;

pub use builder::{
    Builder, BundleAction, BundleReport, BundleRequest, BundledKernel, CodeForm, KernelCode, Report,
    build_script_declares_kernels, bundle_by_build_script, disassembler,
};
pub use c_api::CApi;
pub use declare::Kernel;
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
