//! The values of host functions: expressions, calls, and the fields of arguments.
//!
//! Integers are computed in 128 bits and wrapped to the IR's dtypes; numbers of launches in arithmetic that does not wrap.

use tirx_ir::abi::{self, DEVICE_CUDA, Field, arg_type, dlpack_code, float_method};
use tirx_ir::fold::eval_int;
use tirx_ir::intrin::Op;
use tirx_ir::{BinOp, DType, Expr, ExprKind, at, odd_f32};

use super::{Argument, Handle, Machine, Result, Value};

impl Machine<'_> {
    pub(super) fn int(&mut self, expr: &Expr) -> Result<i128> {
        match self.value(expr)? {
            Value::Int(v) => Ok(v),
            _ => Err("host code uses a number or a pointer instead of an integer".to_string()),
        }
    }

    pub(super) fn float(&mut self, expr: &Expr) -> Result<f64> {
        match self.value(expr)? {
            Value::Float(v) => Ok(v),
            _ => Err("host code uses an integer or a pointer instead of a number".to_string()),
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
                && let (Some(a), Some(b)) = (self.unbounded(a, 0), self.unbounded(b, 0))
            {
                return Ok(match op {
                    BinOp::Eq => a == b,
                    BinOp::Ne => a != b,
                    BinOp::Lt => a < b,
                    BinOp::Le => a <= b,
                    BinOp::Gt => a > b,
                    _ => a >= b,
                });
            }
        }
        Ok(self.int(condition)? != 0)
    }

    /// An integer of a tensor map or a launch, computed without wrapping.
    pub(super) fn number(&mut self, expr: &Expr) -> Result<i128> {
        match self.unbounded(expr, 0) {
            Some(value) => Ok(value),
            None => self.int(expr),
        }
    }

    /// An integer expression computed without wrapping, for launch extents; `None` for anything but arithmetic. What exceeds 128
    /// bits is the largest or smallest number, which no launch takes.
    pub(super) fn unbounded(&mut self, expr: &Expr, depth: usize) -> Option<i128> {
        if depth > 64 || !expr.dtype.is_integer() {
            return None;
        }
        Some(match &expr.kind {
            ExprKind::Binary(op, a, b) => {
                let (a, b) = (self.unbounded(a, depth + 1)?, self.unbounded(b, depth + 1)?);
                match op {
                    BinOp::Add => a.saturating_add(b),
                    BinOp::Sub => a.saturating_sub(b),
                    BinOp::Mul => a.saturating_mul(b),
                    BinOp::Div => a.checked_div(b)?,
                    BinOp::Mod => a.checked_rem(b)?,
                    BinOp::FloorDiv => a.checked_div(b)? - i128::from(a % b != 0 && (a < 0) != (b < 0)),
                    BinOp::FloorMod => (a.checked_rem(b)? + b) % b,
                    BinOp::Min => a.min(b),
                    BinOp::Max => a.max(b),
                    _ => return None,
                }
            }
            ExprKind::Call {
                op: op @ (Op::ShiftRight | Op::ShiftLeft),
                args,
            } => {
                let count = args.get(at!(ShiftLeft | ShiftRight.y))?.as_int();
                let factor = 1i128 << count.filter(|count| (0..62).contains(count))?;
                let a = self.unbounded(&args[at!(ShiftLeft | ShiftRight.x)], depth + 1)?;
                match op {
                    Op::ShiftRight => a.div_euclid(factor),
                    _ => a.saturating_mul(factor),
                }
            }
            // A conversion would cut a number that is too large; the check of the uncut number covers it.
            ExprKind::Cast(inner) if expr.dtype.bits >= 32 && inner.dtype.is_integer() => {
                self.unbounded(inner, depth + 1)?
            }
            ExprKind::Var(var) if self.exact.contains_key(var) => self.exact[var],
            _ => match self.value(expr).ok()? {
                Value::Int(v) => v,
                _ => return None,
            },
        })
    }

    pub(super) fn value(&mut self, expr: &Expr) -> Result<Value> {
        if let Some(moved) = abi::moved_pointer(expr) {
            return self.value(&moved);
        }
        let dtype = expr.dtype;
        Ok(match &expr.kind {
            ExprKind::Int(v) => Value::Int(*v),
            ExprKind::Float(v) => Value::Float(*v),
            ExprKind::Var(var) => match self.values.get(var) {
                Some(value) => *value,
                None => return Err(format!("host code reads `{}`, which has no value", var.name())),
            },
            ExprKind::Cast(inner) => match self.value(inner)? {
                Value::Int(v) if dtype.is_floating() => Value::Float(round(dtype, v as f64)),
                Value::Int(v) => Value::Int(dtype.wrap(v)),
                Value::Float(v) if dtype.is_floating() => Value::Float(round(dtype, v)),
                Value::Float(v) => Value::Int(dtype.wrap(v as i128)),
                handle => handle,
            },
            ExprKind::Not(inner) => Value::Int((self.int(inner)? == 0) as i128),
            ExprKind::Binary(op @ (BinOp::And | BinOp::Or), a, b) => {
                let a = self.int(a)? != 0;
                let decided = a != (*op == BinOp::And);
                Value::Int(if decided {
                    a as i128
                } else {
                    (self.int(b)? != 0) as i128
                })
            }
            ExprKind::Binary(op, a, b) => match (self.value(a)?, self.value(b)?) {
                (Value::Int(x), Value::Int(y)) => Value::Int(
                    eval_int(*op, a.dtype, x, y).ok_or_else(|| format!("host code divides {x} by zero"))?,
                ),
                (Value::Float(x), Value::Float(y)) => float_binary(*op, a.dtype, x, y),
                _ => return Err("host code computes with pointers".to_string()),
            },
            ExprKind::Select(c, t, f) => {
                return if self.int(c)? != 0 {
                    self.value(t)
                } else {
                    self.value(f)
                };
            }
            ExprKind::Let(var, value, body) => {
                let value = self.value(value)?;
                self.values.insert(var.clone(), value);
                self.value(body)?
            }
            ExprKind::Call { op, args } => self.call(expr, *op, args)?,
            _ => return Err("host code has an expression that cannot be run".to_string()),
        })
    }

    pub(super) fn call(&mut self, expr: &Expr, op: Op, args: &[Expr]) -> Result<Value> {
        let operand = |place: usize| {
            let lacking = || format!("T.{} lacks an operand", op.info().script);
            args.get(place).ok_or_else(lacking)
        };
        Ok(match (op, args) {
            (Op::TvmStructGet, _) => self.struct_get(
                expr.dtype,
                operand(at!(TvmStructGet.arr))?,
                operand(at!(TvmStructGet.index))?,
                operand(at!(TvmStructGet.field))?,
            )?,
            (Op::IfThenElse, _) => {
                let chosen = match self.int(operand(at!(IfThenElse.cond))?)? {
                    0 => at!(IfThenElse.f),
                    _ => at!(IfThenElse.t),
                };
                return self.value(operand(chosen)?);
            }
            (Op::Likely | Op::Reinterpret, [a]) => self.value(a)?,
            // The stack of packed arguments is the machine's own.
            (Op::TvmStackAlloca, _) => Value::Int(0),
            (Op::HandleAddByteOffset, _) => {
                let offset = operand(at!(HandleAddByteOffset.byte_offset))?;
                match self.value(operand(at!(HandleAddByteOffset.data))?)? {
                    Value::Int(address) => Value::Int(address + self.int(offset)?),
                    descriptor => descriptor,
                }
            }
            (Op::IsNullptr, [pointer]) => match self.value(pointer)? {
                Value::Handle(Handle::Strides) => Value::Int(1),
                Value::Int(v) => Value::Int((v == 0) as i128),
                _ => Value::Int(0),
            },
            (Op::BitwiseAnd, [a, b]) => Value::Int(expr.dtype.wrap(self.int(a)? & self.int(b)?)),
            (Op::BitwiseOr, [a, b]) => Value::Int(expr.dtype.wrap(self.int(a)? | self.int(b)?)),
            (Op::BitwiseXor, [a, b]) => Value::Int(expr.dtype.wrap(self.int(a)? ^ self.int(b)?)),
            (Op::BitwiseNot, [a]) => Value::Int(expr.dtype.wrap(!self.int(a)?)),
            (Op::ShiftLeft | Op::ShiftRight, [a, b]) => {
                let (value, count) = (self.int(a)?, self.int(b)?.clamp(0, 63));
                Value::Int(expr.dtype.wrap(if op == Op::ShiftLeft {
                    value << count
                } else {
                    value >> count
                }))
            }
            (Op::Popcount | Op::Clz, [a]) => {
                let of = i128::from(a.dtype.bits);
                let bits = self.int(a)? & ((1 << of) - 1);
                Value::Int(match op {
                    Op::Popcount => bits.count_ones().into(),
                    _ => of - i128::from(128 - bits.leading_zeros()),
                })
            }
            (_, [a, rest @ ..]) if float_method(op).is_some() => {
                let x = self.float(a)?;
                let y = rest.first().map_or(Ok(0.0), |b| self.float(b))?;
                let result = match op {
                    Op::Ceil => x.ceil(),
                    Op::Floor => x.floor(),
                    Op::Trunc => x.trunc(),
                    Op::Round | Op::Nearbyint => x.round_ties_even(),
                    Op::Fabs => x.abs(),
                    Op::Sqrt => x.sqrt(),
                    Op::Exp => libm::exp(x),
                    Op::Exp2 => libm::exp2(x),
                    Op::Log => libm::log(x),
                    Op::Log2 => libm::log2(x),
                    Op::Log10 => libm::log10(x),
                    _ => libm::pow(x, y),
                };
                Value::Float(round(expr.dtype, result))
            }
            (Op::LargeUintImm, _) => Value::Int(
                self.int(operand(at!(LargeUintImm.low))?)?
                    | self.int(operand(at!(LargeUintImm.high))?)? << 32,
            ),
            _ => {
                return Err(format!(
                    "host code calls `T.{}`, which cannot be run",
                    op.info().script
                ));
            }
        })
    }

    pub(super) fn struct_get(
        &mut self,
        dtype: DType,
        object: &Expr,
        index: &Expr,
        field: &Expr,
    ) -> Result<Value> {
        let unknown = || "host code reads a field of an argument that is not known".to_string();
        let Value::Handle(handle) = self.value(object)? else {
            return Err(unknown());
        };
        let position = usize::try_from(self.int(index)?).map_err(|_| unknown())?;
        let field = field.as_int().and_then(Field::from_number).ok_or_else(unknown)?;
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

fn float_binary(op: BinOp, dtype: DType, x: f64, y: f64) -> Value {
    let number = |v: f64| Value::Float(round(dtype, v));
    let truth = |v: bool| Value::Int(v as i128);
    match op {
        BinOp::Add => number(x + y),
        BinOp::Sub => number(x - y),
        BinOp::Mul => number(x * y),
        BinOp::Div => number(x / y),
        BinOp::Mod => number(x % y),
        BinOp::FloorDiv => number((x / y).floor()),
        BinOp::FloorMod => number(x - (x / y).floor() * y),
        BinOp::Min => number(x.min(y)),
        BinOp::Max => number(x.max(y)),
        BinOp::Eq => truth(x == y),
        BinOp::Ne => truth(x != y),
        BinOp::Lt => truth(x < y),
        BinOp::Le => truth(x <= y),
        BinOp::Gt => truth(x > y),
        BinOp::Ge => truth(x >= y),
        BinOp::And => truth(x != 0.0 && y != 0.0),
        BinOp::Or => truth(x != 0.0 || y != 0.0),
    }
}

/// A number rounded to a floating dtype.
fn round(dtype: DType, value: f64) -> f64 {
    Expr::float(dtype, value).as_float().unwrap_or(value)
}

/// A value as the 64 bits of a launch argument.
pub(super) fn bits(value: Value, dtype: DType) -> Result<u64> {
    Ok(match value {
        Value::Int(v) if dtype.is_handle() || dtype.bits == 64 => v as u64,
        Value::Int(v) => (v & ((1i128 << dtype.bits) - 1)) as u64,
        Value::Float(v) => match (dtype.is_bfloat16(), dtype.bits) {
            (_, 64) => v.to_bits(),
            (_, 32) => u64::from((v as f32).to_bits()),
            (true, _) => u64::from(tirx_ir::bf16::from_f32(odd_f32(v)).to_bits()),
            (false, _) => u64::from(tirx_ir::f16::from_f32(odd_f32(v)).to_bits()),
        },
        Value::Handle(_) => return Err("host code hands a descriptor to a kernel".to_string()),
    })
}
