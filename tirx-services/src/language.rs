//! The names of the language as tools show them: what is below a path, signatures, descriptions.

use tirx_core::intrin::Op;
use tirx_core::intrin::mnemonic::{Lookup, lookup};
use tirx_core::script::lang;

/// A name of the language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The signature in text, `(bar, count)`; empty for what is not called.
    pub signature: String,
    /// What it means.
    pub meaning: String,
    /// The GPUs that have it and the section of the manual, for an operation.
    pub facts: String,
}

/// The names below a path: of `T`, `T.ptx`, `Tx.cta`.
pub fn below(path: &str) -> Vec<String> {
    lang::names(path)
}

/// Whether a path has names below it.
pub fn is_namespace(path: &str) -> bool {
    !lang::names(path).is_empty()
}

/// Whether words behind `T.ptx.` are an instruction of PTX, with or without more modifiers: `bar.sync`.
pub fn is_mnemonic(words: &str) -> bool {
    let mut words = words.split('.');
    let family = words.next().and_then(Lookup::family);
    let found = words.try_fold(family, |found, word| {
        found.map(|f| f.token(&lookup::unescape(word)).ok())
    });
    found.flatten().is_some()
}

/// What is known of a name; `None` for one that the language does not have.
pub fn describe(full: &str) -> Option<Name> {
    // Tile primitives are described once, whatever their scope: `Tx.cta.copy`.
    let last = full.rsplit('.').next().unwrap_or(full);
    let tile = || match full.starts_with("Tx.") || full.starts_with("T.tile.") {
        true => [format!("T.tile.{last}"), format!("Tx.{last}")]
            .iter()
            .find_map(|name| lang::described(name))
            .or_else(|| {
                let parent = full.rsplit_once('.').map_or("", |(parent, _)| parent);
                let known = below(parent).iter().any(|name| name == last) && !is_namespace(full);
                known.then(|| {
                    let meaning =
                        format!("The tile primitive `{last}`: the threads of the scope do it together.");
                    (String::new(), meaning)
                })
            }),
        false => None,
    };
    let (signature, meaning) = lang::described(full).or_else(tile)?;
    let op = full.strip_prefix("T.").and_then(Op::from_script);
    let facts = op.map_or(String::new(), |op| {
        let row = op.row();
        let section = match row.section.is_empty() {
            true => String::new(),
            false => format!("; manual: {}", row.section),
        };
        format!("GPUs: {}{section}", op.gpus())
    });
    Some(Name {
        signature,
        meaning,
        facts,
    })
}

/// The parameters of a signature: `["bar", "*", "count=1"]`.
pub fn parameters(signature: &str) -> Vec<String> {
    let inner = signature.trim().trim_start_matches('(').trim_end_matches(')');
    let (mut parts, mut depth, mut part) = (Vec::new(), 0i32, String::new());
    let mut quoted = false;
    for c in inner.chars() {
        match c {
            '\'' | '"' => quoted = !quoted,
            '(' | '[' | '{' if !quoted => depth += 1,
            ')' | ']' | '}' if !quoted => depth -= 1,
            ',' if depth == 0 && !quoted => {
                parts.push(std::mem::take(&mut part).trim().to_string());
                continue;
            }
            _ => {}
        }
        part.push(c);
    }
    parts.push(part.trim().to_string());
    parts.retain(|part| !part.is_empty());
    parts
}
