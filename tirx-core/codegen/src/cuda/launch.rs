//! A kernel's signature and launch bounds.

use super::code::Code;
use super::defects::aliases::Promised;
use super::emitter::{Emitter, Pointer};
use super::helpers::Header;
use super::{KernelInfo, ParamInfo, ParamKind};
use crate::diagnostic::{Result, error};
use crate::ir::{PrimFunc, Type, abi};

/// The registers of a multiprocessor, and the warps and blocks that it holds at most.
const REGISTERS: i128 = 65_536;
const MAX_WARPS: i128 = 64;
const MAX_BLOCKS: i128 = 32;

impl Emitter<'_, '_> {
    /// The parameter list; defines the parameters for the body.
    pub(super) fn parameters(&mut self, func: &PrimFunc) -> Result<(String, Vec<ParamInfo>)> {
        let promised = Promised::from_func(func, &self.facts);
        let mut list = Vec::with_capacity(func.params.len());
        let mut params = Vec::with_capacity(func.params.len());
        for var in &func.params {
            let name = self.names.fresh(var.name());
            let span = if var.span().is_some() {
                var.span()
            } else {
                func.span
            };
            let kind = match var.ty() {
                Type::Pointer { element, .. } => {
                    let ty = self.spell(*element, span)?;
                    let constant = self.facts.is_constant(var);
                    let qualifier = if constant { "const " } else { "" };
                    let restrict = if promised.holds(var) { " __restrict__" } else { "" };
                    list.push(format!("{qualifier}{ty}*{restrict} {name}"));
                    let pointer = Pointer {
                        name: name.as_str().into(),
                        element: ty,
                        constant,
                    };
                    self.pointers.insert(var.clone(), pointer);
                    ParamKind::Pointer
                }
                Type::TensorMap => {
                    self.unit.needs.headers.insert(Header::Cuda);
                    list.push(format!("const __grid_constant__ CUtensorMap {name}"));
                    self.vars.insert(var.clone(), Code::primary(name.clone()));
                    ParamKind::TensorMap
                }
                Type::Prim(dtype) if dtype.is_handle() => {
                    list.push(format!("void* {name}"));
                    let pointer = Pointer {
                        name: name.as_str().into(),
                        element: "void".into(),
                        constant: false,
                    };
                    self.pointers.insert(var.clone(), pointer);
                    ParamKind::Pointer
                }
                Type::Prim(dtype) if dtype.is_scalar() => {
                    let ty = self.spell(*dtype, span)?;
                    list.push(format!("{ty} {name}"));
                    self.vars.insert(var.clone(), Code::primary(name.clone()));
                    ParamKind::Scalar(*dtype)
                }
                Type::Prim(dtype) => {
                    return error(span, format!("a kernel parameter cannot have dtype `{dtype}`"));
                }
            };
            params.push(ParamInfo { name, kind });
        }
        Ok((list.join(", "), params))
    }

    /// Threads of a block, where the extents are constant.
    pub(super) fn threads_per_block(&self) -> Option<u32> {
        let mut product = 1u32;
        for (i, tag) in ["threadIdx.x", "threadIdx.y", "threadIdx.z"]
            .into_iter()
            .enumerate()
        {
            match self.facts.extent(tag) {
                Some(extent) => product = product.checked_mul(u32::try_from(extent.as_int()?).ok()?)?,
                None if i == 0
                    && self
                        .facts
                        .threads
                        .iter()
                        .all(|(t, _)| !t.starts_with("threadIdx")) =>
                {
                    return Some(1);
                }
                None => {}
            }
        }
        Some(product)
    }

    /// `__launch_bounds__(…) ` or `__maxnreg__(…) `, or nothing.
    ///
    /// nvcc takes one of the two, and ignores `--maxrregcount` beside launch bounds. So a limit of registers is `__maxnreg__`
    /// where the kernel has no bounds of its own, else as many blocks per multiprocessor as fit with that limit.
    pub(super) fn launch_bounds(&self, func: &PrimFunc) -> String {
        let of_func = |key: &str| func.attr(key).and_then(|v| v.as_int()).map(i128::from);
        let blocks = self
            .facts
            .min_blocks
            .or_else(|| of_func("tirx.launch_bounds_min_blocks_per_sm"));
        let cluster = self
            .facts
            .max_cluster
            .or_else(|| of_func("tirx.launch_bounds_max_blocks_per_cluster"));
        let registers = self
            .facts
            .max_registers
            .or_else(|| of_func(abi::keys::MAX_REGISTERS));
        let Some(threads) = self.threads_per_block() else {
            return registers.map_or_else(String::new, |r| format!("__maxnreg__({r}) "));
        };
        let warps = ((i128::from(threads) + 31) / 32).max(1);
        let blocks = match registers {
            None => blocks,
            Some(registers) if blocks.is_none() && cluster.is_none() => {
                // A block must fit: registers are allocated to warps, 8 for each thread at a time.
                let fit = REGISTERS / (warps * 32) / 8 * 8;
                return format!("__maxnreg__({}) ", registers.min(fit));
            }
            Some(registers) => {
                let each = (registers.max(8) / 8 * 8) * warps * 32;
                let most = (MAX_WARPS / warps).clamp(1, MAX_BLOCKS);
                Some(((REGISTERS + each - 1) / each).min(most).max(blocks.unwrap_or(1)))
            }
        };
        match (blocks, cluster) {
            (None, None) => format!("__launch_bounds__({threads}) "),
            (Some(blocks), None) => format!("__launch_bounds__({threads}, {blocks}) "),
            (blocks, Some(cluster)) => {
                format!(
                    "__launch_bounds__({threads}, {}, {cluster}) ",
                    blocks.unwrap_or(1)
                )
            }
        }
    }

    /// The function's facts for launchers.
    pub(super) fn info(&self, symbol: &str, params: Vec<ParamInfo>) -> KernelInfo {
        KernelInfo {
            symbol: symbol.to_string(),
            params,
            threads_per_block: self.threads_per_block(),
            static_shared_bytes: self.static_shared,
            uses_dynamic_shared: self.dynamic_shared,
        }
    }
}
