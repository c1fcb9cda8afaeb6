//! The packed arguments: their count, their types and the values of scalars.

use std::sync::Arc;

use super::fields::{Field, TENSOR_HEADER, get, is_null, type_index};
use crate::intrin::Op;
use crate::ir::print_expr;
use crate::ir::{BinOp, DType, Expr, PrimFunc, Stmt, StmtKind, Type, Var};
use crate::source::Span;

/// The head of the function under construction.
pub(super) struct Arguments {
    pub(super) self_handle: Var,
    pub(super) args: Var,
    pub(super) num_args: Var,
    /// What the function does first.
    pub(super) statements: Vec<Stmt>,
    /// `scale(A: Tensor([256], float32))`.
    pub(super) signature: Arc<str>,
    /// The descriptor of each tensor argument.
    pub(super) handles: Vec<Option<Var>>,
}

/// What stands before the signature in a message, and after it before what was expected.
pub(super) const WHEN_CALLING: &str = " when calling:\n  `";
pub(super) const EXPECTED: &str = "`,\n  expected ";

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
            let value = |dtype: DType| get(&args, index, Field::Value, dtype);
            let kind = Var::at(format!("{name}_type_index"), DType::INT32, span);
            self.bind(&kind, get(&args, index, Field::TypeIndex, DType::INT32), span);
            let is = |index: i32| equal(Expr::var(&kind), Expr::int32(index));
            let any = |options: Vec<Expr>| {
                let all = options.into_iter().reduce(|a, b| Expr::binary(BinOp::Or, a, b));
                all.unwrap_or_else(|| Expr::bool(true))
            };
            let dtype = param.dtype();
            if dtype.is_handle() {
                let at_least =
                    Expr::binary(BinOp::Ge, Expr::var(&kind), Expr::int32(type_index::FIRST_OBJECT));
                let accepted = any(vec![
                    is(type_index::NONE),
                    is(type_index::POINTER),
                    is(type_index::TENSOR_POINTER),
                    at_least,
                ]);
                let expected = if buffer.is_some() { "Tensor" } else { "pointer" };
                self.type_check(accepted, index, expected, span);
                let descriptor = Expr::call(
                    Op::IfThenElse,
                    DType::HANDLE,
                    vec![
                        is(type_index::TENSOR),
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
                    any(vec![is(type_index::BOOL), is(type_index::INT)]),
                    index,
                    "boolean",
                    span,
                );
                self.bind(param, value(DType::INT64).cast(DType::BOOL), span);
            } else if dtype.is_integer() {
                self.type_check(
                    any(vec![is(type_index::INT), is(type_index::BOOL)]),
                    index,
                    "int",
                    span,
                );
                self.bind(param, value(DType::INT64).cast(dtype), span);
            } else {
                let accepted = any(vec![
                    is(type_index::FLOAT),
                    is(type_index::INT),
                    is(type_index::BOOL),
                ]);
                self.type_check(accepted, index, "float", span);
                let chosen = Expr::select(
                    is(type_index::FLOAT),
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
        let message = self.message(&["Mismatched type"], index, EXPECTED, &[expected]);
        self.assert(condition, "TypeError", message, span);
    }

    /// The parts of a message: what is wrong, ` on argument #`, the number, the signature, what was expected.
    pub(super) fn message(
        &self,
        what: &[&str],
        index: usize,
        expected: &str,
        values: &[&str],
    ) -> Vec<Arc<str>> {
        let mut parts: Vec<Arc<str>> = what.iter().map(|s| (*s).into()).collect();
        // TVM joins the last word and " on argument #" to one part where the word is a constant.
        match parts.last_mut() {
            Some(last) if what.len() != 2 || last.starts_with(' ') => {
                *last = format!("{last} on argument #").into();
            }
            _ => parts.push(" on argument #".into()),
        }
        parts.push(index.to_string().into());
        parts.push(WHEN_CALLING.into());
        parts.push(self.signature.clone());
        parts.push(expected.into());
        parts.extend(values.iter().map(|s| Arc::from(*s)));
        parts
    }
}

/// An assertion.
pub(super) fn assert(condition: Expr, kind: &str, message: Vec<Arc<str>>, span: Span) -> Stmt {
    let kind = StmtKind::Assert {
        condition,
        kind: kind.into(),
        message,
    };
    Stmt::new(kind, span)
}

/// `a == b`.
pub(super) fn equal(a: Expr, b: Expr) -> Expr {
    Expr::binary(BinOp::Eq, a, b)
}

/// What a caller sees of the function: `f(A: Tensor([n, 4], float32), s: float32)`.
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

/// An extent for people: constants as bare numbers whatever their dtype.
pub(super) fn extent_text(extent: &Expr) -> String {
    match extent.as_int() {
        Some(v) => v.to_string(),
        None => print_expr(extent),
    }
}
