//! Hashing of meta values, and the dictionary and set built on it (both keep the order of insertion).

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::Value;
use crate::ir::Var;

/// A value as a key. Equal keys are equal values in Python's sense: `1`, `1.0` and `True` are one key.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Key {
    /// `None`, `...`
    Unit(u8),
    /// An integer, bool or integral number.
    Int(i128),
    /// Bits of a non-integral number.
    Float(u64),
    /// A text, or an element type by its name.
    Str(Rc<str>),
    /// A tuple.
    Tuple(Vec<Key>),
    /// A frozen set, in the order of the keys' texts.
    Set(Vec<Key>),
    /// A range.
    Range(i128, i128, i128),
    /// A namespace.
    Namespace(Rc<str>),
    /// A variable of the IR.
    Var(Var),
    /// A buffer or another object by identity.
    Identity(usize),
}

/// The key of a value; `Err` with the name of its type where it has none (lists, dictionaries, …).
pub fn key(value: &Value) -> Result<Key, String> {
    Ok(match value {
        Value::None => Key::Unit(0),
        Value::Ellipsis => Key::Unit(1),
        Value::NotImplemented => Key::Unit(2),
        Value::Bool(b) => Key::Int(*b as i128),
        Value::Int(i) => Key::Int(*i),
        Value::Float(f) if f.fract() == 0.0 && f.abs() < 1e30 => Key::Int(*f as i128),
        Value::Float(f) => Key::Float(f.to_bits()),
        Value::Str(s) => Key::Str(s.clone()),
        Value::Tuple(items) => Key::Tuple(items.iter().map(key).collect::<Result<_, _>>()?),
        // An element type is equal to its name.
        Value::DType(d) => Key::Str(d.to_string().into()),
        Value::Range(r) => Key::Range(r.start, r.stop, r.step),
        Value::Namespace(path) => Key::Namespace(path.clone()),
        Value::Expr(e) => match e.as_var() {
            Some(v) => Key::Var(v.clone()),
            None => return Err(value.type_name()),
        },
        Value::Buffer(b) => Key::Identity(b.id()),
        Value::Function(f) => Key::Identity(Rc::as_ptr(f) as usize),
        Value::Builtin(f) => Key::Identity(Rc::as_ptr(f) as usize),
        Value::Class(c) => Key::Identity(Rc::as_ptr(c) as usize),
        // The order of a frozen set's items does not count.
        Value::Set(s) if s.borrow().0.frozen => {
            let mut keys = s.borrow().iter().map(key).collect::<Result<Vec<_>, _>>()?;
            keys.sort_by_cached_key(|k| format!("{k:?}"));
            Key::Set(keys)
        }
        Value::Instance(i) => match (value.member_number(), value.plain_tuple(), i.class.data()) {
            (Some(number), ..) => key(&number)?,
            (_, tuple @ Value::Tuple(_), _) => key(&tuple)?,
            // Frozen dataclasses are their fields.
            (_, _, Some(data)) if data.frozen && data.eq => {
                let mut keys = vec![Key::Identity(Rc::as_ptr(&i.class) as usize)];
                for v in data.compared(i) {
                    keys.push(key(&v)?);
                }
                Key::Tuple(keys)
            }
            _ => {
                let compares = |c: &super::Class| {
                    let dict = c.dict.borrow();
                    c.span.is_some() && (dict.contains_key("__eq__") || dict.contains_key("__hash__"))
                };
                // Dictionaries do not run Python to compare their keys.
                if compares(&i.class) || i.class.mro.iter().any(|c| compares(c)) {
                    return Err(format!(
                        "{}, with __eq__ or __hash__ of its own,",
                        value.type_name()
                    ));
                }
                Key::Identity(Rc::as_ptr(i) as usize)
            }
        },
        // A dtype of torch is one object; of other host values nobody knows here which are equal.
        Value::Unavailable(why) => match super::modules::host_path(why) {
            Some(path) if super::host_values::torch_dtype(path).is_some() => Key::Namespace(path.into()),
            _ => Key::Identity(Rc::as_ptr(why) as *const u8 as usize),
        },
        Value::Kernel(k) => Key::Identity(Rc::as_ptr(k) as usize),
        Value::Object(o) => Key::Identity(Rc::as_ptr(o) as *const u8 as usize),
        _ => return Err(value.type_name()),
    })
}

/// A dictionary.
#[derive(Clone, Default)]
pub struct Dict {
    index: FxHashMap<Key, usize>,
    entries: Vec<Option<(Value, Value)>>,
    /// Makes the value of a missing key (`defaultdict`).
    pub factory: Option<Value>,
    /// Whether the set that is stored here is a `frozenset`.
    pub frozen: bool,
}

impl Dict {
    /// Number of entries.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// The value of a key.
    pub fn get(&self, key: &Key) -> Option<&Value> {
        let at = *self.index.get(key)?;
        self.entries[at].as_ref().map(|(_, v)| v)
    }

    /// The value of a text key.
    pub fn get_str(&self, name: &str) -> Option<&Value> {
        self.get(&Key::Str(name.into()))
    }

    /// Sets a key; an existing one keeps its place.
    pub fn insert(&mut self, key: Key, name: Value, value: Value) {
        match self.index.get(&key) {
            Some(&at) => {
                if let Some(entry) = &mut self.entries[at] {
                    entry.1 = value;
                }
            }
            None => {
                self.index.insert(key, self.entries.len());
                self.entries.push(Some((name, value)));
            }
        }
    }

    /// Removes a key.
    pub fn remove(&mut self, key: &Key) -> Option<Value> {
        let at = self.index.remove(key)?;
        self.entries[at].take().map(|(_, v)| v)
    }

    /// Removes the last entry.
    pub fn pop_last(&mut self) -> Option<(Value, Value)> {
        while let Some(entry) = self.entries.pop() {
            if let Some((name, value)) = entry {
                if let Ok(k) = key(&name) {
                    self.index.remove(&k);
                }
                return Some((name, value));
            }
        }
        None
    }

    /// Keys and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&Value, &Value)> {
        self.entries.iter().flatten().map(|(k, v)| (k, v))
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        *self = Dict::default();
    }
}

/// A set.
#[derive(Clone, Default)]
pub struct Set(pub Dict);

impl Set {
    /// Adds an item.
    pub fn insert(&mut self, key: Key, value: Value) {
        if self.0.get(&key).is_none() {
            self.0.insert(key, value, Value::None);
        }
    }

    /// Whether an item is in the set.
    pub fn contains(&self, key: &Key) -> bool {
        self.0.get(key).is_some()
    }

    /// Items in order.
    pub fn iter(&self) -> impl Iterator<Item = &Value> {
        self.0.iter().map(|(k, _)| k)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_numbers_are_one_key_and_order_is_kept() {
        let mut d = Dict::default();
        for (k, v) in [
            (Value::Int(1), 10),
            (Value::str("a"), 20),
            (Value::Float(1.0), 30),
            (Value::Bool(true), 40),
        ] {
            d.insert(key(&k).unwrap(), k, Value::Int(v));
        }
        let values: Vec<_> = d.iter().map(|(_, v)| v.as_int().unwrap()).collect();
        assert_eq!(values, [40, 20]);
        d.remove(&Key::Int(1));
        assert_eq!((d.len(), d.get(&Key::Int(1)).is_none()), (1, true));
    }
}
