//! Comparison of meta values: equality, order, identity, membership.

use std::cmp::Ordering;
use std::rc::Rc;

use tirx_python::CmpOp;

use super::dict::{self, Set};
use super::ops::as_float;
use super::value::Value;
use super::{Args, Interpreter};
use crate::diagnostic::Result;
use crate::source::Span;

fn compare_names(op: CmpOp) -> (&'static str, &'static str, &'static str) {
    match op {
        CmpOp::Eq => ("==", "__eq__", "__eq__"),
        CmpOp::NotEq => ("!=", "__ne__", "__ne__"),
        CmpOp::Lt => ("<", "__lt__", "__gt__"),
        CmpOp::LtE => ("<=", "__le__", "__ge__"),
        CmpOp::Gt => (">", "__gt__", "__lt__"),
        CmpOp::GtE => (">=", "__ge__", "__le__"),
        CmpOp::Is => ("is", "", ""),
        CmpOp::IsNot => ("is not", "", ""),
        CmpOp::In => ("in", "", ""),
        CmpOp::NotIn => ("not in", "", ""),
    }
}

impl Interpreter {
    pub(super) fn meta_compare(&mut self, op: CmpOp, a: &Value, b: &Value, span: Span) -> Result<Value> {
        let result = match op {
            CmpOp::Is => identical(a, b),
            CmpOp::IsNot => !identical(a, b),
            CmpOp::In => self.contains(b, a, span)?,
            CmpOp::NotIn => !self.contains(b, a, span)?,
            CmpOp::Eq => self.equals(a, b, span)?,
            CmpOp::NotEq => {
                if let Value::Instance(i) = a
                    && let Some(f) = self.class_attribute(&i.class, "__ne__")
                {
                    let result = self.call_method(&f, a, Args::positional([b.clone()], span), span)?;
                    if !matches!(result, Value::NotImplemented) {
                        return Ok(result);
                    }
                }
                !self.equals(a, b, span)?
            }
            CmpOp::Lt | CmpOp::LtE | CmpOp::Gt | CmpOp::GtE => {
                let (text, method, reflected) = compare_names(op);
                for (x, y, name) in [(a, b, method), (b, a, reflected)] {
                    if let Value::Instance(i) = x
                        && let Some(f) = self.class_attribute(&i.class, name)
                    {
                        let result = self.call_method(&f, x, Args::positional([y.clone()], span), span)?;
                        if !matches!(result, Value::NotImplemented) {
                            return Ok(result);
                        }
                    }
                }
                if let (Value::Set(x), Value::Set(y)) = (a, b) {
                    let (x, y) = (x.borrow(), y.borrow());
                    let within = |p: &Set, q: &Set| p.0.len() <= q.0.len() && has_all(p, q);
                    return Ok(Value::Bool(match op {
                        CmpOp::LtE => within(&x, &y),
                        CmpOp::GtE => within(&y, &x),
                        CmpOp::Lt => within(&x, &y) && x.0.len() < y.0.len(),
                        _ => within(&y, &x) && y.0.len() < x.0.len(),
                    }));
                }
                let Some(order) = self.order(a, b, span)? else {
                    if as_float(a).is_some() && as_float(b).is_some() {
                        return Ok(Value::Bool(false)); // NaN
                    }
                    for value in [a, b] {
                        if let Value::Unavailable(why) = value {
                            return self.unavailable(why, span);
                        }
                    }
                    return self.raise(
                        "TypeError",
                        span,
                        format!(
                            "\"{text}\" cannot compare {} and {}",
                            a.type_name(),
                            b.type_name()
                        ),
                    );
                };
                match op {
                    CmpOp::Lt => order.is_lt(),
                    CmpOp::LtE => order.is_le(),
                    CmpOp::Gt => order.is_gt(),
                    _ => order.is_ge(),
                }
            }
        };
        Ok(Value::Bool(result))
    }

