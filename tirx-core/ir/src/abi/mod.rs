//! What the host function's IR means to whoever prints or runs it.
//!
//! MakePackedAPI leaves a function `(self_handle, args, num_args, result)` that reads its arguments through
//! `tvm_struct_get`, checks them with assertions whose messages are in parts, and launches device functions with
//! `call_packed`. The numbers of fields, the form of messages and the order of launch arguments are TVM 0.26's; they
//! are written down here once, for the Rust launcher, the C launcher and the simulator.

pub mod keys;
mod target;
pub mod tensor_map;

pub use target::Target;

use std::sync::Arc;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::intrin::{Effect, Op};
use crate::ir::{AttrValue, DType, Expr, ExprKind, IRModule, PrimFunc, Stmt, StmtKind, Var, Visitor};

/// A field that `tvm_struct_get` reads (its third argument), of a tensor or of the argument array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// Data pointer.
    Data,
    /// Pointer to the extents.
    Shape,
    /// Pointer to the strides; null for a compact tensor.
    Strides,
    /// Number of dimensions.
    Ndim,
    /// DLPack's type code of an element.
    TypeCode,
    /// Bits of an element.
    TypeBits,
    /// Lanes of an element.
    TypeLanes,
    /// Bytes from the data pointer to the first element.
    ByteOffset,
    /// Number of the device.
    DeviceId,
    /// DLPack's device type.
    DeviceType,
    /// Which kind of value an argument is.
    ArgType,
    /// Four bytes of an argument that are zero.
    Padding,
    /// An argument's value: 8 bytes, read as the call's dtype.
    ArgValue,
    /// An element of an array of `int64`.
    Int64Element,
}

impl Field {
    const NUMBERS: [(Field, i32); 14] = [
        (Field::Data, 1),
        (Field::Shape, 2),
        (Field::Strides, 3),
        (Field::Ndim, 4),
        (Field::TypeCode, 5),
        (Field::TypeBits, 6),
        (Field::TypeLanes, 7),
        (Field::ByteOffset, 8),
        (Field::DeviceId, 9),
        (Field::DeviceType, 10),
        (Field::ArgType, 13),
        (Field::Padding, 14),
        (Field::ArgValue, 15),
        (Field::Int64Element, 17),
    ];

    /// The field of a number.
    pub fn from_number(number: i128) -> Option<Field> {
        let found = Field::NUMBERS.iter().find(|(_, n)| i128::from(*n) == number);
        found.map(|(field, _)| *field)
    }

    /// Its number.
    pub fn number(self) -> i32 {
        let found = Field::NUMBERS.iter().find(|(field, _)| *field == self);
        found.map_or(0, |(_, number)| *number)
    }
}

/// What `Field::ArgType` gives for each kind of argument.
pub mod arg_type {
    /// Nothing; a null pointer.
    pub const NONE: i128 = 0;
    /// An integer.
    pub const INT: i128 = 1;
    /// A truth value.
    pub const BOOL: i128 = 2;
    /// A number.
    pub const FLOAT: i128 = 3;
    /// A pointer.
    pub const POINTER: i128 = 4;
    /// A C string.
    pub const STRING: i128 = 8;
    /// A tensor.
    pub const TENSOR: i128 = 70;
}

/// DLPack's number of the CUDA device type.
pub const DEVICE_CUDA: i128 = 2;

/// DLPack's code of a scalar or vector dtype; `None` for those it has no number for.
pub fn dlpack_code(dtype: DType) -> Option<u8> {
    use crate::ir::TypeCode::*;
    Some(match dtype.code {
        Int => 0,
        UInt => 1,
        Float => 2,
        Handle => 3,
        BFloat => 4,
        Bool => 6,
        Float8_e3m4 => 7,
        Float8_e4m3 => 8,
        Float8_e4m3b11fnuz => 9,
        Float8_e4m3fn => 10,
        Float8_e4m3fnuz => 11,
        Float8_e5m2 => 12,
        Float8_e5m2fnuz => 13,
        Float8_e8m0fnu => 14,
        Float6_e2m3fn => 15,
        Float6_e3m2fn => 16,
        Float4_e2m1fn => 17,
    })
}

/// An argument check, as the parts of its assertion's message say it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Position of the argument.
    pub index: u32,
    /// Its name in the kernel.
    pub argument: String,
    /// What of it: `shape[0]`, `ndim`, `dtype`, `strides`, `data`, `type`, …
    pub field: String,
    /// What is said to be expected, in the kernel's words (`A.shape[0]`, `256`); empty where nothing is.
    pub expected: String,
    /// Whether the check is about a null pointer.
    pub null: bool,
    /// Whether the check is about an address's alignment.
    pub alignment: bool,
}

const ON_ARGUMENT: &str = " on argument #";

