//! Host expressions as C expressions.
//!
//! Integers have the widths of the IR and wrap (the text is compiled with `-fwrapv`). Every piece is in parentheses or
//! stands alone. A division whose divisor may be zero goes through a function that notes it in `divided_by_zero`.

use rustc_hash::FxHashMap;

use super::{Result, c_scalar};
use crate::intrin::Op;
use crate::ir::abi::{Field, moved_pointer, unsupported};
use crate::ir::at;
use crate::ir::{BinOp, DType, ElementType, Expr, ExprKind, Var};

/// Prints expressions of one function.
#[derive(Default)]
pub(super) struct Printer {
    known: FxHashMap<Var, String>,
    taken: FxHashMap<String, u32>,
    /// Whether the text printed since this was last cleared may divide by zero.
    pub(super) divides: bool,
}

impl Printer {
    /// Prints `var` as `text` from here on.
    pub(super) fn define(&mut self, var: &Var, text: impl Into<String>) {
        self.known.insert(var.clone(), text.into());
    }

    /// A name for `var` that no other variable has.
    pub(super) fn name(&mut self, var: &Var) -> String {
        let base: String = (var.name().chars())
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
            .collect();
        let count = self.taken.entry(base.clone()).or_insert(0);
        *count += 1;
        // The prefix occurs in no keyword of C and no name of the runtime.
        let name = match *count {
            1 => format!("v_{base}"),
            n => format!("v{}_{base}", n - 1),
        };
        self.define(var, name.clone());
        name
    }

    pub(super) fn expr(&mut self, e: &Expr) -> Result<String> {
        if let Some(moved) = moved_pointer(e) {
            return self.expr(&moved);
        }
        Ok(match &e.kind {
            ExprKind::Int(v) => integer(e.dtype, *v),
            ExprKind::Float(v) => float(e.dtype, *v),
            ExprKind::Var(var) => match self.known.get(var) {
                Some(text) => text.clone(),
                None => return Err(unsupported(e, &format!("variable `{}`", var.name()))),
            },
            ExprKind::Cast(inner) => self.cast(e, inner)?,
            ExprKind::Not(inner) => format!("(!{})", self.expr(inner)?),
            ExprKind::Binary(op, a, b) => self.binary(e, *op, a, b)?,
            ExprKind::Select(c, t, f) => self.choice(c, t, f)?,
            ExprKind::Let(var, value, body) => {
                let value = self.expr(value)?;
                self.define(var, value);
                self.expr(body)?
            }
            ExprKind::Call { op, args } => self.call(e, *op, args)?,
            _ => return Err(unsupported(e, "this expression")),
        })
    }

