//! What an editor gets for each request.

use lsp_types::{
    CodeAction, CodeActionKind, CodeActionOrCommand, CodeActionParams, CodeActionResponse, CompletionItem,
    CompletionItemKind, CompletionParams, CompletionResponse, Diagnostic, DiagnosticSeverity, Documentation,
    GotoDefinitionParams, GotoDefinitionResponse, Hover, HoverContents, HoverParams, InlayHint,
    InlayHintLabel, InlayHintParams, InlayHintTooltip, Location, MarkupContent, MarkupKind,
    ParameterInformation, ParameterLabel, Position, Range, SignatureHelp, SignatureHelpParams,
    SignatureInformation, TextEdit, Uri, WorkspaceEdit,
};
use tirx_core::diagnostic::{Level, Message};

use super::modules::{module_of, real, resolved};
use super::uri::uri_of;
use super::{Document, Server, text};
use crate::language::{self, Name};

fn markdown(text: String) -> MarkupContent {
    MarkupContent {
        kind: MarkupKind::Markdown,
        value: text,
    }
}

/// Where a message is in a document: its first line where it has no place there.
fn place(document: &Document, message: &Message) -> Range {
    let own = document.path.file_name().unwrap_or_default().to_string_lossy();
    match &message.place {
        Some(place) if place.file == own => {
            text::range_of(&document.text, place.bytes.0 as usize, place.bytes.1 as usize)
        }
        _ => Range::new(Position::new(0, 0), Position::new(0, 1)),
    }
}

/// The messages as an editor shows them, notes and help below the text.
pub(super) fn diagnostics(document: &Document) -> Vec<Diagnostic> {
    let own = document.path.file_name().unwrap_or_default().to_string_lossy();
    let diagnostic = |message: &Message| {
        let mut shown = message.text.clone();
        if let Some(place) = message.place.as_ref().filter(|place| place.file != own) {
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

pub(super) fn hover(server: &Server, params: &HoverParams) -> Option<Hover> {
    let at = &params.text_document_position_params;
    let document = server.document(&at.text_document.uri)?;
    let byte = text::byte_of(&document.text, at.position);
    let (dotted, start, end) = text::dotted_at(&document.text, byte)?;
    let full = text::in_language(&document.text, dotted);
    let mut parts = Vec::new();
    // A name of the kernel hides one of the language.
    let first = dotted.split('.').next().unwrap_or(dotted);
    for known in document.analysis.known(first, at.position.line + 1) {
        parts.push(format!(
            "```python\n{}\n```\nin `{}`",
            known.declaration, known.kernel
        ));
    }
    if parts.is_empty() {
        parts.extend(language::describe(&full).map(|name| shown(&full, &name)));
    }
    let line = at.position.line + 1;
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

pub(super) fn completion(server: &Server, params: &CompletionParams) -> Option<CompletionResponse> {
    let at = &params.text_document_position;
    let document = server.document(&at.text_document.uri)?;
    let byte = text::byte_of(&document.text, at.position);
    let item = |label: String, kind, detail: String, documentation: Option<String>| CompletionItem {
        label,
        kind: Some(kind),
        detail: Some(detail).filter(|detail| !detail.is_empty()),
        documentation: documentation.map(|text| Documentation::MarkupContent(markdown(text))),
        ..CompletionItem::default()
    };
    let items: Vec<CompletionItem> = match text::path_before(&document.text, byte) {
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
    };
    Some(CompletionResponse::Array(items))
}

pub(super) fn signature(server: &Server, params: &SignatureHelpParams) -> Option<SignatureHelp> {
    let at = &params.text_document_position_params;
    let document = server.document(&at.text_document.uri)?;
    let byte = text::byte_of(&document.text, at.position);
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

pub(super) fn definition(server: &Server, params: &GotoDefinitionParams) -> Option<GotoDefinitionResponse> {
    let at = &params.text_document_position_params;
    let document = server.document(&at.text_document.uri)?;
    let byte = text::byte_of(&document.text, at.position);
    let (dotted, _, _) = text::dotted_at(&document.text, byte)?;
    let first = dotted.split('.').next().unwrap_or(dotted);
    let imports = text::imports(&document.text);
    let behind = |alias: &str| dotted.strip_prefix(alias)?.strip_prefix('.');
    let imported = imports.iter().find_map(|one| {
        // A module, or a name behind it; else a name of a module.
        let module = (dotted == one.alias || behind(&one.alias).is_some())
            .then(|| module_of(&document.path, one))
            .flatten();
        let (path, wanted) = match (module, &one.name) {
            (Some(path), _) => (path, behind(&one.alias).and_then(|rest| rest.split('.').next())),
            (None, Some((name, ..))) if first == one.alias => {
                (resolved(&document.path, &one.module)?, Some(name.as_str()))
            }
            _ => return None,
        };
        let open = server.documents.values().find(|other| real(&other.path) == path);
        let target = match open {
            Some(other) => other.text.clone(),
            None => std::fs::read_to_string(&path).ok()?,
        };
        let range = wanted.and_then(|wanted| text::definition(&target, wanted, target.len()));
        Some(Location {
            uri: uri_of(&path)?,
            range: range.unwrap_or_default(),
        })
    });
    let here = || {
        let range = text::definition(&document.text, first, byte)?;
        Some(Location {
            uri: at.text_document.uri.clone(),
            range,
        })
    };
    imported.or_else(here).map(GotoDefinitionResponse::Scalar)
}

fn edit(uri: &Uri, edits: Vec<TextEdit>) -> WorkspaceEdit {
    WorkspaceEdit {
        changes: Some([(uri.clone(), edits)].into()),
        ..WorkspaceEdit::default()
    }
}

pub(super) fn hints(server: &Server, params: &InlayHintParams) -> Option<Vec<InlayHint>> {
    let document = server.document(&params.text_document.uri)?;
    let hint = |line: u32, label: String, tooltip: Option<String>| {
        let line = line.checked_sub(1)?;
        let length = document.text.lines().nth(line as usize)?.encode_utf16().count();
        let within = params.range.start.line <= line && line <= params.range.end.line;
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
    Some(choices.chain(shapes).collect())
}

/// The text between double quotes that follows a beginning.
fn quoted<'a>(help: &'a str, start: &str) -> Option<&'a str> {
    let rest = help.split_once(start)?.1;
    let (name, _) = rest.split_once('"')?;
    Some(name)
}

pub(super) fn actions(server: &Server, params: &CodeActionParams) -> Option<CodeActionResponse> {
    let document = server.document(&params.text_document.uri)?;
    let mut actions = Vec::new();
    for (message, diagnostic) in document.analysis.messages.iter().zip(diagnostics(document)) {
        let range = diagnostic.range;
        if range.end < params.range.start || params.range.end < range.start {
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
            actions.push(CodeActionOrCommand::CodeAction(CodeAction {
                title: format!("Replace `{wrong}` by `{better}`"),
                kind: Some(CodeActionKind::QUICKFIX),
                diagnostics: Some(vec![diagnostic.clone()]),
                edit: Some(edit(&params.text_document.uri, vec![replaced])),
                is_preferred: Some(true),
                ..CodeAction::default()
            }));
        }
    }
    Some(actions)
}
