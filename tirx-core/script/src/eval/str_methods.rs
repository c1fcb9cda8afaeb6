//! Methods of texts: a row each.

use std::rc::Rc;

use super::methods::plain;
use super::str_tables::translate;
use super::value::{Slice, Value};
use super::{Args, Interpreter};
use crate::diagnostic::Result;
use crate::source::Span;

/// A method.
struct Method {
    name: &'static str,
    /// The fewest and the most arguments.
    count: (usize, usize),
    /// The arguments that may be given by name, in order.
    keywords: &'static [&'static str],
    run: fn(&mut Interpreter, &MethodCall) -> Result<Value>,
}

const fn method(
    name: &'static str,
    least: usize,
    most: usize,
    run: fn(&mut Interpreter, &MethodCall) -> Result<Value>,
) -> Method {
    Method {
        name,
        count: (least, most),
        keywords: &[],
        run,
    }
}

const METHODS: &[Method] = &[
    method("upper", 0, 0, |_, c| Ok(Value::str(c.text.to_uppercase()))),
    method("lower", 0, 0, |_, c| Ok(Value::str(c.text.to_lowercase()))),
    method("casefold", 0, 0, |_, c| {
        Ok(Value::str(c.text.to_lowercase().replace('ß', "ss")))
    }),
    method("swapcase", 0, 0, swap_case),
    method("title", 0, 0, title),
    method("capitalize", 0, 0, capitalize),
    method("strip", 0, 1, |interp, c| {
        c.stripped(interp, |s, is| s.trim_matches(is))
    }),
    method("lstrip", 0, 1, |interp, c| {
        c.stripped(interp, |s, is| s.trim_start_matches(is))
    }),
    method("rstrip", 0, 1, |interp, c| {
        c.stripped(interp, |s, is| s.trim_end_matches(is))
    }),
    method("removeprefix", 1, 1, |interp, c| {
        let part = c.needed(interp, 0)?;
        Ok(Value::str(c.text.strip_prefix(&*part).unwrap_or(c.text)))
    }),
    method("removesuffix", 1, 1, |interp, c| {
        let part = c.needed(interp, 0)?;
        Ok(Value::str(c.text.strip_suffix(&*part).unwrap_or(c.text)))
    }),
    Method {
        keywords: SPLIT,
        ..method("split", 0, 2, |interp, c| {
            split(interp, c, |s, sep, n| s.splitn(n, sep).collect())
        })
    },
    Method {
        keywords: SPLIT,
        ..method("rsplit", 0, 2, |interp, c| {
            split(interp, c, |s, sep, n| {
                let mut parts: Vec<&str> = s.rsplitn(n, sep).collect();
                parts.reverse();
                parts
            })
        })
    },
    method("splitlines", 0, 0, |_, c| {
        Ok(Value::list(c.text.lines().map(Value::str).collect()))
    }),
    method("partition", 1, 1, |interp, c| {
        let sep = c.needed(interp, 0)?;
        let parts = c
            .text
            .split_once(&*sep)
            .map_or([c.text, "", ""], |(a, b)| [a, &*sep, b]);
        Ok(Value::tuple(parts.map(Value::str).to_vec()))
    }),
    method("rpartition", 1, 1, |interp, c| {
        let sep = c.needed(interp, 0)?;
        let parts = c
            .text
            .rsplit_once(&*sep)
            .map_or(["", "", c.text], |(a, b)| [a, &*sep, b]);
        Ok(Value::tuple(parts.map(Value::str).to_vec()))
    }),
    method("join", 1, 1, join),
    method("replace", 2, 3, replace),
    method("translate", 1, 1, |interp, c| {
        translate(interp, c.text, &c.arg(0), c.span)
    }),
    Method {
        keywords: &["tabsize"],
        ..method("expandtabs", 0, 1, expand_tabs)
    },
    method("format_map", 1, 1, format_map),
    method("startswith", 1, 3, |interp, c| {
        c.has_end(interp, |part, end| part.starts_with(end))
    }),
    method("endswith", 1, 3, |interp, c| {
        c.has_end(interp, |part, end| part.ends_with(end))
    }),
    method("find", 1, 3, |interp, c| {
        Ok(Value::Int(c.found(interp, |s, part| s.find(part))?.unwrap_or(-1)))
    }),
    method("rfind", 1, 3, |interp, c| {
        Ok(Value::Int(
            c.found(interp, |s, part| s.rfind(part))?.unwrap_or(-1),
        ))
    }),
    method("index", 1, 3, |interp, c| {
        let at = c.found(interp, |s, part| s.find(part))?;
        c.at_index(interp, at)
    }),
    method("rindex", 1, 3, |interp, c| {
        let at = c.found(interp, |s, part| s.rfind(part))?;
        c.at_index(interp, at)
    }),
    method("count", 1, 3, |interp, c| {
        let part = c.needed(interp, 0)?;
        let Some((_, within)) = c.range()? else {
            return Ok(Value::Int(0));
        };
        Ok(Value::Int(match part.is_empty() {
            true => within.chars().count() + 1,
            false => within.matches(&*part).count(),
        } as i128))
    }),
    method("isdigit", 0, 0, |_, c| c.all(|c| c.is_ascii_digit())),
    method("isdecimal", 0, 0, |_, c| c.all(|c| c.is_ascii_digit())),
    method("isnumeric", 0, 0, |_, c| c.all(char::is_numeric)),
    method("isalpha", 0, 0, |_, c| c.all(char::is_alphabetic)),
    method("isalnum", 0, 0, |_, c| c.all(char::is_alphanumeric)),
    method("isspace", 0, 0, |_, c| c.all(char::is_whitespace)),
    method("isascii", 0, 0, |_, c| Ok(Value::Bool(c.text.is_ascii()))),
    method("isupper", 0, 0, |_, c| {
        c.cased(char::is_uppercase, char::is_lowercase)
    }),
    method("islower", 0, 0, |_, c| {
        c.cased(char::is_lowercase, char::is_uppercase)
    }),
    method("istitle", 0, 0, is_title),
    method("isidentifier", 0, 0, |_, c| {
        let mut chars = c.text.chars();
        let first = chars.next().is_some_and(|c| c.is_alphabetic() || c == '_');
        Ok(Value::Bool(
            first && chars.all(|c| c.is_alphanumeric() || c == '_'),
        ))
    }),
    method("zfill", 1, 1, |interp, c| {
        let missing = c.missing(interp)?.1;
        let signed = usize::from(c.text.starts_with(['-', '+']));
        let (sign, digits) = c.text.split_at(signed);
        Ok(Value::str(format!("{sign}{}{digits}", "0".repeat(missing))))
    }),
    method("ljust", 1, 2, |interp, c| {
        let missing = c.missing(interp)?.1;
        Ok(Value::str(format!("{}{}", c.text, c.fill().repeat(missing))))
    }),
    method("rjust", 1, 2, |interp, c| {
        let missing = c.missing(interp)?.1;
        Ok(Value::str(format!("{}{}", c.fill().repeat(missing), c.text)))
    }),
    method("center", 1, 2, |interp, c| {
        let (width, missing) = c.missing(interp)?;
        let left = missing / 2 + (missing & width & 1);
        let (fill, right) = (c.fill(), missing - left);
        Ok(Value::str(format!(
            "{}{}{}",
            fill.repeat(left),
            c.text,
            fill.repeat(right)
        )))
    }),
];