    fn c_type(&self, e: &Expr) -> Result<&'static str> {
        c_scalar(e.dtype).ok_or_else(|| unsupported(e, &format!("dtype {}", e.dtype)))
    }

    fn cast(&mut self, e: &Expr, inner: &Expr) -> Result<String> {
        let value = self.expr(inner)?;
        let (from, to) = (inner.dtype, e.dtype);
        if from == to || to.is_handle() {
            return Ok(value);
        }
        let value = match half_name(from) {
            Some(half) => format!("tirx_{half}_to_double({value})"),
            None => value,
        };
        if let Some(half) = half_name(to) {
            return Ok(format!("tirx_{half}((double){value})"));
        }
        if to.is_bool() {
            return Ok(format!("({value} != 0)"));
        }
        Ok(format!("(({}){value})", self.c_type(e)?))
    }

    fn binary(&mut self, e: &Expr, op: BinOp, a: &Expr, b: &Expr) -> Result<String> {
        let (x, y) = (self.expr(a)?, self.expr(b)?);
        let dtype = a.dtype;
        if half_name(dtype).is_some() {
            return Err(unsupported(e, &format!("arithmetic of {dtype}")));
        }
        let sign = match op {
            BinOp::And => "&&",
            BinOp::Or => "||",
            BinOp::Eq => "==",
            BinOp::Ne => "!=",
            BinOp::Lt => "<",
            BinOp::Le => "<=",
            BinOp::Gt => ">",
            BinOp::Ge => ">=",
            BinOp::Min => return Ok(format!("({x} < {y} ? {x} : {y})")),
            BinOp::Max => return Ok(format!("({x} > {y} ? {x} : {y})")),
            BinOp::Add | BinOp::Sub | BinOp::Mul => {
                let sign = match op {
                    BinOp::Add => '+',
                    BinOp::Sub => '-',
                    _ => '*',
                };
                // Narrow integers are computed as `int` and truncated.
                return Ok(match dtype.is_floating() || dtype.bits >= 32 {
                    true => format!("({x} {sign} {y})"),
                    false => format!("(({})({x} {sign} {y}))", self.c_type(e)?),
                });
            }
            BinOp::Div if dtype.is_floating() => "/",
            BinOp::Mod | BinOp::FloorDiv | BinOp::FloorMod if dtype.is_floating() => {
                return Err(unsupported(e, "this division of floats"));
            }
            BinOp::Div | BinOp::Mod | BinOp::FloorDiv | BinOp::FloorMod => {
                let ty = self.c_type(e)?;
                if let Some(divisor) = b.as_int().filter(|d| *d > 0) {
                    let floors = matches!(op, BinOp::FloorDiv | BinOp::FloorMod);
                    let quotient = matches!(op, BinOp::Div | BinOp::FloorDiv);
                    let sign = if quotient { '/' } else { '%' };
                    if !floors || dtype.is_uint() || divisor == 1 {
                        return Ok(format!("(({ty})({x} {sign} {y}))"));
                    }
                }
                let function = match op {
                    BinOp::Div => "truncdiv",
                    BinOp::Mod => "truncmod",
                    BinOp::FloorDiv => "floordiv",
                    _ => "floormod",
                };
                if dtype.is_uint() {
                    self.divides = true;
                    let function = if matches!(op, BinOp::Div | BinOp::FloorDiv) {
                        "udiv"
                    } else {
                        "umod"
                    };
                    return Ok(format!("(({ty})tirx_{function}({x}, {y}, &divided_by_zero))"));
                }
                self.divides |= b.as_int().is_none_or(|d| d == 0);
                return Ok(format!("(({ty})tirx_{function}({x}, {y}, &divided_by_zero))"));
            }
        };
        Ok(format!("({x} {sign} {y})"))
    }

    fn choice(&mut self, c: &Expr, t: &Expr, f: &Expr) -> Result<String> {
        Ok(format!(
            "({} ? {} : {})",
            self.expr(c)?,
            self.expr(t)?,
            self.expr(f)?
        ))
    }

    fn call(&mut self, e: &Expr, op: Op, args: &[Expr]) -> Result<String> {
        Ok(match (op, args) {
            (Op::TvmStructGet, _) => self.struct_get(
                e,
                &args[at!(TvmStructGet.arr)],
                &args[at!(TvmStructGet.index)],
                &args[at!(TvmStructGet.field)],
            )?,
            (Op::IfThenElse, _) => self.choice(
                &args[at!(IfThenElse.cond)],
                &args[at!(IfThenElse.t)],
                &args[at!(IfThenElse.f)],
            )?,
            (Op::Likely, [a]) => self.expr(a)?,
            (Op::HandleAddByteOffset, _) => {
                let pointer = self.expr(&args[at!(HandleAddByteOffset.data)])?;
                let offset = self.expr(&args[at!(HandleAddByteOffset.byte_offset)])?;
                format!("((void*)((char*){pointer} + {offset}))")
            }
            (Op::IsNullptr, [pointer]) => format!("({} == NULL)", self.expr(pointer)?),
            (Op::Reinterpret, [a]) => {
                let value = self.expr(a)?;
                match (a.dtype.is_handle(), e.dtype.is_handle()) {
                    (true, true) => value,
                    (true, false) => format!("(({})(uintptr_t){value})", self.c_type(e)?),
                    (false, true) => format!("((void*)(uintptr_t){value})"),
                    (false, false) => return Err(unsupported(e, "`T.reinterpret` of numbers")),
                }
            }
            (Op::BitwiseAnd, [a, b]) => format!("({} & {})", self.expr(a)?, self.expr(b)?),
            (Op::BitwiseOr, [a, b]) => format!("({} | {})", self.expr(a)?, self.expr(b)?),
            (Op::BitwiseXor, [a, b]) => format!("({} ^ {})", self.expr(a)?, self.expr(b)?),
            (Op::BitwiseNot, [a]) => format!("(({})~{})", self.c_type(e)?, self.expr(a)?),
            (Op::ShiftLeft | Op::ShiftRight, [a, b]) => {
                let sign = if op == Op::ShiftLeft { "<<" } else { ">>" };
                let mask = e.dtype.bits - 1;
                format!(
                    "(({})({} {sign} ({} & {mask})))",
                    self.c_type(e)?,
                    self.expr(a)?,
                    self.expr(b)?
                )
            }
            (Op::Popcount, [a]) => {
                format!("(({})tirx_popcount({}))", self.c_type(e)?, self.unsigned(a)?)
            }
            (Op::Clz, [a]) => {
                let bits = a.dtype.bits;
                format!("(({})tirx_clz({}, {bits}))", self.c_type(e)?, self.unsigned(a)?)
            }
            (Op::LargeUintImm, _) => match (
                args[at!(LargeUintImm.low)].as_int(),
                args[at!(LargeUintImm.high)].as_int(),
            ) {
                (Some(low), Some(high)) => integer(DType::UINT64, low | high << 32),
                _ => return Err(unsupported(e, "`large_uint_imm` of values that are not constant")),
            },
            (_, [a, rest @ ..]) if c_function(op).is_some() && a.dtype.is_float() && a.dtype.bits >= 32 => {
                let suffix = if a.dtype.bits == 32 { "f" } else { "" };
                let mut values = vec![self.expr(a)?];
                for b in rest {
                    values.push(self.expr(b)?);
                }
                format!(
                    "{}{suffix}({})",
                    c_function(op).unwrap_or_default(),
                    values.join(", ")
                )
            }
            _ => return Err(unsupported(e, &format!("`T.{}`", op.info().script))),
        })
    }

    /// The bits of an integer as `uint64_t`, without its sign.
    fn unsigned(&mut self, a: &Expr) -> Result<String> {
        let value = self.expr(a)?;
        Ok(format!("(uint64_t)(uint{}_t){value}", a.dtype.bits.max(8)))
    }

    fn struct_get(&mut self, e: &Expr, object: &Expr, index: &Expr, field: &Expr) -> Result<String> {
        let (object, position) = (self.expr(object)?, self.expr(index)?);
        let Some(field) = field.as_int().and_then(Field::from_number) else {
            return Err(unsupported(e, "this field of an argument"));
        };
        let any = |member: &str| format!("((const tirx_any*){object})[{position}].{member}");
        let tensor = |member: &str| format!("((const DLTensor*){object})->{member}");
        Ok(match field {
            Field::ArgType => any("type_index"),
            Field::Padding => any("zero_padding"),
            Field::ArgValue if e.dtype.is_handle() => any("v.v_ptr"),
            Field::ArgValue if e.dtype.is_floating() => any("v.v_float64"),
            Field::ArgValue => any("v.v_int64"),
            Field::Int64Element => format!("((const int64_t*){object})[{position}]"),
            Field::Data => tensor("data"),
            Field::Shape => format!("((void*){})", tensor("shape")),
            Field::Strides => format!("((void*){})", tensor("strides")),
            Field::Ndim => tensor("ndim"),
            Field::TypeCode => tensor("dtype.code"),
            Field::TypeBits => tensor("dtype.bits"),
            Field::TypeLanes => tensor("dtype.lanes"),
            Field::ByteOffset => tensor("byte_offset"),
            Field::DeviceId => tensor("device.device_id"),
            Field::DeviceType => format!("((int32_t){})", tensor("device.device_type")),
        })
    }
}

