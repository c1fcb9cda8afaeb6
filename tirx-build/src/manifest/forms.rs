//! Messages for a manifest that the TOML reader rejects, with the right form.

use tirx_core::diagnostic::Diagnostic;
use tirx_core::source::{FileId, Span};
use toml::de::{DeTable, DeValue};

use super::keys::{KEYS, Key};
use super::read::span_of;
use tirx_core::suggest;

/// The error of the TOML reader as a diagnostic.
pub(super) fn syntax_error(file: FileId, error: &toml::de::Error, text: &str) -> Diagnostic {
    let mut span = error
        .span()
        .map_or(Span::new(file, 0, 0), |range| span_of(file, range));
    // Only the first line of the message is used.
    let message = error
        .message()
        .lines()
        .next()
        .unwrap_or("invalid TOML")
        .to_string();
    let mut names = message.split('`').skip(1).step_by(2);
    if message.starts_with("unknown field") {
        let unknown = names.next().unwrap_or_default();
        let known: Vec<&str> = names.collect();
        let diagnostic = Diagnostic::new(span, format!("unknown key `{unknown}`"));
        return match suggest(unknown, known.iter().copied()) {
            Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
            None => diagnostic.help(format!("the keys here are {}", list(&known))),
        };
    }
    if message.starts_with("missing field") {
        // The span is the whole table; its first line is enough.
        let end = text[span.start as usize..]
            .find('\n')
            .map_or(span.end, |n| span.start + n as u32);
        span.end = span.end.min(end);
        let missing = names.next().unwrap_or_default();
        let diagnostic = Diagnostic::new(span, format!("missing key `{missing}`"));
        return match KEYS
            .iter()
            .find(|key| key.name == missing && key.section == "kernel")
        {
            Some(key) => diagnostic.help(format!("for example `{}`", key.example)),
            None => diagnostic,
        };
    }
    if let Some(rest) = message
        .strip_prefix("invalid type: ")
        .or_else(|| message.strip_prefix("invalid value: "))
        && let Some((key, range)) = key_at(text, span)
    {
        let found = found(rest.split(", expected").next().unwrap_or(rest));
        let span = Span::new(file, range.0, range.1);
        let diagnostic = Diagnostic::new(span, format!("`{}` is {}, found {found}", key.name, key.form));
        return diagnostic.help(format!("write it as `{}`", key.example));
    }
    Diagnostic::new(span, message)
}

/// Names in quotes.
pub(super) fn list(names: &[&str]) -> String {
    names
        .iter()
        .map(|n| format!("`{n}`"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// serde's names of types in terms of TOML.
fn found(words: &str) -> String {
    let value = words.split('`').nth(1).or_else(|| words.split('"').nth(1));
    let kind = words.split([' ', '`', '"']).next().unwrap_or(words);
    match (kind, value) {
        ("map", _) => "a table".to_string(),
        ("sequence", _) => "a list".to_string(),
        ("string", Some(value)) => format!("the string \"{value}\""),
        ("integer" | "floating" | "boolean", Some(value)) => format!("`{value}`"),
        _ => words.to_string(),
    }
}

/// The key whose value is or contains the text at `span`; and the position of that value, or of the table's header.
fn key_at(text: &str, span: Span) -> Option<(&'static Key, (u32, u32))> {
    let document = DeTable::parse(text).ok()?;
    let known =
        |section: &str, name: &str| KEYS.iter().find(|key| (key.section, key.name) == (section, name));
    let at = span.start as usize;
    let covers = |range: &std::ops::Range<usize>| {
        range.start <= at && (span.end as usize) <= range.end.max(range.start + 1)
    };
    for (name, value) in document.get_ref() {
        let section = name.get_ref().as_ref();
        let tables: Vec<&DeTable<'_>> = match value.get_ref() {
            DeValue::Table(table) if section != "kernel" => vec![table],
            DeValue::Array(items) => items
                .iter()
                .filter_map(|item| item.get_ref().as_table())
                .collect(),
            _ => Vec::new(),
        };
        for (key, value) in tables.iter().flat_map(|table| table.iter()) {
            if covers(&value.span()) {
                let key = known(section, key.get_ref())?;
                return Some((key, (span.start, span.end)));
            }
        }
        // A table of the wrong kind: its name is underlined, not its contents.
        let inside = value.span().start <= at || name.span().start <= at;
        if inside && (covers(&value.span()) || covers(&name.span())) && tables.is_empty() {
            let mark = name.span();
            return Some((known("", section)?, (mark.start as u32, mark.end as u32)));
        }
    }
    None
}
