//! Messages and helps name what exists: every `T.…` in a string of the sources is a name of the language, every key of the manifest
//! that one tells to write is in the table of keys.

use std::path::{Path, PathBuf};

use tirx_core::intrin::mnemonic::{Lookup, lookup::unescape};
use tirx_core::script::eval::{Value, language_name};
use tirx_tests::root;

/// What is no name on purpose.
const OTHERS: &[(&str, &str)] = &[("T.x", "stands for any name"), ("T.y", "stands for any name")];

/// Keys of `Cargo.toml`.
const OF_CARGO: &[&str] = &["links"];

/// The sources whose strings users read, without their tests.
fn sources() -> Vec<PathBuf> {
    fn walk(folder: &Path, out: &mut Vec<PathBuf>) {
        let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        for entry in entries.flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().to_string();
            if path.is_dir() && name != "tests" {
                walk(&path, out);
            } else if name.ends_with(".rs") && !name.contains("test") {
                out.push(path);
            }
        }
    }
    let mut out = Vec::new();
    for folder in [
        "tirx-core/script/src",
        "tirx-core/fix/src",
        "tirx-core/lower/src",
        "tirx-core/codegen/src",
        "tirx-core/layout/src",
        "tirx-core/ir/src",
        "tirx-sim/src",
        "tirx-sim/machine/src",
        "tirx-build/src",
        "tirx-rt/src",
        "tirx-expect/src",
        "tirx-services/src",
        "cargo-tirx/src",
    ] {
        walk(&root().join(folder), &mut out);
    }
    out.sort();
    out
}

/// The strings of a source before its tests, without comments.
fn strings(text: &str) -> Vec<String> {
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    let mut out = Vec::new();
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '/' if text[at..].starts_with("//") => while chars.next_if(|(_, c)| *c != '\n').is_some() {},
            // A character, not a lifetime.
            '\'' if text[at..].starts_with("'\"'") => {
                chars.nth(1);
            }
            '"' => {
                let mut string = String::new();
                while let Some((_, c)) = chars.next() {
                    match c {
                        '"' => break,
                        '\\' => match chars.next() {
                            Some((_, '\n')) => while chars.next_if(|(_, c)| c.is_whitespace()).is_some() {},
                            Some((_, 'n')) | None => string.push('\n'),
                            Some((_, escaped)) => string.push(escaped),
                        },
                        c => string.push(c),
                    }
                }
                out.push(string);
            }
            _ => {}
        }
    }
    out
}

/// The dotted names of the language in a text; one that a format string continues ends before that part.
fn names(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    for root in ["T.", "Tx.", "I."] {
        for (at, _) in text.match_indices(root) {
            if text[..at].ends_with(is_word) {
                continue;
            }
            let rest = &text[at..];
            let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            let mut name = &rest[..end];
            if rest[end..].starts_with(['{', '…', '*', '<', '$']) {
                name = name.rsplit_once('.').map_or("", |(start, _)| start);
            }
            let name = name.trim_end_matches('.');
            let starts = |c: char| c.is_ascii_alphabetic() || c == '_';
            if name.contains('.') && name.split('.').all(|part| part.starts_with(starts)) {
                out.push(name.to_string());
            }
        }
    }
    out
}

/// Whether a dotted name is one of the language, refused ones among them, of either release.
fn exists(name: &str) -> bool {
    let mut parts = name.split('.');
    let mut path = parts.next().unwrap_or_default().to_string();
    let mut found = true;
    for part in parts {
        match language_name(&path, part) {
            Some(Value::Unavailable(_)) => return true,
            // What a class or an object has is its own; functions of PTX have functions within.
            Some(value) if !matches!(value, Value::Namespace(_)) && !path.starts_with("T.ptx") => {
                return true;
            }
            Some(_) => path = format!("{path}.{part}"),
            None => {
                found = false;
                break;
            }
        }
    }
    found || is_mnemonic(name)
}

fn is_mnemonic(name: &str) -> bool {
    let Some(mut words) = name.strip_prefix("T.ptx.").map(|rest| rest.split('.')) else {
        return false;
    };
    let start = words.next().and_then(Lookup::family);
    let lookup = words.fold(start, |lookup, word| lookup?.token(&unescape(word)).ok());
    lookup.is_some() || matches!(name, "T.ptx.SINK" | "T.ptx.pred" | "T.ptx.addr")
}

#[test]
fn every_name_in_a_message_exists() {
    let mut unknown = Vec::new();
    for path in sources() {
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        for name in strings(&text).iter().flat_map(|string| names(string)) {
            if !exists(&name) && !OTHERS.iter().any(|(other, _)| *other == name) {
                let file = path.strip_prefix(root()).unwrap_or(&path).display().to_string();
                unknown.push(format!("{file}: {name}"));
            }
        }
    }
    unknown.dedup();
    assert!(unknown.is_empty(), "no such names:\n{}", unknown.join("\n"));
}

#[test]
fn every_key_that_a_message_tells_to_write_exists() {
    let keys =
        std::fs::read_to_string(root().join("docs/reference/kernels-toml.md")).expect("the page of keys");
    let mut unknown = Vec::new();
    for path in sources() {
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        for string in strings(&text) {
            for part in string.split('`').skip(1).step_by(2) {
                let Some((key, _)) = part.split_once(" = ") else {
                    continue;
                };
                let is_key = key.chars().all(|c| c.is_ascii_lowercase() || c == '-') && key.len() > 1;
                if is_key && !OF_CARGO.contains(&key) && !keys.contains(&format!("`{key}`")) {
                    unknown.push(format!("{}: `{part}`", path.display()));
                }
            }
        }
    }
    assert!(unknown.is_empty(), "no such keys:\n{}", unknown.join("\n"));
}

#[test]
fn names_are_found_and_told_apart() {
    assert_eq!(
        names("use T.cuda.cta_sync() or T.{name}, T.ptx.{x}; ABT.x"),
        ["T.cuda.cta_sync", "T.ptx"]
    );
    assert!(exists("T.cuda.cta_sync") && exists("T.ptx.ld.global_.u32"));
    assert!(!exists("T.cuda.cta_sink") && !exists("T.ptx.ld.globally"));
    assert_eq!(
        strings("// \"no\"\nlet a = \"yes \\\n   more\"; 'x' '\"' \"z\""),
        ["yes more", "z"]
    );
}
