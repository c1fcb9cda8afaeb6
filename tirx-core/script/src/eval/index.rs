//! Subscripts, iteration and unpacking.

use std::rc::Rc;

use super::ops::slice_indices;
use super::value::{Annotation, ClassKind, Range, Value};
use super::{Args, Interpreter};
use crate::diagnostic::{Result, error};
use crate::ir::Type;
use crate::lang;
use crate::source::Span;

impl Interpreter {
    /// `value[index]`.
    pub fn subscript(&mut self, value: &Value, index: &Value, span: Span) -> Result<Value> {
        match value {
            Value::Tuple(items) => self.sequence_item(items, index, span, Value::tuple),
            // One element is taken without a copy of the list: an element of a matrix would take a copy of its row.
            Value::List(items) if !matches!(index, Value::Slice(_)) => {
                let length = items.borrow().len();
                let at = self.position(index, length, span)?;
                let found = items.borrow().get(at).cloned();
                // An `__index__` may have shortened the list.
                let gone = || format!("index {at} is out of range: the list is shorter now");
                found.map_or_else(|| self.raise("IndexError", span, gone()), Ok)
            }
            Value::List(items) => {
                let items = items.borrow().clone();
                self.sequence_item(&items, index, span, Value::list)
            }
            Value::Str(s) => {
                let chars: Vec<Value> = s.chars().map(|c| Value::str(c.to_string())).collect();
                let join = |items: Vec<Value>| {
                    Value::str(items.iter().filter_map(Value::as_str).collect::<String>())
                };
                self.sequence_item(&chars, index, span, join)
            }
            Value::Range(r) => match index {
                Value::Slice(s) => {
                    let (start, stop, step) = slice_indices(s, r.len(), span)?;
                    Ok(Value::Range(Range {
                        start: r.start + start * r.step,
                        stop: r.start + stop * r.step,
                        step: r.step * step,
                    }))
                }
                _ => {
                    let at = self.position(index, r.len(), span)?;
                    Ok(Value::Int(r.get(at)))
                }
            },
            Value::Dict(d) => {
                let key = self.sought_key(index, span)?;
                let found = d.borrow().get(&key).cloned();
                match found {
                    Some(v) => Ok(v),
                    None if d.borrow().factory.is_some() => {
                        let factory = d.borrow().factory.clone().unwrap_or(Value::None);
                        let value = self.call_value(&factory, Args::default(), span)?;
                        d.borrow_mut().insert(key, index.clone(), value.clone());
                        Ok(value)
                    }
                    None => {
                        let text = self.repr(index, span)?;
                        let args = vec![index.clone()];
                        self.raise_with("KeyError", args, span, format!("no key {text} in this dict"))
                    }
                }
            }
            Value::Instance(i) => {
                if let Some(f) = self.class_attribute(&i.class, "__getitem__") {
                    return self.call_method(&f, value, Args::positional([index.clone()], span), span);
                }
                if i.class.is_named_tuple() {
                    let items: Vec<Value> = i.fields.borrow().iter().map(|f| f.1.clone()).collect();
                    return self.sequence_item(&items, index, span, Value::tuple);
                }
                error(span, format!("{} cannot be subscripted", value.type_name()))
            }
            // `Enum["NAME"]`; `list[int]` is an annotation.
            Value::Class(c) if matches!(&*c.kind.borrow(), ClassKind::Enum { .. }) => match index.as_str() {
                Some(name) => self.get_attribute(value, name, span),
                None => error(span, "enum members are looked up by name"),
            },
            Value::Class(c) => match self.class_attribute(c, "__class_getitem__") {
                Some(f) => {
                    let f = super::construct::static_function(&f);
                    self.call_method(&f, value, Args::positional([index.clone()], span), span)
                }
                None => Ok(value.clone()),
            },
            Value::Namespace(p) if p.starts_with("typing") => Ok(Value::None),
            Value::Namespace(p) if &**p == "T.ptx" => lang::ptx_subscript(index, span),
            Value::DType(_) => lang::subscript(self, value, index, span),
            Value::Annotation(a) if matches!(**a, Annotation::Let(_)) => {
                let ty = self.annotation_type(index, span)?;
                Ok(Value::Annotation(Rc::new(Annotation::Let(Some(ty)))))
            }
            Value::Object(o) => o.clone().subscript(self, index, span),
            Value::Unavailable(why) => self.unavailable(why, span),
            Value::Expr(_)
            | Value::Buffer(_)
            | Value::Region(_)
            | Value::Builtin(_)
            | Value::Namespace(_) => {
                lang::subscript(self, value, index, span).map(|v| super::expr::at(v, span))
            }
            other => self.raise(
                "TypeError",
                span,
                format!("{} cannot be subscripted", other.type_name()),
            ),
        }
    }

