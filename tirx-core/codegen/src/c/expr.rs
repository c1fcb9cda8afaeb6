//! Host expressions as C expressions.
//!
//! Integers have the widths of the IR and wrap (the text is compiled with `-fwrapv`). Every piece is in parentheses or
//! stands alone. A division whose divisor may be zero goes through a function that notes it in `divided_by_zero`.

use rustc_hash::FxHashMap;

use super::{Result, c_scalar};
use crate::ir::abi::host::HostExpr;
use crate::ir::abi::host::operators::{HostOperator, HostTemplate};
use crate::ir::abi::{Field, unsupported};
use crate::ir::{DType, ElementType, Expr, Var};

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
        Ok(match HostExpr::from_expr(e)? {
            HostExpr::Int(v) => integer(e.dtype, v),
            HostExpr::Float(v) => float(e.dtype, v),
            HostExpr::Var(var) => match self.known.get(&var) {
                Some(text) => text.clone(),
                None => return Err(unsupported(e, &format!("variable `{}`", var.name()))),
            },
            HostExpr::Convert(inner) => self.cast(e, &inner)?,
            HostExpr::Reinterpret(inner) => {
                let value = self.expr(&inner)?;
                match (inner.dtype.is_handle(), e.dtype.is_handle()) {
                    (true, true) => value,
                    (true, false) => format!("(({})(uintptr_t){value})", self.c_type(e)?),
                    (false, true) => format!("((void*)(uintptr_t){value})"),
                    (false, false) => {
                        let (from, to) = (self.c_type(&inner)?, self.c_type(e)?);
                        format!("(((union {{ {from} from; {to} to; }}){{{value}}}).to)")
                    }
                }
            }
            HostExpr::Operation(row, operands) => self.operation(e, row, &operands)?,
            HostExpr::Choice([c, t, f]) => {
                let (c, t, f) = (self.expr(&c)?, self.expr(&t)?, self.expr(&f)?);
                format!("({c} ? {t} : {f})")
            }
            HostExpr::Let(var, value, body) => {
                let value = self.expr(&value)?;
                self.define(&var, value);
                self.expr(&body)?
            }
            HostExpr::Field { object, index, field } => self.argument_field(e, &object, &index, field)?,
            HostExpr::AddBytes(pointer, offset) => {
                format!(
                    "((void*)((char*){} + {}))",
                    self.expr(&pointer)?,
                    self.expr(&offset)?
                )
            }
            HostExpr::IsNull(pointer) => format!("({} == NULL)", self.expr(&pointer)?),
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
        let ty = self.c_type(e)?;
        if from.is_floating() && to.is_integer() {
            // C does not define the conversion of a number that the type does not hold.
            let max = to.max_int().map(|max| integer(to, max)).unwrap_or_default();
            return Ok(match to.min_int().filter(|_| to.is_int()) {
                Some(min) => format!("(({ty})tirx_to_int({value}, {}, {max}))", integer(to, min)),
                None => format!("(({ty})tirx_to_uint({value}, {max}))"),
            });
        }
        Ok(format!("(({ty}){value})"))
    }

    fn operation(&mut self, e: &Expr, row: &HostOperator, operands: &[Expr]) -> Result<String> {
        let mut texts = Vec::new();
        for operand in operands {
            texts.push(self.expr(operand)?);
        }
        let (first, dtype) = (&operands[0], operands[0].dtype);
        let form = match (row.c, operands.get(1).and_then(|b| b.as_int())) {
            (HostTemplate::Division(_, Some(by_constant)), Some(1..)) => *by_constant,
            (form, _) => form,
        };
        let ty = self.c_type(e)?;
        // Narrow integers are computed as `int` and truncated.
        let truncated = |text: String| match e.dtype.is_integer() && e.dtype.bits < 32 {
            true => format!("(({ty}){text})"),
            false => text,
        };
        Ok(match (form, &texts[..]) {
            (HostTemplate::Infix(sign @ ("/" | "%")), [a, b]) if dtype.is_integer() => {
                format!("(({ty})({a} {sign} {b}))")
            }
            (HostTemplate::Infix(sign), [a, b]) => truncated(format!("({a} {sign} {b})")),
            (HostTemplate::Prefix(sign), [a]) if dtype.is_bool() => format!("({sign}{a})"),
            (HostTemplate::Prefix(sign), [a]) => format!("(({ty}){sign}{a})"),
            (HostTemplate::Select(sign), [a, b]) => format!("({a} {sign} {b} ? {a} : {b})"),
            (HostTemplate::Division(function, _), [a, b]) => {
                self.divides |= operands[1].as_int().is_none_or(|divisor| divisor <= 0);
                format!("(({ty}){function}({a}, {b}, &divided_by_zero))")
            }
            (HostTemplate::Shift(sign), [a, count]) => {
                format!("(({ty})({a} {sign} ({count} & {})))", dtype.bits - 1)
            }
            (HostTemplate::Bits(function), [_]) => format!("(({ty}){function}({}))", self.unsigned(first)?),
            (HostTemplate::BitsOfWidth(function), [_]) => {
                format!("(({ty}){function}({}, {}))", self.unsigned(first)?, dtype.bits)
            }
            (HostTemplate::Math(function), _) => {
                let suffix = if dtype.bits == 32 { "f" } else { "" };
                format!("{function}{suffix}({})", texts.join(", "))
            }
            _ => return Err(unsupported(e, "this operation")),
        })
    }

    /// The bits of an integer as `uint64_t`, without its sign.
    fn unsigned(&mut self, a: &Expr) -> Result<String> {
        let value = self.expr(a)?;
        Ok(format!("(uint64_t)(uint{}_t){value}", a.dtype.bits.max(8)))
    }

    fn argument_field(&mut self, e: &Expr, object: &Expr, index: &Expr, field: Field) -> Result<String> {
        let (object, position) = (self.expr(object)?, self.expr(index)?);
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
    ElementType::from_dtype(dtype).filter(|_| half)?.ptx
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