const SPLIT: &[&str] = &["sep", "maxsplit"];

/// Methods that are not in the table: `format` takes any arguments, `encode` is refused.
const OTHERS: [&str; 2] = ["format", "encode"];

/// The names of all methods.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    METHODS.iter().map(|method| method.name).chain(OTHERS)
}

/// `text.name(args)`.
pub(super) fn str_method(
    interp: &mut Interpreter,
    text: &str,
    name: &str,
    mut args: Args,
    span: Span,
) -> Result<Value> {
    if name == "format" {
        return interp.brace_format(text, &args, span).map(Value::str);
    }
    let Some(method) = METHODS.iter().find(|method| method.name == name) else {
        let message = format!("str.{name} is not supported in kernel files");
        return interp.raise("TypeError", span, message);
    };
    let named: Vec<Option<Value>> = method
        .keywords
        .iter()
        .map(|name| args.take_keyword(name).map(|given| given.0))
        .collect();
    let mut list = plain(interp, name, args, method.count.0..=method.count.1, span)?;
    for (at, value) in named.into_iter().enumerate() {
        if let Some(value) = value {
            list.resize(list.len().max(at + 1), Value::None);
            list[at] = value;
        }
    }
    let call = MethodCall {
        text,
        name: method.name,
        list,
        span,
    };
    (method.run)(interp, &call)
}

/// A call of a method.
struct MethodCall<'a> {
    /// The text whose method it is.
    text: &'a str,
    name: &'static str,
    list: Vec<Value>,
    span: Span,
}

