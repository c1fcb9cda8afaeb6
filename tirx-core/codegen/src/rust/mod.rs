//! Rust launchers, printed from the host function's IR.
//!
//! For one lowered kernel this gives the pieces that a generated module is made of: the parameter list of the typed
//! function, the function `host` that checks arguments and launches (statement by statement the IR's host function),
//! and one raw function per launch. `tirx-build` adds documentation, images and module structure.
//!
//! Generated code names everything by absolute path (`::tirx_rt::…`) and expects in scope: `KERNEL`, the kernel's
//! name, and `LOADED`, its `::tirx_rt::Kernel`.

mod checked;
mod code;
mod expr;
mod launch;
mod names;
mod stmt;

pub use launch::RAW_DOCS;

use std::sync::Arc;

use rustc_hash::FxHashMap;

pub use names::{is_keyword, snake_case};

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::intrin::Op;
use crate::ir::abi::{self, Field, tensor_map};
use crate::ir::{
    BinOp, DType, ElementType, Expr, ExprKind, IRModule, PrimFunc, Stmt, StmtKind, TypeCode, Var, Visitor,
    uses_var,
};
use crate::source::Span;

/// The kind of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParamKind {
    /// A tensor.
    Tensor {
        /// Element type.
        dtype: DType,
        /// Whether the kernel may write it.
        written: bool,
        /// Whether the kernel reads it; true where this is not known.
        read: bool,
        /// Extents in the kernel's words: `n`, `256`.
        shape: Vec<String>,
        /// Strides in the kernel's words; empty for a compact tensor.
        strides: Vec<String>,
        /// Whether a view's offset reaches the kernel apart from its address (declared `elem_offset`).
        at_base: bool,
    },
    /// A value.
    Scalar(DType),
    /// A tensor map that the caller has encoded.
    TensorMap,
    /// A pointer that the kernel does not use.
    Unused,
}

/// A parameter of the typed function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// The kernel's name for it: `A`.
    pub name: String,
    /// Rust's name for it: `a`.
    pub rust_name: String,
    /// Its kind.
    pub kind: ParamKind,
}

impl Param {
    /// The Rust type: `&impl ::tirx_rt::AsTensor<f32>`, `i32`.
    pub fn rust_type(&self) -> String {
        match &self.kind {
            ParamKind::Tensor { dtype, written, .. } => {
                let (before, after) = tensor_type(*written);
                format!("{before}{}{after}", rust_element(*dtype).unwrap_or("u8"))
            }
            ParamKind::Scalar(dtype) => rust_scalar(*dtype).unwrap_or("i64").to_string(),
            ParamKind::TensorMap => "&::tirx_rt::TensorMap".to_string(),
            ParamKind::Unused => "()".to_string(),
        }
    }

    /// What a kernel does with a tensor: `read`, `written`, `read and written`; empty for other parameters.
    pub fn access(&self) -> &'static str {
        match self.kind {
            ParamKind::Tensor {
                read: true,
                written: true,
                ..
            } => "read and written",
            ParamKind::Tensor { written: true, .. } => "written",
            ParamKind::Tensor { .. } => "read",
            _ => "",
        }
    }

    /// The argument of the host function made from the parameter.
    fn host_argument(&self) -> String {
        let name = &self.rust_name;
        match &self.kind {
            ParamKind::Tensor { at_base, written, .. } => {
                let (mutable, base) = (
                    if *written { "_mut" } else { "" },
                    if *at_base { "_at_base" } else { "" },
                );
                format!("::tirx_rt::host::Arg::tensor{mutable}{base}({name})")
            }
            ParamKind::TensorMap => format!("::tirx_rt::host::Arg::tensor_map({name})"),
            ParamKind::Unused => format!("{{ let () = {name}; ::tirx_rt::host::Arg::int(0) }}"),
            ParamKind::Scalar(dtype) if dtype.is_bool() => format!("::tirx_rt::host::Arg::bool({name})"),
            ParamKind::Scalar(DType::INT64) => format!("::tirx_rt::host::Arg::int({name})"),
            ParamKind::Scalar(DType::UINT64) => format!("::tirx_rt::host::Arg::int({name} as i64)"),
            ParamKind::Scalar(dtype) if dtype.is_integer() => {
                format!("::tirx_rt::host::Arg::int(i64::from({name}))")
            }
            ParamKind::Scalar(DType::FLOAT64) => format!("::tirx_rt::host::Arg::float({name})"),
            ParamKind::Scalar(_) => format!("::tirx_rt::host::Arg::float(f64::from({name}))"),
        }
    }
}

