//! Whether a kernel can be built for a GPU: the one answer of build scripts, of every command, of the language server and of tests.
//!
//! A kernel is lowered by its caller, who knows which passes are watched. What follows is the same for all: the GPU has the operations, the
//! device functions have CUDA text, and the host function can be printed. Without a named GPU a kernel is for the first of
//! [`USUAL_GPUS`] that all this holds for.

use crate::Diagnostics;
use crate::codegen::cuda::{self, CudaSource};
use crate::codegen::{host, rust};
use crate::ir::{Gpu, IRModule, PrimFunc};

/// The GPUs that a kernel is compiled for where nobody names one: the first that has everything the kernel uses.
pub const USUAL_GPUS: &[Gpu] = &[
    Gpu::SM_90A,
    Gpu::SM_100A,
    Gpu::specific(103),
    Gpu::specific(107),
    Gpu::specific(110),
    Gpu::specific(120),
    Gpu::specific(121),
];

/// The first of [`USUAL_GPUS`] with all operations that a module calls, which may be lowered or not; the first of all where none has.
pub fn gpu_of(module: &IRModule) -> Gpu {
    let has = |gpu: &&Gpu| cuda::unsupported(module, **gpu).is_ok();
    *USUAL_GPUS.iter().find(has).unwrap_or(&USUAL_GPUS[0])
}

/// Whether a module is lowered already: printed IR with device functions.
pub fn is_lowered(module: &IRModule) -> bool {
    !host::device_functions(module).is_empty()
}

/// What a lowered kernel becomes.
#[derive(Debug)]
pub struct Checked {
    /// The CUDA text and its properties.
    pub cuda: CudaSource,
    /// The parameters that Rust has no type for: the simulator runs the kernel, but a build script makes no launcher for it.
    pub untyped: Option<Diagnostics>,
}

/// Checks a lowered kernel; `authored` is the function as written. A module that was lowered before it was printed has only CUDA text.
///
/// # Errors
/// Operations that the GPU does not have, places of memory that do not fit, and what else has no CUDA text; host code that no launcher can
/// run.
pub fn checked(authored: &PrimFunc, lowered: &IRModule) -> Result<Checked, Diagnostics> {
    let cuda = cuda::emit(lowered)?;
    if host::is_host(authored) {
        return Ok(Checked { cuda, untyped: None });
    }
    rust::check_host(authored, lowered)?;
    let untyped = rust::have_types(authored).err();
    Ok(Checked { cuda, untyped })
}

/// Compiles a module by `on` for the GPU that is `named`, or else for the first of [`USUAL_GPUS`] that it compiles for.
///
/// # Errors
/// That of the named GPU; without one, that of the first GPU that has the kernel's operations.
pub fn on_first<T, E>(
    module: IRModule,
    named: Option<Gpu>,
    mut on: impl FnMut(IRModule, Gpu) -> Result<T, E>,
) -> Result<T, E> {
    if let Some(gpu) = named {
        return on(module, gpu);
    }
    let first = gpu_of(&module);
    let error = match on(module.clone(), first) {
        Ok(compiled) => return Ok(compiled),
        Err(error) => error,
    };
    // A tile primitive may need a GPU that only lowering tells.
    let others = USUAL_GPUS.iter().copied().filter(|gpu| *gpu != first);
    let mut others = others.filter(|gpu| cuda::unsupported(&module, *gpu).is_ok());
    others.find_map(|gpu| on(module.clone(), gpu).ok()).ok_or(error)
}
