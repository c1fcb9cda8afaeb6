//! Host expressions as Rust expressions.
//!
//! Integers have the widths of the IR and wrap as the IR's do. Facts that the typed call guarantees, such as that
//! argument 0 is a tensor of float32 on a CUDA device, are constants here, so that their checks fold away.

use rustc_hash::FxHashMap;

use super::code::{Binds, Code, float_literal, join, literal, logical};
use super::names::Names;
use super::rust_scalar;
use crate::arith::fold::eval_int;
use crate::diagnostic::Diagnostics;
use crate::intrin::Op;
use crate::ir::abi::{self, DEVICE_CUDA, Field, arg_type, dlpack_code, float_method, unsupported};
use crate::ir::abi::{ParamKind, Signature};
use crate::ir::at;
use crate::ir::{BinOp, DType, Expr, ExprKind, Var};

/// A pointer of the packed calling convention; none of these exists in the Rust code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Handle {
    /// The array of arguments.
    Args,
    /// Argument `n`, a tensor.
    Tensor(usize),
    /// Its extents.
    Shape(usize),
    /// Its strides.
    Strides(usize),
}

/// The result of printing an expression.
#[derive(Clone, Debug)]
pub(super) enum Value {
    /// A constant integer or bool.
    Int(i128),
    /// A pointer of the calling convention.
    Handle(Handle),
    /// Code that computes it.
    Code(Code),
}

/// Prints expressions of one function.
pub(super) struct Printer<'a> {
    pub(super) signature: &'a Signature,
    pub(super) names: Names,
    known: FxHashMap<Var, Value>,
}

type Result<T> = std::result::Result<T, Diagnostics>;