/// Reads the parts of an assertion's message: `["Mismatched ", "A", ".ndim on argument #", "0", …, "1"]`. `None` where
/// it is not about an argument. `names` are the kernel's parameter names, for messages that give a position only.
pub fn parse_check(parts: &[Arc<str>], names: &[String]) -> Option<Check> {
    let marked = parts.iter().position(|part| part.ends_with(ON_ARGUMENT))?;
    let index: u32 = parts.get(marked + 1)?.parse().ok()?;
    let mut subject: String = parts[..=marked].concat();
    subject.truncate(subject.len() - ON_ARGUMENT.len());
    // index, "when calling", signature, a phrase, and the expected value in parts where there is one
    let expected: String = parts.get(marked + 5..).unwrap_or_default().concat();
    let mut alignment = false;
    for prefix in ["Mismatched ", "Invalid ", "Misaligned "] {
        if let Some(rest) = subject.strip_prefix(prefix) {
            alignment = prefix == "Misaligned ";
            subject = rest.to_string();
            break;
        }
    }
    let null = subject.ends_with(" data pointer is NULL");
    let (argument, field) = if null {
        (
            subject.trim_end_matches(" data pointer is NULL").to_string(),
            "data".to_string(),
        )
    } else if subject == "type" {
        (String::new(), subject)
    } else if subject == "Tensor data" {
        // What `offset_factor` asks of a view's offset.
        (String::new(), "offset".to_string())
    } else if let Some((argument, field)) = subject.split_once('.') {
        (argument.to_string(), field.to_string())
    } else {
        (subject, "value".to_string())
    };
    let argument = if argument.is_empty() {
        names.get(index as usize).cloned().unwrap_or_default()
    } else {
        argument
    };
    Some(Check {
        index,
        argument,
        field,
        expected: match (null, expected.strip_suffix(" bytes")) {
            // A null check ends with a phrase, not with a value.
            (true, _) => String::new(),
            (false, Some(bytes)) if alignment => bytes.to_string(),
            (false, _) => expected,
        },
        null,
        alignment,
    })
}

/// Where a launch argument goes.
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
            // Spelt so in TVM; the right spelling is accepted too.
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

/// A launch: `call_packed(symbol, device arguments…, launch arguments…)`, taken apart.
#[derive(Debug)]
pub struct Launch<'a> {
    /// Index among the module's device functions.
    pub function: usize,
    /// The device function.
    pub device: &'a PrimFunc,
    /// One argument a parameter of the device function.
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
                && Target::from_attr(target).is_some()
                && !fields.contains_key("host")
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

/// Takes a `call_packed` apart; `None` where it calls something else than a device function of `module`.
pub fn launch<'a>(module: &'a IRModule, args: &'a [Expr]) -> Option<Launch<'a>> {
    let (symbol, args) = args.split_first()?;
    let symbol = symbol.as_str()?;
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
    values.is_empty().then_some(Launch {
        function,
        device,
        args,
        params,
    })
}

/// Which parameters of a device function point to memory that it may write.
pub fn written_params(func: &PrimFunc) -> Vec<bool> {
    /// Pointers by what they were made from: views and bound pointers lead back to a parameter.
    struct Written {
        roots: Vec<(Var, Var)>,
        written: Vec<Var>,
    }
    impl Written {
        fn root(&self, var: &Var) -> Var {
            let known = self.roots.iter().rfind(|(v, _)| v == var);
            known.map_or_else(|| var.clone(), |(_, root)| root.clone())
        }
        /// All pointers that a value may be made of.
        fn mark(&mut self, expr: &Expr) {
            match &expr.kind {
                ExprKind::Var(v) if v.dtype().is_handle() => {
                    let root = self.root(v);
                    self.written.push(root);
                }
                ExprKind::Call {
                    op: Op::AddressOf,
                    args,
                } => {
                    if let Some(ExprKind::BufferLoad { buffer, .. }) = args.first().map(|a| &a.kind) {
                        let root = self.root(&buffer.data);
                        self.written.push(root);
                    }
                }
                // A value read from memory is no pointer into it.
                ExprKind::BufferLoad { .. } => {}
                _ => expr.operands().for_each(|e| self.mark(e)),
            }
        }
    }
    impl Visitor for Written {
        fn visit_expr(&mut self, expr: &Expr) {
            if let ExprKind::Call { op, args } = &expr.kind
                && op.effect() >= Effect::UpdateState
            {
                let maps_are_read = reads_tensor_maps(*op);
                let written = args.iter().filter(|a| !(maps_are_read && is_tensor_map(a)));
                written.for_each(|a| self.mark(a));
            }
            self.walk_expr(expr);
        }
        fn visit_stmt(&mut self, stmt: &Stmt) {
            match &stmt.kind {
                StmtKind::BufferStore { buffer, .. } => {
                    let root = self.root(&buffer.data);
                    self.written.push(root);
                }
                StmtKind::Bind(var, value) if var.dtype().is_handle() => {
                    if let Some(source) = pointer_source(value) {
                        let root = self.root(&source);
                        self.roots.push((var.clone(), root));
                    }
                }
                _ => {}
            }
            self.walk_stmt(stmt);
        }
    }
    let mut written = Written {
        roots: Vec::new(),
        written: Vec::new(),
    };
    written.visit_stmt(&func.body);
    func.params.iter().map(|p| written.written.contains(p)).collect()
}

