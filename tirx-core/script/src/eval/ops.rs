//! Operators on meta values, with Python's semantics.

use std::cell::RefCell;
use std::rc::Rc;

use tirx_python::{Operator, UnaryOp};

use super::dict::{self, Dict, Set};
use super::expr::at;
use super::value::Value;
use super::{Args, Interpreter};
use crate::diagnostic::{Diagnostic, Result, error};
use crate::lang;
use crate::source::Span;

/// The text of an operator, and the methods of a class that define it.
fn operator_names(op: Operator) -> (&'static str, &'static str, &'static str) {
    match op {
        Operator::Add => ("+", "__add__", "__radd__"),
        Operator::Sub => ("-", "__sub__", "__rsub__"),
        Operator::Mult => ("*", "__mul__", "__rmul__"),
        Operator::MatMult => ("@", "__matmul__", "__rmatmul__"),
        Operator::Div => ("/", "__truediv__", "__rtruediv__"),
        Operator::Mod => ("%", "__mod__", "__rmod__"),
        Operator::Pow => ("**", "__pow__", "__rpow__"),
        Operator::LShift => ("<<", "__lshift__", "__rlshift__"),
        Operator::RShift => (">>", "__rshift__", "__rrshift__"),
        Operator::BitOr => ("|", "__or__", "__ror__"),
        Operator::BitXor => ("^", "__xor__", "__rxor__"),
        Operator::BitAnd => ("&", "__and__", "__rand__"),
        Operator::FloorDiv => ("//", "__floordiv__", "__rfloordiv__"),
    }
}

/// The method of a class that defines `a op= b`.
fn in_place_name(op: Operator) -> &'static str {
    match op {
        Operator::Add => "__iadd__",
        Operator::Sub => "__isub__",
        Operator::Mult => "__imul__",
        Operator::MatMult => "__imatmul__",
        Operator::Div => "__itruediv__",
        Operator::Mod => "__imod__",
        Operator::Pow => "__ipow__",
        Operator::LShift => "__ilshift__",
        Operator::RShift => "__irshift__",
        Operator::BitOr => "__ior__",
        Operator::BitXor => "__ixor__",
        Operator::BitAnd => "__iand__",
        Operator::FloorDiv => "__ifloordiv__",
    }
}

impl Interpreter {
    /// The value of `a` after `a op= b`: lists, dicts and sets are changed in place, objects as their methods define.
    pub(super) fn binary_in_place(
        &mut self,
        op: Operator,
        a: &Value,
        b: &Value,
        span: Span,
    ) -> Result<Value> {
        match (a, op) {
            (Value::List(items), Operator::Add) => {
                let more = self.iterate(b, span)?;
                items.borrow_mut().extend(more);
                let len = items.borrow().len();
                self.check_items(len, span)?;
                return Ok(a.clone());
            }
            (Value::List(items), Operator::Mult) if b.as_int().is_some() => {
                if let Value::List(new) = self.binary(op, a, b, span)? {
                    let new = new.borrow().clone();
                    *items.borrow_mut() = new;
                }
                return Ok(a.clone());
            }
            (Value::Dict(d), Operator::BitOr) => {
                self.update_dict(d, b, span)?;
                return Ok(a.clone());
            }
            (Value::Set(s), _) if matches!(b, Value::Set(_)) && !s.borrow().0.frozen => {
                if let Value::Set(new) = self.binary(op, a, b, span)? {
                    let new = new.borrow().clone();
                    *s.borrow_mut() = new;
                }
                return Ok(a.clone());
            }
            (Value::Instance(i), _) => {
                if let Some(f) = self.class_attribute(&i.class, in_place_name(op)) {
                    let result = self.call_method(&f, a, Args::positional([b.clone()], span), span)?;
                    if !matches!(result, Value::NotImplemented) {
                        return Ok(result);
                    }
                }
            }
            _ => {}
        }
        self.binary(op, a, b, span)
    }