/// The text around the element type of a tensor parameter. With an inferred type behind the reference, views need no
/// `&mut *`: `&mut b.slice_mut(0, 10..20)?`.
pub fn tensor_type(written: bool) -> (&'static str, &'static str) {
    match written {
        true => ("&mut impl ::tirx_rt::AsTensorMut<", ">"),
        false => ("&impl ::tirx_rt::AsTensor<", ">"),
    }
}

/// The parameters of the typed function, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The parameters.
    pub params: Vec<Param>,
}

impl Signature {
    /// The types in order: equal for two specializations that one Rust function can dispatch between.
    pub fn types(&self) -> Vec<String> {
        self.params.iter().map(Param::rust_type).collect()
    }
}

/// A device function as the image's table needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its symbol.
    pub symbol: String,
    /// The kinds of its parameters.
    pub params: Vec<FunctionParam>,
}

/// A parameter of a device function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionParam {
    /// A device pointer.
    Pointer,
    /// A scalar of this many bits.
    Scalar(u8),
    /// A tensor map, by value.
    TensorMap,
}

impl FunctionParam {
    /// The kind of a variable as a parameter.
    pub fn of(var: &Var) -> FunctionParam {
        match var.dtype() {
            _ if var.ty().is_tensor_map() => FunctionParam::TensorMap,
            dtype if dtype.is_handle() => FunctionParam::Pointer,
            dtype => FunctionParam::Scalar(dtype.bits),
        }
    }
}

/// A raw function: launches one device function with pointers and values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raw {
    /// The device function's symbol.
    pub symbol: String,
    /// Its name in Rust.
    pub name: String,
    /// A line on each parameter: name and meaning.
    pub params: Vec<(String, String)>,
    /// The item, without documentation.
    pub item: String,
}

/// The pieces of a launcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launcher {
    /// The parameters of the typed function.
    pub signature: Signature,
    /// The device functions in the image's order.
    pub functions: Vec<Function>,
    /// The function `host`, an item: checks the arguments and launches.
    pub host: String,
    /// The raw functions.
    pub raw: Vec<Raw>,
}

impl Launcher {
    /// The typed function's parameters after `stream`: `a: &impl ::tirx_rt::AsTensor<f32>, n: i32`.
    pub fn parameters(&self) -> String {
        let params = self.signature.params.iter();
        let params: Vec<String> = params
            .map(|p| format!("{}: {}", p.rust_name, p.rust_type()))
            .collect();
        params.join(", ")
    }

    /// The typed function's body: calls `path::host`.
    pub fn call_host(&self, path: &str) -> String {
        let args: Vec<String> = self.signature.params.iter().map(Param::host_argument).collect();
        format!("{path}::host(stream, &[{}])", args.join(", "))
    }
}

/// The Rust type of a scalar value; `None` for dtypes without one.
pub fn rust_scalar(dtype: DType) -> Option<&'static str> {
    if !dtype.is_scalar() {
        return None;
    }
    ElementType::of(dtype)?.rust
}

/// The element type of a tensor parameter. Floats of 6 and 8 bits have no Rust type: their bit patterns are `u8`, those
/// of float4 vectors unsigned integers as wide as the vector. Two scalars of `float4_e2m1fn` share a byte; their
/// tensors have the kernel's shape all the same.
pub fn rust_element(dtype: DType) -> Option<&'static str> {
    match dtype.code {
        TypeCode::Handle => None,
        TypeCode::Float4_e2m1fn => match dtype.lanes {
            1 => Some("::tirx_rt::Float4E2m1"),
            2 => Some("u8"),
            4 => Some("u16"),
            8 => Some("u32"),
            16 => Some("u64"),
            _ => None,
        },
        _ if is_bit_pattern(dtype) => Some("u8"),
        _ => rust_scalar(dtype),
    }
}

