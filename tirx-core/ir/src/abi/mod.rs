//! The conventions of the host function's IR, for code that prints or runs it.
//!
//! MakePackedAPI leaves a function `(self_handle, args, num_args, result)` that reads its arguments through
//! `tvm_struct_get`, checks them with assertions whose messages are in parts, and launches device functions with
//! `call_packed`. The numbers of fields, the form of messages and the order of launch arguments are TVM 0.26's; they
//! are written down here once, for the Rust launcher, the C launcher and the simulator.

mod check;
mod conditions;
mod fields;
pub mod host;
pub mod keys;
mod signature;
mod target;
pub mod tensor_map;
mod uses;

pub use check::{Check, WHEN_CALLING, What};
pub use conditions::{compared, descriptor_value, element_position, find, reads_argument};
pub use fields::{DEVICE_CUDA, Field, arg_type, dlpack_code};
pub use signature::{Function, FunctionParam, Param, ParamKind, Signature};
pub use target::Target;
pub use uses::{Uses, param_uses};

use crate::at;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::fold;
use crate::intrin::Op;
use crate::ir::{AttrValue, BinOp, DType, Expr, ExprKind, IRModule, PrimFunc};

/// The meaning of a launch argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaunchParam {
    /// Extent of the grid in dimension x, y or z.
    Grid(usize),
    /// Extent of the block.
    Block(usize),
    /// Extent of the cluster.
    Cluster(usize),
    /// Preferred extent of the cluster.
    PreferredCluster(usize),
    /// Bytes of dynamic shared memory.
    SharedBytes,
    /// Programmatic dependent launch; a flag without an argument.
    Programmatic,
    /// Cooperative launch; a flag without an argument.
    Cooperative,
}

impl LaunchParam {
    /// Reads an entry of `tirx.kernel_launch_params`.
    pub fn from_tag(tag: &str) -> Option<LaunchParam> {
        match tag {
            "tirx.use_dyn_shared_memory" => return Some(LaunchParam::SharedBytes),
            // TVM misspells it; the right spelling is accepted too.
            "tirx.use_programtic_dependent_launch" | "tirx.use_programmatic_dependent_launch" => {
                return Some(LaunchParam::Programmatic);
            }
            "tirx.use_cooperative_launch" => return Some(LaunchParam::Cooperative),
            _ => {}
        }
        let (axis, dimension) = tag.split_once('.')?;
        let dimension = ["x", "y", "z"].iter().position(|d| *d == dimension)?;
        Some(match axis {
            "blockIdx" => LaunchParam::Grid(dimension),
            "threadIdx" => LaunchParam::Block(dimension),
            "clusterCtaIdx" => LaunchParam::Cluster(dimension),
            "preferredClusterCtaIdx" => LaunchParam::PreferredCluster(dimension),
            _ => return None,
        })
    }

    fn has_argument(self) -> bool {
        !matches!(self, LaunchParam::Programmatic | LaunchParam::Cooperative)
    }
}

/// A parsed launch: `call_packed(symbol, device arguments…, launch arguments…)`.
#[derive(Debug)]
pub struct PackedLaunch<'a> {
    /// Index among the module's device functions.
    pub function: usize,
    /// The device function.
    pub device: &'a PrimFunc,
    /// One argument per parameter of the device function.
    pub args: &'a [Expr],
    /// The launch parameters with their values; flags have none.
    pub params: Vec<(LaunchParam, &'a str, Option<&'a Expr>)>,
}

/// Whether a function runs on the device (calling convention 2).
pub fn is_device(func: &PrimFunc) -> bool {
    func.attr("calling_conv").and_then(AttrValue::as_int) == Some(2)
}

/// Whether a function is called by device code: its target is a GPU without a host, and no launch calls it.
pub fn is_subroutine(func: &PrimFunc) -> bool {
    match func.attr("target") {
        Some(target @ AttrValue::Target(fields)) => {
            func.attr("calling_conv").is_none()
                && !fields.contains_key("host")
                && Target::from_attr(target).is_some()
        }
        _ => false,
    }
}

/// Whether a function runs on the device, launched or called.
pub fn runs_on_device(func: &PrimFunc) -> bool {
    is_device(func) || is_subroutine(func)
}

/// Whether a function is a packed host function (calling convention 1).
pub fn is_host(func: &PrimFunc) -> bool {
    func.attr("calling_conv").and_then(AttrValue::as_int) == Some(1)
}

