//! Conversion of values to text: `str`, `repr`, format specifications of f-strings, `%`.

use tirx_python as ast;

use super::value::{ClassKind, Value};
use super::{Args, Interpreter};
use crate::diagnostic::{Result, error};
use crate::source::Span;

impl Interpreter {
    /// Python's `str(value)`.
    pub fn display(&mut self, value: &Value, span: Span) -> Result<String> {
        match value {
            Value::Str(s) => Ok(s.to_string()),
            Value::Instance(i) => {
                if let Some(f) = self.class_attribute(&i.class, "__str__") {
                    let v = self.call_method(&f, value, Args::default(), span)?;
                    return Ok(v.as_str().unwrap_or_default().to_string());
                }
                if self.is_exception(&i.class) {
                    let items = i.get("args").and_then(|a| a.as_items()).unwrap_or_default();
                    return match &items[..] {
                        [] => Ok(String::new()),
                        [one] if i.class.is_named("KeyError") => self.repr(one, span),
                        [one] => self.display(one, span),
                        _ => self.repr(&Value::tuple(items), span),
                    };
                }
                if let ClassKind::Enum { .. } = &*i.class.kind.borrow() {
                    return self.enum_text(i, span);
                }
                self.repr(value, span)
            }
            _ => self.repr(value, span),
        }
    }

    /// Python's `repr(value)`.
    pub fn repr(&mut self, value: &Value, span: Span) -> Result<String> {
        self.nested(span, |i| i.repr_inner(value, span))
    }

    fn repr_inner(&mut self, value: &Value, span: Span) -> Result<String> {
        self.step(span)?;
        let text = match value {
            Value::None => "None".into(),
            Value::Ellipsis => "Ellipsis".into(),
            Value::NotImplemented => "NotImplemented".into(),
            Value::Bool(b) => if *b { "True" } else { "False" }.into(),
            Value::Int(v) => v.to_string(),
            Value::Float(v) => float_repr(*v),
            Value::Str(s) => quote(s),
            Value::Tuple(items) => match &items[..] {
                [one] => format!("({},)", self.repr(one, span)?),
                _ => format!("({})", self.repr_items(items, span)?),
            },
            Value::List(items) => {
                let items = items.borrow().clone();
                format!("[{}]", self.repr_items(&items, span)?)
            }
            Value::Set(s) => {
                let items: Vec<Value> = s.borrow().iter().cloned().collect();
                let name = match s.borrow().0.frozen {
                    true => "frozenset",
                    false => "",
                };
                match (items.is_empty(), name) {
                    (true, "") => "set()".into(),
                    (true, name) => format!("{name}()"),
                    (false, "") => format!("{{{}}}", self.repr_items(&items, span)?),
                    (false, name) => format!("{name}({{{}}})", self.repr_items(&items, span)?),
                }
            }
            Value::Dict(d) => {
                let d = d.borrow().clone();
                let mut parts = Vec::new();
                for (k, v) in d.iter() {
                    parts.push(format!("{}: {}", self.repr(k, span)?, self.repr(v, span)?));
                }
                format!("{{{}}}", parts.join(", "))
            }
            Value::Slice(s) => {
                let parts = [s.start.clone(), s.stop.clone(), s.step.clone()];
                format!("slice({})", self.repr_items(&parts, span)?)
            }
            Value::Range(r) if r.step == 1 => format!("range({}, {})", r.start, r.stop),
            Value::Range(r) => format!("range({}, {}, {})", r.start, r.stop, r.step),
            Value::Function(f) => format!("<function {}>", f.name),
            Value::Class(c) => format!("<class '{}'>", c.name),
            Value::DType(d) => d.to_string(),
            Value::Buffer(b) => b.name.to_string(),
            Value::Layout(layout) => crate::ir::print_layout(layout),
            Value::Namespace(p) => format!("<module '{p}'>"),
            Value::Expr(e) => match (e.as_int(), e.as_str(), e.as_var()) {
                (Some(v), ..) => v.to_string(),
                (_, Some(s), _) => quote(s),
                (_, _, Some(v)) => v.name().to_string(),
                _ => crate::ir::print_expr(e),
            },
            Value::Instance(i) => {
                if let Some(f) = self.class_attribute(&i.class, "__repr__") {
                    let v = self.call_method(&f, value, Args::default(), span)?;
                    return Ok(v.as_str().unwrap_or_default().to_string());
                }
                self.repr_of_object(value, span)?
            }
            other => format!("<{}>", other.type_name()),
        };
        if text.len() > super::limits::ITEMS {
            return self.limit(span, "a text grew too long");
        }
        Ok(text)
    }