/// Whether an instruction reads the tensors of the tensor maps that it is given: copies from global memory, prefetches.
fn reads_tensor_maps(op: Op) -> bool {
    let name = op.name();
    name.contains("g2s") || name.contains("prefetch")
}

/// Whether a value is a tensor map or its address, or a choice between addresses of some.
fn is_tensor_map(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Var(var) => var.ty().is_tensor_map(),
        ExprKind::Call {
            op: Op::AddressOf | Op::Reinterpret,
            args,
        } => args.iter().all(is_tensor_map),
        ExprKind::Cast(inner) => is_tensor_map(inner),
        ExprKind::Select(_, a, b) => is_tensor_map(a) && is_tensor_map(b),
        _ => false,
    }
}

/// The pointer variable that a pointer expression moves or retypes.
fn pointer_source(expr: &Expr) -> Option<Var> {
    match &expr.kind {
        ExprKind::Var(v) if v.dtype().is_handle() => Some(v.clone()),
        ExprKind::Call {
            op: Op::AddressOf,
            args,
        } => match &args.first()?.kind {
            ExprKind::BufferLoad { buffer, .. } => Some(buffer.data.clone()),
            _ => None,
        },
        ExprKind::BufferLoad { .. } => None,
        _ => expr.operands().find_map(pointer_source),
    }
}

/// The method of Rust's `f32` and `f64` that computes a function of numbers, of those that host code may call.
pub fn float_method(op: Op) -> Option<&'static str> {
    Some(match op {
        Op::Ceil => "ceil",
        Op::Floor => "floor",
        Op::Trunc => "trunc",
        Op::Round | Op::Nearbyint => "round_ties_even",
        Op::Fabs => "abs",
        Op::Sqrt => "sqrt",
        Op::Exp => "exp",
        Op::Exp2 => "exp2",
        Op::Log => "ln",
        Op::Log2 => "log2",
        Op::Log10 => "log10",
        Op::Pow => "powf",
        _ => return None,
    })
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

    fn parts(parts: &[&str]) -> Vec<Arc<str>> {
        parts.iter().map(|p| Arc::from(*p)).collect()
    }

    #[test]
    fn messages_name_argument_and_field() {
        let names = vec!["A".to_string(), "s".to_string()];
        let check = |p: &[&str]| parse_check(&parts(p), &names).unwrap();
        let tail = [" when calling:\n  `", "k(A)", "`,\n  expected "];
        let with = |head: &[&'static str], expected: &[&'static str]| -> Vec<&'static str> {
            head.iter().chain(&tail).chain(expected).copied().collect()
        };
        let ndim = check(&with(&["Mismatched ", "A", ".ndim on argument #", "0"], &["1"]));
        assert_eq!(
            (
                ndim.argument.as_str(),
                ndim.field.as_str(),
                ndim.expected.as_str()
            ),
            ("A", "ndim", "1")
        );
        let shape = check(&with(
            &["Invalid ", "B.shape[0]", " on argument #", "1"],
            &["A.shape[0] * 2"],
        ));
        assert_eq!((shape.index, shape.field.as_str()), (1, "shape[0]"));
        assert_eq!(shape.expected, "A.shape[0] * 2");
        let strides = check(&with(&["Mismatched ", "A", ".strides on argument #", "0"], &[]));
        assert_eq!(
            (strides.field.as_str(), strides.expected.as_str()),
            ("strides", "")
        );
        let kind = check(&with(&["Mismatched type on argument #", "1"], &["float"]));
        assert_eq!((kind.argument.as_str(), kind.field.as_str()), ("s", "type"));
        let null = check(&with(&["A", " data pointer is NULL on argument #", "0"], &[]));
        assert!(null.null && null.field == "data" && null.argument == "A");
        let aligned = check(&with(
            &["Misaligned ", "A", ".data on argument #", "0"],
            &["16", " bytes"],
        ));
        assert!(aligned.alignment && aligned.field == "data" && aligned.expected == "16");
        assert_eq!(
            parse_check(&parts(&["Expected ", "3", " arguments"]), &names),
            None
        );
    }

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
