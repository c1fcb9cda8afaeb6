//! The packed arguments: their count, their types and the values of scalars.

use std::sync::Arc;

use super::fields::{Field, TENSOR_HEADER, get, is_null};
use crate::intrin::Op;
use crate::ir::abi::{Check, WHEN_CALLING, What, arg_type};
use crate::ir::print_expr;
use crate::ir::{Assert, BinOp, DType, Expr, PrimFunc, Stmt, StmtKind, Type, Var};
use crate::source::Span;

/// The prologue of the function under construction.
pub(super) struct Arguments {
    pub(super) self_handle: Var,
    pub(super) args: Var,
    pub(super) num_args: Var,
    /// The statements of the prologue.
    pub(super) statements: Vec<Stmt>,
    /// `scale(A: Tensor([256], float32))`.
    pub(super) signature: Arc<str>,
    /// The descriptor of each tensor argument.
    pub(super) handles: Vec<Option<Var>>,
}

impl Arguments {
    pub(super) fn new(func: &PrimFunc, symbol: &str) -> Arguments {
        let handle = |name: &str| Var::at(name, DType::HANDLE, func.span);
        let args = handle("args");
        let num_args = Var::at("num_args", DType::INT32, func.span);
        let mut this = Arguments {
            self_handle: handle("self_handle"),
            args: args.clone(),
            num_args: num_args.clone(),
            statements: Vec::new(),
            signature: signature(func, symbol).into(),
            handles: Vec::new(),
        };
        let count = func.params.len();
        let right_count = equal(Expr::var(&num_args), Expr::int32(count as i32));
        let message = [
            "Expected ".into(),
            count.to_string().into(),
            " arguments".into(),
            WHEN_CALLING.into(),
            this.signature.clone(),
            "`".into(),
        ];
        this.assert(right_count, "TypeError", message.into(), func.span);
        let present = Expr::logical_not(is_null(Expr::var(&args)));
        let message = [
            "args pointer is NULL".into(),
            WHEN_CALLING.into(),
            this.signature.clone(),
            "`".into(),
        ];
        this.assert(present, "TypeError", message.into(), func.span);
        this
    }

    /// Reads each argument: tensors as descriptors, scalars as the parameter itself.
    pub(super) fn bind_values(&mut self, func: &PrimFunc) {
        for (index, param) in func.params.iter().enumerate() {
            let buffer = func.buffer_of(param);
            let name = buffer.map_or(param.name(), |b| &b.name);
            let span = param
                .span()
                .or(buffer.map_or(Span::NONE, |b| b.span))
                .or(func.span);
            let args = Expr::var(&self.args);
            let value = |dtype: DType| get(&args, index, Field::ArgValue, dtype);
            let kind = Var::at(format!("{name}_type_index"), DType::INT32, span);
            self.bind(&kind, get(&args, index, Field::ArgType, DType::INT32), span);
            let is = |index: i128| equal(Expr::var(&kind), Expr::constant(DType::INT32, index));
            let any = |options: Vec<Expr>| {
                let all = options.into_iter().reduce(|a, b| Expr::binary(BinOp::Or, a, b));
                all.unwrap_or_else(|| Expr::bool(true))
            };
            let dtype = param.dtype();
            if dtype.is_handle() {
                let at_least = Expr::binary(
                    BinOp::Ge,
                    Expr::var(&kind),
                    Expr::constant(DType::INT32, arg_type::FIRST_OBJECT),
                );
                let accepted = any(vec![
                    is(arg_type::NONE),
                    is(arg_type::POINTER),
                    is(arg_type::TENSOR_POINTER),
                    at_least,
                ]);
                let expected = if buffer.is_some() { "Tensor" } else { "pointer" };
                self.type_check(accepted, index, expected, span);
                let descriptor = Expr::call(
                    Op::IfThenElse,
                    DType::HANDLE,
                    vec![
                        is(arg_type::TENSOR),
                        Expr::call(
                            Op::HandleAddByteOffset,
                            DType::HANDLE,
                            vec![value(DType::HANDLE), Expr::int32(TENSOR_HEADER)],
                        ),
                        value(DType::HANDLE),
                    ],
                );
                if buffer.is_some() {
                    let handle = Var::at(format!("{name}_handle"), DType::HANDLE, span);
                    self.bind(&handle, descriptor, span);
                    self.handles.push(Some(handle));
                    continue;
                }
                let pointer = Expr::call(Op::Reinterpret, DType::HANDLE, vec![descriptor]);
                self.bind(param, pointer, span);
            } else if dtype.is_bool() {
                self.type_check(
                    any(vec![is(arg_type::BOOL), is(arg_type::INT)]),
                    index,
                    "boolean",
                    span,
                );
                self.bind(param, value(DType::INT64).cast(DType::BOOL), span);
            } else if dtype.is_integer() {
                self.type_check(
                    any(vec![is(arg_type::INT), is(arg_type::BOOL)]),
                    index,
                    "int",
                    span,
                );
                self.bind(param, value(DType::INT64).cast(dtype), span);
            } else {
                let accepted = any(vec![is(arg_type::FLOAT), is(arg_type::INT), is(arg_type::BOOL)]);
                self.type_check(accepted, index, "float", span);
                let chosen = Expr::select(
                    is(arg_type::FLOAT),
                    value(DType::FLOAT64).cast(dtype),
                    value(DType::INT64).cast(dtype),
                );
                self.bind(param, chosen, span);
            }
            self.handles.push(None);
        }
    }

