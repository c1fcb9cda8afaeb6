//! What an editor gets for each request.

use lsp_types::{
    CompletionItem, CompletionItemKind, Diagnostic, DiagnosticSeverity, Documentation, Hover, HoverContents,
    InlayHint, InlayHintLabel, InlayHintTooltip, MarkupContent, MarkupKind, ParameterInformation,
    ParameterLabel, Position, Range, SignatureHelp, SignatureInformation, TextEdit,
};
use serde::Serialize;
use tirx_core::diagnostic::{Level, Message};

use super::{Document, text};
use crate::language::{self, Name};

fn markdown(text: String) -> MarkupContent {
    MarkupContent {
        kind: MarkupKind::Markdown,
        value: text,
    }
}

/// Where a message is in a document: its first line where it has no place there.
fn place(document: &Document, message: &Message) -> Range {
    let own = &document.name;
    match &message.place {
        Some(place) if place.file == *own => {
            text::range_of(&document.text, place.bytes.0 as usize, place.bytes.1 as usize)
        }
        _ => Range::new(Position::new(0, 0), Position::new(0, 1)),
    }
}

/// The messages as an editor shows them, notes and help below the text.
pub fn diagnostics(document: &Document) -> Vec<Diagnostic> {
    let own = &document.name;
    let diagnostic = |message: &Message| {
        let mut shown = message.text.clone();
        if let Some(place) = message.place.as_ref().filter(|place| place.file != *own) {
            shown += &format!("\n{}:{}", place.file, place.start.0);
        }
        for child in &message.children {
            shown += &format!("\n{}: {}", child.level.name(), child.text);
        }
        let severity = match message.level {
            Level::Error => DiagnosticSeverity::ERROR,
            Level::Warning => DiagnosticSeverity::WARNING,
            Level::Note | Level::Help => DiagnosticSeverity::INFORMATION,
        };
        Diagnostic {
            range: place(document, message),
            severity: Some(severity),
            source: Some("tirx".into()),
            message: shown,
            ..Diagnostic::default()
        }
    };
    document.analysis.messages.iter().map(diagnostic).collect()
}

/// A name of the language in Markdown.
fn shown(full: &str, name: &Name) -> String {
    let facts = match name.facts.is_empty() {
        true => String::new(),
        false => format!("\n\n{}", name.facts),
    };
    format!(
        "```python\n{full}{}\n```\n{}{facts}",
        name.signature, name.meaning
    )
}

/// What is known of the name at a position, and of the tile primitive on its line.
pub fn hover(document: &Document, position: Position) -> Option<Hover> {
    let byte = text::byte_of(&document.text, position);
    let (dotted, start, end) = text::dotted_at(&document.text, byte)?;
    let full = text::in_language(&document.text, dotted);
    let mut parts = Vec::new();
    // A name of the kernel hides one of the language.
    let first = dotted.split('.').next().unwrap_or(dotted);
    for known in document.analysis.known(first, position.line + 1) {
        parts.push(format!(
            "```python\n{}\n```\nin `{}`",
            known.declaration, known.kernel
        ));
    }
    if parts.is_empty() {
        parts.extend(language::describe(&full).map(|name| shown(&full, &name)));
    }
    let line = position.line + 1;
    for choice in document
        .analysis
        .choices
        .iter()
        .filter(|choice| choice.line == line)
    {
        let others = match choice.others.is_empty() {
            true => String::new(),
            false => format!("\n\n{}", choice.others.replace('\n', "  \n")),
        };
        parts.push(format!("lowered by `{}`{others}", choice.label));
    }
    (!parts.is_empty()).then(|| Hover {
        contents: HoverContents::Markup(markdown(parts.join("\n\n---\n"))),
        range: Some(text::range_of(&document.text, start, end)),
    })
}

/// The names that may stand at a position: those below the path before it, or those of the kernels.
pub fn completion(document: &Document, position: Position) -> Vec<CompletionItem> {
    let byte = text::byte_of(&document.text, position);
    let item = |label: String, kind, detail: String, documentation: Option<String>| CompletionItem {
        label,
        kind: Some(kind),
        detail: Some(detail).filter(|detail| !detail.is_empty()),
        documentation: documentation.map(|text| Documentation::MarkupContent(markdown(text))),
        ..CompletionItem::default()
    };
    match text::path_before(&document.text, byte) {
        Some((path, _)) => {
            let path = text::in_language(&document.text, path);
            let names = language::below(&path).into_iter().map(|name| {
                let full = format!("{path}.{name}");
                let known = language::describe(&full);
                let kind = match &known {
                    _ if language::is_namespace(&full) => CompletionItemKind::MODULE,
                    Some(known) if !known.signature.is_empty() => CompletionItemKind::FUNCTION,
                    _ => CompletionItemKind::CONSTANT,
                };
                let signature = known
                    .as_ref()
                    .map_or(String::new(), |known| known.signature.clone());
                item(name, kind, signature, known.map(|known| shown(&full, &known)))
            });
            names.collect()
        }
        None => {
            let mut items: Vec<CompletionItem> = Vec::new();
            for known in &document.analysis.names {
                if !items.iter().any(|item| item.label == known.name) {
                    let declaration = format!("```python\n{}\n```", known.declaration);
                    items.push(item(
                        known.name.clone(),
                        CompletionItemKind::VARIABLE,
                        String::new(),
                        Some(declaration),
                    ));
                }
            }
            items
        }
    }
}

