//! What each kernel takes of each GPU that it is compiled for, and the budgets that it must keep.
//!
//! Registers, stack, memory and code size are read from the machine code, spilled registers from what nvcc said when it made
//! that, threads and dynamic shared memory from the launch.

mod occupancy;

use std::collections::BTreeMap;
use std::path::Path;

use tirx_bundle::{Files, cubin, fatbin};
use tirx_core::diagnostic::{Level, Message};
use tirx_core::ir::abi::{self, LaunchParam};
use tirx_core::ir::intrin::Op;
use tirx_core::ir::{Expr, ExprKind, IRModule, Visitor};

use crate::bundle::refused;
use crate::error::{Error, Result};
use crate::generate::Variant;
use crate::nvcc::{Job, Made};

pub use occupancy::{Limiter, Occupancy};

/// What a device function of a kernel takes of a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelStats {
    /// The kernel's path in Rust: `add::n256`.
    pub kernel: String,
    /// The device function.
    pub symbol: String,
    /// The GPU: `sm_90a`.
    pub target: String,
    /// Registers of a thread.
    pub registers: u64,
    /// Bytes of registers that a thread stores to local memory and loads from it; `None` where nvcc's messages are not
    /// known, as for a bundle.
    pub spills: Option<Spills>,
    /// Bytes of a thread's stack.
    pub stack: u64,
    /// Bytes of a block's static shared memory.
    pub static_shared: u64,
    /// Bytes of a block's dynamic shared memory; `None` where the launch computes it, and for a bundle.
    pub dynamic_shared: Option<u64>,
    /// Bytes of constant memory.
    pub constant: u64,
    /// Bytes of machine code.
    pub code: u64,
    /// Threads of a block; `None` where the launch computes them.
    pub threads: Option<u64>,
    /// Blocks that a multiprocessor holds; `None` where threads, shared memory or the GPU's limits are not known.
    pub occupancy: Option<Occupancy>,
}

/// Registers that are spilled to local memory, in bytes of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spills {
    /// Stored.
    pub stores: u64,
    /// Loaded.
    pub loads: u64,
}

/// The constant extents of a kernel's launches, by device function.
#[derive(Clone, Copy, Default)]
struct Extents {
    threads: Option<u64>,
    dynamic: Option<u64>,
}

fn extents(module: &IRModule) -> BTreeMap<String, Extents> {
    struct Launches<'a> {
        module: &'a IRModule,
        found: BTreeMap<String, Extents>,
    }
    impl Visitor for Launches<'_> {
        fn visit_expr(&mut self, expr: &Expr) {
            if let Some(args) = expr.as_call(Op::TvmCallPacked)
                && let Some(launch) = abi::launch(self.module, args)
                && let Some((symbol, _)) = abi::device_functions(self.module).get(launch.function)
            {
                let constant = |value: Option<&Expr>| match value?.kind {
                    ExprKind::Int(value) => u64::try_from(value).ok(),
                    _ => None,
                };
                let (mut threads, mut dynamic) = (Some(1u64), Some(0));
                for (param, _, value) in &launch.params {
                    match param {
                        LaunchParam::Block(_) => {
                            threads = threads.and_then(|all| all.checked_mul(constant(*value)?));
                        }
                        LaunchParam::SharedBytes => dynamic = constant(*value),
                        _ => {}
                    }
                }
                self.found
                    .insert(symbol.to_string(), Extents { threads, dynamic });
            }
            self.walk_expr(expr);
        }
    }
    let mut launches = Launches {
        module,
        found: BTreeMap::new(),
    };
    for (_, func) in &module.functions {
        if abi::is_host(func) {
            launches.visit_stmt(&func.body);
        }
    }
    launches.found
}

/// What nvcc said of the spills of a function: nothing where there are none.
fn spills(said: &str, symbol: &str) -> Spills {
    let of_it = format!("spilled to local memory in function '{symbol}', ");
    let amounts = said.lines().find_map(|line| line.split_once(of_it.as_str()));
    let Some((_, amounts)) = amounts else {
        return Spills::default();
    };
    let bytes = |what: &str| {
        let part = amounts.split(", ").find(|part| part.trim_end().ends_with(what));
        part.and_then(|part| part.split_whitespace().next()?.parse().ok())
            .unwrap_or(0)
    };
    Spills {
        stores: bytes("spill stores"),
        loads: bytes("spill loads"),
    }
}

/// The machine code's part of a fat binary that was made for one target.
fn of_image(
    kernel: &str,
    target: &str,
    image: &[u8],
    extents: &BTreeMap<String, Extents>,
    said: Option<&str>,
) -> Result<Vec<KernelStats>> {
    let wrong = |reason: String| {
        Error::new(format_args!(
            "the image of kernel `{kernel}` for {target} {reason}"
        ))
    };
    let mut all = Vec::new();
    for code in fatbin::codes(image).map_err(wrong)? {
        if code.ptx {
            continue;
        }
        let body = code
            .body
            .ok_or_else(|| wrong("is compressed".into()).help("leave out nvcc's flags for compression"))?;
        for found in cubin::resources(body).map_err(wrong)? {
            let launch = extents.get(&found.symbol).copied().unwrap_or_default();
            let threads = launch.threads.or(found.most_threads.filter(|_| said.is_none()));
            let occupancy = threads.zip(launch.dynamic).and_then(|(threads, dynamic)| {
                let shared = found.shared.saturating_add(dynamic);
                Occupancy::on(target.parse().ok()?, threads, u64::from(found.registers), shared)
            });
            all.push(KernelStats {
                kernel: kernel.to_string(),
                target: target.to_string(),
                registers: found.registers.into(),
                spills: said.map(|said| spills(said, &found.symbol)),
                stack: found.stack.into(),
                static_shared: found.shared,
                dynamic_shared: launch.dynamic,
                constant: found.constant,
                code: found.code,
                threads,
                occupancy,
                symbol: found.symbol,
            });
        }
    }
    Ok(all)
}

