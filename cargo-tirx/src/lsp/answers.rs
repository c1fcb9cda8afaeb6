//! What an editor gets for each request: the answers of `tirx_services`, for files.

use std::path::Path;

use lsp_types::{
    CodeAction, CodeActionKind, CodeActionOrCommand, CodeActionParams, CodeActionResponse, CompletionParams,
    CompletionResponse, GotoDefinitionParams, GotoDefinitionResponse, Hover, HoverParams, InlayHint,
    InlayHintParams, Location, Range, SignatureHelp, SignatureHelpParams, WorkspaceEdit,
};
use tirx_services::editor::{self, text};

use super::Server;
use super::modules::{Reach, module_of, real, resolved};
use super::uri::uri_of;

pub(super) fn hover(server: &Server, params: &HoverParams) -> Option<Hover> {
    let at = &params.text_document_position_params;
    let file = server.file(&at.text_document.uri)?;
    editor::hover(&file.document, at.position)
}

pub(super) fn completion(server: &Server, params: &CompletionParams) -> Option<CompletionResponse> {
    let at = &params.text_document_position;
    let file = server.file(&at.text_document.uri)?;
    Some(CompletionResponse::Array(editor::completion(
        &file.document,
        at.position,
    )))
}

pub(super) fn signature(server: &Server, params: &SignatureHelpParams) -> Option<SignatureHelp> {
    let at = &params.text_document_position_params;
    let file = server.file(&at.text_document.uri)?;
    editor::signature(&file.document, at.position)
}

pub(super) fn definition(server: &Server, params: &GotoDefinitionParams) -> Option<GotoDefinitionResponse> {
    let at = &params.text_document_position_params;
    let file = server.file(&at.text_document.uri)?;
    let byte = text::byte_of(&file.document.text, at.position);
    let (dotted, _, _) = text::dotted_at(&file.document.text, byte)?;
    let first = dotted.split('.').next().unwrap_or(dotted);
    let imports = text::imports(&file.document.text);
    let behind = |alias: &str| dotted.strip_prefix(alias)?.strip_prefix('.');
    let imported = imports.iter().find_map(|one| {
        // A module, or a name behind it; else a name of a module.
        let module = (dotted == one.alias || behind(&one.alias).is_some())
            .then(|| module_of(&file.path, one, Reach::Libraries))
            .flatten();
        let (path, wanted) = match (module, &one.name) {
            (Some(path), _) => (path, behind(&one.alias).and_then(|rest| rest.split('.').next())),
            (None, Some((name, ..))) if first == one.alias => (
                resolved(&file.path, &one.module, Reach::Libraries)?,
                Some(name.as_str()),
            ),
            _ => return None,
        };
        match wanted {
            Some(wanted) => defined_in(server, &path, wanted, 0),
            None => Some(Location {
                uri: uri_of(&path)?,
                range: Range::default(),
            }),
        }
    });
    let here = || {
        let range = text::definition(&file.document.text, first, byte)?;
        Some(Location {
            uri: at.text_document.uri.clone(),
            range,
        })
    };
    imported.or_else(here).map(GotoDefinitionResponse::Scalar)
}

/// Files that are followed to a definition, each of which imports the name from the next one.
const MAX_IMPORTS: usize = 16;

/// The definition of a name in a file, or in the one that the file imports it from; the beginning of the file where it has none.
fn defined_in(server: &Server, path: &Path, wanted: &str, followed: usize) -> Option<Location> {
    let open = server.files.values().find(|other| real(&other.path) == path);
    let target = match open {
        Some(other) => other.document.text.clone(),
        None => std::fs::read_to_string(path).ok()?,
    };
    let imports = text::imports(&target);
    let from = imports.iter().find(|one| one.alias == wanted);
    if let Some(one) = from.filter(|_| followed < MAX_IMPORTS) {
        let further = match (module_of(path, one, Reach::Libraries), &one.name) {
            (Some(module), _) => uri_of(&module).map(|uri| Location {
                uri,
                range: Range::default(),
            }),
            (None, Some((name, ..))) => {
                let module = resolved(path, &one.module, Reach::Libraries);
                module.and_then(|module| defined_in(server, &module, name, followed + 1))
            }
            _ => None,
        };
        if further.is_some() {
            return further;
        }
    }
    Some(Location {
        uri: uri_of(path)?,
        range: text::definition(&target, wanted, target.len()).unwrap_or_default(),
    })
}
pub(super) fn hints(server: &Server, params: &InlayHintParams) -> Option<Vec<InlayHint>> {
    let file = server.file(&params.text_document.uri)?;
    Some(editor::hints(&file.document, params.range))
}

pub(super) fn actions(server: &Server, params: &CodeActionParams) -> Option<CodeActionResponse> {
    let uri = &params.text_document.uri;
    let repairs = editor::repairs(&server.file(uri)?.document, params.range);
    let actions = repairs.into_iter().map(|repair| {
        let edit = WorkspaceEdit {
            changes: Some([(uri.clone(), vec![repair.edit])].into()),
            ..WorkspaceEdit::default()
        };
        CodeActionOrCommand::CodeAction(CodeAction {
            title: repair.title,
            kind: Some(CodeActionKind::QUICKFIX),
            diagnostics: Some(vec![repair.diagnostic]),
            edit: Some(edit),
            is_preferred: Some(true),
            ..CodeAction::default()
        })
    });
    Some(actions.collect())
}
