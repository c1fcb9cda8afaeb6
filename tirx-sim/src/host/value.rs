//! The values of host functions: expressions, calls, and the fields of arguments.
//!
//! The operators' rows compute the values; numbers of launches are computed in arithmetic that does not wrap.

use tirx_ir::abi::host::HostExpr;
use tirx_ir::abi::host::checked::Checked;
use tirx_ir::abi::host::operators::{HostOperation, Scalar, Trap};
use tirx_ir::abi::{DEVICE_CUDA, Field, arg_type, dlpack_code};
use tirx_ir::intrin::Op;
use tirx_ir::{BinOp, DType, Expr, ExprKind, print_expr};

use super::{Argument, Exact, Handle, Machine, Result, Value};

impl Machine<'_> {
    pub(super) fn int(&mut self, expr: &Expr) -> Result<i128> {
        match self.value(expr)? {
            Value::Int(v) => Ok(v),
            _ => Err("host code uses a number or a pointer instead of an integer".to_string()),
        }
    }

    /// Whether a check holds, its integers compared as the numbers they are.
    pub(super) fn holds(&mut self, condition: &Expr) -> Result<bool> {
        if let ExprKind::Binary(op, a, b) = &condition.kind {
            match op {
                BinOp::And => return Ok(self.holds(a)? && self.holds(b)?),
                BinOp::Or => return Ok(self.holds(a)? || self.holds(b)?),
                _ => {}
            }
            // Unsigned arithmetic wraps on purpose.
            if op.is_comparison()
                && a.dtype.is_int()
                && let (Some(a), Some(b)) = (self.exact(a)?, self.exact(b)?)
            {
                // A number that does not fit 64 bits fails the check.
                return Ok(a.0.zip(b.0).is_some_and(|(a, b)| match op {
                    BinOp::Eq => a == b,
                    BinOp::Ne => a != b,
                    BinOp::Lt => a < b,
                    BinOp::Le => a <= b,
                    BinOp::Gt => a > b,
                    _ => a >= b,
                }));
            }
        }
        Ok(self.int(condition)? != 0)
    }

    /// An integer of a tensor map or a launch, computed without wrapping.
    pub(super) fn number(&mut self, expr: &Expr) -> Result<i128> {
        match self.exact(expr)? {
            Some(Exact(Some(value))) => Ok(value.into()),
            Some(Exact(None)) => {
                // A division by zero has its own message.
                self.int(expr)?;
                Err(format!("`{}` does not fit 64 bits", print_expr(expr)))
            }
            None => self.int(expr),
        }
    }

    /// An integer expression computed without wrapping; `None` for anything but arithmetic.
    pub(super) fn exact(&mut self, expr: &Expr) -> Result<Option<Exact>> {
        match Checked::from_expr(expr, &|_| None) {
            Some(checked) => self.evaluate_checked(&checked),
            None => Ok(None),
        }
    }

    fn evaluate_checked(&mut self, checked: &Checked) -> Result<Option<Exact>> {
        Ok(Some(match checked {
            Checked::Constant(value) => Exact(Some(*value)),
            Checked::Value(value) => match value.as_var().and_then(|var| self.exact.get(var)) {
                Some(exact) => *exact,
                None => match self.value(value)? {
                    Value::Int(value) => Exact(value.try_into().ok()),
                    _ => return Ok(None),
                },
            },
            Checked::Operation(row, operands) => {
                let [a, b] = &**operands;
                match (self.evaluate_checked(a)?, self.evaluate_checked(b)?) {
                    (Some(a), Some(b)) => Exact(a.0.zip(b.0).and_then(|(a, b)| row.evaluate_checked(a, b))),
                    _ => return Ok(None),
                }
            }
            Checked::Choice(condition, values) => {
                let chosen = usize::from(self.int(condition)? == 0);
                return self.evaluate_checked(&values[chosen]);
            }
        }))
    }

    pub(super) fn value(&mut self, expr: &Expr) -> Result<Value> {
        let dtype = expr.dtype;
        // The stack of packed arguments is the machine's own.
        if expr.as_call(Op::TvmStackAlloca).is_some() {
            return Ok(Value::Int(0));
        }
        Ok(
            match HostExpr::from_expr(expr).map_err(|error| error.0[0].message.clone())? {
                HostExpr::Int(v) => Value::Int(v),
                HostExpr::Float(v) => Value::Float(v),
                HostExpr::Var(var) => match self.values.get(&var) {
                    Some(value) => *value,
                    None => return Err(format!("host code reads `{}`, which has no value", var.name())),
                },
                HostExpr::Convert(inner) => match self.value(&inner)?.scalar() {
                    Ok(scalar) => scalar.convert(dtype).into(),
                    Err(_) => self.value(&inner)?,
                },
                HostExpr::Reinterpret(inner) => match self.value(&inner)?.scalar() {
                    Ok(scalar) => Scalar::from_bits(dtype, scalar.to_bits(inner.dtype)).into(),
                    Err(_) => self.value(&inner)?,
                },
                HostExpr::Operation(row, operands) => {
                    let first = self.value(&operands[0])?;
                    // The second operand is computed only if the first does not decide.
                    match row.operation {
                        HostOperation::Binary(BinOp::And) if first == Value::Int(0) => return Ok(first),
                        HostOperation::Binary(BinOp::Or) if first != Value::Int(0) => return Ok(first),
                        _ => {}
                    }
                    let mut scalars = vec![first.scalar()?];
                    for operand in &operands[1..] {
                        scalars.push(self.value(operand)?.scalar()?);
                    }
                    let value = row.evaluate(operands[0].dtype, dtype, &scalars, library);
                    value.map(Value::from).map_err(|trap| match trap {
                        Trap::Division => format!("host code divides {}", quotient(&scalars)),
                        Trap::Kind => "host code uses a number instead of an integer".to_string(),
                    })?
                }
                HostExpr::Choice([condition, then, otherwise]) => {
                    let chosen = if self.int(&condition)? != 0 {
                        then
                    } else {
                        otherwise
                    };
                    return self.value(&chosen);
                }
                HostExpr::Let(var, value, body) => {
                    let value = self.value(&value)?;
                    self.values.insert(var, value);
                    self.value(&body)?
                }
                HostExpr::Field { object, index, field } => {
                    self.argument_field(dtype, &object, &index, field)?
                }
                HostExpr::AddBytes(pointer, offset) => match self.value(&pointer)? {
                    Value::Int(address) => Value::Int(address + self.int(&offset)?),
                    descriptor => descriptor,
                },
                HostExpr::IsNull(pointer) => match self.value(&pointer)? {
                    Value::Handle(Handle::Strides) => Value::Int(1),
                    Value::Int(v) => Value::Int((v == 0) as i128),
                    _ => Value::Int(0),
                },
            },
        )
    }

    fn argument_field(&mut self, dtype: DType, object: &Expr, index: &Expr, field: Field) -> Result<Value> {
        let unknown = || "host code reads a field of an argument that is not known".to_string();
        let Value::Handle(handle) = self.value(object)? else {
            return Err(unknown());
        };
        let position = usize::try_from(self.int(index)?).map_err(|_| unknown())?;
        let arguments = self.arguments;
        let tensor = |i: usize| match arguments.get(i) {
            Some(Argument::Tensor {
                dtype,
                shape,
                address,
                byte_offset,
            }) => Ok((*dtype, shape, *address, *byte_offset)),
            _ => Err(unknown()),
        };
        Ok(match (handle, field) {
            (Handle::Args, Field::ArgType) => {
                Value::Int(match arguments.get(position).ok_or_else(unknown)? {
                    Argument::Tensor { .. } => arg_type::TENSOR,
                    Argument::Int(_) => arg_type::INT,
                    Argument::Float(_) => arg_type::FLOAT,
                    Argument::Bool(_) => arg_type::BOOL,
                    Argument::Null => arg_type::NONE,
                    Argument::TensorMap(_) => arg_type::POINTER,
                })
            }
            (Handle::Args, Field::ArgValue) => match arguments.get(position).ok_or_else(unknown)? {
                Argument::Tensor { .. } => Value::Handle(Handle::Tensor(position)),
                Argument::Int(v) => Value::Int((*v).into()),
                Argument::Null => Value::Int(0),
                Argument::TensorMap(map) => {
                    self.maps.push(Ok(map.clone()));
                    Value::Handle(Handle::Map(self.maps.len() - 1))
                }
                Argument::Bool(v) => Value::Int((*v).into()),
                // Only the selected operand is evaluated, for integers too.
                Argument::Float(v) if dtype.is_floating() => Value::Float(*v),
                Argument::Float(v) => Value::Int(*v as i128),
            },
            (Handle::Tensor(i), Field::Data) => Value::Int(tensor(i)?.2.into()),
            (Handle::Tensor(i), Field::Shape) => Value::Handle(Handle::Shape(i)),
            (Handle::Tensor(_), Field::Strides) => Value::Handle(Handle::Strides),
            (Handle::Tensor(i), Field::Ndim) => Value::Int(tensor(i)?.1.len() as i128),
            (Handle::Tensor(i), Field::TypeCode) => Value::Int(dlpack_code(tensor(i)?.0).into()),
            (Handle::Tensor(i), Field::TypeBits) => Value::Int(tensor(i)?.0.bits.into()),
            (Handle::Tensor(i), Field::TypeLanes) => Value::Int(tensor(i)?.0.lanes.into()),
            (Handle::Tensor(i), Field::ByteOffset) => Value::Int(tensor(i)?.3.into()),
            (Handle::Tensor(_), Field::DeviceId) => Value::Int(0),
            (Handle::Tensor(_), Field::DeviceType) => Value::Int(DEVICE_CUDA),
            (Handle::Shape(i), Field::Int64Element) => {
                // The rank was checked before, so this fails only in a host function that reads a dimension it did not check.
                let extent = tensor(i)?.1.get(position).copied();
                Value::Int(
                    extent
                        .ok_or_else(|| format!("`{}` has no dimension {position}", self.names[i]))?
                        .into(),
                )
            }
            _ => return Err(unknown()),
        })
    }
}

