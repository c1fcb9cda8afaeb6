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
mod grid;
mod host;
mod launch;
mod line;
mod names;
mod stmt;

pub use grid::blocks;
pub use host::Host;
pub use launch::RAW_DOCS;

use std::sync::Arc;

pub use names::{is_keyword, snake_case};

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::ir::abi::{self, Function, FunctionParam, Param, ParamKind, Signature};
use crate::ir::{DType, ElementType, Expr, IRModule, PrimFunc, TypeCode, Var};
use crate::source::Span;

/// The Rust type of a parameter: `&impl ::tirx_rt::AsTensor<f32>`, `i32`.
pub fn rust_type(kind: &ParamKind) -> String {
    match kind {
        ParamKind::Tensor { dtype, written, .. } => {
            let (before, after) = tensor_type(*written);
            format!("{before}{}{after}", rust_element(*dtype).unwrap_or("u8"))
        }
        ParamKind::Scalar(dtype) => rust_scalar(*dtype).unwrap_or("i64").to_string(),
        ParamKind::TensorMap => "&::tirx_rt::TensorMap".to_string(),
        ParamKind::Unused => "()".to_string(),
    }
}

/// An expression of host code as Rust, in a function that returns `tirx_rt::Result` where `KERNEL` is a string; its variables have
/// the names given.
///
/// # Errors
/// For an expression that host code cannot compute.
pub fn expression(expr: &Expr, variables: &[(Var, String)]) -> Result<String, Diagnostics> {
    let signature = Signature::default();
    let mut printer = expr::Printer::new(&signature, names::Names::default());
    for (var, name) in variables {
        printer.define_name(var, name);
    }
    Ok(printer.code(expr)?.text)
}

