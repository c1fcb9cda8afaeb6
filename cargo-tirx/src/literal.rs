//! Values on the command line: Python's literals, and plain words as strings.

use tirx_core::script::ConstValue;

/// Splits `NAME=VALUE`.
pub(crate) fn assignment(text: &str) -> Result<(String, String), String> {
    split(text, |name| !name.starts_with(|c: char| c.is_ascii_digit()))
}

/// Splits `NAME=VALUE` or `0=VALUE`, where a kernel's parameter is meant by its name or its number.
pub(crate) fn parameter(text: &str) -> Result<(String, String), String> {
    split(text, |name| {
        !name.starts_with(|c: char| c.is_ascii_digit()) || name.chars().all(|c| c.is_ascii_digit())
    })
}

fn split(text: &str, starts_well: impl Fn(&str) -> bool) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| format!("`{text}` is not of the form NAME=VALUE"))?;
    let (name, value) = (name.trim(), value.trim());
    let is_name =
        !name.is_empty() && starts_well(name) && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    if !is_name {
        return Err(format!("`{name}` in `{text}` is no name"));
    }
    if value.is_empty() {
        return Err(format!("`{text}` gives no value"));
    }
    Ok((name.to_string(), value.to_string()))
}

/// A value: `256`, `-1`, `0x10`, `1e-5`, `True`, `None`, `"text"`, `[8, 16]`, or a word such as `float16`.
pub(crate) fn value(text: &str) -> Result<ConstValue, String> {
    let mut reader = Reader { text, at: 0 };
    let value = reader.value(0)?;
    reader.blanks();
    if reader.at < text.len() {
        return Err(format!(
            "`{text}` is no value: unexpected `{}`",
            &text[reader.at..]
        ));
    }
    Ok(value)
}

/// An integer literal of Python: `256`, `-1`, `0x10`, `1_000`.
pub(crate) fn integer(word: &str) -> Option<i128> {
    let digits = word.replace('_', "");
    let (sign, magnitude) = match digits.strip_prefix('-') {
        Some(rest) => (-1i128, rest),
        None => (1, digits.as_str()),
    };
    let radix = [("0x", 16), ("0b", 2), ("0o", 8)];
    let prefixed = radix
        .iter()
        .find_map(|(prefix, radix)| Some((magnitude.strip_prefix(prefix)?, *radix)));
    let (number, radix) = prefixed.unwrap_or((magnitude, 10));
    let value = i128::from_str_radix(number, radix).ok()?;
    (!number.starts_with(['+', '-'])).then_some(sign * value)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn blanks(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    fn value(&mut self, depth: usize) -> Result<ConstValue, String> {
        if depth > 8 {
            return Err(format!("`{}` nests too deeply", self.text));
        }
        self.blanks();
        match self.rest().chars().next() {
            Some(open @ ('[' | '(')) => self.list(if open == '[' { ']' } else { ')' }, depth),
            Some(quote @ ('"' | '\'')) => {
                let start = self.at + 1;
                let end = self.text[start..]
                    .find(quote)
                    .ok_or_else(|| format!("`{}` lacks a closing quote", self.text))?;
                self.at = start + end + 1;
                Ok(ConstValue::Str(self.text[start..start + end].to_string()))
            }
            Some(_) => {
                let rest = self.rest();
                let end = rest.find([',', ']', ')', ' ']).unwrap_or(rest.len());
                let word = rest[..end].to_string();
                self.at += end;
                self.word(&word)
            }
            None => Err(format!("`{}` ends where a value should be", self.text)),
        }
    }

    fn list(&mut self, close: char, depth: usize) -> Result<ConstValue, String> {
        self.at += 1;
        let mut items = Vec::new();
        loop {
            self.blanks();
            if self.rest().starts_with(close) {
                self.at += 1;
                return Ok(ConstValue::List(items));
            }
            items.push(self.value(depth + 1)?);
            self.blanks();
            if self.rest().starts_with(',') {
                self.at += 1;
            } else if !self.rest().starts_with(close) {
                return Err(format!("`{}` lacks a closing `{close}`", self.text));
            }
        }
    }

    fn word(&self, word: &str) -> Result<ConstValue, String> {
        match word {
            "True" => return Ok(ConstValue::Bool(true)),
            "False" => return Ok(ConstValue::Bool(false)),
            "None" => return Ok(ConstValue::None),
            "true" | "false" => {
                let python = if word == "true" { "True" } else { "False" };
                return Err(format!("`{word}` is no value; write `{python}`"));
            }
            _ => {}
        }
        if let Some(v) = integer(word) {
            let held = i128::from(i64::MIN)..=i128::from(u64::MAX);
            return match held.contains(&v) {
                true => Ok(ConstValue::Int(v)),
                false => Err(format!("`{word}` does not fit 64 bits")),
            };
        }
        let digits = word.replace('_', "");
        let numeric = digits.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
        if numeric && let Ok(v) = digits.parse::<f64>() {
            return Ok(ConstValue::Float(v));
        }
        // `-D dtype=float16` without quotes for the shell to eat.
        if word.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && word.chars().all(|c| c.is_alphanumeric() || c == '_')
        {
            return Ok(ConstValue::Str(word.to_string()));
        }
        Err(format!(
            "`{word}` is no value: write a number, True, False, None, a list or a \"string\""
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_literals() {
        assert_eq!(value("256"), Ok(ConstValue::Int(256)));
        assert_eq!(value("-0x10"), Ok(ConstValue::Int(-16)));
        assert_eq!(value("1_024"), Ok(ConstValue::Int(1024)));
        assert_eq!(value("0xffffffffffffffff"), Ok(ConstValue::Int(u64::MAX.into())));
        assert_eq!(value("1e-5"), Ok(ConstValue::Float(1e-5)));
        assert_eq!(value("-.5"), Ok(ConstValue::Float(-0.5)));
        assert_eq!(value("True"), Ok(ConstValue::Bool(true)));
        assert_eq!(value("None"), Ok(ConstValue::None));
        assert_eq!(value("'a b'"), Ok(ConstValue::Str("a b".into())));
        assert_eq!(value("float16"), Ok(ConstValue::Str("float16".into())));
        let list = ConstValue::List(vec![ConstValue::Int(8), ConstValue::Float(1.5)]);
        assert_eq!(value("[8, 1.5]"), Ok(list.clone()));
        assert_eq!(value("(8, 1.5,)"), Ok(list));
    }

    #[test]
    fn what_is_no_value_says_so() {
        assert!(value("25x6").unwrap_err().contains("`25x6` is no value"));
        assert!(value("true").unwrap_err().contains("write `True`"));
        assert!(value("[1, 2").unwrap_err().contains("closing `]`"));
        assert!(value("\"abc").unwrap_err().contains("closing quote"));
        assert!(value("1 2").unwrap_err().contains("unexpected `2`"));
        assert!(value("99999999999999999999").unwrap_err().contains("64 bits"));
        assert!(value(&"[".repeat(100)).is_err());
        assert!(assignment("N").unwrap_err().contains("NAME=VALUE"));
        assert!(assignment("3=4").unwrap_err().contains("no name"));
        assert!(assignment("N=").unwrap_err().contains("no value"));
        assert_eq!(parameter("3=4"), Ok(("3".into(), "4".into())));
        assert!(parameter("3x=4").unwrap_err().contains("no name"));
        assert_eq!(assignment("N = 2"), Ok(("N".into(), "2".into())));
    }
}
