//! Values for compile-time parameters.

use std::cell::RefCell;
use std::rc::Rc;

use super::{Dict, Key, Value};

/// A value for a `T.constexpr` parameter.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names are Python's")]
pub enum ConstValue {
    None,
    Bool(bool),
    /// The range of int64 and uint64.
    Int(i128),
    Float(f64),
    Str(String),
    List(Vec<ConstValue>),
    /// A dict whose keys are strings, in its order.
    Dict(Vec<(String, ConstValue)>),
}

macro_rules! from {
    ($($ty:ty => |$value:ident| $made:expr;)*) => {$(
        impl From<$ty> for ConstValue {
            fn from($value: $ty) -> ConstValue {
                $made
            }
        }
    )*};
}

from! {
    bool => |value| ConstValue::Bool(value);
    i32 => |value| ConstValue::Int(value.into());
    i64 => |value| ConstValue::Int(value.into());
    u32 => |value| ConstValue::Int(value.into());
    u64 => |value| ConstValue::Int(value.into());
    usize => |value| ConstValue::Int(value as i128);
    f64 => |value| ConstValue::Float(value);
    &str => |value| ConstValue::Str(value.into());
    String => |value| ConstValue::Str(value);
    Vec<ConstValue> => |value| ConstValue::List(value);
}

pub(crate) fn to_value(value: &ConstValue) -> Value {
    match value {
        ConstValue::None => Value::None,
        ConstValue::Bool(v) => Value::Bool(*v),
        ConstValue::Int(v) => Value::Int(*v),
        ConstValue::Float(v) => Value::Float(*v),
        ConstValue::Str(v) => Value::str(v.as_str()),
        ConstValue::List(items) => Value::tuple(items.iter().map(to_value).collect()),
        ConstValue::Dict(items) => {
            let mut dict = Dict::default();
            for (name, item) in items {
                let name: Rc<str> = name.as_str().into();
                dict.insert(Key::Str(name.clone()), Value::Str(name), to_value(item));
            }
            Value::Dict(Rc::new(RefCell::new(dict)))
        }
    }
}

pub(crate) fn from_value(value: &Value) -> Option<ConstValue> {
    Some(match value {
        Value::None => ConstValue::None,
        Value::Bool(v) => ConstValue::Bool(*v),
        Value::Int(v) => ConstValue::Int(*v),
        Value::Float(v) => ConstValue::Float(*v),
        Value::Str(v) => ConstValue::Str(v.to_string()),
        Value::DType(d) => ConstValue::Str(d.to_string()),
        Value::Dict(dict) => {
            let item = |(name, item): (&Value, &Value)| Some((name.as_str()?.to_string(), from_value(item)?));
            ConstValue::Dict(dict.borrow().iter().map(item).collect::<Option<_>>()?)
        }
        other => ConstValue::List(other.as_items()?.iter().map(from_value).collect::<Option<_>>()?),
    })
}