/// The argument of the host function made from the parameter that Rust calls `name`.
fn host_argument(name: &str, kind: &ParamKind) -> String {
    match kind {
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

/// The text around the element type of a tensor parameter. With an inferred type behind the reference, views need no
/// `&mut *`: `&mut b.slice_mut(0, 10..20)?`.
pub fn tensor_type(written: bool) -> (&'static str, &'static str) {
    match written {
        true => ("&mut impl ::tirx_rt::AsTensorMut<", ">"),
        false => ("&impl ::tirx_rt::AsTensor<", ">"),
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
    /// Rust's names for them: `a` for `A`.
    pub names: Vec<String>,
    /// The device functions in the image's order.
    pub functions: Vec<Function>,
    /// The function `host`: checks the arguments and launches.
    pub host: Host,
    /// The raw functions.
    pub raw: Vec<Raw>,
}

impl Launcher {
    /// The typed function's parameters, each with Rust's name for it.
    pub fn params(&self) -> impl Iterator<Item = (&str, &Param)> {
        self.names.iter().map(String::as_str).zip(&self.signature.params)
    }

    /// Their types in order: equal for two specializations that one Rust function can dispatch between.
    pub fn types(&self) -> Vec<String> {
        self.params().map(|(_, param)| rust_type(&param.kind)).collect()
    }

    /// The typed function's parameters after `stream`: `a: &impl ::tirx_rt::AsTensor<f32>, n: i32`.
    pub fn parameters(&self) -> String {
        let params: Vec<String> = self
            .params()
            .map(|(name, param)| format!("{name}: {}", rust_type(&param.kind)))
            .collect();
        params.join(", ")
    }

    /// The typed function's body: calls `path::host`.
    pub fn call_host(&self, path: &str) -> String {
        let args: Vec<String> = self
            .params()
            .map(|(name, param)| host_argument(name, &param.kind))
            .collect();
        format!("{path}::host(stream, &[{}])", args.join(", "))
    }
}

/// The Rust type of a scalar value; `None` for dtypes without one.
pub fn rust_scalar(dtype: DType) -> Option<&'static str> {
    if !dtype.is_scalar() {
        return None;
    }
    ElementType::from_dtype(dtype)?.rust
}

/// The element type of a tensor parameter. The elements of dtypes without a Rust type are bit patterns: unsigned integers
/// as wide as the element. Two scalars of `float4_e2m1fn` share a byte; their tensors have the kernel's shape all the same.
pub fn rust_element(dtype: DType) -> Option<&'static str> {
    match dtype {
        _ if dtype.is_handle() => None,
        _ if dtype.is_float4() => match dtype.lanes {
            1 => Some("::tirx_rt::Float4E2m1"),
            2 => Some("::tirx_rt::f4e2m1x2"),
            4 => Some("u16"),
            8 => Some("u32"),
            16 => Some("u64"),
            _ => None,
        },
        _ if dtype.is_scalar() && (dtype.is_float8() || dtype.is_float6()) => Some(match dtype.code {
            TypeCode::Float8_e4m3fn => "::tirx_rt::f8e4m3",
            TypeCode::Float8_e5m2 => "::tirx_rt::f8e5m2",
            TypeCode::Float8_e8m0fnu => "::tirx_rt::f8e8m0",
            _ => "u8",
        }),
        _ => rust_scalar(dtype),
    }
}

/// Whether a tensor's elements are the bit patterns of what the kernel sees.
pub fn is_bit_pattern(dtype: DType) -> bool {
    let narrow = dtype.is_float8() || dtype.is_float6() || dtype.is_float4();
    narrow && rust_element(dtype).is_some_and(|ty| !ty.starts_with("::tirx_rt::"))
}

/// Prints the launcher of a kernel: `authored` is the function as written, `module` the lowered module.
pub fn launcher(authored: &PrimFunc, module: &IRModule) -> Result<Launcher, Diagnostics> {
    have_types(authored)?;
    untyped_launcher(authored, module)
}

/// Whether the host function of a lowered module can be printed, whatever the dtypes of the parameters.
///
/// # Errors
/// Host code that no launcher can run.
pub fn check_host(authored: &PrimFunc, module: &IRModule) -> Result<(), Diagnostics> {
    untyped_launcher(authored, module).map(|_| ())
}

fn untyped_launcher(authored: &PrimFunc, module: &IRModule) -> Result<Launcher, Diagnostics> {
    let host = abi::host_function(module, None).ok_or_else(|| {
        Diagnostics::from(
            Diagnostic::new(authored.span, "the kernel has no host function after lowering")
                .help("a kernel has exactly one entry function, with a T.device_entry or a thread binding"),
        )
    })?;
    let signature = Signature::from_functions(authored, host, module)?;
    let mut taken = names::Names::reserving(&["stream", "args", "constexpr"]);
    let names: Vec<String> = signature.params.iter().map(|p| taken.fresh(&p.name)).collect();
    let functions = abi::device_functions(module)
        .into_iter()
        .map(|(symbol, func)| Function {
            symbol: symbol.to_string(),
            params: func.params.iter().map(FunctionParam::from_var).collect(),
        })
        .collect();
    let (host, raw) = stmt::print(host, module, &signature, &names)?;
    Ok(Launcher {
        signature,
        names,
        functions,
        host,
        raw,
    })
}

/// Whether Rust has a type for each parameter.
///
/// # Errors
/// The parameters of other dtypes.
pub fn have_types(authored: &PrimFunc) -> Result<(), Diagnostics> {
    let mut errors = Vec::new();
    for var in &authored.params {
        let (span, message, label) = match authored.buffer_of(var) {
            Some(buffer) if rust_element(buffer.dtype).is_none() => (
                buffer.span.or(var.span()),
                format!("tensor `{}` has elements of {}", buffer.name, buffer.dtype),
                "no Rust type for this element type",
            ),
            None if !var.ty().is_tensor_map()
                && !var.dtype().is_handle()
                && rust_scalar(var.dtype()).is_none() =>
            {
                (
                    var.span(),
                    format!("parameter `{}` has dtype {}", var.name(), var.dtype()),
                    "no Rust type for this dtype",
                )
            }
            _ => continue,
        };
        errors.push(Diagnostic::new(span, message).label(label));
    }
    match errors.is_empty() {
        true => Ok(()),
        false => Err(Diagnostics(errors)),
    }
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
