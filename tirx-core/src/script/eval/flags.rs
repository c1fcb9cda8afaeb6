//! `enum.Flag`: members that are bits, and combinations of them.

use std::cell::RefCell;
use std::rc::Rc;

use ruff_python_ast::Operator;

use super::Interpreter;
use super::value::{Class, Instance, Value};

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

impl Interpreter {
    /// The member of these bits, or the combination.
    fn flag_of(&self, class: &Rc<Class>, bits: i128) -> Value {
        let known = self.enum_members(class).into_iter();
        let mut same = known.filter(|m| self::bits(m).is_some_and(|(_, b)| b == bits));
        same.next().unwrap_or_else(|| {
            Value::Instance(Rc::new(Instance {
                class: class.clone(),
                fields: RefCell::new(vec![
                    ("name".into(), Value::None),
                    ("value".into(), Value::Int(bits)),
                ]),
            }))
        })
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
}