    /// The `repr` of an object whose class does not define one.
    pub(super) fn repr_of_object(&mut self, value: &Value, span: Span) -> Result<String> {
        let Value::Instance(i) = value else {
            return self.repr(value, span);
        };
        if let ClassKind::Enum { .. } = &*i.class.kind.borrow() {
            let number = i.get("value").unwrap_or(Value::None);
            let text = self.repr(&number, span)?;
            return Ok(match i.get("name") {
                Some(Value::Str(name)) => format!("<{}.{name}: {text}>", i.class.name),
                _ => format!("<{}: {text}>", i.class.name),
            });
        }
        if let Some(data) = i.class.data().filter(|d| d.repr) {
            let mut parts = Vec::new();
            for field in data.fields.iter().filter(|f| f.repr) {
                if let Some(v) = i.get(&field.name) {
                    parts.push(format!("{}={}", field.name, self.repr(&v, span)?));
                }
            }
            return Ok(format!("{}({})", i.class.name, parts.join(", ")));
        }
        if self.is_exception(&i.class) {
            let items = i.get("args").and_then(|a| a.as_items()).unwrap_or_default();
            return Ok(format!("{}({})", i.class.name, self.repr_items(&items, span)?));
        }
        Ok(format!("<{} object>", i.class.name))
    }

    fn repr_items(&mut self, items: &[Value], span: Span) -> Result<String> {
        let mut parts = Vec::with_capacity(items.len());
        let mut total = 0;
        for item in items {
            let text = self.repr(item, span)?;
            total += text.len() + 2;
            if total > super::limits::ITEMS {
                return self.limit(span, "a text grew too long");
            }
            parts.push(text);
        }
        Ok(parts.join(", "))
    }

    pub(super) fn eval_fstring(&mut self, e: &ast::ExprFString) -> Result<Value> {
        let mut out = String::new();
        for part in e.value.iter() {
            match part {
                ast::FStringPart::Literal(l) => out.push_str(&l.value),
                ast::FStringPart::FString(f) => self.eval_elements(f.elements.iter(), &mut out)?,
            }
            let span = self.span(e);
            self.check_items(out.len(), span)?;
        }
        Ok(Value::str(out))
    }

