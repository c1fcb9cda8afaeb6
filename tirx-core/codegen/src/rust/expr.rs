//! Host expressions as Rust expressions.
//!
//! Integers have the widths of the IR and wrap as the IR's do. Facts that the typed call guarantees, such as that
//! argument 0 is a tensor of float32 on a CUDA device, are constants here, so that their checks fold away.

use rustc_hash::FxHashMap;

use super::code::{Binds, Code, float_literal, join, literal, logical};
use super::names::Names;
use super::rust_scalar;
use crate::diagnostic::Diagnostics;
use crate::intrin::Op;
use crate::ir::abi::host::HostExpr;
use crate::ir::abi::host::operators::{HostOperation, HostOperator, HostTemplate, Scalar};
use crate::ir::abi::{self, DEVICE_CUDA, Field, arg_type, dlpack_code, unsupported};
use crate::ir::abi::{ParamKind, Signature};
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
        Ok(match HostExpr::from_expr(expr)? {
            HostExpr::Int(v) => Value::Int(v),
            HostExpr::Float(v) => Value::Code(float_literal(expr.dtype, v)),
            HostExpr::Var(var) => match self.known.get(&var) {
                Some(value) => value.clone(),
                None => return Err(unsupported(expr, &format!("variable `{}`", var.name()))),
            },
            HostExpr::Convert(inner) => self.cast(expr, &inner)?,
            HostExpr::Reinterpret(inner) => self.reinterpret(expr, &inner)?,
            HostExpr::Operation(row, operands) => self.operation(expr, row, &operands)?,
            HostExpr::Choice([c, t, f]) => self.choice(&c, &t, &f)?,
            HostExpr::Let(var, value, body) => {
                // Pure: the value may replace the variable anywhere.
                let value = self.value(&value)?;
                self.define(&var, value);
                self.value(&body)?
            }
            HostExpr::Field { object, index, field } => self.argument_field(expr, &object, &index, field)?,
            HostExpr::AddBytes(pointer, offset) => {
                // The tensor's descriptor follows an object header; Rust has neither.
                let moves = offset.as_int() != Some(0) && pointer.as_call(Op::TvmStructGet).is_none();
                match self.value(&pointer)? {
                    Value::Code(_) if moves => {
                        let (pointer, offset) = (self.code(&pointer)?, self.code(&offset)?);
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
            HostExpr::IsNull(pointer) => match self.value(&pointer)? {
                Value::Handle(Handle::Strides(i)) => Value::Code(self.argument(i, "strides_is_null()")),
                Value::Handle(_) => Value::Int(0),
                Value::Int(v) => Value::Int((v == 0) as i128),
                Value::Code(code) => {
                    let text = format!("{} == 0", code.operand(Binds::Unary));
                    Value::Code(join(Binds::Compare, text, &[&code]))
                }
            },
        })
    }

    fn cast(&mut self, expr: &Expr, inner: &Expr) -> Result<Value> {
        let to = expr.dtype;
        let value = self.value(inner)?;
        if to == inner.dtype || to.is_handle() {
            return Ok(value);
        }
        match value {
            Value::Int(v) => Ok(match Scalar::Int(v).convert(to) {
                Scalar::Int(v) => Value::Int(v),
                Scalar::Float(v) => Value::Code(float_literal(to, v)),
            }),
            Value::Handle(_) => Err(unsupported(expr, "a pointer of the calling convention")),
            Value::Code(code) => {
                let from = inner.dtype;
                let half = |d: DType| d.bits == 16 && d.is_floating();
                let Some(ty) = rust_scalar(to) else {
                    return Err(unsupported(expr, &format!("dtype {to}")));
                };
                // A bool is converted to a float as an integer.
                let code = match from.is_bool() && to.is_floating() {
                    true => join(Binds::Tight, format!("u8::from({})", code.text), &[&code]),
                    false => code,
                };
                let text = if to.is_bool() {
                    let (value, zero) = match from.is_floating() {
                        _ if half(from) => (format!("{}.to_f64()", code.operand(Binds::Tight)), "0.0"),
                        true => (code.operand(Binds::BitOr), "0.0"),
                        false => (code.operand(Binds::BitOr), "0"),
                    };
                    return Ok(Value::Code(join(
                        Binds::Compare,
                        format!("{value} != {zero}"),
                        &[&code],
                    )));
                } else if half(to) && from == DType::FLOAT32 {
                    format!("{ty}::from_f32({})", code.text)
                } else if half(to) {
                    let wide = match from == DType::FLOAT64 {
                        true => code.text.clone(),
                        false if half(from) => format!("{}.to_f64()", code.operand(Binds::Tight)),
                        false => code.operand(Binds::Cast) + " as f64",
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
        let sign = match HostOperator::find(HostOperation::Binary(op), a.dtype).map(|row| row.rust) {
            Some(HostTemplate::Infix(sign)) => sign,
            _ => return Err(unsupported(a, &format!("a comparison of {}", a.dtype))),
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

    fn operation(&mut self, expr: &Expr, row: &HostOperator, operands: &[Expr]) -> Result<Value> {
        use BinOp::*;
        let values = (operands.iter())
            .map(|operand| self.value(operand))
            .collect::<Result<Vec<Value>>>()?;
        let dtype = operands[0].dtype;
        let constants: Option<Vec<Scalar>> = (values.iter())
            .map(|value| match value {
                Value::Int(v) => Some(Scalar::Int(*v)),
                _ => None,
            })
            .collect();
        if let Some(constants) = constants
            && let Ok(Scalar::Int(v)) = row.evaluate(dtype, expr.dtype, &constants, |_, _, _| f64::NAN)
        {
            return Ok(Value::Int(v));
        }
        match (row.operation, operands, &values[..]) {
            (HostOperation::Not, [inner], _) => return Ok(Value::Code(self.negated(inner)?)),
            (HostOperation::Binary(op), [a, b], _) if op.is_comparison() => {
                return Ok(Value::Code(self.comparison(op, a, b)?));
            }
            (HostOperation::Binary(op @ (And | Or)), [a, b], [x, y]) => {
                let (neutral, absorbing) = if op == And { (1, 0) } else { (0, 1) };
                return Ok(match (x, y) {
                    (Value::Int(v), _) if *v == neutral => y.clone(),
                    (_, Value::Int(v)) if *v == neutral => x.clone(),
                    (Value::Int(v), _) | (_, Value::Int(v)) if *v == absorbing => Value::Int(absorbing),
                    _ => Value::Code(logical(op, &self.code(a)?, &self.code(b)?)),
                });
            }
            // Identities, which remain of an extent where a part of it is known.
            (HostOperation::Binary(Add), _, [Value::Int(0), y])
            | (HostOperation::Binary(Mul), _, [Value::Int(1), y]) => return Ok(y.clone()),
            (HostOperation::Binary(Add | Sub), _, [x, Value::Int(0)])
            | (HostOperation::Binary(Mul | Div | FloorDiv), _, [x, Value::Int(1)]) => return Ok(x.clone()),
            _ => {}
        }
        let ty =
            rust_scalar(expr.dtype).ok_or_else(|| unsupported(expr, &format!("dtype {}", expr.dtype)))?;
        let (mut parts, receiver) = (Vec::new(), self.typed(&operands[0])?);
        for operand in &operands[1..] {
            parts.push(self.code(operand)?);
        }
        let form = match (row.rust, values.get(1)) {
            (HostTemplate::Division(_, Some(by_constant)), Some(Value::Int(1..))) => *by_constant,
            (form, _) => form,
        };
        let call = |name: &str| {
            let list: Vec<&str> = parts.iter().map(|part| part.text.as_str()).collect();
            format!("{}.{name}({})", receiver.operand(Binds::Tight), list.join(", "))
        };
        let (binds, text) = match form {
            HostTemplate::Infix(sign) => {
                let (binds, right) = Binds::around(sign);
                (
                    binds,
                    format!("{} {sign} {}", receiver.operand(binds), parts[0].operand(right)),
                )
            }
            HostTemplate::Prefix(sign) => (Binds::Unary, format!("{sign}{}", receiver.operand(Binds::Unary))),
            HostTemplate::Method(name) => (Binds::Tight, call(name)),
            HostTemplate::Function(name) => (
                Binds::Tight,
                format!("{name}({}, {})", receiver.text, parts[0].text),
            ),
            HostTemplate::Shift(name) => {
                let count = match &values[1] {
                    Value::Int(count) => count.rem_euclid(dtype.bits.into()).to_string(),
                    _ => format!("{} as u32", parts[0].operand(Binds::Cast)),
                };
                (
                    Binds::Tight,
                    format!("{}.{name}({count})", receiver.operand(Binds::Tight)),
                )
            }
            HostTemplate::Bits(name) => (Binds::Cast, format!("{} as {ty}", call(name))),
            HostTemplate::Division(name, _) => {
                let wide = if dtype.is_uint() {
                    DType::UINT64
                } else {
                    DType::INT64
                };
                let widened = |code: &Code| match (dtype == wide, rust_scalar(wide)) {
                    (false, Some(wide)) => format!("{} as {wide}", code.operand(Binds::Cast)),
                    _ => code.text.clone(),
                };
                let (a, b) = (widened(&receiver), widened(&parts[0]));
                let text = format!("::tirx_rt::host::{name}(KERNEL, {a}, {b})?");
                match dtype == wide {
                    true => (Binds::Tight, text),
                    false => (Binds::Cast, format!("{text} as {ty}")),
                }
            }
            HostTemplate::Select(_) | HostTemplate::BitsOfWidth(_) | HostTemplate::Math(_) => {
                return Err(unsupported(expr, "this operation"));
            }
        };
        let parts: Vec<&Code> = [&receiver].into_iter().chain(&parts).collect();
        Ok(Value::Code(join(binds, text, &parts)))
    }

    /// The same bits with another dtype. Addresses are `u64` throughout.
    fn reinterpret(&mut self, expr: &Expr, inner: &Expr) -> Result<Value> {
        let (from, to) = (inner.dtype, expr.dtype);
        if from.is_handle() || to.is_handle() {
            return self.value(inner);
        }
        let code = self.typed(inner)?;
        let ty = rust_scalar(to).ok_or_else(|| unsupported(expr, &format!("dtype {to}")))?;
        let tight = code.operand(Binds::Tight);
        let (binds, text) = match (from.is_floating(), to.is_floating()) {
            (true, false) if to.is_uint() => (Binds::Tight, format!("{tight}.to_bits()")),
            (true, false) => (Binds::Cast, format!("{tight}.to_bits() as {ty}")),
            (true, true) => (Binds::Tight, format!("{ty}::from_bits({tight}.to_bits())")),
            (false, true) if from.is_uint() => (Binds::Tight, format!("{ty}::from_bits({})", code.text)),
            (false, true) => (Binds::Tight, format!("{ty}::from_bits({tight}.cast_unsigned())")),
            (false, false) => (Binds::Cast, format!("{} as {ty}", code.operand(Binds::Cast))),
        };
        Ok(Value::Code(join(binds, text, &[&code])))
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

    /// `args[i].method`.
    fn argument(&self, index: usize, method: &str) -> Code {
        Code::tight(format!("args[{index}].{method}"))
    }

    fn argument_field(&mut self, expr: &Expr, object: &Expr, index: &Expr, field: Field) -> Result<Value> {
        let unknown = || unsupported(expr, "this field of an argument");
        let Value::Handle(handle) = self.value(object)? else {
            return Err(unknown());
        };
        let position = index
            .as_int()
            .and_then(|v| usize::try_from(v).ok())
            .ok_or_else(unknown)?;
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