/// The functions whose last bits the C library of a system decides; here they are the same everywhere.
fn library(op: Op, x: f64, y: f64) -> f64 {
    match op {
        Op::Exp => libm::exp(x),
        Op::Exp2 => libm::exp2(x),
        Op::Log => libm::log(x),
        Op::Log2 => libm::log2(x),
        Op::Log10 => libm::log10(x),
        _ => libm::pow(x, y),
    }
}

/// The operands of a division that has no value.
fn quotient(operands: &[Scalar]) -> String {
    match operands {
        [Scalar::Int(a), Scalar::Int(0)] => format!("{a} by zero"),
        [Scalar::Int(a), Scalar::Int(b)] => format!("{a} by {b}, which does not fit 64 bits"),
        _ => "by zero".to_string(),
    }
}

impl From<Scalar> for Value {
    fn from(scalar: Scalar) -> Value {
        match scalar {
            Scalar::Int(v) => Value::Int(v),
            Scalar::Float(v) => Value::Float(v),
        }
    }
}

impl Value {
    pub(super) fn scalar(self) -> Result<Scalar> {
        match self {
            Value::Int(v) => Ok(Scalar::Int(v)),
            Value::Float(v) => Ok(Scalar::Float(v)),
            Value::Handle(_) => Err("host code computes with pointers".to_string()),
        }
    }
}

/// A value as the 64 bits of a launch argument.
pub(super) fn bits(value: Value, dtype: DType) -> Result<u64> {
    match value {
        Value::Handle(_) => Err("host code hands a descriptor to a kernel".to_string()),
        value => Ok(value.scalar()?.to_bits(dtype)),
    }
}
