//! Reads the part of TOML that lock files are written in: comments, keys with integers, strings and lists of strings, and
//! tables `[[kernel]]`. Lines may end as on Windows, and lists may go over several lines, as formatters write them.

use std::collections::BTreeMap;

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Number(u32),
    Text(String),
    List(Vec<String>),
}

/// Values by key.
pub(super) type Table = BTreeMap<String, Value>;

/// The head of a lock file, and its kernels. An error names the line.
pub(super) fn read(text: &str) -> Result<(Table, Vec<Table>), String> {
    let mut reader = Reader { text, at: 0 };
    let mut head = Table::new();
    let mut kernels: Vec<Table> = Vec::new();
    while reader.next_line() {
        if reader.take("[[kernel]]") {
            kernels.push(Table::new());
        } else {
            let (key, value) = reader.pair().map_err(|reason| reader.located(&reason))?;
            let table = kernels.last_mut().unwrap_or(&mut head);
            if table.insert(key.clone(), value).is_some() {
                return Err(reader.located(&format!("the key `{key}` is there twice")));
            }
        }
        reader.end_of_line().map_err(|reason| reader.located(&reason))?;
    }
    Ok((head, kernels))
}

/// The number of a key that comes first, whatever follows.
pub(super) fn first_number(text: &str, key: &str) -> Result<u32, String> {
    let mut reader = Reader { text, at: 0 };
    if !reader.next_line() {
        return Err(format!("missing key `{key}`"));
    }
    match reader.pair().map_err(|reason| reader.located(&reason))? {
        (found, Value::Number(number)) if found == key => Ok(number),
        _ => Err(format!("missing key `{key}`")),
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn located(&self, reason: &str) -> String {
        let line = 1 + self.text[..self.at].matches('\n').count();
        format!("line {line}: {reason}")
    }

    fn take(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        self.at += if found { token.len() } else { 0 };
        found
    }

    fn take_while(&mut self, belongs: impl Fn(char) -> bool) -> String {
        let rest = self.rest();
        let end = rest.find(|c: char| !belongs(c)).unwrap_or(rest.len());
        let taken = rest[..end].to_string();
        self.at += end;
        taken
    }

    fn blanks(&mut self) {
        self.take_while(|c| c == ' ' || c == '\t');
    }

    fn comment(&mut self) {
        if self.rest().starts_with('#') {
            self.take_while(|c| c != '\n');
        }
    }

    /// Goes to the next text that is no comment; false at the end.
    fn next_line(&mut self) -> bool {
        loop {
            let before = self.at;
            self.take_while(|c| matches!(c, ' ' | '\t' | '\r' | '\n'));
            self.comment();
            if self.at == before {
                return !self.rest().is_empty();
            }
        }
    }

    fn end_of_line(&mut self) -> Result<(), String> {
        self.blanks();
        self.comment();
        self.take("\r");
        match self.rest().is_empty() || self.take("\n") {
            true => Ok(()),
            false => Err("something follows the value".to_string()),
        }
    }

    fn pair(&mut self) -> Result<(String, Value), String> {
        let key = self.take_while(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        if key.is_empty() {
            return Err("there is no key".to_string());
        }
        self.blanks();
        if !self.take("=") {
            return Err("there is no `=` behind the key".to_string());
        }
        self.blanks();
        Ok((key, self.value()?))
    }

    fn value(&mut self) -> Result<Value, String> {
        if self.take("[") {
            return self.list().map(Value::List);
        }
        if self.rest().starts_with(['"', '\'']) {
            return self.string().map(Value::Text);
        }
        let digits = self.take_while(|c| c.is_ascii_digit());
        let number = digits.parse();
        number
            .map(Value::Number)
            .map_err(|_| "a value is no integer, no string and no list of strings".to_string())
    }

    /// The items of a list, behind its bracket.
    fn list(&mut self) -> Result<Vec<String>, String> {
        let mut items = Vec::new();
        loop {
            self.next_line();
            if self.take("]") {
                return Ok(items);
            }
            items.push(self.string()?);
            self.next_line();
            if !self.take(",") && !self.rest().starts_with(']') {
                return Err("a list does not end".to_string());
            }
        }
    }

    fn string(&mut self) -> Result<String, String> {
        if self.take("'") {
            let text = self.take_while(|c| c != '\'' && c != '\n');
            return match self.take("'") {
                true => Ok(text),
                false => Err("a string does not end".to_string()),
            };
        }
        if !self.take("\"") {
            return Err("a string is expected".to_string());
        }
        let mut text = String::new();
        loop {
            text.push_str(&self.take_while(|c| !matches!(c, '"' | '\\' | '\n')));
            if self.take("\"") {
                return Ok(text);
            }
            if !self.take("\\") {
                return Err("a string does not end".to_string());
            }
            text.push(self.escape()?);
        }
    }

    /// The character that an escape stands for, behind its backslash.
    fn escape(&mut self) -> Result<char, String> {
        const ESCAPES: [(&str, char); 7] = [
            ("\"", '"'),
            ("\\", '\\'),
            ("n", '\n'),
            ("t", '\t'),
            ("r", '\r'),
            ("b", '\u{8}'),
            ("f", '\u{c}'),
        ];
        if let Some((_, c)) = ESCAPES.iter().find(|(letter, _)| self.take(letter)) {
            return Ok(*c);
        }
        let length = match (self.take("u"), self.take("U")) {
            (true, _) => 4,
            (_, true) => 8,
            _ => return Err("an escape is unknown".to_string()),
        };
        let code = self.rest().get(..length);
        let code = code.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let c = code.and_then(char::from_u32);
        self.at += if c.is_some() { length } else { 0 };
        c.ok_or_else(|| "an escape is no character".to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_formatters_write_is_read() {
        let text = "# A comment.\r\nversion = 1 # one\r\n\r\n[[kernel]]\r\nname='a'\nflags = [\n  \"x\", # first\n  'y',\n]\n";
        let (head, kernels) = read(text).unwrap();
        assert_eq!(head["version"], Value::Number(1));
        assert_eq!(kernels.len(), 1);
        assert_eq!(kernels[0]["name"], Value::Text("a".into()));
        assert_eq!(kernels[0]["flags"], Value::List(vec!["x".into(), "y".into()]));
        assert_eq!(first_number(text, "version"), Ok(1));
    }

    #[test]
    fn escapes_are_those_of_toml() {
        let read = |value: &str| read(&format!("a = {value}\n")).map(|(head, _)| head["a"].clone());
        let text = "\"\\\"\\\\\\n\\t\\u00e4\\U0001F600\"";
        assert_eq!(read(text), Ok(Value::Text("\"\\\n\tä😀".into())));
        for wrong in [
            "\"\\x\"",
            "\"\\ud800\"",
            "\"\\u12\"",
            "\"a",
            "'a",
            "[\"a\"",
            "[1]",
            "-1",
            "1 2",
            "",
            "99999999999",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn mistakes_name_their_line() {
        for (text, said) in [
            ("a = 1\na = 2\n", "line 2: the key `a` is there twice"),
            ("a = 1\n= 2\n", "line 2: there is no key"),
            ("[table]\n", "line 1: there is no key"),
            ("a = \"x\" y\n", "line 1: something follows the value"),
        ] {
            assert_eq!(read(text).unwrap_err(), said);
        }
    }
}
