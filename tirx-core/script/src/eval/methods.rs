//! Methods of Python's builtin types.

use std::cell::RefCell;
use std::rc::Rc;

use tirx_python::Operator;

use super::dict::Set;
use super::ops::set_operation;
use super::value::Value;
use super::{Args, Interpreter, args, class, str_methods};
use crate::diagnostic::Result;
use crate::source::Span;

const LIST: &[&str] = &[
    "append", "extend", "insert", "pop", "remove", "clear", "index", "count", "sort", "reverse", "copy",
];
const TUPLE: &[&str] = &["index", "count"];
const DICT: &[&str] = &[
    "get",
    "keys",
    "values",
    "items",
    "pop",
    "popitem",
    "setdefault",
    "update",
    "clear",
    "copy",
];
const SET: &[&str] = &[
    "add",
    "remove",
    "discard",
    "pop",
    "clear",
    "copy",
    "update",
    "intersection_update",
    "difference_update",
    "symmetric_difference_update",
    "union",
    "intersection",
    "difference",
    "symmetric_difference",
    "issubset",
    "issuperset",
    "isdisjoint",
];
const FROZENSET: &[&str] = &[
    "copy",
    "union",
    "intersection",
    "difference",
    "symmetric_difference",
    "issubset",
    "issuperset",
    "isdisjoint",
];
const INT: &[&str] = &[
    "bit_length",
    "bit_count",
    "is_integer",
    "conjugate",
    "to_bytes",
    "as_integer_ratio",
];
const FLOAT: &[&str] = &["is_integer", "hex", "as_integer_ratio"];

/// Names of a value's methods.
pub(super) fn names(value: &Value) -> Vec<&'static str> {
    match value {
        Value::Str(_) => return str_methods::names().collect(),
        Value::List(_) => LIST,
        Value::Tuple(_) | Value::Range(_) => TUPLE,
        Value::Dict(_) => DICT,
        Value::Set(s) if s.borrow().0.frozen => FROZENSET,
        Value::Set(_) => SET,
        Value::Int(_) | Value::Bool(_) => INT,
        Value::Float(_) => FLOAT,
        _ => &[],
    }
    .to_vec()
}

/// `value.name` as a method.
pub(super) fn attribute(value: &Value, name: &str) -> Option<Value> {
    let found = names(value).into_iter().find(|n| *n == name)?;
    Some(class::method(value.clone(), function(found)))
}

/// `str.upper`, `dict.fromkeys`, ….
pub(super) fn unbound(class: &str, name: &str) -> Option<Value> {
    if (class, name) == ("dict", "fromkeys") {
        return Some(Value::builtin("dict.fromkeys", |interp, args, span| {
            let bound = args.bind(
                "dict.fromkeys",
                &[args::required("iterable"), args::optional("value")],
                span,
            )?;
            let value = bound[1].as_ref().map_or(Value::None, |v| v.0.clone());
            let mut dict = super::Dict::default();
            if let Some((items, at)) = &bound[0] {
                for item in interp.iterate(items, *at)? {
                    let key = interp.key_of(&item, *at)?;
                    dict.insert(key, item, value.clone());
                }
            }
            Ok(Value::Dict(Rc::new(RefCell::new(dict))))
        }));
    }
    match (class, name) {
        ("str", "maketrans") => return Some(Value::builtin("str.maketrans", super::str_tables::make_table)),
        ("int", "from_bytes") => {
            return Some(Value::builtin(
                "int.from_bytes",
                super::number_methods::from_bytes,
            ));
        }
        _ => {}
    }
    let list = match class {
        "str" => return str_methods::names().find(|n| *n == name).map(function),
        "list" => LIST,
        "tuple" => TUPLE,
        "dict" => DICT,
        "set" => SET,
        "frozenset" => FROZENSET,
        "int" => INT,
        "float" => FLOAT,
        _ => return None,
    };
    list.iter().find(|n| **n == name).map(|n| function(n))
}

fn function(name: &'static str) -> Value {
    Value::builtin(name, move |interp, mut args: Args, span| {
        if args.positional.is_empty() {
            return interp.raise(
                "TypeError",
                span,
                format!("{name}() needs its object as first argument"),
            );
        }
        let receiver = args.positional.remove(0).0;
        match &receiver {
            Value::Str(s) => str_methods::str_method(interp, &s.clone(), name, args, span),
            Value::List(items) => list_method(interp, &items.clone(), name, args, span),
            Value::Tuple(_) | Value::Range(_) => {
                let items = interp.iterate(&receiver, span)?;
                sequence_method(interp, &items, name, args, span)
            }
            Value::Dict(d) => dict_method(interp, &d.clone(), name, args, span),
            Value::Set(s) => set_method(interp, &s.clone(), name, args, span),
            _ if name == "to_bytes" => super::number_methods::to_bytes(interp, &receiver, args, span),
            _ => super::number_methods::number_method(interp, &receiver, name, span),
        }
    })
}