/// Whether a tensor's elements are the bit patterns of what the kernel sees.
pub fn is_bit_pattern(dtype: DType) -> bool {
    match dtype.lanes {
        1 => dtype.is_float8() || dtype.is_float6(),
        _ => dtype.is_float4(),
    }
}

/// Prints the launcher of a kernel: `authored` is the function as written, `module` the lowered module.
pub fn launcher(authored: &PrimFunc, module: &IRModule) -> Result<Launcher, Diagnostics> {
    let host = abi::host_function(module, None).ok_or_else(|| {
        Diagnostics::from(
            Diagnostic::new(authored.span, "the kernel has no host function after lowering")
                .help("a kernel has exactly one entry function, with a T.device_entry or a thread binding"),
        )
    })?;
    let signature = signature(authored, host, module)?;
    let functions = abi::device_functions(module)
        .into_iter()
        .map(|(symbol, func)| Function {
            symbol: symbol.to_string(),
            params: func.params.iter().map(FunctionParam::of).collect(),
        })
        .collect();
    let (host, raw) = stmt::print(host, module, &signature)?;
    Ok(Launcher {
        signature,
        functions,
        host,
        raw,
    })
}

fn signature(authored: &PrimFunc, host: &PrimFunc, module: &IRModule) -> Result<Signature, Diagnostics> {
    let used = used_arguments(host, module);
    let mut names = names::Names::reserving(&["stream", "args", "constexpr"]);
    let mut errors = Vec::new();
    let mut params = Vec::new();
    for (index, var) in authored.params.iter().enumerate() {
        let (name, kind) = match authored.buffer_of(var) {
            Some(buffer) => {
                if rust_element(buffer.dtype).is_none() {
                    let message = format!("tensor `{}` has elements of {}", buffer.name, buffer.dtype);
                    let label = "no Rust type for this element type";
                    errors.push(Diagnostic::new(buffer.span.or(var.span()), message).label(label));
                }
                let text = |all: &[Expr]| all.iter().map(extent_text).collect();
                let kind = ParamKind::Tensor {
                    dtype: buffer.dtype,
                    written: used.written.contains(&index),
                    read: used.read.contains(&index),
                    shape: text(&buffer.shape),
                    strides: text(&buffer.strides),
                    at_base: buffer.elem_offset.as_ref().is_some_and(|o| !o.is_int(0)),
                };
                (buffer.name.to_string(), kind)
            }
            None if var.ty().is_tensor_map() => (var.name().to_string(), ParamKind::TensorMap),
            None if var.dtype().is_handle() && !uses_var(&authored.body, |used| used == var) => {
                (var.name().to_string(), ParamKind::Unused)
            }
            None if var.dtype().is_handle() => {
                let message = format!("parameter `{}` is a pointer without a shape", var.name());
                let help = format!("bind it: `A = T.match_buffer({}, (n,), \"float32\")`", var.name());
                errors.push(Diagnostic::new(var.span(), message).help(help));
                continue;
            }
            None => {
                if rust_scalar(var.dtype()).is_none() {
                    let message = format!("parameter `{}` has dtype {}", var.name(), var.dtype());
                    let label = "no Rust type for this dtype";
                    errors.push(Diagnostic::new(var.span(), message).label(label));
                }
                (var.name().to_string(), ParamKind::Scalar(var.dtype()))
            }
        };
        params.push(Param {
            rust_name: names.fresh(&name),
            name,
            kind,
        });
    }
    if errors.is_empty() {
        Ok(Signature { params })
    } else {
        Err(Diagnostics(errors))
    }
}

