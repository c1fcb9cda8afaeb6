//! Messages for a manifest that is not read, with the right form.

use tirx_core::diagnostic::Diagnostic;
use tirx_core::source::FileId;

use super::keys::KEYS;
use super::read::span_of;
use crate::document::{Mistake, MistakeKind};
use tirx_core::suggest;

/// A mistake as a diagnostic.
pub(super) fn diagnostic(file: FileId, mistake: &Mistake, text: &str) -> Diagnostic {
    let mut span = span_of(file, mistake.span.clone());
    let example = |key: &str| {
        KEYS.iter()
            .rev()
            .find(|row| row.name == key)
            .map(|row| row.example)
    };
    match &mistake.kind {
        MistakeKind::Syntax(_) => Diagnostic::new(span, mistake.to_string()),
        MistakeKind::Unknown { key, known } => {
            let diagnostic = Diagnostic::new(span, mistake.to_string());
            match suggest(key, known.iter().copied()) {
                Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
                None => diagnostic.help(format!("the keys here are {}", list(known))),
            }
        }
        MistakeKind::Missing(key) => {
            // The span is the whole table; its first line is enough.
            let end = text[span.start as usize..]
                .find('\n')
                .map_or(span.end, |n| span.start + n as u32);
            span.end = span.end.min(end);
            let diagnostic = Diagnostic::new(span, mistake.to_string());
            match example(key) {
                Some(example) => diagnostic.help(format!("for example `{example}`")),
                None => diagnostic,
            }
        }
        MistakeKind::Form { key, .. } => {
            let diagnostic = Diagnostic::new(span, mistake.to_string());
            match example(key) {
                Some(example) => diagnostic.help(format!("write it as `{example}`")),
                None => diagnostic,
            }
        }
    }
}

/// Names in quotes.
pub(super) fn list(names: &[&str]) -> String {
    names
        .iter()
        .map(|n| format!("`{n}`"))
        .collect::<Vec<_>>()
        .join(", ")
}