    fn eval_elements<'a>(
        &mut self,
        elements: impl Iterator<Item = &'a ast::InterpolatedStringElement>,
        out: &mut String,
    ) -> Result<()> {
        for element in elements {
            match element {
                ast::InterpolatedStringElement::Literal(l) => out.push_str(&l.value),
                ast::InterpolatedStringElement::Interpolation(i) => {
                    let span = self.span(&*i.expression);
                    let value = self.eval(&i.expression)?;
                    if let Some(debug) = &i.debug_text {
                        out.push_str(debug.leading());
                        out.push_str(&self.text_of(tirx_python::Ranged::range(&*i.expression)));
                        out.push_str(debug.trailing());
                    }
                    let debug_repr = i.debug_text.is_some() && i.format_spec.is_none();
                    let value = match i.conversion {
                        ast::ConversionFlag::Repr | ast::ConversionFlag::Ascii => {
                            Value::str(self.repr(&value, span)?)
                        }
                        ast::ConversionFlag::Str => Value::str(self.display(&value, span)?),
                        ast::ConversionFlag::None if debug_repr => Value::str(self.repr(&value, span)?),
                        ast::ConversionFlag::None => value,
                    };
                    let mut spec = String::new();
                    if let Some(s) = &i.format_spec {
                        self.eval_elements(s.elements.iter(), &mut spec)?;
                    }
                    out.push_str(&self.format(&value, &spec, span)?);
                }
            }
        }
        Ok(())
    }

    /// Python's `format(value, spec)`.
    pub(super) fn format(&mut self, value: &Value, spec: &str, span: Span) -> Result<String> {
        if let Value::Instance(i) = value
            && let Some(f) = self.class_attribute(&i.class, "__format__")
        {
            let v = self.call_method(&f, value, Args::positional([Value::str(spec)], span), span)?;
            return Ok(v.as_str().unwrap_or_default().to_string());
        }
        if spec.is_empty() {
            return self.display(value, span);
        }
        let value = self.plain_number(value);
        let Some(spec) = Spec::parse(spec) else {
            return self.raise("ValueError", span, format!("unsupported format \"{spec}\""));
        };
        if spec.width > 10_000 || spec.precision.is_some_and(|p| p > 1000) {
            return self.raise("ValueError", span, "this format is too wide");
        }
        let (negative, body) = match (&value, spec.kind) {
            (Value::Int(_) | Value::Bool(_), None | Some('d' | 'n' | 'x' | 'X' | 'b' | 'o' | 'c')) => {
                let v = value.as_int().unwrap_or(0);
                let digits = v.unsigned_abs();
                let (prefix, text) = match spec.kind {
                    Some('x') => ("0x", format!("{digits:x}")),
                    Some('X') => ("0X", format!("{digits:X}")),
                    Some('b') => ("0b", format!("{digits:b}")),
                    Some('o') => ("0o", format!("{digits:o}")),
                    Some('c') => ("", char::from_u32(v as u32).unwrap_or('?').to_string()),
                    None if matches!(value, Value::Bool(_)) => ("", self.display(&value, span)?),
                    _ => ("", digits.to_string()),
                };
                let text = match spec.grouping {
                    Some(sep) => group(
                        &text,
                        sep,
                        if matches!(spec.kind, Some('x' | 'X' | 'b' | 'o')) {
                            4
                        } else {
                            3
                        },
                    ),
                    None => text,
                };
                (
                    v < 0,
                    format!("{}{text}", if spec.alternate { prefix } else { "" }),
                )
            }
            (Value::Float(_) | Value::Int(_) | Value::Bool(_), _) => {
                let v = super::ops::as_float(&value).unwrap_or(0.0);
                let text = format_float(v.abs(), spec.kind, spec.precision);
                let text = match spec.grouping {
                    Some(sep) => {
                        let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
                        format!("{}{rest}", group(whole, sep, 3))
                    }
                    None => text,
                };
                (v.is_sign_negative() && !v.is_nan(), text)
            }
            (_, None | Some('s')) => {
                let text = self.display(&value, span)?;
                let text = match spec.precision {
                    Some(p) => text.chars().take(p).collect(),
                    None => text,
                };
                return Ok(spec.pad("", &text, '<'));
            }
            (Value::Unavailable(why), _) => return self.unavailable(why, span),
            (_, Some(kind)) => {
                return self.raise(
                    "ValueError",
                    span,
                    format!("format \"{kind}\" does not apply to {}", value.type_name()),
                );
            }
        };
        let sign = match (negative, spec.sign) {
            (true, _) => "-",
            (false, '+') => "+",
            (false, ' ') => " ",
            _ => "",
        };
        Ok(spec.pad(sign, &body, '>'))
    }

    /// `template.format(args)`.
    pub(super) fn brace_format(&mut self, template: &str, args: &Args, span: Span) -> Result<String> {
        self.format_fields(template, args, &mut 0, span)
    }

    /// The value of `{name}`, `{0.attribute}`, `{name[key]}`.
    fn field_value(
        &mut self,
        name: &str,
        field: &str,
        args: &Args,
        next: &mut usize,
        span: Span,
    ) -> Result<Value> {
        let end = name.find(['.', '[']).unwrap_or(name.len());
        let (first, mut path) = name.split_at(end);
        let found = if first.is_empty() {
            *next += 1;
            args.positional.get(*next - 1).map(|a| a.0.clone())
        } else if let Ok(n) = first.parse::<usize>() {
            args.positional.get(n).map(|a| a.0.clone())
        } else {
            args.keyword.iter().find(|k| &*k.0 == first).map(|k| k.1.clone())
        };
        let Some(mut value) = found else {
            let class = match first.is_empty() || first.parse::<usize>().is_ok() {
                true => "IndexError",
                false => "KeyError",
            };
            return self.raise(class, span, format!("no value for \"{{{field}}}\""));
        };
        while !path.is_empty() {
            if let Some(rest) = path.strip_prefix('[')
                && let Some((key, rest)) = rest.split_once(']')
            {
                let key = key.parse::<i128>().map_or_else(|_| Value::str(key), Value::Int);
                value = self.subscript(&value, &key, span)?;
                path = rest;
            } else if let Some(rest) = path.strip_prefix('.') {
                let end = rest.find(['.', '[']).unwrap_or(rest.len());
                value = self.get_attribute(&value, &rest[..end], span)?;
                path = &rest[end..];
            } else {
                return self.raise("ValueError", span, format!("\"{{{field}}}\" names no value"));
            }
        }
        Ok(value)
    }

    fn format_fields(&mut self, template: &str, args: &Args, next: &mut usize, span: Span) -> Result<String> {
        let mut out = String::new();
        let chars: Vec<char> = template.chars().collect();
        let mut i = 0;
        while i < chars.len() {
            match chars[i] {
                '{' if chars.get(i + 1) == Some(&'{') => {
                    out.push('{');
                    i += 2;
                }
                '}' => {
                    out.push('}');
                    i += if chars.get(i + 1) == Some(&'}') { 2 } else { 1 };
                }
                '{' => {
                    let Some(len) = closing(&chars[i..]) else {
                        return self.raise("ValueError", span, "a \"{\" of this template is not closed");
                    };
                    let field: String = chars[i + 1..i + len].iter().collect();
                    i += len + 1;
                    let (name, spec) = field.split_once(':').unwrap_or((&field, ""));
                    let (name, conversion) = name.split_once('!').unwrap_or((name, ""));
                    let value = self.field_value(name, &field, args, next, span)?;
                    let value = match conversion {
                        "r" => Value::str(self.repr(&value, span)?),
                        "s" => Value::str(self.display(&value, span)?),
                        _ => value,
                    };
                    // `{:>{w}}`: fields within the specification.
                    let spec = match spec.contains('{') {
                        true => self.nested(span, |interp| interp.format_fields(spec, args, next, span))?,
                        false => spec.to_string(),
                    };
                    out.push_str(&self.format(&value, &spec, span)?);
                    self.check_items(out.len(), span)?;
                }
                c => {
                    out.push(c);
                    i += 1;
                }
            }
        }
        Ok(out)
    }
}

