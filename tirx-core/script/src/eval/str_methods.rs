//! Methods of texts.

use std::rc::Rc;

use super::methods::plain;
use super::value::Value;
use super::{Args, Interpreter};
use crate::diagnostic::Result;
use crate::source::Span;

fn text(interp: &mut Interpreter, name: &str, value: &Value, span: Span) -> Result<Rc<str>> {
    match interp.plain_number(value) {
        Value::Str(s) => Ok(s),
        other => interp.raise(
            "TypeError",
            span,
            format!("{name}() needs a str, found {}", other.type_name()),
        ),
    }
}

/// `text.name(args)`.
pub(super) fn str_method(
    interp: &mut Interpreter,
    s: &str,
    name: &str,
    mut args: Args,
    span: Span,
) -> Result<Value> {
    if name == "format" {
        return interp.brace_format(s, &args, span).map(Value::str);
    }
    if name == "split" || name == "rsplit" {
        let limit = args.take_keyword("maxsplit").map(|v| v.0);
        let sep = args.take_keyword("sep").map(|v| v.0);
        let mut list = plain(interp, name, args, 0..=2, span)?;
        let sep = sep
            .or_else(|| (!list.is_empty()).then(|| list.remove(0)))
            .unwrap_or(Value::None);
        let limit = limit.or(list.pop()).and_then(|v| v.as_int()).unwrap_or(-1);
        let n = if limit < 0 { usize::MAX } else { limit as usize };
        let parts: Vec<String> = match &sep {
            Value::None if n == usize::MAX => s.split_whitespace().map(String::from).collect(),
            Value::None => {
                let mut rest = s.trim_start();
                let mut parts = Vec::new();
                while !rest.is_empty() && parts.len() < n {
                    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
                    parts.push(rest[..end].to_string());
                    rest = rest[end..].trim_start();
                }
                if !rest.is_empty() {
                    parts.push(rest.to_string());
                }
                parts
            }
            Value::Str(sep) if sep.is_empty() => return interp.raise("ValueError", span, "empty separator"),
            Value::Str(sep) if name == "rsplit" && n != usize::MAX => {
                let mut parts: Vec<String> = s.rsplitn(n + 1, &**sep).map(String::from).collect();
                parts.reverse();
                parts
            }
            Value::Str(sep) => s.splitn(n.saturating_add(1), &**sep).map(String::from).collect(),
            other => {
                return interp.raise(
                    "TypeError",
                    span,
                    format!("a separator must be str, found {}", other.type_name()),
                );
            }
        };
        interp.check_items(parts.len(), span)?;
        return Ok(Value::list(parts.into_iter().map(Value::str).collect()));
    }
    if name == "expandtabs" {
        let given = args.take_keyword("tabsize").map(|v| v.0);
        let list = plain(interp, name, args, 0..=1, span)?;
        let size = given
            .or(list.first().cloned())
            .map_or(8, |v| v.as_int().unwrap_or(8));
        if size > 1000 {
            return interp.limit(span, "tabs of more than 1000 columns");
        }
        return expand_tabs(interp, s, size.max(0) as usize, span);
    }
    let mut list = plain(interp, name, args, 0..=3, span)?;
    // `find(sub, start, end)` and the like look at a part.
    let mut before = 0;
    let mut s = s;
    if matches!(
        name,
        "find" | "rfind" | "index" | "rindex" | "count" | "startswith" | "endswith"
    ) && list.len() > 1
    {
        let chars = s.chars().count();
        let stop = list.get(2).cloned().unwrap_or(Value::None);
        let part = super::value::Slice {
            start: list[1].clone(),
            stop,
            step: Value::None,
        };
        let (start, stop, _) = super::ops::slice_indices(&part, chars, span)?;
        if list[1].as_int().is_some_and(|start| start > chars as i128) {
            return match name {
                "index" | "rindex" => interp.raise("ValueError", span, "substring not found"),
                "find" | "rfind" => Ok(Value::Int(-1)),
                "count" => Ok(Value::Int(0)),
                _ => Ok(Value::Bool(false)),
            };
        }
        let byte = |at: i128| s.char_indices().nth(at as usize).map_or(s.len(), |c| c.0);
        before = start;
        s = &s[byte(start)..byte(stop.max(start))];
        list.truncate(1);
    }
    let arg = |i: usize| list.get(i).cloned().unwrap_or(Value::None);
    let need = |interp: &mut Interpreter, i: usize| {
        let value = arg(i);
        text(interp, name, &value, span)
    };
    let chars = |interp: &mut Interpreter| -> Result<Option<Vec<char>>> {
        match arg(0) {
            Value::None => Ok(None),
            v => Ok(Some(text(interp, name, &v, span)?.chars().collect())),
        }
    };
    let all = |test: fn(char) -> bool| Value::Bool(!s.is_empty() && s.chars().all(test));
    Ok(match name {
        "upper" => Value::str(s.to_uppercase()),
        "lower" => Value::str(s.to_lowercase()),
        "title" => {
            let mut start = true;
            let titled = s.chars().map(|c| {
                let out = if start {
                    c.to_ascii_uppercase()
                } else {
                    c.to_ascii_lowercase()
                };
                start = !c.is_alphabetic();
                out
            });
            Value::str(titled.collect::<String>())
        }
        "swapcase" => Value::str(
            s.chars()
                .map(|c| match c.is_uppercase() {
                    true => c.to_lowercase().to_string(),
                    false => c.to_uppercase().to_string(),
                })
                .collect::<String>(),
        ),
        "casefold" => Value::str(s.to_lowercase().replace('ß', "ss")),
        "translate" => return translate(interp, s, &arg(0), span),
        "format_map" => {
            let mut args = Args::default();
            let Value::Dict(d) = interp.call_type("dict", Args::of([arg(0)], span), span)? else {
                return interp.raise("TypeError", span, "format_map() needs a dict");
            };
            for (k, v) in d.borrow().iter() {
                if let Value::Str(k) = k {
                    args.keyword.push((k.clone(), v.clone(), span));
                }
            }
            Value::str(interp.brace_format(s, &args, span)?)
        }
        "capitalize" => {
            let mut c = s.chars();
            let first = c.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
            Value::str(format!("{first}{}", c.as_str().to_lowercase()))
        }
        "strip" | "lstrip" | "rstrip" => {
            let set = chars(interp)?;
            let is = |c: char| set.as_ref().map_or(c.is_whitespace(), |set| set.contains(&c));
            Value::str(match name {
                "strip" => s.trim_matches(is),
                "lstrip" => s.trim_start_matches(is),
                _ => s.trim_end_matches(is),
            })
        }
        "splitlines" => Value::list(s.lines().map(Value::str).collect()),
        "join" => {
            let mut parts = Vec::new();
            let mut total = 0;
            for item in interp.iterate(&arg(0), span)? {
                let part = text(interp, "join", &item, span)?;
                total += part.len() + s.len();
                if total > super::limits::ITEMS {
                    return interp.limit(span, "a text grew too long");
                }
                parts.push(part.to_string());
            }
            Value::str(parts.join(s))
        }
        "replace" => {
            let (from, to) = (need(interp, 0)?, need(interp, 1)?);
            let count = arg(2)
                .as_int()
                .filter(|n| *n >= 0)
                .map_or(usize::MAX, |n| n as usize);
            let size = (s.len() + 1).saturating_mul(to.len().max(1));
            interp.check_items(
                size.min(s.len() + s.matches(&*from).count().saturating_mul(to.len())),
                span,
            )?;
            Value::str(s.replacen(&*from, &to, count))
        }
        "startswith" | "endswith" => {
            let options = match arg(0) {
                Value::Tuple(items) => items.to_vec(),
                other => vec![other],
            };
            let mut found = false;
            for option in options {
                let t = text(interp, name, &option, span)?;
                found |= if name == "startswith" {
                    s.starts_with(&*t)
                } else {
                    s.ends_with(&*t)
                };
            }
            Value::Bool(found)
        }
        "find" | "rfind" | "index" | "rindex" => {
            let part = need(interp, 0)?;
            let at = if name.starts_with('r') {
                s.rfind(&*part)
            } else {
                s.find(&*part)
            };
            match at {
                Some(at) => Value::Int(before + s[..at].chars().count() as i128),
                None if name.ends_with("index") => {
                    return interp.raise("ValueError", span, "substring not found");
                }
                None => Value::Int(-1),
            }
        }
        "count" => {
            let part = need(interp, 0)?;
            Value::Int(if part.is_empty() {
                s.chars().count() + 1
            } else {
                s.matches(&*part).count()
            } as i128)
        }
        "isdigit" | "isdecimal" => all(|c| c.is_ascii_digit()),
        "isnumeric" => all(char::is_numeric),
        "isascii" => Value::Bool(s.is_ascii()),
        "istitle" => {
            let (mut after, mut any, mut fine) = (false, false, true);
            for c in s.chars() {
                fine &= !(c.is_uppercase() && after || c.is_lowercase() && !after);
                any |= c.is_alphabetic();
                after = c.is_alphabetic();
            }
            Value::Bool(fine && any)
        }
        "isalpha" => all(char::is_alphabetic),
        "isalnum" => all(char::is_alphanumeric),
        "isspace" => all(char::is_whitespace),
        "isupper" => Value::Bool(s.chars().any(char::is_uppercase) && !s.chars().any(char::is_lowercase)),
        "islower" => Value::Bool(s.chars().any(char::is_lowercase) && !s.chars().any(char::is_uppercase)),
        "isidentifier" => {
            let mut c = s.chars();
            let first = c.next().is_some_and(|c| c.is_alphabetic() || c == '_');
            Value::Bool(first && c.all(|c| c.is_alphanumeric() || c == '_'))
        }
        "zfill" | "ljust" | "rjust" | "center" => {
            let width = arg(0).as_int().unwrap_or(0).max(0) as usize;
            interp.check_items(width, span)?;
            let missing = width.saturating_sub(s.chars().count());
            let fill = match (name, arg(1)) {
                ("zfill", _) => "0".to_string(),
                (_, Value::Str(f)) => f.to_string(),
                _ => " ".to_string(),
            };
            Value::str(match name {
                "ljust" => format!("{s}{}", fill.repeat(missing)),
                "center" => {
                    let left = missing / 2 + (missing & width & 1);
                    format!("{}{s}{}", fill.repeat(left), fill.repeat(missing - left))
                }
                "zfill" if s.starts_with(['-', '+']) => {
                    format!("{}{}{}", &s[..1], fill.repeat(missing), &s[1..])
                }
                _ => format!("{}{s}", fill.repeat(missing)),
            })
        }
        "removeprefix" => {
            let part = need(interp, 0)?;
            Value::str(s.strip_prefix(&*part).unwrap_or(s))
        }
        "removesuffix" => {
            let part = need(interp, 0)?;
            Value::str(s.strip_suffix(&*part).unwrap_or(s))
        }
        "partition" | "rpartition" => {
            let sep = need(interp, 0)?;
            let split = if name == "partition" {
                s.split_once(&*sep)
            } else {
                s.rsplit_once(&*sep)
            };
            let parts = match (split, name) {
                (Some((a, b)), _) => [a, &*sep, b],
                (None, "partition") => [s, "", ""],
                (None, _) => ["", "", s],
            };
            Value::tuple(parts.map(Value::str).to_vec())
        }
        _ => {
            return interp.raise(
                "TypeError",
                span,
                format!("str.{name} is not supported in kernel files"),
            );
        }
    })
}

/// Tabs as blanks to the next multiple of `size`.
fn expand_tabs(interp: &mut Interpreter, s: &str, size: usize, span: Span) -> Result<Value> {
    let tabs = s.matches('\t').count();
    interp.check_items(s.len().saturating_add(tabs.saturating_mul(size)), span)?;
    let mut out = String::new();
    let mut column = 0;
    for c in s.chars() {
        match c {
            '\t' if size > 0 => {
                let blanks = size - column % size;
                out.extend(std::iter::repeat_n(' ', blanks));
                column += blanks;
            }
            '\t' => {}
            c => {
                column = if matches!(c, '\n' | '\r') { 0 } else { column + 1 };
                out.push(c);
            }
        }
    }
    Ok(Value::str(out))
}

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

fn translate(interp: &mut Interpreter, s: &str, table: &Value, span: Span) -> Result<Value> {
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