impl MethodCall<'_> {
    fn arg(&self, at: usize) -> Value {
        self.list.get(at).cloned().unwrap_or(Value::None)
    }

    /// An argument that must be a text.
    fn needed(&self, interp: &mut Interpreter, at: usize) -> Result<Rc<str>> {
        text(interp, self.name, &self.arg(at), self.span)
    }

    /// The part that the second and third argument select, with the number of characters before it; `None` where it begins behind
    /// the end.
    fn range(&self) -> Result<Option<(i128, &str)>> {
        if self.list.len() < 2 {
            return Ok(Some((0, self.text)));
        }
        let chars = self.text.chars().count();
        let part = Slice {
            start: self.arg(1),
            stop: self.arg(2),
            step: Value::None,
        };
        let (start, stop, _) = super::ops::slice_indices(&part, chars, self.span)?;
        if part.start.as_int().is_some_and(|start| start > chars as i128) {
            return Ok(None);
        }
        let byte = |at: i128| {
            let mut places = self.text.char_indices();
            places.nth(at as usize).map_or(self.text.len(), |c| c.0)
        };
        Ok(Some((start, &self.text[byte(start)..byte(stop.max(start))])))
    }

    /// Where a part is, in characters.
    fn found(&self, interp: &mut Interpreter, find: fn(&str, &str) -> Option<usize>) -> Result<Option<i128>> {
        let part = self.needed(interp, 0)?;
        let Some((before, within)) = self.range()? else {
            return Ok(None);
        };
        let at = find(within, &part);
        Ok(at.map(|at| before + within[..at].chars().count() as i128))
    }

    fn at_index(&self, interp: &mut Interpreter, at: Option<i128>) -> Result<Value> {
        match at {
            Some(at) => Ok(Value::Int(at)),
            None => interp.raise("ValueError", self.span, "substring not found"),
        }
    }

    /// Whether one of the given texts is at an end.
    fn has_end(&self, interp: &mut Interpreter, is: fn(&str, &str) -> bool) -> Result<Value> {
        let options = match self.arg(0) {
            Value::Tuple(items) => items.to_vec(),
            other => vec![other],
        };
        let within = self.range()?.map(|(_, within)| within);
        let mut found = false;
        for option in options {
            let option = text(interp, self.name, &option, self.span)?;
            found |= within.is_some_and(|within| is(within, &option));
        }
        Ok(Value::Bool(found))
    }

    /// The text without blanks, or characters of the argument, at its ends.
    fn stripped(
        &self,
        interp: &mut Interpreter,
        trim: for<'t> fn(&'t str, &dyn Fn(char) -> bool) -> &'t str,
    ) -> Result<Value> {
        let set: Option<Vec<char>> = match self.arg(0) {
            Value::None => None,
            value => Some(text(interp, self.name, &value, self.span)?.chars().collect()),
        };
        let is = |c: char| set.as_ref().map_or(c.is_whitespace(), |set| set.contains(&c));
        Ok(Value::str(trim(self.text, &is)))
    }

    fn all(&self, test: fn(char) -> bool) -> Result<Value> {
        Ok(Value::Bool(!self.text.is_empty() && self.text.chars().all(test)))
    }

    /// Whether letters are of one case.
    fn cased(&self, this: fn(char) -> bool, other: fn(char) -> bool) -> Result<Value> {
        let any = |test: fn(char) -> bool| self.text.chars().any(test);
        Ok(Value::Bool(any(this) && !any(other)))
    }

    /// The width that is asked for, and the characters that are missing to it.
    fn missing(&self, interp: &mut Interpreter) -> Result<(usize, usize)> {
        let width = self.arg(0).as_int().unwrap_or(0).max(0) as usize;
        interp.check_items(width, self.span)?;
        Ok((width, width.saturating_sub(self.text.chars().count())))
    }

    fn fill(&self) -> Rc<str> {
        match self.arg(1) {
            Value::Str(fill) => fill,
            _ => " ".into(),
        }
    }
}

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

fn swap_case(_: &mut Interpreter, call: &MethodCall) -> Result<Value> {
    let swapped = call.text.chars().map(|c| match c.is_uppercase() {
        true => c.to_lowercase().to_string(),
        false => c.to_uppercase().to_string(),
    });
    Ok(Value::str(swapped.collect::<String>()))
}

fn title(_: &mut Interpreter, call: &MethodCall) -> Result<Value> {
    let mut start = true;
    let titled = call.text.chars().map(|c| {
        let out = match start {
            true => c.to_ascii_uppercase(),
            false => c.to_ascii_lowercase(),
        };
        start = !c.is_alphabetic();
        out
    });
    Ok(Value::str(titled.collect::<String>()))
}

