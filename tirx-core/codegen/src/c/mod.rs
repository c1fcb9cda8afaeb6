//! C launchers: the host function's IR as C functions, beside the Rust ones of [`crate::rust`].
//!
//! For one lowered kernel this gives C text with three functions around one body: the body, which is the IR's host
//! function statement by statement; the typed function of the C interface, which packs its arguments; and the packed
//! function of TVM's FFI calling convention (`__tvm_ffi_NAME`), whose signature the host function has anyway. Checks are
//! those of the IR and stand nowhere else. The text expects `tirx_runtime.h`, which `tirx-build` ships.

mod expr;
mod extent;
mod stmt;
mod taken;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::ir::abi;
use crate::ir::abi::{FunctionParam, Param, ParamKind, Signature};
use crate::ir::{DType, ElementType, Expr, IRModule, PrimFunc, Var};

type Result<T> = std::result::Result<T, Diagnostics>;

/// The C text of one kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CLauncher {
    /// The name of the C function.
    pub name: String,
    /// Its prototype without the semicolon.
    pub prototype: String,
    /// A line on each parameter, for the header.
    pub params: Vec<String>,
    /// Definitions: the table of device functions, the body and the two functions around it. The image
    /// (`TIRX_IMAGE(name)`) is defined before them.
    pub text: String,
}

/// The C type of a scalar value; `None` for dtypes without one. Floats of 16 bits are passed as `float`.
pub fn c_scalar(dtype: DType) -> Option<&'static str> {
    if !dtype.is_scalar() {
        return None;
    }
    ElementType::from_dtype(dtype)?.c
}

/// An expression of host code as C, in the scope of a `bool divided_by_zero`; its variables have the names given.
///
/// # Errors
/// For an expression that host code cannot compute.
pub fn expression(expr: &Expr, variables: &[(Var, String)]) -> Result<String> {
    let mut printer = expr::Printer::default();
    for (var, name) in variables {
        printer.define(var, name);
    }
    printer.expr(expr)
}

/// Prints the C launcher of a kernel. `name` is the C function's name, `shown` the kernel's in messages (`add::n256`),
/// `signature` the Rust launcher's.
///
/// # Errors
/// Where host code contains something that C text cannot express.
pub fn launcher(name: &str, shown: &str, signature: &Signature, module: &IRModule) -> Result<CLauncher> {
    let Some(host) = abi::host_function(module, None) else {
        return Err(Diagnostic::new(crate::source::Span::NONE, "the kernel has no host function").into());
    };
    let mut text = functions(name, shown, module);
    text.push_str(&stmt::print(name, shown, host, module, signature)?);
    let prototype = prototype(name, signature);
    text.push_str(&typed(name, &prototype, signature));
    text.push_str(&packed(name));
    Ok(CLauncher {
        name: name.to_string(),
        prototype,
        params: signature.params.iter().map(param_text).collect(),
        text,
    })
}

/// The name of the C function for a kernel: `add_n256` for `add::n256`. A name that C or its library has gets the prefix `k_`.
pub fn c_name(path: &str) -> String {
    let name = identifier(path);
    match taken::is_taken(&name) {
        true => format!("k_{name}"),
        false => name,
    }
}

/// Whether a name can be that of a C library, or the beginning of the names of functions.
pub fn is_identifier(name: &str) -> bool {
    !name.is_empty() && identifier(name) == name
}

/// A text in the characters of C's names.
fn identifier(path: &str) -> String {
    let name: String = path
        .replace("::", "_")
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    match name.starts_with(|c: char| c.is_ascii_digit()) {
        true => format!("k_{name}"),
        false => name,
    }
}

/// The table of device functions and the kernel's own object.
fn functions(name: &str, shown: &str, module: &IRModule) -> String {
    let mut text = String::new();
    let mut rows = Vec::new();
    for (i, (symbol, func)) in abi::device_functions(module).into_iter().enumerate() {
        let kinds: Vec<String> = (func.params.iter())
            .map(|param| match FunctionParam::from_var(param) {
                FunctionParam::Pointer => "TIRX_POINTER".to_string(),
                FunctionParam::TensorMap => "TIRX_TENSOR_MAP".to_string(),
                FunctionParam::Scalar(bits) => bits.to_string(),
            })
            .collect();
        let count = kinds.len();
        // C has no empty arrays.
        let list = if kinds.is_empty() {
            "0".to_string()
        } else {
            kinds.join(", ")
        };
        text.push_str(&format!(
            "static const uint8_t {name}_params_{i}[] = {{{list}}};\n"
        ));
        rows.push(format!("{{{symbol:?}, {count}, {name}_params_{i}}}"));
    }
    text.push_str(&format!(
        "static const tirx_function {name}_functions[] = {{{}}};\n\
         static tirx_kernel {name}_kernel = TIRX_KERNEL({name}, {shown:?}, {name}_functions, {});\n\n",
        rows.join(", "),
        rows.len()
    ));
    text
}