/// The device functions of a lowered module, in order, with their symbols.
pub fn device_functions(module: &IRModule) -> Vec<(&str, &PrimFunc)> {
    module
        .functions
        .iter()
        .filter(|(_, func)| is_device(func))
        .map(|(name, func)| (func.global_symbol().unwrap_or(name), func))
        .collect()
}

/// The module with its device functions alone: what images hold.
pub fn device_module(module: &IRModule) -> IRModule {
    IRModule {
        functions: module
            .functions
            .iter()
            .filter(|(_, f)| runs_on_device(f))
            .cloned()
            .collect(),
        ..module.clone()
    }
}

/// The packed host function of a lowered module: `entry` by name, or the only one.
pub fn host_function<'a>(module: &'a IRModule, entry: Option<&str>) -> Option<&'a PrimFunc> {
    let mut hosts = module.functions.iter().filter(|(_, func)| is_host(func));
    match entry {
        Some(entry) => hosts.find(|(name, _)| &**name == entry).map(|(_, f)| f),
        None => hosts.next().map(|(_, f)| f),
    }
}

/// Parses a `call_packed`; `None` where it calls something other than a device function of `module`.
pub fn launch<'a>(module: &'a IRModule, args: &'a [Expr]) -> Option<PackedLaunch<'a>> {
    let symbol = args.get(at!(TvmCallPacked.func_name))?.as_str()?;
    let args = &args[at!(TvmCallPacked.args)..];
    let functions = device_functions(module);
    let function = functions.iter().position(|(name, _)| *name == symbol)?;
    let device = functions[function].1;
    let (args, mut values) = args.split_at_checked(device.params.len())?;
    let tags = device.attr("tirx.kernel_launch_params")?.as_list()?;
    let mut params = Vec::new();
    for tag in tags {
        let tag = tag.as_str()?;
        let param = LaunchParam::from_tag(tag)?;
        let value = if param.has_argument() {
            let (first, rest) = values.split_first()?;
            values = rest;
            Some(first)
        } else {
            None
        };
        params.push((param, tag, value));
    }
    values.is_empty().then_some(PackedLaunch {
        function,
        device,
        args,
        params,
    })
}

/// The pointer that host code makes of a place of a tensor, `T.address_of(A[i])` or `A.access_ptr(…)`, as the tensor's
/// pointer moved by bytes; `None` for other expressions.
pub fn moved_pointer(expr: &Expr) -> Option<Expr> {
    let ExprKind::Call { op, args } = &expr.kind else {
        return None;
    };
    let (data, element, offset) = match op {
        Op::AddressOf => match &args.get(at!(AddressOf.obj))?.kind {
            ExprKind::BufferLoad { buffer, indices, .. } => {
                let [index] = &indices[..] else {
                    return None;
                };
                (Expr::var(&buffer.data), buffer.dtype, index)
            }
            _ => return None,
        },
        Op::TvmAccessPtr => {
            let element = args.get(at!(TvmAccessPtr.ptype))?.dtype;
            let offset = args.get(at!(TvmAccessPtr.offset))?;
            (args.get(at!(TvmAccessPtr.data))?.clone(), element, offset)
        }
        _ => return None,
    };
    let bits = Expr::constant(
        DType::INT64,
        element.storage_bits() as i128 * i128::from(element.lanes),
    );
    let bits = fold::mul(fold::cast(offset.clone(), DType::INT64), bits);
    let bytes = fold::binary(BinOp::FloorDiv, bits, Expr::constant(DType::INT64, 8));
    let moved = Expr::call(Op::HandleAddByteOffset, DType::HANDLE, vec![data, bytes]);
    Some(moved.at(expr.span))
}

/// An error of a printer or interpreter of host code at `expr`.
pub fn unsupported(expr: &Expr, what: &str) -> Diagnostics {
    Diagnostic::new(expr.span, format!("{what} cannot be used in host code"))
        .help("host code (before T.device_entry) computes launch extents: arithmetic on shapes and scalars")
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launch_tags() {
        assert_eq!(LaunchParam::from_tag("blockIdx.y"), Some(LaunchParam::Grid(1)));
        assert_eq!(
            LaunchParam::from_tag("preferredClusterCtaIdx.x"),
            Some(LaunchParam::PreferredCluster(0))
        );
        assert_eq!(
            LaunchParam::from_tag("tirx.use_programtic_dependent_launch"),
            Some(LaunchParam::Programmatic)
        );
        assert_eq!(LaunchParam::from_tag("vthread.x"), None);
    }
}
