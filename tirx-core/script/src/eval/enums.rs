//! Enums: their members, those that are numbers, texts or bits, and combinations of bits.

use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;

use tirx_python::Operator;

use super::value::{Class, ClassKind, Instance, Object, Value};
use super::{Args, Interpreter};
use crate::diagnostic::Result;
use crate::source::Span;

/// Whether a class is a `Flag` or an `IntFlag`.
pub(super) fn is_flag(class: &Class) -> bool {
    class
        .mro
        .iter()
        .any(|base| matches!(&*base.name, "Flag" | "IntFlag") && !base.span.is_some())
}

/// The bits of a member, or of a combination.
pub(super) fn bits(value: &Value) -> Option<(&Rc<Class>, i128)> {
    match value {
        Value::Instance(i) if is_flag(&i.class) => Some((&i.class, i.get("value")?.as_int()?)),
        _ => None,
    }
}

/// The name of a member.
fn member_name(value: &Value) -> Option<String> {
    match value {
        Value::Instance(i) => i.get("name")?.as_str().map(String::from),
        _ => None,
    }
}

/// Whether members behave as their values (`IntEnum`, `StrEnum`, `class E(int, Enum)`).
fn is_number(class: &Class) -> bool {
    matches!(&*class.kind.borrow(), ClassKind::Enum { integer: true })
}

/// Whether members print as their values do.
fn prints_as_value(class: &Class) -> bool {
    class
        .mro
        .iter()
        .any(|c| matches!(&*c.name, "IntEnum" | "StrEnum" | "IntFlag") && !c.span.is_some())
}

impl Interpreter {
    /// Python's `str` of a member.
    pub(super) fn enum_text(&mut self, member: &Instance, span: Span) -> Result<String> {
        let value = member.get("value").unwrap_or(Value::None);
        if prints_as_value(&member.class) {
            return self.display(&value, span);
        }
        Ok(match member.get("name") {
            Some(Value::Str(name)) => format!("{}.{name}", member.class.name),
            _ => format!("{}({})", member.class.name, self.repr(&value, span)?),
        })
    }

    /// The member of these bits, or the combination.
    fn flag_of(&self, class: &Rc<Class>, bits: i128) -> Value {
        let known = self.enum_members(class);
        if let Some(member) = known
            .iter()
            .find(|m| self::bits(m).is_some_and(|(_, b)| b == bits))
        {
            return member.clone();
        }
        // There is one object per combination, stored under a name that no text can contain.
        let hidden: Rc<str> = format!("|{bits}").into();
        if let Some(made) = class.dict.borrow().get(&hidden) {
            return made.clone();
        }
        let parts = self.flag_parts(class, bits);
        let names: Vec<String> = parts.iter().filter_map(member_name).collect();
        let name = match names.is_empty() {
            true => Value::None,
            false => Value::str(names.join("|")),
        };
        let made = Value::Instance(Rc::new(Instance {
            class: class.clone(),
            fields: RefCell::new(vec![("name".into(), name), ("value".into(), Value::Int(bits))]),
        }));
        class.dict.borrow_mut().insert(hidden, made.clone());
        made
    }

    /// The one-bit members in these bits.
    pub(super) fn flag_parts(&self, class: &Rc<Class>, bits: i128) -> Vec<Value> {
        let mut parts = self.enum_members(class);
        parts.retain(|m| self::bits(m).is_some_and(|(_, b)| b.count_ones() == 1 && b & bits == b));
        parts
    }

    /// `Class(value)`: the member of a value, or the combination of bits.
    pub(super) fn enum_member(&mut self, class: &Rc<Class>, value: &Value, span: Span) -> Result<Value> {
        let members = self.enum_members(class);
        for member in &members {
            if let Value::Instance(i) = member {
                let same = matches!(value, Value::Instance(j) if Rc::ptr_eq(i, j));
                if same || matches!(i.get("value"), Some(v) if self.equals(&v, value, span)?) {
                    return Ok(member.clone());
                }
            }
        }
        if let (true, Some(wanted)) = (is_flag(class), value.as_int().or(bits(value).map(|b| b.1))) {
            let all = members.iter().filter_map(bits).fold(0, |all, (_, b)| all | b);
            let number = is_number(class);
            if wanted >= 0 && (number || wanted & !all == 0) {
                return Ok(self.flag_of(class, wanted));
            }
        }
        if let Some(f) = self.class_attribute(class, "_missing_") {
            let f = super::construct::static_function(&f);
            let class = Value::Class(class.clone());
            let found = self.call_method(&f, &class, Args::positional([value.clone()], span), span)?;
            if !matches!(found, Value::None) {
                return Ok(found);
            }
        }
        let text = self.repr(value, span)?;
        self.raise(
            "ValueError",
            span,
            format!("{text} is not a valid {}", class.name),
        )
    }