/// `int32_t add_n256(DLTensor* A, …, tirx_stream stream)`.
fn prototype(name: &str, signature: &Signature) -> String {
    let mut params: Vec<String> = (signature.params.iter())
        .map(|param| format!("{} {}", param_type(param), param_name(param)))
        .collect();
    params.push("tirx_stream stream".to_string());
    format!("TIRX_API int32_t {name}({})", params.join(", "))
}

fn param_type(param: &Param) -> &'static str {
    match &param.kind {
        ParamKind::Tensor { written: true, .. } => "DLTensor*",
        ParamKind::Tensor { .. } => "const DLTensor*",
        ParamKind::TensorMap => "const tirx_tensor_map*",
        ParamKind::Unused => "const void*",
        ParamKind::Scalar(dtype) if dtype.is_floating() && dtype.bits < 32 => "float",
        ParamKind::Scalar(dtype) => c_scalar(*dtype).unwrap_or("int64_t"),
    }
}

fn param_name(param: &Param) -> String {
    let name = identifier(&param.name);
    match name.as_str() {
        "stream" => "stream_arg".into(),
        word if taken::is_word(word) => format!("k_{word}"),
        _ => name,
    }
}

fn param_text(param: &Param) -> String {
    let name = param_name(param);
    match &param.kind {
        ParamKind::Tensor { dtype, shape, .. } => {
            let access = param.access();
            format!(
                "{name}: tensor of {dtype}, shape ({}), {access}",
                shape.join(", ")
            )
        }
        ParamKind::TensorMap => format!("{name}: tensor map"),
        ParamKind::Unused => format!("{name}: not used"),
        ParamKind::Scalar(dtype) => format!("{name}: {dtype}"),
    }
}

/// The function of the C interface: packs its arguments and calls the body.
fn typed(name: &str, prototype: &str, signature: &Signature) -> String {
    let args: Vec<String> = (signature.params.iter())
        .map(|param| {
            let value = param_name(param);
            match &param.kind {
                ParamKind::Tensor { .. } => format!("tirx_any_tensor({value})"),
                ParamKind::TensorMap | ParamKind::Unused => format!("tirx_any_pointer({value})"),
                ParamKind::Scalar(dtype) if dtype.is_bool() => format!("tirx_any_bool({value})"),
                ParamKind::Scalar(dtype) if dtype.is_floating() => format!("tirx_any_float((double){value})"),
                ParamKind::Scalar(dtype) if dtype.is_handle() => format!("tirx_any_pointer({value})"),
                ParamKind::Scalar(_) => format!("tirx_any_int((int64_t){value})"),
            }
        })
        .collect();
    let count = args.len();
    let list = if args.is_empty() {
        "tirx_any_int(0)".to_string()
    } else {
        args.join(", ")
    };
    format!(
        "{prototype} {{\n  const tirx_any args[] = {{{list}}};\n  \
         return {name}_host(NULL, args, {count}, NULL, (void*)stream);\n}}\n\n"
    )
}

/// The function of TVM's FFI.
fn packed(name: &str) -> String {
    format!(
        "TIRX_API int32_t __tvm_ffi_{name}(void* self, const void* args, int32_t num_args, void* result) {{\n  \
         return tirx_ffi_result({name}_host(self, args, num_args, result, TIRX_STREAM_OF_FFI), result);\n}}\n"
    )
}

/// Whether a variable is a pointer of C.
fn is_pointer(var: &Var) -> bool {
    var.dtype().is_handle()
}

/// The parameters of the packed host function.
fn packed_params(func: &PrimFunc) -> Result<[&Var; 4]> {
    match func.params.as_slice() {
        [a, b, c, d] => Ok([a, b, c, d]),
        _ => Err(Diagnostic::new(
            func.span,
            "the host function does not have the packed calling convention",
        )
        .into()),
    }
}

#[cfg(test)]
mod tests;