impl<'a> Printer<'a> {
    pub(super) fn new(signature: &'a Signature, names: Names) -> Printer<'a> {
        Printer {
            signature,
            names,
            known: FxHashMap::default(),
        }
    }

    /// Replaces `var` by `value` from here on.
    pub(super) fn define(&mut self, var: &Var, value: Value) {
        self.known.insert(var.clone(), value);
    }

    /// Prints `var` as a Rust variable of this name from here on.
    pub(super) fn define_name(&mut self, var: &Var, name: &str) {
        let code = Code {
            text: name.to_string(),
            binds: Binds::Tight,
            reads: vec![name.to_string()],
        };
        self.define(var, Value::Code(code));
    }

    /// An expression that must be Rust code: constants become literals.
    pub(super) fn code(&mut self, expr: &Expr) -> Result<Code> {
        match self.value(expr)? {
            Value::Code(code) => Ok(code),
            Value::Int(v) => Ok(literal(expr.dtype, v, false)),
            Value::Handle(_) => Err(unsupported(expr, "a pointer of the calling convention")),
        }
    }

    /// Code that a method can be called on, or that stands alone: literals carry their type.
    fn typed(&mut self, expr: &Expr) -> Result<Code> {
        match self.value(expr)? {
            Value::Int(v) => Ok(literal(expr.dtype, v, true)),
            _ => self.code(expr),
        }
    }

    /// An expression's value.
    pub(super) fn value(&mut self, expr: &Expr) -> Result<Value> {
        if let Some(moved) = abi::moved_pointer(expr) {
            return self.value(&moved);
        }
        Ok(match &expr.kind {
            ExprKind::Int(v) => Value::Int(*v),
            ExprKind::Float(v) => Value::Code(float_literal(expr.dtype, *v)),
            ExprKind::Var(var) => match self.known.get(var) {
                Some(value) => value.clone(),
                None => return Err(unsupported(expr, &format!("variable `{}`", var.name()))),
            },
            ExprKind::Cast(inner) => self.cast(expr, inner)?,
            ExprKind::Not(inner) => match self.value(inner)? {
                Value::Int(v) => Value::Int((v == 0) as i128),
                _ => Value::Code(self.negated(inner)?),
            },
            ExprKind::Binary(op, a, b) => self.binary(*op, a, b)?,
            ExprKind::Select(c, t, f) => self.choice(c, t, f)?,
            ExprKind::Let(var, value, body) => {
                // Pure: the value may replace the variable anywhere.
                let value = self.value(value)?;
                self.define(var, value);
                self.value(body)?
            }
            ExprKind::Call { op, args } => self.call(expr, *op, args)?,
            _ => return Err(unsupported(expr, "this expression")),
        })
    }

    fn cast(&mut self, expr: &Expr, inner: &Expr) -> Result<Value> {
        let to = expr.dtype;
        let value = self.value(inner)?;
        if to == inner.dtype || to.is_handle() {
            return Ok(value);
        }
        match value {
            Value::Int(v) if to.is_integer() || to.is_bool() => Ok(Value::Int(to.wrap(v))),
            Value::Int(v) => Ok(Value::Code(float_literal(to, v as f64))),
            Value::Handle(_) => Err(unsupported(expr, "a pointer of the calling convention")),
            Value::Code(code) => {
                let from = inner.dtype;
                let half = |d: DType| d.bits == 16 && d.is_floating();
                let Some(ty) = rust_scalar(to) else {
                    return Err(unsupported(expr, &format!("dtype {to}")));
                };
                let text = if to.is_bool() {
                    return Ok(Value::Code(join(
                        Binds::Compare,
                        format!(
                            "{} != {}",
                            code.operand(Binds::BitOr),
                            if from.is_floating() { "0.0" } else { "0" }
                        ),
                        &[&code],
                    )));
                } else if half(to) && from == DType::FLOAT32 {
                    format!("{ty}::from_f32({})", code.text)
                } else if half(to) {
                    let wide = if from == DType::FLOAT64 {
                        code.text.clone()
                    } else {
                        code.operand(Binds::Cast) + " as f64"
                    };
                    format!("{ty}::from_f64({wide})")
                } else if half(from) {
                    let wide = format!("{}.to_f64()", code.operand(Binds::Tight));
                    if to == DType::FLOAT64 {
                        wide
                    } else {
                        format!("{wide} as {ty}")
                    }
                } else {
                    format!("{} as {ty}", code.operand(Binds::Cast))
                };
                let binds = if text.ends_with(')') {
                    Binds::Tight
                } else {
                    Binds::Cast
                };
                Ok(Value::Code(join(binds, text, &[&code])))
            }
        }
    }

    /// The negation of a condition, without a `!` where another operator expresses it.
    pub(super) fn negated(&mut self, expr: &Expr) -> Result<Code> {
        use BinOp::*;
        match &expr.kind {
            ExprKind::Not(inner) => return self.code(inner),
            ExprKind::Binary(op @ (Eq | Ne), a, b) => {
                return self.comparison(if *op == Eq { Ne } else { Eq }, a, b);
            }
            // Not for floats: a NaN is neither less nor greater-or-equal.
            ExprKind::Binary(op @ (Lt | Le | Gt | Ge), a, b) if !a.dtype.is_floating() => {
                let opposite = match op {
                    Lt => Ge,
                    Le => Gt,
                    Gt => Le,
                    _ => Lt,
                };
                return self.comparison(opposite, a, b);
            }
            ExprKind::Binary(op @ (And | Or), a, b) => {
                // A side with a known value is left out.
                let neutral = (*op == And) as i128;
                match (self.value(a)?, self.value(b)?) {
                    (Value::Int(v), _) if v == neutral => return self.negated(b),
                    (_, Value::Int(v)) if v == neutral => return self.negated(a),
                    (Value::Code(_), Value::Code(_)) => {
                        let (a, b) = (self.negated(a)?, self.negated(b)?);
                        return Ok(logical(if *op == And { Or } else { And }, &a, &b));
                    }
                    _ => {}
                }
            }
            _ => {}
        }
        let code = self.code(expr)?;
        Ok(join(
            Binds::Unary,
            format!("!{}", code.operand(Binds::Unary)),
            &[&code],
        ))
    }

    fn comparison(&mut self, op: BinOp, a: &Expr, b: &Expr) -> Result<Code> {
        let sign = match op {
            BinOp::Eq => "==",
            BinOp::Ne => "!=",
            BinOp::Lt => "<",
            BinOp::Le => "<=",
            BinOp::Gt => ">",
            _ => ">=",
        };
        // A constant is put on the right.
        if a.as_int().is_some() && b.as_int().is_none() {
            let mirrored = match op {
                BinOp::Lt => BinOp::Gt,
                BinOp::Le => BinOp::Ge,
                BinOp::Gt => BinOp::Lt,
                BinOp::Ge => BinOp::Le,
                same => same,
            };
            return self.comparison(mirrored, b, a);
        }
        if matches!(op, BinOp::Eq | BinOp::Ne)
            && b.is_int(0)
            && let ExprKind::Binary(BinOp::Mod | BinOp::FloorMod, value, divisor) = &a.kind
            && value.dtype.is_uint()
            && let Some(divisor) = divisor.as_int().filter(|d| *d > 0)
        {
            let value = self.typed(value)?;
            let negation = if op == BinOp::Ne { "!" } else { "" };
            let text = format!(
                "{negation}{}.is_multiple_of({divisor})",
                value.operand(Binds::Tight)
            );
            let binds = if negation.is_empty() {
                Binds::Tight
            } else {
                Binds::Unary
            };
            return Ok(join(binds, text, &[&value]));
        }
        // A field of a descriptor is compared in its own 64 bits: a value that does not fit is not equal.
        let (x, y) = match (op, abi::descriptor_value(a), abi::descriptor_value(b)) {
            (BinOp::Eq | BinOp::Ne, Some(a), Some(b)) => (self.code(a)?, self.code(b)?),
            (BinOp::Eq | BinOp::Ne, Some(a), None) => (self.code(a)?, self.widened(b)?),
            (BinOp::Eq | BinOp::Ne, None, Some(b)) => (self.widened(a)?, self.code(b)?),
            _ => (self.typed(a)?, self.code(b)?),
        };
        let text = format!("{} {sign} {}", x.operand(Binds::BitOr), y.operand(Binds::BitOr));
        Ok(join(Binds::Compare, text, &[&x, &y]))
    }

    /// An int32 value as i64.
    fn widened(&mut self, expr: &Expr) -> Result<Code> {
        match self.value(expr)? {
            Value::Int(v) => Ok(literal(DType::INT64, v, false)),
            _ => {
                let code = self.code(expr)?;
                Ok(join(Binds::Tight, format!("i64::from({})", code.text), &[&code]))
            }
        }
    }

    fn binary(&mut self, op: BinOp, a: &Expr, b: &Expr) -> Result<Value> {
        use BinOp::*;
        let (x, y) = (self.value(a)?, self.value(b)?);
        if let (Value::Int(x), Value::Int(y)) = (&x, &y)
            && let Some(v) = eval_int(op, a.dtype, *x, *y)
        {
            return Ok(Value::Int(v));
        }
        if op.is_comparison() {
            return Ok(Value::Code(self.comparison(op, a, b)?));
        }
        if op.is_logical() {
            let (neutral, absorbing) = if op == And { (1, 0) } else { (0, 1) };
            return Ok(match (&x, &y) {
                (Value::Int(v), _) if *v == neutral => y,
                (_, Value::Int(v)) if *v == neutral => x,
                (Value::Int(v), _) | (_, Value::Int(v)) if *v == absorbing => Value::Int(absorbing),
                _ => {
                    let (a, b) = (self.code(a)?, self.code(b)?);
                    Value::Code(logical(op, &a, &b))
                }
            });
        }
        let dtype = a.dtype;
        if dtype.is_floating() {
            return self.float_binary(op, a, b).map(Value::Code);
        }
        // Identities, which remain of an extent where a part of it is known.
        match (op, &x, &y) {
            (Add, Value::Int(0), _) | (Mul, Value::Int(1), _) => return Ok(y),
            (Add | Sub, _, Value::Int(0)) | (Mul | Div | FloorDiv, _, Value::Int(1)) => return Ok(x),
            _ => {}
        }
        let receiver = self.typed(a)?;
        let argument = self.code(b)?;
        let (left, right) = (receiver.operand(Binds::Tight), &argument.text);
        let method = match op {
            Add => Some("wrapping_add"),
            Sub => Some("wrapping_sub"),
            Mul => Some("wrapping_mul"),
            Min => Some("min"),
            Max => Some("max"),
            _ => None,
        };
        if let Some(method) = method {
            let text = format!("{left}.{method}({right})");
            return Ok(Value::Code(join(Binds::Tight, text, &[&receiver, &argument])));
        }
        let signed = dtype.is_int();
        let floor = matches!(op, FloorDiv | FloorMod);
        let modulo = matches!(op, Mod | FloorMod);
        let code = match y {
            Value::Int(divisor) if divisor > 0 && floor && signed => {
                let method = if modulo { "rem_euclid" } else { "div_euclid" };
                join(
                    Binds::Tight,
                    format!("{left}.{method}({right})"),
                    &[&receiver, &argument],
                )
            }
            Value::Int(divisor) if divisor > 0 => {
                let sign = if modulo { '%' } else { '/' };
                let text = format!("{} {sign} {right}", receiver.operand(Binds::Product));
                join(Binds::Product, text, &[&receiver, &argument])
            }
            _ => {
                let function = match (floor && signed, modulo) {
                    (true, false) => "floor_div",
                    (true, true) => "floor_mod",
                    (false, false) => "trunc_div",
                    (false, true) => "trunc_mod",
                };
                let wide = |code: &Code| match dtype == DType::INT64 {
                    true => code.text.clone(),
                    false => format!("{} as i64", code.operand(Binds::Cast)),
                };
                if dtype == DType::UINT64 {
                    return Err(unsupported(
                        b,
                        "division of uint64 by a value that is not constant",
                    ));
                }
                let ty = rust_scalar(dtype).unwrap_or("i64");
                let text = format!(
                    "::tirx_rt::host::{function}(KERNEL, {}, {})?",
                    wide(&receiver),
                    wide(&argument)
                );
                let parts = [&receiver, &argument];
                if dtype == DType::INT64 {
                    join(Binds::Tight, text, &parts)
                } else {
                    join(Binds::Cast, format!("{text} as {ty}"), &parts)
                }
            }
        };
        Ok(Value::Code(code))
    }

    fn float_binary(&mut self, op: BinOp, a: &Expr, b: &Expr) -> Result<Code> {
        let (x, y) = (self.typed(a)?, self.typed(b)?);
        let parts = [&x, &y];
        Ok(match op {
            BinOp::Add | BinOp::Sub => {
                let sign = if op == BinOp::Add { '+' } else { '-' };
                let text = format!("{} {sign} {}", x.operand(Binds::Sum), y.operand(Binds::Product));
                join(Binds::Sum, text, &parts)
            }
            BinOp::Mul | BinOp::Div => {
                let sign = if op == BinOp::Mul { '*' } else { '/' };
                let text = format!("{} {sign} {}", x.operand(Binds::Product), y.operand(Binds::Cast));
                join(Binds::Product, text, &parts)
            }
            BinOp::Min | BinOp::Max => {
                let method = if op == BinOp::Min { "min" } else { "max" };
                join(
                    Binds::Tight,
                    format!("{}.{method}({})", x.operand(Binds::Tight), y.text),
                    &parts,
                )
            }
            _ => return Err(unsupported(a, "this operation on floats")),
        })
    }

    fn choice(&mut self, condition: &Expr, yes: &Expr, no: &Expr) -> Result<Value> {
        let (y, n) = (self.value(yes)?, self.value(no)?);
        match (self.value(condition)?, &y, &n) {
            (Value::Int(0), ..) => return Ok(n),
            (Value::Int(_), ..) => return Ok(y),
            (_, Value::Handle(a), Value::Handle(b)) if a == b => return Ok(y),
            _ => {}
        }
        let (c, y, n) = (self.code(condition)?, self.typed(yes)?, self.code(no)?);
        let text = format!("if {} {{ {} }} else {{ {} }}", c.text, y.text, n.text);
        Ok(Value::Code(join(Binds::Loose, text, &[&c, &y, &n])))
    }

    fn call(&mut self, expr: &Expr, op: Op, args: &[Expr]) -> Result<Value> {
        let bitwise = |sign: &str, binds: Binds, a: &Code, b: &Code| {
            let text = format!("{} {sign} {}", a.operand(binds), b.operand(Binds::Sum));
            Value::Code(join(binds, text, &[a, b]))
        };
        Ok(match (op, args) {
            (Op::TvmStructGet, _) => self.struct_get(
                expr,
                &args[at!(TvmStructGet.arr)],
                &args[at!(TvmStructGet.index)],
                &args[at!(TvmStructGet.field)],
            )?,
            (Op::IfThenElse, _) => self.choice(
                &args[at!(IfThenElse.cond)],
                &args[at!(IfThenElse.t)],
                &args[at!(IfThenElse.f)],
            )?,
            (Op::Likely, [a]) => self.value(a)?,
            // The tensor's descriptor follows an object header; Rust has neither.
            (Op::HandleAddByteOffset, _) => {
                let pointer = &args[at!(HandleAddByteOffset.data)];
                let offset = &args[at!(HandleAddByteOffset.byte_offset)];
                let moves = offset.as_int() != Some(0) && pointer.as_call(Op::TvmStructGet).is_none();
                match self.value(pointer)? {
                    Value::Code(_) if moves => {
                        let (pointer, offset) = (self.code(pointer)?, self.code(offset)?);
                        let text = format!(
                            "{}.wrapping_add({} as u64)",
                            pointer.operand(Binds::Tight),
                            offset.operand(Binds::Cast)
                        );
                        Value::Code(join(Binds::Tight, text, &[&pointer, &offset]))
                    }
                    value => value,
                }
            }
            (Op::IsNullptr, [pointer]) => match self.value(pointer)? {
                Value::Handle(Handle::Strides(i)) => Value::Code(self.argument(i, "strides_is_null()")),
                Value::Handle(_) => Value::Int(0),
                Value::Int(v) => Value::Int((v == 0) as i128),
                Value::Code(code) => Value::Code(join(
                    Binds::Compare,
                    format!("{} == 0", code.operand(Binds::Unary)),
                    &[&code],
                )),
            },
            // Addresses are u64 throughout.
            (Op::Reinterpret, [a]) if a.dtype.is_handle() || expr.dtype.is_handle() => self.value(a)?,
            (Op::BitwiseAnd, [a, b]) => {
                let (a, b) = (self.typed(a)?, self.code(b)?);
                bitwise("&", Binds::BitAnd, &a, &b)
            }
            (Op::BitwiseOr, [a, b]) => {
                let (a, b) = (self.typed(a)?, self.code(b)?);
                bitwise("|", Binds::BitOr, &a, &b)
            }
            (Op::BitwiseXor, [a, b]) => {
                let (a, b) = (self.typed(a)?, self.code(b)?);
                bitwise("^", Binds::BitXor, &a, &b)
            }
            (Op::BitwiseNot, [a]) => {
                let a = self.typed(a)?;
                Value::Code(join(Binds::Unary, format!("!{}", a.operand(Binds::Unary)), &[&a]))
            }
            (Op::ShiftLeft | Op::ShiftRight, [a, b]) => {
                let method = if op == Op::ShiftLeft {
                    "wrapping_shl"
                } else {
                    "wrapping_shr"
                };
                let a = self.typed(a)?;
                let (text, count) = match self.value(b)? {
                    Value::Int(v) => (v.to_string(), Code::tight("")),
                    _ => {
                        let code = self.code(b)?;
                        (format!("{} as u32", code.operand(Binds::Cast)), code)
                    }
                };
                let text = format!("{}.{method}({text})", a.operand(Binds::Tight));
                Value::Code(join(Binds::Tight, text, &[&a, &count]))
            }
            (Op::Popcount | Op::Clz, [a]) => {
                let a = self.typed(a)?;
                let method = if op == Op::Clz {
                    "leading_zeros"
                } else {
                    "count_ones"
                };
                let Some(ty) = rust_scalar(expr.dtype) else {
                    return Err(unsupported(expr, &format!("dtype {}", expr.dtype)));
                };
                let text = format!("{}.{method}() as {ty}", a.operand(Binds::Tight));
                Value::Code(join(Binds::Cast, text, &[&a]))
            }
            (_, [a, rest @ ..]) if float_method(op).is_some() => {
                // Halves have no such methods.
                let method = float_method(op).filter(|_| a.dtype.is_float() && a.dtype.bits >= 32);
                let Some(method) = method else {
                    let what = format!("`T.{}` of {}", op.info().script, a.dtype);
                    return Err(unsupported(expr, &what));
                };
                let a = self.typed(a)?;
                let rest = rest
                    .iter()
                    .map(|b| self.typed(b))
                    .collect::<Result<Vec<Code>>>()?;
                let texts: Vec<&str> = rest.iter().map(|b| b.text.as_str()).collect();
                let text = format!("{}.{method}({})", a.operand(Binds::Tight), texts.join(", "));
                let parts: Vec<&Code> = [&a].into_iter().chain(&rest).collect();
                Value::Code(join(Binds::Tight, text, &parts))
            }
            (Op::LargeUintImm, _) => match (
                args[at!(LargeUintImm.low)].as_int(),
                args[at!(LargeUintImm.high)].as_int(),
            ) {
                (Some(low), Some(high)) => Value::Int(low | high << 32),
                _ => {
                    return Err(unsupported(
                        expr,
                        "`large_uint_imm` of values that are not constant",
                    ));
                }
            },
            _ => return Err(unsupported(expr, &format!("`T.{}`", op.info().script))),
        })
    }

    /// `args[i].method`.
    fn argument(&self, index: usize, method: &str) -> Code {
        Code::tight(format!("args[{index}].{method}"))
    }

    fn struct_get(&mut self, expr: &Expr, object: &Expr, index: &Expr, field: &Expr) -> Result<Value> {
        let unknown = || unsupported(expr, "this field of an argument");
        let Value::Handle(handle) = self.value(object)? else {
            return Err(unknown());
        };
        let position = index
            .as_int()
            .and_then(|v| usize::try_from(v).ok())
            .ok_or_else(unknown)?;
        let field = field.as_int().and_then(Field::from_number).ok_or_else(unknown)?;
        let signature = self.signature;
        let element = |i: usize| match signature.params.get(i).map(|p| &p.kind) {
            Some(ParamKind::Tensor { dtype, .. }) => Ok(*dtype),
            _ => Err(unknown()),
        };
        Ok(match (handle, field) {
            (Handle::Args, Field::ArgType) => {
                Value::Int(match signature.params.get(position).map(|p| &p.kind) {
                    Some(ParamKind::Tensor { .. }) => arg_type::TENSOR,
                    Some(ParamKind::Scalar(dtype)) if dtype.is_bool() => arg_type::BOOL,
                    Some(ParamKind::Scalar(dtype)) if dtype.is_integer() => arg_type::INT,
                    Some(ParamKind::Scalar(_)) => arg_type::FLOAT,
                    Some(ParamKind::TensorMap) => arg_type::POINTER,
                    Some(ParamKind::Unused) => arg_type::NONE,
                    None => return Err(unknown()),
                })
            }
            (Handle::Args, Field::ArgValue) if expr.dtype.is_handle() => {
                match signature.params.get(position).map(|p| &p.kind) {
                    Some(ParamKind::TensorMap) => {
                        return Ok(Value::Code(self.argument(position, "as_tensor_map()?")));
                    }
                    Some(ParamKind::Unused) => return Ok(Value::Int(0)),
                    _ => {}
                }
                element(position)?;
                Value::Handle(Handle::Tensor(position))
            }
            (Handle::Args, Field::ArgValue) if expr.dtype.is_floating() => {
                Value::Code(self.argument(position, "as_f64()"))
            }
            (Handle::Args, Field::ArgValue) => Value::Code(self.argument(position, "as_i64()")),
            (Handle::Tensor(i), Field::Shape) => Value::Handle(Handle::Shape(i)),
            (Handle::Tensor(i), Field::Strides) => Value::Handle(Handle::Strides(i)),
            (Handle::Tensor(i), Field::Data) => Value::Code(self.argument(i, "data()")),
            (Handle::Tensor(i), Field::Ndim) => Value::Code(self.argument(i, "ndim()")),
            (Handle::Tensor(i), Field::ByteOffset) => {
                // Only a buffer with a declared offset is passed as base and offset.
                match signature.params.get(i).map(|p| &p.kind) {
                    Some(ParamKind::Tensor { at_base: true, .. }) => {
                        Value::Code(self.argument(i, "byte_offset()"))
                    }
                    _ => Value::Int(0),
                }
            }
            (Handle::Tensor(i), Field::DeviceId) => Value::Code(self.argument(i, "device_id()")),
            (Handle::Tensor(_), Field::DeviceType) => Value::Int(DEVICE_CUDA),
            (Handle::Tensor(i), Field::TypeCode) => Value::Int(dlpack_code(element(i)?).into()),
            (Handle::Tensor(i), Field::TypeBits) => Value::Int(element(i)?.bits.into()),
            (Handle::Tensor(i), Field::TypeLanes) => Value::Int(element(i)?.lanes.into()),
            (Handle::Shape(i), Field::Int64Element) => {
                Value::Code(self.argument(i, &format!("shape({position})")))
            }
            (Handle::Strides(i), Field::Int64Element) => {
                Value::Code(self.argument(i, &format!("stride({position})")))
            }
            _ => return Err(unknown()),
        })
    }
}
