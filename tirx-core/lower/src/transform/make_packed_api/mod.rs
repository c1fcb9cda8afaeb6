//! MakePackedAPI: the host function takes its arguments as one packed array and checks each of them.
//!
//! **Idea.** Callers pass any number of dynamically typed values. The host function becomes
//! `(self_handle, args, num_args, result) -> int32`; it reads each argument, asserts that it is what the kernel was
//! compiled for, binds the symbolic extents from the shapes, and then runs the body. Launchers are printed from this
//! function, so the checks are decided here alone.
//!
//! **Phases**, in the order in which the function runs:
//! 1. `arguments`: the count; each argument's type index and value;
//! 2. `tensors`, first part: each tensor's rank, dtype and device type, with the variables that its shape, strides
//!    and offset define;
//! 3. second part: fields that define the same variable must agree (shared extents, compact strides, one device, no
//!    null);
//! 4. third part: constants and expressions must hold;
//! 5. data pointers, and their alignment (`alignment` says which);
//! 6. the device is set and the body runs.
//!
//! **Messages** are lists of parts to be joined: what is wrong, the field, the argument's number, the function's
//! signature, what was expected. A condition on one value is an equation whose sides are the actual and the expected
//! value, so that a launcher can show both.
//!
//! **Differences from TVM 0.26**: the alignment of data pointers is checked; bfloat16 and float8 scalars are
//! accepted; a stride or extent of 64 bits is compared in 64 bits; no `storage_alignment` attribute.
//!
//! **Cost.** Linear in the parameters' descriptions, and one walk of each device function.

mod alignment;
mod arguments;
mod fields;
mod tensors;
mod unbound;

use super::{PassContext, Target};
use crate::arith::Analyzer;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::intrin::Op;
use crate::ir::abi::{DEVICE_CUDA, runs_on_device, tensor_map};
use crate::ir::{AttrNode, AttrValue, DType, Expr, IRModule, PrimFunc, Stmt, Type, Var, Visitor};

/// `calling_conv` of a packed function.
pub const C_PACKED_FUNC: i64 = 1;
/// The packed function that makes a device current: device type, device number.
pub const SET_DEVICE: &str = "__tvm_set_device";
/// The prefix of a packed function's `global_symbol`.
pub const SYMBOL_PREFIX: &str = "__tvm_ffi_";

/// Packs every function that is exported and has no calling convention yet.
pub fn run(module: IRModule, _context: &PassContext) -> Result<IRModule, Diagnostics> {
    let widths = alignment::access_widths(&module);
    let mut module = module;
    for (name, func) in &mut module.functions {
        if func.attr("calling_conv").is_some() || runs_on_device(func) {
            continue;
        }
        let symbol = func.global_symbol().unwrap_or(name).to_string();
        let packed = pack(func, &symbol, &widths)?;
        *func = packed;
    }
    Ok(module)
}

fn pack(func: &PrimFunc, symbol: &str, widths: &alignment::Widths) -> Result<PrimFunc, Diagnostics> {
    let alignments = alignment::of_parameters(func, widths);
    let mut arguments = arguments::Arguments::new(func, symbol);
    arguments.bind_values(func);
    let mut tensors = tensors::Tensors::new(&mut arguments, symbol);
    for (index, param) in func.params.iter().enumerate() {
        if let Some(buffer) = func.buffer_of(param) {
            let align = alignments.get(&buffer.data).copied().unwrap_or(1);
            tensors.tensor(index, buffer, align);
        }
    }
    check_tensor_maps(&func.body)?;
    unbound::check(func, |var| tensors.defines(var))?;
    let device = tensors.device.clone();
    let checks = tensors.finish();
    let arguments::Arguments {
        self_handle,
        args,
        num_args,
        statements,
        ..
    } = arguments;

    let mut body = Vec::new();
    if let Some(device) = &device {
        let set = Expr::call(
            Op::TvmCallPacked,
            DType::INT32,
            vec![
                Expr::string(SET_DEVICE),
                Expr::constant(DType::INT32, DEVICE_CUDA),
                Expr::var(device),
            ],
        );
        body.push(Stmt::evaluate(set.at(func.span)));
    }
    body.push(Stmt::attr(
        AttrNode::None,
        "compute_scope",
        Expr::string(format!("{symbol}_compute_")),
        func.body.clone(),
        func.body.span,
    ));
    body.push(Stmt::evaluate(
        Expr::call(Op::Ret, DType::VOID, vec![Expr::int32(0)]).at(func.span),
    ));
    let mut rest = Stmt::seq(checks.into_iter().chain(body));
    if let Some(device) = &device {
        for (key, value) in [
            ("device_type", Expr::constant(DType::INT32, DEVICE_CUDA)),
            ("device_id", Expr::var(device)),
        ] {
            rest = Stmt::attr(AttrNode::Str("default".into()), key, value, rest, func.span);
        }
    }
    let body = Stmt::seq(statements.into_iter().chain([rest]));
    let result = Var::at("result", DType::HANDLE, func.span);
    let packed = PrimFunc {
        params: vec![self_handle, args, num_args, result],
        buffer_map: Vec::new(),
        ret: Some(Type::Prim(DType::INT32)),
        attrs: func.attrs.clone(),
        body,
        span: func.span,
    }
    .with_attr("calling_conv", AttrValue::Int(C_PACKED_FUNC))
    .with_attr(
        "global_symbol",
        AttrValue::Str(format!("{SYMBOL_PREFIX}{symbol}").into()),
    )
    .with_attr("target", Target::host_attr());
    Ok(packed)
}

/// Refuses tensor maps that no launch could encode.
fn check_tensor_maps(body: &Stmt) -> Result<(), Diagnostics> {
    struct Maps(Vec<Diagnostic>);
    impl Visitor for Maps {
        fn visit_expr(&mut self, expr: &Expr) {
            if let Some(encode) = expr
                .as_call(Op::TvmCallPacked)
                .and_then(|args| tensor_map::encode(args, expr.span))
            {
                match encode {
                    Ok(encode) => self.0.extend(broken_rule(&encode)),
                    Err(error) => self.0.push(*error),
                }
            }
            self.walk_expr(expr);
        }
    }
    let mut maps = Maps(Vec::new());
    maps.visit_stmt(body);
    if maps.0.is_empty() {
        Ok(())
    } else {
        Err(Diagnostics(maps.0))
    }
}

/// The first rule of a tensor map that is broken for any arguments of a launch.
fn broken_rule(encode: &tensor_map::Encode<'_>) -> Option<Diagnostic> {
    let mut analyzer = Analyzer::new();
    encode.rules().into_iter().find_map(|rule| {
        if !analyzer.simplify(&rule.condition).is_int(0) {
            return None;
        }
        let found = match analyzer.simplify(&rule.value).as_int() {
            Some(value) => format!("is {value}"),
            None => "does not fit".to_string(),
        };
        let (map, field, expected) = (encode.map.name(), rule.field, rule.expected);
        let message = format!("tensor map `{map}`: {field} {found}, expected {expected}");
        Some(Diagnostic::new(encode.span, message))
    })
}

#[cfg(test)]
mod tests;