fn is_title(_: &mut Interpreter, call: &MethodCall) -> Result<Value> {
    let (mut after, mut any, mut fine) = (false, false, true);
    for c in call.text.chars() {
        fine &= !(c.is_uppercase() && after || c.is_lowercase() && !after);
        any |= c.is_alphabetic();
        after = c.is_alphabetic();
    }
    Ok(Value::Bool(fine && any))
}

fn capitalize(_: &mut Interpreter, call: &MethodCall) -> Result<Value> {
    let mut chars = call.text.chars();
    let first = chars.next().map(|c| c.to_uppercase().to_string());
    let first = first.unwrap_or_default();
    Ok(Value::str(format!("{first}{}", chars.as_str().to_lowercase())))
}

/// Parts between separators; `parts` cuts a text into at most so many.
fn split(
    interp: &mut Interpreter,
    call: &MethodCall,
    parts: for<'t> fn(&'t str, &str, usize) -> Vec<&'t str>,
) -> Result<Value> {
    let limit = call.arg(1).as_int().unwrap_or(-1);
    let most = if limit < 0 { usize::MAX } else { limit as usize };
    let s = call.text;
    let found: Vec<&str> = match call.arg(0) {
        Value::None if most == usize::MAX => s.split_whitespace().collect(),
        Value::None => {
            let mut rest = s.trim_start();
            let mut found = Vec::new();
            while !rest.is_empty() && found.len() < most {
                let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
                found.push(&rest[..end]);
                rest = rest[end..].trim_start();
            }
            found.extend((!rest.is_empty()).then_some(rest));
            found
        }
        Value::Str(sep) if sep.is_empty() => return interp.raise("ValueError", call.span, "empty separator"),
        Value::Str(sep) => parts(s, &sep, most.saturating_add(1)),
        other => {
            let message = format!("a separator must be str, found {}", other.type_name());
            return interp.raise("TypeError", call.span, message);
        }
    };
    interp.check_items(found.len(), call.span)?;
    Ok(Value::list(found.into_iter().map(Value::str).collect()))
}

fn join(interp: &mut Interpreter, call: &MethodCall) -> Result<Value> {
    let mut parts = Vec::new();
    let mut total = 0;
    for item in interp.iterate(&call.arg(0), call.span)? {
        let part = text(interp, "join", &item, call.span)?;
        total += part.len() + call.text.len();
        if total > super::limits::ITEMS {
            return interp.limit(call.span, "a text grew too long");
        }
        parts.push(part.to_string());
    }
    Ok(Value::str(parts.join(call.text)))
}

fn replace(interp: &mut Interpreter, call: &MethodCall) -> Result<Value> {
    let (from, to) = (call.needed(interp, 0)?, call.needed(interp, 1)?);
    let count = call.arg(2).as_int().filter(|n| *n >= 0);
    let count = count.map_or(usize::MAX, |n| n as usize);
    let s = call.text;
    let most = (s.len() + 1).saturating_mul(to.len().max(1));
    let size = s.len() + s.matches(&*from).count().saturating_mul(to.len());
    interp.check_items(most.min(size), call.span)?;
    Ok(Value::str(s.replacen(&*from, &to, count)))
}

fn format_map(interp: &mut Interpreter, call: &MethodCall) -> Result<Value> {
    let Value::Dict(dict) =
        interp.call_type("dict", Args::positional([call.arg(0)], call.span), call.span)?
    else {
        return interp.raise("TypeError", call.span, "format_map() needs a dict");
    };
    let mut args = Args::default();
    for (key, value) in dict.borrow().iter() {
        if let Value::Str(key) = key {
            args.keyword.push((key.clone(), value.clone(), call.span));
        }
    }
    interp.brace_format(call.text, &args, call.span).map(Value::str)
}

/// Tabs as blanks to the next multiple of the argument.
fn expand_tabs(interp: &mut Interpreter, call: &MethodCall) -> Result<Value> {
    let size = call.list.first().map_or(8, |size| size.as_int().unwrap_or(8));
    if size > 1000 {
        return interp.limit(call.span, "tabs of more than 1000 columns");
    }
    let (s, size) = (call.text, size.max(0) as usize);
    let tabs = s.matches('\t').count();
    interp.check_items(s.len().saturating_add(tabs.saturating_mul(size)), call.span)?;
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
