//! Tables of `str.maketrans`: how they are made, and what `translate` does with them.

use std::rc::Rc;

use super::methods::plain;
use super::value::Value;
use super::{Args, Interpreter};
use crate::diagnostic::Result;
use crate::source::Span;

/// `str.maketrans`.
pub(super) fn make_table(interp: &mut Interpreter, args: Args, span: Span) -> Result<Value> {
    let list = plain(interp, "str.maketrans", args, 1..=3, span)?;
    let mut table = super::Dict::default();
    let mut set = |from: char, to: Value| {
        let code = Value::Int(from as i128);
        if let Ok(key) = super::key(&code) {
            table.insert(key, code, to);
        }
    };
    match &list[..] {
        [Value::Dict(d)] => {
            for (k, v) in d.borrow().iter() {
                match (k, k.as_int().and_then(|n| char::from_u32(u32::try_from(n).ok()?))) {
                    (_, Some(c)) => set(c, v.clone()),
                    (Value::Str(s), _) if s.chars().count() == 1 => {
                        s.chars().for_each(|c| set(c, v.clone()));
                    }
                    _ => {
                        return interp.raise(
                            "ValueError",
                            span,
                            "keys of str.maketrans() are single characters",
                        );
                    }
                }
            }
        }
        [Value::Str(from), Value::Str(to), rest @ ..] => {
            if from.chars().count() != to.chars().count() {
                return interp.raise(
                    "ValueError",
                    span,
                    "str.maketrans() needs two texts of one length",
                );
            }
            for (from, to) in from.chars().zip(to.chars()) {
                set(from, Value::Int(to as i128));
            }
            if let Some(Value::Str(gone)) = rest.first() {
                gone.chars().for_each(|c| set(c, Value::None));
            }
        }
        _ => {
            return interp.raise(
                "TypeError",
                span,
                "str.maketrans() needs a dict, or two or three texts",
            );
        }
    }
    Ok(Value::Dict(Rc::new(std::cell::RefCell::new(table))))
}

/// `text.translate(table)`.
pub(super) fn translate(interp: &mut Interpreter, s: &str, table: &Value, span: Span) -> Result<Value> {
    let Value::Dict(table) = table else {
        return interp.raise("TypeError", span, "translate() needs a table of str.maketrans()");
    };
    let mut out = String::new();
    for c in s.chars() {
        let key = interp.key_of(&Value::Int(c as i128), span)?;
        let found = table.borrow().get(&key).cloned();
        match found {
            None => out.push(c),
            Some(Value::None) => {}
            Some(Value::Str(text)) => out.push_str(&text),
            Some(other) => match other
                .as_int()
                .and_then(|n| char::from_u32(u32::try_from(n).ok()?))
            {
                Some(c) => out.push(c),
                None => return interp.raise("TypeError", span, "a table of translate() holds characters"),
            },
        }
        if out.len() > super::limits::ITEMS {
            return interp.limit(span, "a text grew too long");
        }
    }
    Ok(Value::str(out))
}