    /// `a op b` of any values.
    pub fn binary(&mut self, op: Operator, a: &Value, b: &Value, span: Span) -> Result<Value> {
        let (text, method, reflected) = operator_names(op);
        for value in [a, b] {
            if let Value::Unavailable(why) = value {
                return self.unavailable(why, span);
            }
        }
        if let Value::Instance(i) = a
            && let Some(function) = self.class_attribute(&i.class, method)
        {
            let result = self.call_method(&function, a, Args::positional([b.clone()], span), span)?;
            if !matches!(result, Value::NotImplemented) {
                return Ok(result);
            }
        }
        if let Value::Instance(i) = b
            && let Some(function) = self.class_attribute(&i.class, reflected)
        {
            let result = self.call_method(&function, b, Args::positional([a.clone()], span), span)?;
            if !matches!(result, Value::NotImplemented) {
                return Ok(result);
            }
        }
        if let Value::Object(o) = a
            && let Some(v) = o.clone().binary(self, op, b, false, span)?
        {
            return Ok(at(v, span));
        }
        if let Value::Object(o) = b
            && let Some(v) = o.clone().binary(self, op, a, true, span)?
        {
            return Ok(at(v, span));
        }
        let of_language = |v: &Value| v.is_ir() || matches!(v, Value::Layout(_) | Value::DType(_));
        if of_language(a) || of_language(b) {
            return lang::binary(self, op, a, b, span).map(|v| at(v, span));
        }
        // `int | None` and the like, in annotations.
        if op == Operator::BitOr
            && [a, b]
                .iter()
                .any(|v| matches!(v, Value::Class(_) | Value::Annotation(_) | Value::Builtin(_)))
        {
            return Ok(if matches!(a, Value::None) {
                b.clone()
            } else {
                a.clone()
            });
        }
        match self.meta_binary(op, a, b, span)? {
            Some(v) => Ok(v),
            None => {
                let mut error = Box::new(Diagnostic::new(
                    span,
                    format!(
                        "unsupported operands of \"{text}\": {} and {}",
                        a.type_name(),
                        b.type_name()
                    ),
                ));
                if [a, b].iter().any(|value| value.type_name() == "layout axis") {
                    error.help = Some(
                        "a name that is not defined may be that of an axis of layouts, as in `1 @ m`"
                            .to_string(),
                    );
                }
                Err(self.as_exception("TypeError", error))
            }
        }
    }

    fn meta_binary(&mut self, op: Operator, a: &Value, b: &Value, span: Span) -> Result<Option<Value>> {
        if let Some(value) = self.flag_binary(op, a, b) {
            return Ok(Some(value));
        }
        let (a, b) = (
            &self.plain_number(a).plain_tuple(),
            &self.plain_number(b).plain_tuple(),
        );
        if let (Some(x), Some(y)) = (a.as_int(), b.as_int()) {
            if let (Value::Bool(p), Value::Bool(q)) = (a, b) {
                match op {
                    Operator::BitAnd => return Ok(Some(Value::Bool(p & q))),
                    Operator::BitOr => return Ok(Some(Value::Bool(p | q))),
                    Operator::BitXor => return Ok(Some(Value::Bool(p ^ q))),
                    _ => {}
                }
            }
            return self.int_binary(op, x, y, span).map(Some);
        }
        if let (Some(x), Some(y)) = (as_float(a), as_float(b)) {
            return self.float_binary(op, x, y, span);
        }
        Ok(match (op, a, b) {
            (Operator::Add, Value::Str(x), Value::Str(y)) => {
                self.check_items(x.len() + y.len(), span)?;
                Some(Value::str(format!("{x}{y}")))
            }
            (Operator::Add, Value::Tuple(x), Value::Tuple(y)) => {
                self.check_items(x.len() + y.len(), span)?;
                Some(Value::tuple(x.iter().chain(y.iter()).cloned().collect()))
            }
            (Operator::Add, Value::List(x), Value::List(y)) => {
                let mut items = x.borrow().clone();
                items.extend(y.borrow().iter().cloned());
                self.check_items(items.len(), span)?;
                Some(Value::list(items))
            }
            (Operator::Mult, x, n) | (Operator::Mult, n, x)
                if n.as_int().is_some() && matches!(x, Value::Str(_) | Value::Tuple(_) | Value::List(_)) =>
            {
                let n = usize::try_from(n.as_int().unwrap_or(0).max(0)).unwrap_or(usize::MAX);
                Some(self.repeat(x, n, span)?)
            }
            (Operator::Mod, Value::Str(template), _) => {
                Some(Value::str(self.percent_format(template, b, span)?))
            }
            (Operator::BitOr, Value::Dict(x), Value::Dict(y)) => {
                let mut dict = x.borrow().clone();
                for (k, v) in y.borrow().iter() {
                    let key = self.key_of(k, span)?;
                    dict.insert(key, k.clone(), v.clone());
                }
                Some(Value::Dict(Rc::new(RefCell::new(dict))))
            }
            (op, Value::Set(x), Value::Set(y)) => {
                let (x, y) = (x.borrow(), y.borrow());
                set_operation(op, &x, &y).map(|s| Value::Set(Rc::new(RefCell::new(s))))
            }
            _ => None,
        })
    }

