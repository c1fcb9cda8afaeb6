//! Final device IR to CUDA C++.
//!
//! [`emit`] writes every device function of a module (`calling_conv` 2) as a `__global__` function with C linkage.
//! The text depends on nothing but the module; nvcc accepts it with `-std=c++17` for sm_90a and sm_100a.
//!
//! | file | question |
//! |---|---|
//! | `unit` | what the functions share: headers, raw functions, prototypes |
//! | `emitter` | one function, and what is known while its text is written |
//! | `analysis` | what must be known before the first line |
//! | `aliases` | which pointers are promised to alias no other |
//! | `launch` | signature and launch bounds |
//! | `stmt` | statements |
//! | `expr`, `binary` | scalar expressions; binary operators |
//! | `vector` | vector expressions, lane by lane |
//! | `calls` | intrinsics |
//! | `instructions` | packed values and PTX instructions |
//! | `rows`, `asm` | operations that have a row, and the templates of their inline assembly |
//! | `requirements` | which operations the GPU does not have |
//! | `ptx_memory`, `ptx_convert`, `ptx_sync` | PTX with modifiers |
//! | `predicates` | `pred=`: which branches are predicates of instructions |
//! | `memory` | pointers, bit casts, atomics |
//! | `threads` | shuffles, ranks, reductions |
//! | `math` | which function computes what, by dtype |
//! | `code` | text with precedence; literals |
//! | `types` | dtypes as C++ types |
//! | `names` | identifiers |
//! | `lines` | which line of the kernel a line of the text came from |
//! | `helpers` | headers and device functions of our own |
//!
//! **Integers.** C++ computes 8- and 16-bit integers in `int`. A cast back is written wherever the upper bits could be
//! observed (`code::Width`), so such arithmetic wraps as the IR says. 32- and 64-bit arithmetic is C++'s own.

mod analysis;
mod asm;
mod binary;
mod calls;
mod code;
mod defects;
mod emitter;
mod expr;
mod helpers;
mod instructions;
mod launch;
mod lines;
mod math;
mod memory;
mod mnemonic;
mod names;
mod predicates;
mod ptx_convert;
mod ptx_memory;
mod requirements;
mod rows;
mod spaces;
mod stmt;
mod threads;
mod types;
mod unit;
mod vector;

pub use requirements::{Since, unsupported};

use self::unit::Unit;
use crate::diagnostic::Diagnostics;
use crate::ir::abi::{Target, is_device, is_subroutine};
use crate::ir::{DType, IRModule, Levels, with_stack_for};
use crate::source::Span;

/// What a kernel parameter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamKind {
    /// A pointer to device memory.
    Pointer,
    /// A value of this dtype.
    Scalar(DType),
    /// A tensor map, by value.
    TensorMap,
}

/// A kernel parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamInfo {
    /// Its name in the text.
    pub name: String,
    /// What it is.
    pub kind: ParamKind,
}

/// A generated kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelInfo {
    /// Its name in the image.
    pub symbol: String,
    /// Its parameters in order.
    pub params: Vec<ParamInfo>,
    /// Threads of a block, where constant: the first launch bound.
    pub threads_per_block: Option<u32>,
    /// Bytes of static shared memory.
    pub static_shared_bytes: usize,
    /// Whether the launch specifies a size of dynamic shared memory.
    pub uses_dynamic_shared: bool,
}

/// CUDA C++ of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CudaSource {
    /// The text.
    pub text: String,
    /// The origin of each line of the text; `Span::NONE` for lines without one. Messages of nvcc about a line are
    /// reported there.
    pub lines: Vec<Span>,
    /// Its kernels, in order.
    pub kernels: Vec<KernelInfo>,
    /// Names of the raw functions that it calls (`T.cuda.func_call`): the simulator needs a stand-in for each.
    pub stand_ins: Vec<String>,
    /// Features of the text that some earlier releases of CUDA lack.
    pub since: Vec<Since>,
}

/// Writes the device functions of a module.
pub fn emit(module: &IRModule) -> Result<CudaSource, Diagnostics> {
    with_stack_for(module.levels(), || source_of(module))
}

fn source_of(module: &IRModule) -> Result<CudaSource, Diagnostics> {
    let mut unit = Unit::new(module);
    let (mut errors, mut since) = (Vec::new(), Vec::new());
    let functions = module.functions.iter();
    let subroutines = functions.clone().filter(|(_, func)| is_subroutine(func));
    let launched = functions.filter(|(_, func)| is_device(func));
    // A called function stands before its callers.
    let each = subroutines.map(|f| (f, false)).chain(launched.map(|f| (f, true)));
    for ((name, func), is_kernel) in each {
        if let Some(target) = func.attr("target").and_then(Target::from_attr) {
            errors.extend(requirements::of_function(func, target.gpu));
        }
        errors.extend(spaces::of_function(func, is_kernel));
        since.extend(requirements::releases(func));
        let symbol = func.global_symbol().unwrap_or(name);
        if let Err(diagnostic) = unit.function(symbol, func, is_kernel) {
            errors.push(diagnostic.or_span(func.span));
        }
    }
    if errors.is_empty() {
        Ok(CudaSource {
            since,
            ..unit.finish()
        })
    } else {
        Err(Diagnostics(errors))
    }
}

#[cfg(test)]
mod tests;