/// The arguments by position, keywords refused.
pub(super) fn plain(
    interp: &mut Interpreter,
    name: &str,
    args: Args,
    range: std::ops::RangeInclusive<usize>,
    span: Span,
) -> Result<Vec<Value>> {
    if let Some((key, _, at)) = args.keyword.first() {
        return interp.raise("TypeError", *at, format!("{name}() has no parameter \"{key}\""));
    }
    let n = args.positional.len();
    if !range.contains(&n) {
        let expected = match (range.start(), range.end()) {
            (a, b) if a == b => args::count(*a, "argument"),
            (a, b) => format!("{a} to {}", args::count(*b, "argument")),
        };
        return interp.raise(
            "TypeError",
            span,
            format!("{name}() takes {expected} but {n} were given"),
        );
    }
    Ok(args.positional.into_iter().map(|a| a.0).collect())
}

fn sequence_method(
    interp: &mut Interpreter,
    items: &[Value],
    name: &str,
    args: Args,
    span: Span,
) -> Result<Value> {
    let list = plain(interp, name, args, 1..=1, span)?;
    let mut count = 0;
    for (i, item) in items.iter().enumerate() {
        if interp.equals(item, &list[0], span)? {
            if name == "index" {
                return Ok(Value::Int(i as i128));
            }
            count += 1;
        }
    }
    match name {
        "count" => Ok(Value::Int(count)),
        _ => {
            let text = interp.repr(&list[0], span)?;
            interp.raise("ValueError", span, format!("{text} is not in this sequence"))
        }
    }
}

fn list_method(
    interp: &mut Interpreter,
    items: &Rc<RefCell<Vec<Value>>>,
    name: &str,
    args: Args,
    span: Span,
) -> Result<Value> {
    match name {
        "index" | "count" => {
            let all = items.borrow().clone();
            return sequence_method(interp, &all, name, args, span);
        }
        "sort" => {
            let all = items.borrow().clone();
            let sorted = sort(interp, all, args, span)?;
            *items.borrow_mut() = sorted;
            return Ok(Value::None);
        }
        _ => {}
    }
    let range = match name {
        "append" | "extend" | "remove" => 1..=1,
        "insert" => 2..=2,
        "pop" => 0..=1,
        _ => 0..=0,
    };
    let mut list = plain(interp, name, args, range, span)?;
    match name {
        "append" => {
            let len = items.borrow().len();
            if len >= super::limits::ITEMS {
                return interp.limit(span, "a list grew too large");
            }
            items.borrow_mut().push(list.remove(0));
        }
        "extend" => {
            let more = interp.iterate(&list[0], span)?;
            items.borrow_mut().extend(more);
            let len = items.borrow().len();
            interp.check_items(len, span)?;
        }
        "insert" => {
            let len = items.borrow().len() as i128;
            let at = list[0].as_int().unwrap_or(0);
            let at = (if at < 0 { at + len } else { at }).clamp(0, len) as usize;
            interp.check_items(len as usize, span)?;
            items.borrow_mut().insert(at, list.remove(1));
        }
        "pop" => {
            let len = items.borrow().len();
            if len == 0 {
                return interp.raise("IndexError", span, "pop from an empty list");
            }
            let at = match list.first() {
                Some(i) => interp.position(i, len, span)?,
                None => len - 1,
            };
            return Ok(items.borrow_mut().remove(at));
        }
        "remove" => {
            let all = items.borrow().clone();
            for (i, item) in all.iter().enumerate() {
                if interp.equals(item, &list[0], span)? {
                    items.borrow_mut().remove(i);
                    return Ok(Value::None);
                }
            }
            return interp.raise("ValueError", span, "the item is not in this list");
        }
        "clear" => items.borrow_mut().clear(),
        "reverse" => items.borrow_mut().reverse(),
        _ => return Ok(Value::list(items.borrow().clone())),
    }
    Ok(Value::None)
}