    fn repeat(&mut self, value: &Value, n: usize, span: Span) -> Result<Value> {
        let len = match value {
            Value::Str(s) => s.len(),
            Value::Tuple(items) => items.len(),
            Value::List(items) => items.borrow().len(),
            _ => 0,
        };
        self.check_items(len.saturating_mul(n), span)?;
        Ok(match value {
            Value::Str(s) => Value::str(s.repeat(n)),
            Value::Tuple(items) => {
                Value::tuple(std::iter::repeat_n(&**items, n).flatten().cloned().collect())
            }
            Value::List(items) => {
                let items = items.borrow();
                Value::list(std::iter::repeat_n(&**items, n).flatten().cloned().collect())
            }
            other => other.clone(),
        })
    }

    fn int_binary(&mut self, op: Operator, x: i128, y: i128, span: Span) -> Result<Value> {
        let checked = match op {
            Operator::Add => x.checked_add(y),
            Operator::Sub => x.checked_sub(y),
            Operator::Mult => x.checked_mul(y),
            Operator::Div | Operator::FloorDiv | Operator::Mod if y == 0 => {
                return self.raise("ZeroDivisionError", span, "division by zero");
            }
            Operator::Div => return Ok(Value::Float(x as f64 / y as f64)),
            Operator::FloorDiv => floor_div(x, y),
            Operator::Mod => Some(floor_mod(x, y)),
            Operator::Pow if y < 0 => {
                return self
                    .float_binary(op, x as f64, y as f64, span)
                    .map(|v| v.unwrap_or(Value::None));
            }
            Operator::Pow => u32::try_from(y).ok().and_then(|y| match x {
                0 | 1 => Some(if y == 0 { 1 } else { x }),
                -1 => Some(if y % 2 == 0 { 1 } else { -1 }),
                _ => x.checked_pow(y),
            }),
            Operator::LShift | Operator::RShift if y < 0 => {
                return self.raise("ValueError", span, "negative shift count");
            }
            Operator::LShift => match u32::try_from(y) {
                Ok(y) if y < 127 => x.checked_mul(1i128 << y),
                _ if x == 0 => Some(0),
                _ => None,
            },
            Operator::RShift => Some(x >> y.min(127)),
            Operator::BitAnd => Some(x & y),
            Operator::BitOr => Some(x | y),
            Operator::BitXor => Some(x ^ y),
            Operator::MatMult => {
                return self.raise("TypeError", span, "unsupported operands of \"@\": int and int");
            }
        };
        match checked {
            Some(v) => Ok(Value::Int(v)),
            None => self.raise("OverflowError", span, "this integer is larger than 127 bits"),
        }
    }