    /// Python's `==` of meta values; IR values within containers are equal when they are the same expression.
    pub fn equals(&mut self, a: &Value, b: &Value, span: Span) -> Result<bool> {
        for (x, y) in [(a, b), (b, a)] {
            if let Value::Instance(i) = x {
                if let Some(f) = self.class_attribute(&i.class, "__eq__") {
                    let v = self.call_method(&f, x, Args::positional([y.clone()], span), span)?;
                    if !matches!(v, Value::NotImplemented) {
                        return self.truth(&v, span);
                    }
                }
                if let Value::Instance(j) = y
                    && !i.class.is_named_tuple()
                    && Rc::ptr_eq(&i.class, &j.class)
                    && let Some(data) = i.class.data()
                    && data.eq
                {
                    if Rc::ptr_eq(i, j) {
                        return Ok(true);
                    }
                    let (p, q) = (data.compared(i), data.compared(j));
                    return Ok(
                        p.len() == q.len() && self.nested(span, |s| s.all_equal(p.iter(), q.iter(), span))?
                    );
                }
            }
        }
        let (a, b) = (&a.plain_tuple(), &b.plain_tuple());
        let (a, b) = (&self.plain_number(a), &self.plain_number(b));
        self.step(span)?;
        Ok(match (a, b) {
            (Value::Tuple(x), Value::Tuple(y)) => {
                x.len() == y.len() && self.nested(span, |i| i.all_equal(x.iter(), y.iter(), span))?
            }
            (Value::List(x), Value::List(y)) => {
                if Rc::ptr_eq(x, y) {
                    return Ok(true);
                }
                let (x, y) = (x.borrow().clone(), y.borrow().clone());
                x.len() == y.len() && self.nested(span, |i| i.all_equal(x.iter(), y.iter(), span))?
            }
            (Value::Dict(x), Value::Dict(y)) => {
                if Rc::ptr_eq(x, y) {
                    return Ok(true);
                }
                let (x, y) = (x.borrow().clone(), y.borrow().clone());
                if x.len() != y.len() {
                    return Ok(false);
                }
                for (k, v) in x.iter() {
                    let key = self.key_of(k, span)?;
                    let Some(w) = y.get(&key) else { return Ok(false) };
                    if !self.nested(span, |i| i.equals(v, w, span))? {
                        return Ok(false);
                    }
                }
                true
            }
            (Value::Set(x), Value::Set(y)) => {
                let (x, y) = (x.borrow(), y.borrow());
                x.0.len() == y.0.len() && has_all(&x, &y)
            }
            (Value::Slice(x), Value::Slice(y)) => {
                let (p, q) = ([&x.start, &x.stop, &x.step], [&y.start, &y.stop, &y.step]);
                self.all_equal(p.into_iter(), q.into_iter(), span)?
            }
            (Value::Layout(x), Value::Layout(y)) => x == y,
            (Value::Expr(x), Value::Expr(y)) => x == y,
            (Value::Object(x), Value::Object(y)) => Rc::ptr_eq(x, y) || x.equals(&**y),
            // A dtype equals its name.
            (Value::DType(d), Value::Str(s)) | (Value::Str(s), Value::DType(d)) => d.to_string() == **s,
            (
                Value::Int(_) | Value::Bool(_) | Value::Float(_),
                Value::Int(_) | Value::Bool(_) | Value::Float(_),
            ) => match (a.as_int(), b.as_int()) {
                (Some(x), Some(y)) => x == y,
                _ => as_float(a) == as_float(b),
            },
            (Value::Unavailable(why), _) | (_, Value::Unavailable(why)) => {
                return self.unavailable(why, span);
            }
            _ => match (dict::key(a), dict::key(b)) {
                (Ok(x), Ok(y)) => x == y,
                _ => identical(a, b),
            },
        })
    }