    /// The type that `T.let[…]` or a parameter annotation names.
    pub(super) fn annotation_type(&mut self, value: &Value, span: Span) -> Result<Type> {
        match value {
            Value::DType(d) => Ok(Type::Prim(*d)),
            Value::Expr(e) => match e.as_var() {
                Some(v) => Ok(v.ty().clone()),
                None => error(span, "a type is a dtype such as T.int32 or T.handle(\"float32\")"),
            },
            Value::Str(s) => match s.parse::<crate::ir::DType>() {
                Ok(d) => Ok(Type::Prim(d)),
                Err(e) => error(span, e.to_string()),
            },
            Value::Builtin(_) => {
                let v = self.call_value(value, Args::default(), span)?;
                match &v {
                    Value::Expr(_) => self.annotation_type(&v, span),
                    _ => error(span, "a type is a dtype such as T.int32 or T.handle(\"float32\")"),
                }
            }
            Value::Unavailable(why) => self.unavailable(why, span),
            other => error(
                span,
                format!(
                    "a type is a dtype such as T.int32 or T.handle(\"float32\"), found {}",
                    other.type_name()
                ),
            ),
        }
    }

    fn sequence_item(
        &mut self,
        items: &[Value],
        index: &Value,
        span: Span,
        make: impl Fn(Vec<Value>) -> Value,
    ) -> Result<Value> {
        match index {
            Value::Slice(s) => {
                let (start, stop, step) = slice_indices(s, items.len(), span)?;
                let range = Range { start, stop, step };
                let picked = (0..range.len())
                    .filter_map(|i| items.get(range.get(i) as usize).cloned())
                    .collect();
                Ok(make(picked))
            }
            _ => {
                let at = self.position(index, items.len(), span)?;
                Ok(items[at].clone())
            }
        }
    }

    /// An index within `len`; negative ones count from the end.
    pub(super) fn position(&mut self, index: &Value, len: usize, span: Span) -> Result<usize> {
        let number = self.plain_number(index);
        let number = self.by_method(&number, &["__index__"], span)?.unwrap_or(number);
        let Some(i) = number.as_int() else {
            if let Value::Expr(_) = index {
                return Err(Box::new(
                    crate::diagnostic::Diagnostic::new(span, "this index is only known when the kernel runs")
                        .help("tuples and lists are compile-time values; use a buffer"),
                ));
            }
            return self.raise(
                "TypeError",
                span,
                format!("an index must be int, found {}", index.type_name()),
            );
        };
        let at = if i < 0 { i + len as i128 } else { i };
        if at < 0 || at >= len as i128 {
            return self.raise(
                "IndexError",
                span,
                format!("index {i} is out of range for length {len}"),
            );
        }
        Ok(at as usize)
    }

    /// `target[index] = value`.
    pub(super) fn set_item(&mut self, target: &Value, index: &Value, value: Value, span: Span) -> Result<()> {
        match target {
            Value::List(items) => {
                if let Value::Slice(s) = index {
                    let new = self.iterate(&value, span)?;
                    let len = items.borrow().len();
                    let (start, stop, step) = slice_indices(s, len, span)?;
                    if step == 1 {
                        let (start, stop) = (start as usize, stop.max(start) as usize);
                        items.borrow_mut().splice(start..stop, new);
                        let len = items.borrow().len();
                        return self.check_items(len, span);
                    }
                    let range = Range { start, stop, step };
                    if range.len() != new.len() {
                        return self.raise(
                            "ValueError",
                            span,
                            format!("{} values for a slice of {}", new.len(), range.len()),
                        );
                    }
                    for (i, v) in new.into_iter().enumerate() {
                        items.borrow_mut()[range.get(i) as usize] = v;
                    }
                    return Ok(());
                }
                let len = items.borrow().len();
                let at = self.position(index, len, span)?;
                items.borrow_mut()[at] = value;
                Ok(())
            }
            Value::Dict(d) => {
                let key = self.key_of(index, span)?;
                d.borrow_mut().insert(key, index.clone(), value);
                let len = d.borrow().len();
                if len > super::limits::ITEMS {
                    return self.limit(span, "a dict grew too large");
                }
                Ok(())
            }
            Value::Instance(i) => match self.class_attribute(&i.class, "__setitem__") {
                Some(f) => {
                    self.call_method(&f, target, Args::positional([index.clone(), value], span), span)?;
                    Ok(())
                }
                None => error(
                    span,
                    format!("{} cannot be assigned to by index", target.type_name()),
                ),
            },
            Value::Expr(_) | Value::Buffer(_) | Value::Region(_) => {
                if !self.is_building() {
                    return error(span, "a buffer can only be written in a kernel");
                }
                lang::store(self, target, index, &value, span)
            }
            Value::Unavailable(why) => self.unavailable(why, span),
            Value::Object(object) => object.clone().set_item(self, index, value, span),
            other => self.raise(
                "TypeError",
                span,
                format!("{} cannot be assigned to by index", other.type_name()),
            ),
        }
    }