/// The signature of the call around a position.
pub fn signature(document: &Document, position: Position) -> Option<SignatureHelp> {
    let byte = text::byte_of(&document.text, position);
    let (dotted, argument) = text::call_around(&document.text, byte)?;
    let full = text::in_language(&document.text, dotted);
    let name = language::describe(&full)?;
    let parameters: Vec<String> = language::parameters(&name.signature);
    let positional = parameters.iter().filter(|parameter| *parameter != "*").count();
    let named = parameters.iter().filter(|parameter| *parameter != "*");
    let information = SignatureInformation {
        label: format!("{full}{}", name.signature),
        documentation: Some(Documentation::MarkupContent(markdown(name.meaning.clone()))),
        parameters: Some(
            named
                .map(|parameter| ParameterInformation {
                    label: ParameterLabel::Simple(parameter.clone()),
                    documentation: None,
                })
                .collect(),
        ),
        active_parameter: Some(argument.min(positional.saturating_sub(1)) as u32),
    };
    Some(SignatureHelp {
        signatures: vec![information],
        active_signature: Some(0),
        active_parameter: Some(argument.min(positional.saturating_sub(1)) as u32),
    })
}

/// The chosen variants of tile primitives, and shapes that the text does not show, at the ends of lines within a range.
pub fn hints(document: &Document, range: Range) -> Vec<InlayHint> {
    let hint = |line: u32, label: String, tooltip: Option<String>| {
        let line = line.checked_sub(1)?;
        let length = document.text.lines().nth(line as usize)?.encode_utf16().count();
        let within = range.start.line <= line && line <= range.end.line;
        within.then(|| InlayHint {
            position: Position::new(line, length as u32),
            label: InlayHintLabel::String(label),
            kind: None,
            text_edits: None,
            tooltip: tooltip.map(InlayHintTooltip::String),
            padding_left: Some(true),
            padding_right: None,
            data: None,
        })
    };
    let choices = document.analysis.choices.iter().filter_map(|choice| {
        let others = Some(choice.others.clone()).filter(|others| !others.is_empty());
        hint(choice.line, choice.label.clone(), others)
    });
    let shapes = document.analysis.shapes.iter().filter_map(|shape| {
        // What the line says itself needs no hint.
        let text = document.text.lines().nth(shape.line.checked_sub(1)? as usize)?;
        let said = ["(", "["]
            .iter()
            .any(|open| text.contains(&format!("{open}{}", shape.extents)));
        (!said).then(|| hint(shape.line, shape.label.clone(), None))?
    });
    choices.chain(shapes).collect()
}

/// The text between double quotes that follows a beginning.
fn quoted<'a>(help: &'a str, start: &str) -> Option<&'a str> {
    let rest = help.split_once(start)?.1;
    let (name, _) = rest.split_once('"')?;
    Some(name)
}

/// An edit that a help of a message asks for.
#[derive(Clone, Debug, Serialize)]
pub struct Repair {
    /// "Replace `alloc_shard` by `alloc_shared`".
    pub title: String,
    /// The message.
    pub diagnostic: Diagnostic,
    /// The edit.
    pub edit: TextEdit,
}

/// The edits that the helps of messages within a range ask for.
pub fn repairs(document: &Document, wanted: Range) -> Vec<Repair> {
    let mut repairs = Vec::new();
    for (message, diagnostic) in document.analysis.messages.iter().zip(diagnostics(document)) {
        let range = diagnostic.range;
        if range.end < wanted.start || wanted.end < range.start {
            continue;
        }
        for help in message.children.iter().filter(|child| child.level == Level::Help) {
            let Some(better) = quoted(&help.text, "did you mean \"") else {
                continue;
            };
            // The message quotes what is wrong: it is replaced within the place that the message underlines.
            let start = text::byte_of(&document.text, range.start);
            let end = text::byte_of(&document.text, range.end);
            let place = document.text.get(start..end).unwrap_or_default();
            let wrong = message.text.split('"').skip(1).step_by(2).find_map(|wrong| {
                let last = wrong.rsplit('.').next().unwrap_or(wrong);
                [wrong, last]
                    .into_iter()
                    .find(|word| !word.is_empty() && place.contains(word))
            });
            let Some(wrong) = wrong else { continue };
            let at = start + place.rfind(wrong).unwrap_or(0);
            // `T.alloc_shard` may be named as a whole, or by its last part.
            let better = match wrong.contains('.') {
                true => better,
                false => better.rsplit('.').next().unwrap_or(better),
            };
            let replaced = TextEdit {
                range: text::range_of(&document.text, at, at + wrong.len()),
                new_text: better.to_string(),
            };
            repairs.push(Repair {
                title: format!("Replace `{wrong}` by `{better}`"),
                diagnostic: diagnostic.clone(),
                edit: replaced,
            });
        }
    }
    repairs
}