/// An extent in the kernel's words, for documentation.
fn extent_text(expr: &Expr) -> String {
    fn go(expr: &Expr, nested: bool) -> String {
        match &expr.kind {
            ExprKind::Var(v) => v.name().to_string(),
            ExprKind::Int(v) => v.to_string(),
            ExprKind::Cast(inner) => go(inner, nested),
            ExprKind::Binary(op, a, b) => {
                let sign = match op {
                    BinOp::Add => "+",
                    BinOp::Sub => "-",
                    BinOp::Mul => "*",
                    BinOp::FloorDiv | BinOp::Div => "//",
                    BinOp::FloorMod | BinOp::Mod => "%",
                    BinOp::Min => return format!("min({}, {})", go(a, false), go(b, false)),
                    BinOp::Max => return format!("max({}, {})", go(a, false), go(b, false)),
                    _ => return "…".to_string(),
                };
                let text = format!("{} {sign} {}", go(a, true), go(b, true));
                if nested { format!("({text})") } else { text }
            }
            _ => "…".to_string(),
        }
    }
    go(expr, false)
}

/// The positions of arguments, by their use in launches.
#[derive(Default)]
struct Used {
    read: Vec<usize>,
    written: Vec<usize>,
}

/// The arguments that some launch may read or write.
fn used_arguments(host: &PrimFunc, module: &IRModule) -> Used {
    /// Pointer variables with the argument they come from.
    struct Origins<'a> {
        module: &'a IRModule,
        args: Option<Var>,
        of: FxHashMap<Var, usize>,
        used: Used,
    }
    impl Origins<'_> {
        fn origin(&self, expr: &Expr) -> Option<usize> {
            match &expr.kind {
                ExprKind::Var(v) => self.of.get(v).copied(),
                ExprKind::Call {
                    op: Op::TvmStructGet,
                    args,
                } => match args.as_slice() {
                    [object, index, field]
                        if field.as_int().and_then(Field::from_number) == Some(Field::ArgValue)
                            && object.as_var() == self.args.as_ref() =>
                    {
                        index.as_int().and_then(|i| i.try_into().ok())
                    }
                    [object, ..] => self.origin(object),
                    _ => None,
                },
                _ => expr.operands().find_map(|e| self.origin(e)),
            }
        }
    }
    impl Visitor for Origins<'_> {
        fn visit_stmt(&mut self, stmt: &Stmt) {
            match &stmt.kind {
                StmtKind::Bind(var, value) if var.dtype().is_handle() => {
                    if let Some(index) = self.origin(value) {
                        self.of.insert(var.clone(), index);
                    }
                }
                StmtKind::Evaluate(call) => {
                    if let Some(args) = call.as_call(Op::TvmCallPacked)
                        && let Some(Ok(encode)) = tensor_map::encode(args, call.span)
                        && let Some(index) = self.origin(&encode.address)
                    {
                        // A write through the tensor map is a write to the tensor.
                        self.of.insert(encode.map.clone(), index);
                    }
                    if let Some(args) = call.as_call(Op::TvmCallPacked)
                        && let Some(launch) = abi::launch(self.module, args)
                    {
                        let uses = abi::param_uses(self.module, launch.device);
                        for (arg, uses) in launch.args.iter().zip(uses) {
                            let origin = self.origin(arg);
                            self.used.written.extend(origin.filter(|_| uses.written));
                            self.used.read.extend(origin.filter(|_| uses.read));
                        }
                    }
                }
                _ => {}
            }
            self.walk_stmt(stmt);
        }
    }
    let mut origins = Origins {
        module,
        // (self_handle, args, num_args, result)
        args: host.params.get(1).cloned(),
        of: FxHashMap::default(),
        used: Used::default(),
    };
    origins.visit_stmt(&host.body);
    origins.used
}

/// The parts of a message as one text.
fn message_text(parts: &[Arc<str>]) -> String {
    parts.concat()
}

/// A Rust string literal.
fn string_literal(text: &str) -> String {
    format!("{text:?}")
}

/// An error without a place of its own.
fn internal(span: Span, message: impl Into<String>) -> Diagnostics {
    Diagnostic::new(span, message).into()
}

#[cfg(test)]
mod tests;