    fn all_equal<'a>(
        &mut self,
        a: impl Iterator<Item = &'a Value>,
        b: impl Iterator<Item = &'a Value>,
        span: Span,
    ) -> Result<bool> {
        for (x, y) in a.zip(b) {
            if !self.equals(x, y, span)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Runs `f` one level deeper, within the limit.
    pub(super) fn nested<R>(
        &mut self,
        span: Span,
        f: impl FnOnce(&mut Interpreter) -> Result<R>,
    ) -> Result<R> {
        self.limits.depth += 1;
        if self.limits.depth > super::limits::DEPTH {
            self.limits.depth -= 1;
            return self.limit(span, "values are nested too deep");
        }
        let result = f(self);
        self.limits.depth -= 1;
        result
    }

    /// Python's ordering; `None` where there is no order.
    pub(super) fn order(&mut self, a: &Value, b: &Value, span: Span) -> Result<Option<Ordering>> {
        let (a, b) = (
            &self.plain_number(a).plain_tuple(),
            &self.plain_number(b).plain_tuple(),
        );
        if let (Some(x), Some(y)) = (a.as_int(), b.as_int()) {
            return Ok(Some(x.cmp(&y)));
        }
        if let (Some(x), Some(y)) = (as_float(a), as_float(b)) {
            return Ok(x.partial_cmp(&y));
        }
        if let (Value::Str(x), Value::Str(y)) = (a, b) {
            return Ok(Some(x.cmp(y)));
        }
        if let (Value::Instance(i), Value::Instance(j)) = (a, b)
            && !i.class.is_named_tuple()
            && Rc::ptr_eq(&i.class, &j.class)
            && let Some(data) = i.class.data()
            && data.order
        {
            let (x, y) = (Value::tuple(data.compared(i)), Value::tuple(data.compared(j)));
            return self.nested(span, |s| s.order(&x, &y, span));
        }
        if let Value::Instance(i) = a
            && let Some(f) = self.class_attribute(&i.class, "__lt__")
        {
            let less = self.call_method(&f, a, Args::positional([b.clone()], span), span)?;
            if self.truth(&less, span)? {
                return Ok(Some(Ordering::Less));
            }
            return Ok(Some(if self.equals(a, b, span)? {
                Ordering::Equal
            } else {
                Ordering::Greater
            }));
        }
        match (a, b) {
            (Value::Tuple(_), Value::Tuple(_)) | (Value::List(_), Value::List(_)) => {
                let (x, y) = (a.as_items().unwrap_or_default(), b.as_items().unwrap_or_default());
                for (p, q) in x.iter().zip(&y) {
                    if !self.equals(p, q, span)? {
                        return self.nested(span, |i| i.order(p, q, span));
                    }
                }
                Ok(Some(x.len().cmp(&y.len())))
            }
            _ => Ok(None),
        }
    }

    fn contains(&mut self, container: &Value, item: &Value, span: Span) -> Result<bool> {
        match container {
            Value::Str(s) => match &self.plain_number(item) {
                Value::Str(part) => Ok(s.contains(&**part)),
                _ => self.raise(
                    "TypeError",
                    span,
                    format!("\"in\" a str needs a str, found {}", item.type_name()),
                ),
            },
            Value::Dict(d) => {
                let key = self.sought_key(item, span)?;
                Ok(d.borrow().get(&key).is_some())
            }
            Value::Set(s) => {
                let key = self.sought_key(item, span)?;
                Ok(s.borrow().contains(&key))
            }
            Value::Range(r) => Ok(match item.as_int() {
                Some(v) => {
                    let inside = if r.step > 0 {
                        v >= r.start && v < r.stop
                    } else {
                        v <= r.start && v > r.stop
                    };
                    inside && (v - r.start) % r.step == 0
                }
                None => false,
            }),
            Value::Instance(_)
                if let (Some((class, all)), Some((other, part))) =
                    (super::enums::bits(container), super::enums::bits(item)) =>
            {
                Ok(Rc::ptr_eq(class, other) && all & part == part)
            }
            Value::Instance(i) if self.class_attribute(&i.class, "__contains__").is_some() => {
                let f = self
                    .class_attribute(&i.class, "__contains__")
                    .unwrap_or(Value::None);
                let v = self.call_method(&f, container, Args::positional([item.clone()], span), span)?;
                self.truth(&v, span)
            }
            _ => {
                let items = self.iterator(container, span)?;
                while let Some(x) = self.next_item(&items, span)? {
                    if identical(&x, item) || self.equals(&x, item, span)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }
}

/// Python's `is`.
pub(super) fn identical(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::None, Value::None)
        | (Value::Ellipsis, Value::Ellipsis)
        | (Value::NotImplemented, Value::NotImplemented) => true,
        (Value::Bool(x), Value::Bool(y)) => x == y,
        (Value::Int(x), Value::Int(y)) => x == y,
        (Value::Str(x), Value::Str(y)) => x == y,
        (Value::List(x), Value::List(y)) => Rc::ptr_eq(x, y),
        (Value::Dict(x), Value::Dict(y)) => Rc::ptr_eq(x, y),
        (Value::Set(x), Value::Set(y)) => Rc::ptr_eq(x, y),
        (Value::Tuple(x), Value::Tuple(y)) => Rc::ptr_eq(x, y),
        (Value::Function(x), Value::Function(y)) => Rc::ptr_eq(x, y),
        (Value::Builtin(x), Value::Builtin(y)) => Rc::ptr_eq(x, y),
        (Value::Class(x), Value::Class(y)) => Rc::ptr_eq(x, y),
        (Value::Instance(x), Value::Instance(y)) => Rc::ptr_eq(x, y),
        (Value::Kernel(x), Value::Kernel(y)) => Rc::ptr_eq(x, y),
        (Value::Annotation(x), Value::Annotation(y)) => Rc::ptr_eq(x, y),
        (Value::Object(x), Value::Object(y)) => Rc::ptr_eq(x, y),
        (Value::DType(x), Value::DType(y)) => x == y,
        (Value::Namespace(x), Value::Namespace(y)) => x == y,
        (Value::Buffer(x), Value::Buffer(y)) => x == y,
        (Value::Expr(x), Value::Expr(y)) => {
            x.same_node(y) || (x.as_var().is_some() && x.as_var() == y.as_var())
        }
        _ => false,
    }
}

fn has_all(a: &Set, b: &Set) -> bool {
    a.iter().all(|v| dict::key(v).is_ok_and(|k| b.contains(&k)))
}