/// Sorts by `key` and `reverse`; stable.
pub(super) fn sort(
    interp: &mut Interpreter,
    items: Vec<Value>,
    mut args: Args,
    span: Span,
) -> Result<Vec<Value>> {
    let key = args
        .take_keyword("key")
        .map(|k| k.0)
        .filter(|k| !matches!(k, Value::None));
    let reverse = match args.take_keyword("reverse") {
        Some((v, at)) => interp.truth(&v, at)?,
        None => false,
    };
    plain(interp, "sort", args, 0..=0, span)?;
    let mut keyed = Vec::with_capacity(items.len());
    for item in items {
        let k = match &key {
            Some(f) => interp.call_value(f, Args::positional([item.clone()], span), span)?,
            None => item.clone(),
        };
        keyed.push((k, item));
    }
    let mut failure = None;
    let mut compare = |a: &(Value, Value), b: &(Value, Value)| {
        if failure.is_some() {
            return std::cmp::Ordering::Equal;
        }
        match interp.order(&a.0, &b.0, span) {
            Ok(Some(o)) => o,
            Ok(None) => {
                let message = format!("cannot order {} and {}", a.0.type_name(), b.0.type_name());
                failure = interp.raise::<()>("TypeError", span, message).err();
                std::cmp::Ordering::Equal
            }
            Err(e) => {
                failure = Some(e);
                std::cmp::Ordering::Equal
            }
        }
    };
    merge_sort(&mut keyed, reverse, &mut compare);
    match failure {
        Some(e) => Err(e),
        None => Ok(keyed.into_iter().map(|k| k.1).collect()),
    }
}

/// A stable sort that tolerates an inconsistent order (the standard one may panic).
fn merge_sort<T: Clone>(
    items: &mut [T],
    reverse: bool,
    compare: &mut dyn FnMut(&T, &T) -> std::cmp::Ordering,
) {
    let n = items.len();
    if n < 2 {
        return;
    }
    let (left, right) = items.split_at_mut(n / 2);
    merge_sort(left, reverse, compare);
    merge_sort(right, reverse, compare);
    let mut out = Vec::with_capacity(n);
    let (mut i, mut j) = (0, 0);
    while i < left.len() && j < right.len() {
        let order = compare(&right[j], &left[i]);
        let take_right = if reverse { order.is_gt() } else { order.is_lt() };
        if take_right {
            out.push(right[j].clone());
            j += 1;
        } else {
            out.push(left[i].clone());
            i += 1;
        }
    }
    out.extend_from_slice(&left[i..]);
    out.extend_from_slice(&right[j..]);
    items.clone_from_slice(&out);
}

fn dict_method(
    interp: &mut Interpreter,
    dict: &Rc<RefCell<super::Dict>>,
    name: &str,
    args: Args,
    span: Span,
) -> Result<Value> {
    if name == "update" {
        for (value, at) in &args.positional {
            interp.update_dict(dict, value, *at)?;
        }
        for (k, v, _) in args.keyword {
            dict.borrow_mut()
                .insert(super::Key::Str(k.clone()), Value::Str(k), v);
        }
        return Ok(Value::None);
    }
    let range = match name {
        "get" | "pop" | "setdefault" => 1..=2,
        _ => 0..=0,
    };
    let list = plain(interp, name, args, range, span)?;
    let key = match list.first() {
        Some(k) => Some(interp.sought_key(k, span)?),
        None => None,
    };
    let default = list.get(1).cloned();
    Ok(match (name, key) {
        ("get", Some(key)) => dict
            .borrow()
            .get(&key)
            .cloned()
            .or(default)
            .unwrap_or(Value::None),
        ("pop", Some(key)) => {
            let removed = dict.borrow_mut().remove(&key);
            match removed.or(default) {
                Some(v) => v,
                None => {
                    let text = interp.repr(&list[0], span)?;
                    let message = format!("no key {text} in this dict");
                    return interp.raise_with("KeyError", vec![list[0].clone()], span, message);
                }
            }
        }
        ("setdefault", Some(key)) => {
            let found = dict.borrow().get(&key).cloned();
            match found {
                Some(v) => v,
                None => {
                    let value = default.unwrap_or(Value::None);
                    dict.borrow_mut().insert(key, list[0].clone(), value.clone());
                    value
                }
            }
        }
        ("popitem", _) => match dict.borrow_mut().pop_last() {
            Some((k, v)) => Value::tuple(vec![k, v]),
            None => return interp.raise("KeyError", span, "popitem from an empty dict"),
        },
        ("keys", _) => Value::list(dict.borrow().iter().map(|(k, _)| k.clone()).collect()),
        ("values", _) => Value::list(dict.borrow().iter().map(|(_, v)| v.clone()).collect()),
        ("items", _) => Value::list(
            dict.borrow()
                .iter()
                .map(|(k, v)| Value::tuple(vec![k.clone(), v.clone()]))
                .collect(),
        ),
        ("clear", _) => {
            dict.borrow_mut().clear();
            Value::None
        }
        _ => Value::Dict(Rc::new(RefCell::new(dict.borrow().clone()))),
    })
}