/// The position of the `}` that matches the `{` at the beginning.
fn closing(chars: &[char]) -> Option<usize> {
    let mut open = 0;
    for (i, c) in chars.iter().enumerate() {
        match c {
            '{' => open += 1,
            '}' => open -= 1,
            _ => {}
        }
        if open == 0 {
            return Some(i);
        }
    }
    None
}

/// A format specification.
struct Spec {
    fill: char,
    align: Option<char>,
    sign: char,
    alternate: bool,
    width: usize,
    grouping: Option<char>,
    precision: Option<usize>,
    kind: Option<char>,
}

impl Spec {
    fn parse(text: &str) -> Option<Spec> {
        let chars: Vec<char> = text.chars().collect();
        let mut i = 0;
        let is_align = |c: Option<&char>| matches!(c, Some('<' | '>' | '^' | '='));
        let mut spec = Spec {
            fill: ' ',
            align: None,
            sign: '-',
            alternate: false,
            width: 0,
            grouping: None,
            precision: None,
            kind: None,
        };
        if is_align(chars.get(1)) {
            spec.fill = chars[0];
            spec.align = Some(chars[1]);
            i = 2;
        } else if is_align(chars.first()) {
            spec.align = Some(chars[0]);
            i = 1;
        }
        if let Some(c @ ('+' | '-' | ' ')) = chars.get(i) {
            spec.sign = *c;
            i += 1;
        }
        if chars.get(i) == Some(&'#') {
            spec.alternate = true;
            i += 1;
        }
        if chars.get(i) == Some(&'0') && spec.align.is_none() {
            spec.fill = '0';
            spec.align = Some('=');
            i += 1;
        }
        let number = |i: &mut usize| {
            let start = *i;
            while chars.get(*i).is_some_and(char::is_ascii_digit) {
                *i += 1;
            }
            chars[start..*i].iter().collect::<String>().parse::<usize>().ok()
        };
        spec.width = number(&mut i).unwrap_or(0);
        if let Some(c @ (',' | '_')) = chars.get(i) {
            spec.grouping = Some(*c);
            i += 1;
        }
        if chars.get(i) == Some(&'.') {
            i += 1;
            spec.precision = Some(number(&mut i)?);
        }
        if let Some(c) = chars.get(i) {
            spec.kind = Some(*c);
            i += 1;
        }
        let known = spec.kind.is_none_or(|c| "sdnxXbocfFeEgG%".contains(c));
        (i == chars.len() && known).then_some(spec)
    }

    fn pad(&self, sign: &str, body: &str, default: char) -> String {
        let len = sign.chars().count() + body.chars().count();
        let missing = self.width.saturating_sub(len);
        let fill = |n: usize| self.fill.to_string().repeat(n);
        match self.align.unwrap_or(default) {
            '<' => format!("{sign}{body}{}", fill(missing)),
            '^' => format!("{}{sign}{body}{}", fill(missing / 2), fill(missing - missing / 2)),
            '=' => format!("{sign}{}{body}", fill(missing)),
            _ => format!("{}{sign}{body}", fill(missing)),
        }
    }
}