/// What the kernels that were compiled take, in their order, each for its targets in order.
pub(crate) fn of_made(jobs: &[Job], variants: &[&Variant], made: &Made) -> Result<Vec<KernelStats>> {
    let mut all = Vec::new();
    for (at, (job, variant)) in jobs.iter().zip(variants).enumerate() {
        all.extend(of_job(job, variant, made, at)?);
    }
    Ok(all)
}

fn of_job(job: &Job, variant: &Variant, made: &Made, at: usize) -> Result<Vec<KernelStats>> {
    let extents = extents(&variant.compiled.lowered);
    let kernel = job.file.replace('-', "::");
    let mut all = Vec::new();
    let (Some(images), Some(said)) = (made.images.get(at), made.said.get(at)) else {
        return Ok(all);
    };
    for ((target, _), (image, said)) in job.targets.each().into_iter().zip(images.iter().zip(said)) {
        all.extend(of_image(&kernel, &target, image, &extents, Some(said))?);
    }
    Ok(all)
}

/// What the kernels of a bundle take. Spills and dynamic shared memory are not known.
///
/// # Errors
/// It is no bundle, or damaged.
pub fn of_bundle(path: &Path) -> Result<Vec<KernelStats>> {
    let of_bundle = |problem| refused(path, &problem);
    let files = Files::read(path).map_err(of_bundle)?;
    let mut all = Vec::new();
    for kernel in files.kernels().map_err(of_bundle)? {
        for (target, image) in &kernel.images {
            all.extend(of_image(&kernel.name, target, image, &BTreeMap::new(), None)?);
        }
    }
    Ok(all)
}

/// The errors of kernels that exceed a budget of their manifest, each at the kernel's line.
///
/// # Errors
/// A budget that is exceeded, or machine code that cannot be read.
pub(crate) fn check_budgets(jobs: &[Job], variants: &[&Variant], made: &Made) -> Result<()> {
    let mut errors = Vec::new();
    for (at, (job, variant)) in jobs.iter().zip(variants).enumerate() {
        let options = &job.options;
        if options.max_spills.is_none() && options.min_occupancy.is_none() {
            continue;
        }
        for stats in of_job(job, variant, made, at)? {
            let mut exceeded = |text: String, help: &str| {
                let mut message =
                    Message::new(Level::Error, format!("{} for {} {text}", job.what, stats.target));
                message.place = job.place.clone();
                errors.push(message.child(Level::Help, help));
            };
            let spilled = stats.spills.unwrap_or_default();
            let bytes = spilled.stores.max(spilled.loads);
            if let Some(most) = options.max_spills.filter(|most| bytes > u64::from(*most)) {
                exceeded(
                    format!(
                        "spills registers: {} bytes are stored and {} loaded, `max-spills` is {most}",
                        spilled.stores, spilled.loads
                    ),
                    "keep fewer values alive at a time, use more threads with fewer values each, or raise `max-spills`",
                );
            }
            let Some(least) = options.min_occupancy else {
                continue;
            };
            match stats.occupancy {
                Some(found) if found.percent() < u64::from(least) => exceeded(
                    format!(
                        "has an occupancy of {} % ({} of {} warps, limited by {}), `min-occupancy` is {least}",
                        found.percent(),
                        found.warps,
                        found.most_warps,
                        found.limiter.name()
                    ),
                    match found.limiter {
                        Limiter::Registers => {
                            "use fewer registers (`max-registers`), or lower `min-occupancy`"
                        }
                        Limiter::SharedMemory => "use less shared memory a block, or lower `min-occupancy`",
                        Limiter::Threads | Limiter::Blocks => {
                            "choose a number of threads that divides those of a multiprocessor, or lower `min-occupancy`"
                        }
                    },
                ),
                Some(_) => {}
                None => exceeded(
                    "has an occupancy that is not known, and a budget for it".to_string(),
                    "its threads and its shared memory must be constants, and the GPU one whose limits are known",
                ),
            }
        }
    }
    Error::from_messages(errors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spills_are_those_of_the_function() {
        let said = "ptxas warning : Registers are spilled to local memory in function 'a', 8 bytes spill stores, 12 bytes \
                    spill loads\nptxas warning : Registers are spilled to local memory in function 'b_c', 4 bytes spill \
                    stores, 16 bytes spill loads\n";
        assert_eq!(spills(said, "a"), Spills { stores: 8, loads: 12 });
        assert_eq!(spills(said, "b_c"), Spills { stores: 4, loads: 16 });
        assert_eq!(spills(said, "c"), Spills::default());
    }
}