    pub(super) fn bind(&mut self, var: &Var, value: Expr, span: Span) {
        self.statements.push(Stmt::bind(var, value, span));
    }

    pub(super) fn assert(&mut self, condition: Expr, kind: &str, message: Vec<Arc<str>>, span: Span) {
        self.statements.push(assert(condition, kind, message, span));
    }

    /// Asserts that an argument's value is of the right kind.
    pub(super) fn type_check(&mut self, condition: Expr, index: usize, expected: &str, span: Span) {
        let check = self.check((index, ""), What::Type, expected, condition, span);
        self.statements.push(check);
    }

    /// The assertion of a check of an argument, given by position and name.
    pub(super) fn check(
        &self,
        (index, argument): (usize, &str),
        what: What,
        expected: &str,
        condition: Expr,
        span: Span,
    ) -> Stmt {
        let check = Check {
            index: index as u32,
            argument: argument.into(),
            what,
            expected: expected.into(),
        };
        let message = check.message(&self.signature);
        assert(condition, check.what.error(), message, span)
    }
}

/// An assertion.
pub(super) fn assert(condition: Expr, kind: impl Into<Arc<str>>, message: Vec<Arc<str>>, span: Span) -> Stmt {
    let kind = StmtKind::Assert(Assert {
        condition,
        kind: kind.into(),
        message,
    });
    Stmt::new(kind, span)
}

/// `a == b`.
pub(super) fn equal(a: Expr, b: Expr) -> Expr {
    Expr::binary(BinOp::Eq, a, b)
}

/// The function's signature for callers: `f(A: Tensor([n, 4], float32), s: float32)`.
fn signature(func: &PrimFunc, symbol: &str) -> String {
    let parameters: Vec<String> = func
        .params
        .iter()
        .map(|param| match func.buffer_of(param) {
            Some(buffer) => {
                let shape: Vec<String> = buffer.shape.iter().map(extent_text).collect();
                format!(
                    "{}: Tensor([{}], {})",
                    buffer.name,
                    shape.join(", "),
                    buffer.dtype
                )
            }
            None if param.dtype().is_handle() => format!("{}: {}", param.name(), pointer_text(param)),
            None => format!("{}: {}", param.name(), param.dtype()),
        })
        .collect();
    format!("{symbol}({})", parameters.join(", "))
}

/// The type of a pointer as it is written: `T.handle("float32", "global")`.
fn pointer_text(param: &Var) -> String {
    match param.ty() {
        Type::Pointer { element, scope } if !element.is_void() => {
            format!("T.handle(\"{element}\", \"{scope}\")")
        }
        Type::TensorMap => "T.TensorMap()".into(),
        _ => "T.handle".into(),
    }
}

/// An extent in a message: constants as bare numbers whatever their dtype.
pub(super) fn extent_text(extent: &Expr) -> String {
    match extent.as_int() {
        Some(v) => v.to_string(),
        None => print_expr(extent),
    }
}