    fn float_binary(&mut self, op: Operator, x: f64, y: f64, span: Span) -> Result<Option<Value>> {
        let value = match op {
            Operator::Add => x + y,
            Operator::Sub => x - y,
            Operator::Mult => x * y,
            Operator::Div | Operator::FloorDiv | Operator::Mod if y == 0.0 => {
                return self.raise("ZeroDivisionError", span, "division by zero");
            }
            Operator::Div => x / y,
            Operator::FloorDiv => {
                let remainder = float_mod(x, y);
                ((x - remainder) / y).round()
            }
            Operator::Mod => float_mod(x, y),
            Operator::Pow if x == 0.0 && y < 0.0 => {
                return self.raise("ZeroDivisionError", span, "zero to a negative power");
            }
            Operator::Pow => x.powf(y),
            _ => return Ok(None),
        };
        Ok(Some(Value::Float(value)))
    }

    pub(super) fn meta_unary(&mut self, op: UnaryOp, a: &Value, span: Span) -> Result<Value> {
        let method = match op {
            UnaryOp::USub => "__neg__",
            UnaryOp::UAdd => "__pos__",
            UnaryOp::Invert => "__invert__",
            UnaryOp::Not => "",
        };
        if let Value::Instance(i) = a
            && let Some(function) = self.class_attribute(&i.class, method)
        {
            return self.call_method(&function, a, Args::default(), span);
        }
        if let (UnaryOp::Invert, Some(value)) = (op, self.flag_invert(a)) {
            return Ok(value);
        }
        let number = self.plain_number(a);
        let result = match (op, &number) {
            (UnaryOp::USub, Value::Float(v)) => Some(Value::Float(-v)),
            (UnaryOp::UAdd, Value::Float(v)) => Some(Value::Float(*v)),
            (op, v) => match (op, v.as_int()) {
                (UnaryOp::USub, Some(v)) => v.checked_neg().map(Value::Int),
                (UnaryOp::UAdd, Some(v)) => Some(Value::Int(v)),
                (UnaryOp::Invert, Some(v)) => Some(Value::Int(!v)),
                _ => None,
            },
        };
        match result {
            Some(v) => Ok(v),
            None => {
                if let Value::Unavailable(why) = a {
                    return self.unavailable(why, span);
                }
                let text = match op {
                    UnaryOp::USub => "-",
                    UnaryOp::UAdd => "+",
                    UnaryOp::Invert => "~",
                    UnaryOp::Not => "not",
                };
                self.raise(
                    "TypeError",
                    span,
                    format!("unsupported operand of \"{text}\": {}", a.type_name()),
                )
            }
        }
    }

    /// The value of an `IntEnum` member; any other value unchanged.
    pub(super) fn plain_number(&self, value: &Value) -> Value {
        value.member_number().unwrap_or_else(|| value.clone())
    }

    /// Python's truth of a value.
    ///
    /// # Errors
    /// For values that are only known when the kernel runs.
    pub fn truth(&mut self, value: &Value, span: Span) -> Result<bool> {
        Ok(match value {
            Value::None => false,
            Value::Bool(b) => *b,
            Value::Int(v) => *v != 0,
            Value::Float(v) => *v != 0.0,
            Value::Str(s) => !s.is_empty(),
            Value::Tuple(items) => !items.is_empty(),
            Value::List(items) => !items.borrow().is_empty(),
            Value::Dict(d) => !d.borrow().is_empty(),
            Value::Set(s) => !s.borrow().0.is_empty(),
            Value::Range(r) => !r.is_empty(),
            Value::MetaVar(v) => return self.truth(&v.clone(), span),
            Value::Unavailable(why) => return self.unavailable(why, span),
            Value::Expr(_) | Value::Region(_) => {
                return Err(Box::new(
                    crate::diagnostic::Diagnostic::new(span, "this condition is only known when the kernel runs")
                        .help("a plain Python function decides at compile time; make it a @T.inline to build `if`, or use T.if_then_else"),
                ));
            }
            Value::Instance(i) => {
                if let tuple @ Value::Tuple(_) = value.plain_tuple() {
                    return self.truth(&tuple, span);
                }
                if let Some(f) = self.class_attribute(&i.class, "__bool__") {
                    let v = self.call_method(&f, value, Args::default(), span)?;
                    return self.truth(&v, span);
                }
                if let Some(f) = self.class_attribute(&i.class, "__len__") {
                    let v = self.call_method(&f, value, Args::default(), span)?;
                    return self.truth(&v, span);
                }
                if let Some((_, bits)) = super::enums::bits(value) {
                    return Ok(bits != 0);
                }
                match self.plain_number(value) {
                    Value::Instance(_) => true,
                    number => return self.truth(&number, span),
                }
            }
            _ => true,
        })
    }
}