fn group(digits: &str, separator: char, size: usize) -> String {
    let count = digits.chars().count();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (count - i).is_multiple_of(size) {
            out.push(separator);
        }
        out.push(c);
    }
    out
}

fn format_float(v: f64, kind: Option<char>, precision: Option<usize>) -> String {
    if v.is_nan() {
        return "nan".into();
    }
    if v.is_infinite() {
        return "inf".into();
    }
    let exponent = |v: f64, p: usize, e: char| {
        let text = format!("{v:.p$e}");
        let (mantissa, exp) = text.split_once('e').unwrap_or((&text, "0"));
        let exp: i32 = exp.parse().unwrap_or(0);
        format!("{mantissa}{e}{}{:02}", if exp < 0 { '-' } else { '+' }, exp.abs())
    };
    match kind {
        Some('f' | 'F') => format!("{v:.*}", precision.unwrap_or(6)),
        Some('%') => format!("{:.*}%", precision.unwrap_or(6), v * 100.0),
        Some('e') => exponent(v, precision.unwrap_or(6), 'e'),
        Some('E') => exponent(v, precision.unwrap_or(6), 'E'),
        Some('g' | 'G') => general(v, precision.unwrap_or(6).max(1)),
        _ => match precision {
            Some(p) => general(v, p.max(1)),
            None => float_repr(v),
        },
    }
}

fn general(v: f64, p: usize) -> String {
    if v == 0.0 {
        return "0".into();
    }
    let text = format!("{v:.*e}", p - 1);
    let exp: i32 = text
        .split_once('e')
        .and_then(|(_, e)| e.parse().ok())
        .unwrap_or(0);
    let trim = |s: &str| match s.contains('.') {
        true => s.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => s.to_string(),
    };
    if exp < -4 || exp >= p as i32 {
        let mantissa = trim(text.split_once('e').map_or(&*text, |(m, _)| m));
        format!("{mantissa}e{}{:02}", if exp < 0 { '-' } else { '+' }, exp.abs())
    } else {
        trim(&format!("{v:.*}", (p as i32 - 1 - exp).max(0) as usize))
    }
}

/// A number as Python writes it: the shortest digits that read back.
pub(super) fn float_repr(v: f64) -> String {
    if v.is_nan() {
        return "nan".into();
    }
    if v.is_infinite() {
        return if v > 0.0 { "inf" } else { "-inf" }.into();
    }
    let magnitude = v.abs();
    if v != 0.0 && !(1e-4..1e16).contains(&magnitude) {
        let text = format!("{v:e}");
        let (mantissa, exp) = text.split_once('e').unwrap_or((&text, "0"));
        let exp: i32 = exp.parse().unwrap_or(0);
        return format!("{mantissa}e{}{:02}", if exp < 0 { '-' } else { '+' }, exp.abs());
    }
    let text = format!("{v}");
    if text.contains('.') {
        text
    } else {
        format!("{text}.0")
    }
}

/// A text as Python writes it in code.
pub(super) fn quote(s: &str) -> String {
    let mark = if s.contains('\'') && !s.contains('"') {
        '"'
    } else {
        '\''
    };
    let mut out = String::from(mark);
    for c in s.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == mark => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => out.push_str(&format!("\\x{:02x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push(mark);
    out
}

/// Parses the text of an `int`, in Python's notation.
pub(super) fn parse_int(text: &str, base: u32, span: Span) -> Result<i128> {
    let cleaned = text.trim().replace('_', "").to_lowercase();
    let (negative, digits) = match cleaned.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, cleaned.strip_prefix('+').unwrap_or(&cleaned)),
    };
    let (base, digits) = match (base, digits.get(..2)) {
        (0 | 16, Some("0x")) => (16, &digits[2..]),
        (0 | 2, Some("0b")) => (2, &digits[2..]),
        (0 | 8, Some("0o")) => (8, &digits[2..]),
        (0, _) => (10, digits),
        (b, _) => (b, digits),
    };
    if !(2..=36).contains(&base) {
        return error(span, "the base of int() is 0 or 2 to 36");
    }
    match i128::from_str_radix(digits, base) {
        Ok(v) if !digits.starts_with(['+', '-']) => Ok(if negative { -v } else { v }),
        _ => error(span, format!("{} is no integer", quote(text))),
    }
}