    /// `a | b`, `a & b`, `a ^ b` of one class.
    pub(super) fn flag_binary(&self, op: Operator, a: &Value, b: &Value) -> Option<Value> {
        let ((class, a), (other, b)) = (bits(a)?, bits(b)?);
        if !Rc::ptr_eq(class, other) {
            return None;
        }
        let bits = match op {
            Operator::BitOr => a | b,
            Operator::BitAnd => a & b,
            Operator::BitXor => a ^ b,
            _ => return None,
        };
        Some(self.flag_of(class, bits))
    }

    /// `~a`: the bits of all other members.
    pub(super) fn flag_invert(&self, a: &Value) -> Option<Value> {
        let (class, own) = bits(a)?;
        let members = self.enum_members(class);
        let all = members.iter().filter_map(bits).fold(0, |all, (_, b)| all | b);
        Some(self.flag_of(class, all & !own))
    }

    /// Turns the names of an enum's body into members.
    pub(super) fn make_enum_members(&mut self, class: &Rc<Class>, kind: &ClassKind) -> Result<()> {
        let order = class.order.borrow().clone();
        let mut last = 0i128;
        let mut members: Vec<(Rc<str>, Value)> = Vec::new();
        *class.kind.borrow_mut() = kind.clone();
        for name in order {
            let value = class.dict.borrow().get(&name).cloned();
            let Some(value) = value else { continue };
            if name.starts_with('_')
                || matches!(value, Value::Function(_) | Value::Object(_) | Value::Class(_))
            {
                let is_auto = matches!(&value, Value::Object(o) if o.as_any().is::<Auto>());
                if !is_auto {
                    continue;
                }
            }
            let value = match &value {
                // The next bit.
                Value::Object(_) if is_flag(class) => {
                    Value::Int(1 << (128 - last.max(0).leading_zeros()).min(120))
                }
                Value::Object(_) if class.mro.iter().any(|c| &*c.name == "StrEnum") => {
                    Value::str(name.to_lowercase())
                }
                Value::Object(_) => Value::Int(last + 1),
                other => other.clone(),
            };
            if let Some(v) = value.as_int() {
                last = v;
            }
            let mut alias = None;
            for (_, m) in &members {
                if let Value::Instance(i) = m
                    && let Some(v) = i.get("value")
                    && self.equals(&v, &value, class.span)?
                {
                    alias = Some(m.clone());
                }
            }
            let member = match alias {
                Some(member) => member,
                None => {
                    let member = Value::Instance(Rc::new(Instance {
                        class: class.clone(),
                        fields: RefCell::new(vec![
                            ("name".into(), Value::Str(name.clone())),
                            ("value".into(), value.clone()),
                        ]),
                    }));
                    // `A = (1, 2)` with `def __init__(self, x, y)`.
                    if let Some(init) = self.class_attribute(class, "__init__") {
                        let items = match &value {
                            Value::Tuple(items) => items.to_vec(),
                            _ => vec![value],
                        };
                        self.call_method(&init, &member, Args::positional(items, class.span), class.span)?;
                    }
                    member
                }
            };
            members.push((name, member));
        }
        class.dict.borrow_mut().extend(members);
        Ok(())
    }

    /// The members of an enum, in order, without aliases.
    pub(super) fn enum_members(&self, class: &Rc<Class>) -> Vec<Value> {
        let order = class.order.borrow();
        let dict = class.dict.borrow();
        let members = order.iter().filter_map(|n| match dict.get(n) {
            Some(Value::Instance(i))
                if Rc::ptr_eq(&i.class, class) && i.get("name")?.as_str() == Some(&**n) =>
            {
                Some(Value::Instance(i.clone()))
            }
            _ => None,
        });
        members.collect()
    }
}

/// `enum.auto()`.
pub(super) struct Auto;

impl Object for Auto {
    fn type_name(&self) -> &str {
        "auto"
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}