/// `int`, `float` and `bool` as a number.
pub(super) fn as_float(value: &Value) -> Option<f64> {
    match value {
        Value::Float(v) => Some(*v),
        other => other.as_int().map(|v| v as f64),
    }
}

/// `|`, `&`, `-`, `^` of sets.
pub(super) fn set_operation(op: Operator, a: &Set, b: &Set) -> Option<Set> {
    let mut out = Set(Dict::default());
    out.0.frozen = a.0.frozen;
    let mut add = |from: &Set, keep: &dyn Fn(&dict::Key) -> bool| {
        for item in from.iter() {
            if let Ok(key) = dict::key(item)
                && keep(&key)
            {
                out.insert(key, item.clone());
            }
        }
    };
    match op {
        Operator::BitOr => {
            add(a, &|_| true);
            add(b, &|_| true);
        }
        Operator::BitAnd => add(a, &|k| b.contains(k)),
        Operator::Sub => add(a, &|k| !b.contains(k)),
        Operator::BitXor => {
            add(a, &|k| !b.contains(k));
            add(b, &|k| !a.contains(k));
        }
        _ => return None,
    }
    Some(out)
}

/// Python's `//`.
pub(super) fn floor_div(x: i128, y: i128) -> Option<i128> {
    let q = x.checked_div(y)?;
    Some(if x % y != 0 && (x < 0) != (y < 0) {
        q - 1
    } else {
        q
    })
}

/// Python's `%`; `y` is not zero.
pub(super) fn floor_mod(x: i128, y: i128) -> i128 {
    let r = x.checked_rem(y).unwrap_or(0);
    if r != 0 && (r < 0) != (y < 0) { r + y } else { r }
}

fn float_mod(x: f64, y: f64) -> f64 {
    let r = x % y;
    if r != 0.0 && (r < 0.0) != (y < 0.0) {
        r + y
    } else {
        r
    }
}

/// A slice's `start`, `stop`, `step` within `len`, as Python clips them.
pub(super) fn slice_indices(
    slice: &super::value::Slice,
    len: usize,
    span: Span,
) -> Result<(i128, i128, i128)> {
    let part = |v: &Value| match v {
        Value::None => Ok(None),
        v => match v.as_int() {
            Some(i) => Ok(Some(i)),
            None => error(span, format!("slice bounds must be int, found {}", v.type_name())),
        },
    };
    let step = part(&slice.step)?.unwrap_or(1);
    if step == 0 {
        return error(span, "slice step cannot be zero");
    }
    let len = len as i128;
    let clip =
        |v: i128, low: i128, high: i128| (if v < 0 { v.saturating_add(len) } else { v }).clamp(low, high);
    let (start, stop) = if step > 0 {
        (
            part(&slice.start)?.map_or(0, |v| clip(v, 0, len)),
            part(&slice.stop)?.map_or(len, |v| clip(v, 0, len)),
        )
    } else {
        (
            part(&slice.start)?.map_or(len - 1, |v| clip(v, -1, len - 1)),
            part(&slice.stop)?.map_or(-1, |v| clip(v, -1, len - 1)),
        )
    };
    Ok((start, stop, step))
}
