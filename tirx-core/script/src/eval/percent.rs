//! `template % values`.

use super::Interpreter;
use super::value::Value;
use crate::diagnostic::Result;
use crate::source::Span;

impl Interpreter {
    /// `template % values`.
    pub(super) fn percent_format(&mut self, template: &str, values: &Value, span: Span) -> Result<String> {
        let is_dict = matches!(values, Value::Dict(_));
        let items = match values.plain_tuple() {
            Value::Tuple(items) => items.to_vec(),
            other => vec![other],
        };
        let mut items = items.into_iter();
        let mut out = String::new();
        let mut chars = template.chars().peekable();
        while let Some(c) = chars.next() {
            if c != '%' {
                out.push(c);
                continue;
            }
            let mut key = None;
            if chars.peek() == Some(&'(') {
                chars.next();
                key = Some(chars.by_ref().take_while(|c| *c != ')').collect::<String>());
            }
            let (mut flags, mut size, mut kind) = (String::new(), String::new(), ' ');
            for c in chars.by_ref() {
                match c {
                    '-' | '+' | ' ' | '#' => flags.push(c),
                    '0' if size.is_empty() => flags.push(c),
                    // A width or precision among the values.
                    '*' => match items.next().and_then(|v| v.as_int()) {
                        Some(n) if n < 0 && size.is_empty() => {
                            flags.push('-');
                            size.push_str(&n.unsigned_abs().to_string());
                        }
                        Some(n) => size.push_str(&n.to_string()),
                        None => return self.raise("TypeError", span, "* wants int"),
                    },
                    '0'..='9' | '.' => size.push(c),
                    'l' | 'h' | 'L' => {}
                    c => {
                        kind = c;
                        break;
                    }
                }
            }
            if kind == '%' {
                out.push('%');
                continue;
            }
            let value = match &key {
                Some(key) if is_dict => self.subscript(values, &Value::str(key.as_str()), span)?,
                Some(_) => return self.raise("TypeError", span, "format requires a mapping"),
                None => match items.next() {
                    Some(value) => value,
                    None => return self.raise("TypeError", span, "not enough values for this template"),
                },
            };
            out.push_str(&self.percent_value(&value, &flags, &size, kind, span)?);
            self.check_items(out.len(), span)?;
        }
        if items.next().is_some() && !is_dict {
            return self.raise("TypeError", span, "more values than this template has places");
        }
        Ok(out)
    }

    /// One value, by the specification of `format` that means the same.
    fn percent_value(
        &mut self,
        value: &Value,
        flags: &str,
        size: &str,
        kind: char,
        span: Span,
    ) -> Result<String> {
        let left = flags.contains('-');
        let text = match kind {
            's' => Some(self.display(value, span)?),
            'r' | 'a' => Some(self.repr(value, span)?),
            'c' => Some(match (value.as_str(), value.as_int()) {
                (Some(s), _) if s.chars().count() == 1 => s.to_string(),
                (_, Some(n)) => match u32::try_from(n).ok().and_then(char::from_u32) {
                    Some(c) => c.to_string(),
                    None => return self.raise("OverflowError", span, "%c needs a character code"),
                },
                _ => return self.raise("TypeError", span, "%c needs int or one character"),
            }),
            _ => None,
        };
        if let Some(text) = text {
            let align = if left { '<' } else { '>' };
            return self.format(&Value::str(text), &format!("{align}{size}"), span);
        }
        let number = match (kind, self.plain_number(value)) {
            ('d' | 'i' | 'u', Value::Float(v)) if v.is_finite() && v.abs() < 1e38 => Value::Int(v as i128),
            (_, Value::Bool(v)) => Value::Int(v.into()),
            (_, number) => number,
        };
        let kind = match kind {
            'i' | 'u' => 'd',
            'd' | 'x' | 'X' | 'o' | 'f' | 'F' | 'e' | 'E' | 'g' | 'G' => kind,
            _ => return self.raise("ValueError", span, format!("unsupported format \"%{kind}\"")),
        };
        if !matches!(number, Value::Int(_) | Value::Float(_)) {
            let message = format!("format \"%{kind}\" needs a number, found {}", value.type_name());
            return self.raise("TypeError", span, message);
        }
        let has = |flag: char| {
            if flags.contains(flag) {
                flag.to_string()
            } else {
                String::new()
            }
        };
        let align = if left { "<" } else { "" };
        let sign = match flags.contains('+') {
            true => "+".to_string(),
            false => has(' '),
        };
        let zero = if left { String::new() } else { has('0') };
        let alternate = has('#');
        self.format(
            &number,
            &format!("{align}{sign}{alternate}{zero}{size}{kind}"),
            span,
        )
    }
}
