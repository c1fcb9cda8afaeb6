//! The texts that a kernel becomes: IR after each pass, CUDA C++ with the kernel's lines.

use serde::Serialize;
use tirx_core::ir::{Gpu, IRModule};
use tirx_core::script::print;

use crate::kernel::{Result, judge, lowered};

/// CUDA text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cuda {
    /// The text.
    pub text: String,
    /// For each of its lines the line of the kernel file, from 1; 0 for lines without one.
    pub lines: Vec<u32>,
    /// The names of its kernels.
    pub kernels: Vec<String>,
}

/// The CUDA text of a module that has not been lowered; `file` is the file whose lines are mapped.
///
/// # Errors
/// Errors of the kernel.
pub fn cuda(module: IRModule, gpu: Gpu, file: &str) -> Result<Cuda> {
    let judged = judge(module, Some(gpu))?;
    let (module, source) = (judged.lowered, judged.cuda);
    let line = |span| {
        let at = module.sources.locate(span).filter(|at| *at.file == *file);
        at.map_or(0, |at| at.line)
    };
    Ok(Cuda {
        lines: source.lines.iter().map(|span| line(*span)).collect(),
        kernels: source
            .kernels
            .iter()
            .map(|kernel| kernel.symbol.clone())
            .collect(),
        text: source.text,
    })
}

/// IR after a pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Pass {
    /// The pass; `parse` for the kernel as written.
    pub name: String,
    /// The IR; none if the pass changed nothing.
    pub text: Option<String>,
}

/// The IR of a module as written, and after each pass.
///
/// # Errors
/// Errors of the kernel.
pub fn passes(module: IRModule, gpu: Gpu) -> Result<Vec<Pass>> {
    let mut last = print(&module);
    let mut passes = vec![Pass {
        name: "parse".to_string(),
        text: Some(last.clone()),
    }];
    lowered(module, gpu, &mut |step| {
        let text = print(step.module);
        let changed = text != last;
        passes.push(Pass {
            name: step.pass.to_string(),
            text: changed.then(|| text.clone()),
        });
        last = text;
    })?;
    Ok(passes)
}