/// The runtime's functions over a 16-bit float: `tirx_f16`, `tirx_f16_to_double`.
fn half_name(dtype: DType) -> Option<&'static str> {
    let half = dtype.is_scalar() && dtype.bits == 16 && dtype.is_floating();
    ElementType::of(dtype).filter(|_| half)?.ptx
}

/// C's function of numbers.
fn c_function(op: Op) -> Option<&'static str> {
    Some(match op {
        Op::Ceil => "ceil",
        Op::Floor => "floor",
        Op::Trunc => "trunc",
        // To nearest, ties to even, in the default mode.
        Op::Round | Op::Nearbyint => "nearbyint",
        Op::Fabs => "fabs",
        Op::Sqrt => "sqrt",
        Op::Exp => "exp",
        Op::Exp2 => "exp2",
        Op::Log => "log",
        Op::Log2 => "log2",
        Op::Log10 => "log10",
        Op::Pow => "pow",
        _ => return None,
    })
}

/// An integer or bool constant.
pub(super) fn integer(dtype: DType, value: i128) -> String {
    if dtype.is_bool() {
        return if value != 0 { "true" } else { "false" }.to_string();
    }
    if dtype.is_handle() {
        return format!("((void*)(uintptr_t){value})");
    }
    match (dtype.is_uint(), dtype.bits) {
        (true, 64) => format!("UINT64_C({value})"),
        (true, 32) => format!("UINT32_C({value})"),
        (true, bits) => format!("((uint{}_t){value})", bits.max(8)),
        (false, 64) if value == i128::from(i64::MIN) => "INT64_MIN".to_string(),
        (false, 64) if value < 0 => format!("(-INT64_C({}))", -value),
        (false, 64) => format!("INT64_C({value})"),
        (false, 32) if value == i128::from(i32::MIN) => "INT32_MIN".to_string(),
        (false, 32) if value < 0 => format!("({value})"),
        (false, 32) => value.to_string(),
        (false, bits) => format!("((int{}_t){value})", bits.max(8)),
    }
}

fn float(dtype: DType, value: f64) -> String {
    if let Some(half) = half_name(dtype) {
        return format!("tirx_{half}({})", float(DType::FLOAT64, value));
    }
    let suffix = if dtype == DType::FLOAT32 { "f" } else { "" };
    if value.is_nan() {
        return "((float)NAN)".to_string();
    }
    if value.is_infinite() {
        return if value < 0.0 { "(-INFINITY)" } else { "INFINITY" }.to_string();
    }
    let text = match dtype == DType::FLOAT32 {
        true => format!("{:?}", value as f32),
        false => format!("{value:?}"),
    };
    match value.is_sign_negative() {
        true => format!("({text}{suffix})"),
        false => format!("{text}{suffix}"),
    }
}