    /// `del target[index]`.
    pub(super) fn delete_item(&mut self, target: &Value, index: &Value, span: Span) -> Result<()> {
        match target {
            Value::List(items) => {
                let len = items.borrow().len();
                if let Value::Slice(s) = index {
                    let (start, stop, step) = slice_indices(s, len, span)?;
                    let range = Range { start, stop, step };
                    let gone: Vec<usize> = (0..range.len()).map(|i| range.get(i) as usize).collect();
                    let mut at = 0;
                    items.borrow_mut().retain(|_| {
                        at += 1;
                        !gone.contains(&(at - 1))
                    });
                    return Ok(());
                }
                let at = self.position(index, len, span)?;
                items.borrow_mut().remove(at);
                Ok(())
            }
            Value::Dict(d) => {
                let key = self.key_of(index, span)?;
                if d.borrow_mut().remove(&key).is_none() {
                    let text = self.repr(index, span)?;
                    return self.raise_with(
                        "KeyError",
                        vec![index.clone()],
                        span,
                        format!("no key {text} in this dict"),
                    );
                }
                Ok(())
            }
            Value::Instance(i) if self.class_attribute(&i.class, "__delitem__").is_some() => {
                let f = self
                    .class_attribute(&i.class, "__delitem__")
                    .unwrap_or(Value::None);
                self.call_method(&f, target, Args::positional([index.clone()], span), span)?;
                Ok(())
            }
            other => self.raise(
                "TypeError",
                span,
                format!("items of {} cannot be deleted", other.type_name()),
            ),
        }
    }

    /// All items of a value.
    ///
    /// # Errors
    /// For values without items, and for endless ones.
    pub fn iterate(&mut self, value: &Value, span: Span) -> Result<Vec<Value>> {
        let items: Vec<Value> = match value {
            Value::Tuple(items) => items.to_vec(),
            Value::List(items) => items.borrow().clone(),
            Value::Str(s) => s.chars().map(|c| Value::str(c.to_string())).collect(),
            Value::Dict(d) => d.borrow().iter().map(|(k, _)| k.clone()).collect(),
            Value::Set(s) => s.borrow().iter().cloned().collect(),
            Value::Range(r) => {
                self.check_items(r.len(), span)?;
                (0..r.len()).map(|i| Value::Int(r.get(i))).collect()
            }
            Value::Iterator(it) => self.drain(it, span)?,
            Value::Class(c) if matches!(&*c.kind.borrow(), ClassKind::Enum { .. }) => self.enum_members(c),
            Value::Instance(i) => {
                let by_method = ["__iter__", "__getitem__"];
                if by_method
                    .iter()
                    .any(|n| self.class_attribute(&i.class, n).is_some())
                {
                    let it = self.iterator(value, span)?;
                    return self.drain(&it, span);
                }
                if let Some((class, bits)) = super::enums::bits(value) {
                    return Ok(self.flag_parts(class, bits));
                }
                if let Some(text @ Value::Str(_)) = value.member_number() {
                    return self.iterate(&text, span);
                }
                if i.class.is_named_tuple() {
                    return Ok(i.fields.borrow().iter().map(|f| f.1.clone()).collect());
                }
                return self.raise("TypeError", span, format!("{} has no items", value.type_name()));
            }
            Value::Unavailable(why) => return self.unavailable(why, span),
            Value::Frame(_) => {
                return Err(Box::new(
                    crate::diagnostic::Diagnostic::new(
                        span,
                        "a loop of the kernel cannot run in a plain Python function",
                    )
                    .help("make the function a @T.inline, or loop over range(...) at compile time"),
                ));
            }
            other => return self.raise("TypeError", span, format!("{} has no items", other.type_name())),
        };
        self.check_items(items.len(), span)?;
        Ok(items)
    }
}