impl Interpreter {
    /// Adds the entries of a dict, or of pairs.
    pub(super) fn update_dict(
        &mut self,
        dict: &Rc<RefCell<super::Dict>>,
        from: &Value,
        span: Span,
    ) -> Result<()> {
        let pairs: Vec<(Value, Value)> = match from {
            Value::Dict(d) => d.borrow().iter().map(|(k, v)| (k.clone(), v.clone())).collect(),
            Value::Instance(i) if self.class_attribute(&i.class, "keys").is_some() => {
                let keys = self.get_attribute(from, "keys", span)?;
                let keys = self.call_value(&keys, Args::default(), span)?;
                let mut pairs = Vec::new();
                for key in self.iterate(&keys, span)? {
                    let value = self.subscript(from, &key, span)?;
                    pairs.push((key, value));
                }
                pairs
            }
            other => {
                let mut pairs = Vec::new();
                for item in self.iterate(other, span)? {
                    match &self.iterate(&item, span)?[..] {
                        [k, v] => pairs.push((k.clone(), v.clone())),
                        _ => return self.raise("ValueError", span, "a dict is made from pairs"),
                    }
                }
                pairs
            }
        };
        for (k, v) in pairs {
            let key = self.key_of(&k, span)?;
            dict.borrow_mut().insert(key, k, v);
        }
        let len = dict.borrow().len();
        self.check_items(len, span)
    }
}

fn set_method(
    interp: &mut Interpreter,
    set: &Rc<RefCell<Set>>,
    name: &str,
    args: Args,
    span: Span,
) -> Result<Value> {
    // `set().union(*sets)` takes any number.
    let most = match name {
        "update" | "intersection_update" | "difference_update" | "union" | "intersection" | "difference" => {
            usize::MAX
        }
        _ => 1,
    };
    let list = plain(interp, name, args, 0..=most, span)?;
    let mut others = Vec::new();
    if !matches!(name, "add" | "remove" | "discard" | "pop" | "clear" | "copy") {
        for other in &list {
            let items = interp.iterate(other, span)?;
            match interp.make_set(items, span)? {
                Value::Set(s) => others.push(s.borrow().clone()),
                _ => continue,
            }
        }
    }
    let fold = |op: Operator| {
        let mut out = set.borrow().clone();
        for other in &others {
            out = set_operation(op, &out, other).unwrap_or_default();
        }
        out
    };
    let wrap = |s: Set| Value::Set(Rc::new(RefCell::new(s)));
    let first = list.first().cloned().unwrap_or(Value::None);
    Ok(match name {
        "add" => {
            let key = interp.key_of(&first, span)?;
            set.borrow_mut().insert(key, first);
            Value::None
        }
        "remove" | "discard" => {
            let key = interp.key_of(&first, span)?;
            let gone = set.borrow_mut().0.remove(&key).is_none();
            if gone && name == "remove" {
                return interp.raise_with("KeyError", vec![first], span, "the item is not in this set");
            }
            Value::None
        }
        "pop" => match set.borrow_mut().0.pop_last() {
            Some((k, _)) => k,
            None => return interp.raise("KeyError", span, "pop from an empty set"),
        },
        "clear" => {
            set.borrow_mut().0.clear();
            Value::None
        }
        "copy" => wrap(set.borrow().clone()),
        "update" | "intersection_update" | "difference_update" | "symmetric_difference_update" => {
            let all = fold(match name {
                "update" => Operator::BitOr,
                "intersection_update" => Operator::BitAnd,
                "difference_update" => Operator::Sub,
                _ => Operator::BitXor,
            });
            *set.borrow_mut() = all;
            Value::None
        }
        "union" => wrap(fold(Operator::BitOr)),
        "intersection" => wrap(fold(Operator::BitAnd)),
        "difference" => wrap(fold(Operator::Sub)),
        "symmetric_difference" => wrap(fold(Operator::BitXor)),
        "issubset" => Value::Bool(fold(Operator::Sub).0.is_empty()),
        "isdisjoint" => Value::Bool(fold(Operator::BitAnd).0.is_empty()),
        _ => {
            let own = set.borrow();
            let missing = others
                .iter()
                .any(|o| set_operation(Operator::Sub, o, &own).is_some_and(|s| !s.0.is_empty()));
            Value::Bool(!missing)
        }
    })
}
