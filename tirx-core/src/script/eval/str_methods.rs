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
    let list = plain(interp, name, args, 0..=3, span)?;
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
        "find" | "rfind" | "index" => {
            let part = need(interp, 0)?;
            let at = if name == "rfind" {
                s.rfind(&*part)
            } else {
                s.find(&*part)
            };
            match at {
                Some(at) => Value::Int(s[..at].chars().count() as i128),
                None if name == "index" => return interp.raise("ValueError", span, "substring not found"),
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
        "isdigit" => all(|c| c.is_ascii_digit()),
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
                "center" => format!(
                    "{}{s}{}",
                    fill.repeat(missing / 2),
                    fill.repeat(missing - missing / 2)
                ),
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
