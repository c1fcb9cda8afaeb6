//! What changes where a name gets another one? A name of a kernel file changes in all files that import it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lsp_types::{Range, RenameParams, TextEdit, Uri, WorkspaceEdit};

use tirx_services::editor::text;

use super::modules::{Reach, module_of, real, resolved};
use super::uri::uri_of;
use super::{File, Server};

/// Files that are looked into, and folders inside of one another.
const MAX_FILES: usize = 2000;
const DEEPEST: usize = 8;
/// Folders above a file that are looked into for a manifest.
const ABOVE: usize = 5;

pub(super) fn rename(server: &Server, params: &RenameParams) -> Option<WorkspaceEdit> {
    let at = &params.text_document_position;
    let file = server.file(&at.text_document.uri)?;
    let byte = text::byte_of(&file.document.text, at.position);
    let (dotted, _, _) = text::dotted_at(&file.document.text, byte)?;
    let new = &params.new_name;
    let is_name = new.chars().all(|c| c.is_alphanumeric() || c == '_')
        && !new.starts_with(|c: char| c.is_ascii_digit());
    if new.is_empty() || !is_name {
        return None;
    }
    match origin(file, dotted) {
        Origin::Module(path, name) => Some(everywhere(server, &path, &name, new)),
        Origin::File => Some(WorkspaceEdit {
            changes: Some(
                [(
                    at.text_document.uri.clone(),
                    in_file(&file.document.text, dotted, new),
                )]
                .into(),
            ),
            ..WorkspaceEdit::default()
        }),
        Origin::Unknown => None,
    }
}

/// Where a name belongs.
enum Origin {
    /// To a kernel file, under this name: other files may import it.
    Module(PathBuf, String),
    /// To the file alone.
    File,
    /// To the language, or to an object.
    Unknown,
}

fn origin(file: &File, dotted: &str) -> Origin {
    let own = || real(&file.path);
    if let Some((module, name)) = dotted.rsplit_once('.') {
        let imports = text::imports(&file.document.text);
        let of_it = imports.iter().find(|one| one.alias == module);
        let path = of_it.and_then(|one| module_of(&file.path, one, Reach::Package));
        return path.map_or(Origin::Unknown, |path| Origin::Module(path, name.to_string()));
    }
    match text::imports(&file.document.text)
        .iter()
        .find(|one| one.alias == dotted)
    {
        Some(one) => match (&one.name, resolved(&file.path, &one.module, Reach::Package)) {
            (Some((name, ..)), Some(path)) if name == dotted => Origin::Module(path, name.clone()),
            _ => Origin::File,
        },
        None if text::is_of_module(&file.document.text, dotted) => Origin::Module(own(), dotted.to_string()),
        None => Origin::File,
    }
}

/// The edits of a name that one file knows.
fn in_file(source: &str, old: &str, new: &str) -> Vec<TextEdit> {
    let imported = text::imported(source, old);
    let uses = text::uses(source, old).into_iter().enumerate();
    uses.map(|(at, range)| TextEdit {
        range,
        // `import x` needs the old name beside the new one.
        new_text: match &imported {
            Some((module, name)) if at == 0 && name.as_deref().unwrap_or(module) == old => {
                format!("{old} as {new}")
            }
            _ => new.to_string(),
        },
    })
    .collect()
}

/// The edits of all files that know the name `old` of the file `origin`.
fn everywhere(server: &Server, origin: &Path, old: &str, new: &str) -> WorkspaceEdit {
    let mut texts: BTreeMap<PathBuf, (Option<Uri>, String)> = BTreeMap::new();
    for path in kernel_files(origin) {
        if let Ok(text) = std::fs::read_to_string(&path) {
            let uri = uri_of(&path);
            texts.insert(path, (uri, text));
        }
    }
    // What the editor has open is as it shows it, under the name that it uses.
    for (uri, file) in &server.files {
        texts.insert(real(&file.path), (uri.parse().ok(), file.document.text.clone()));
    }
    let mut changes = Vec::new();
    for (path, (uri, source)) in texts {
        if !source.contains(old) {
            continue;
        }
        let mut ranges = uses_of(&path, &source, origin, old);
        ranges.sort_by_key(|range| (range.start.line, range.start.character));
        ranges.dedup();
        let edits: Vec<TextEdit> = ranges
            .into_iter()
            .map(|range| TextEdit {
                range,
                new_text: new.to_string(),
            })
            .collect();
        if let Some(uri) = uri.filter(|_| !edits.is_empty()) {
            changes.push((uri, edits));
        }
    }
    WorkspaceEdit {
        changes: Some(changes.into_iter().collect()),
        ..WorkspaceEdit::default()
    }
}

/// Where a file uses the name `name` of the file `origin`.
fn uses_of(path: &Path, source: &str, origin: &Path, name: &str) -> Vec<Range> {
    if path == origin {
        return text::uses(source, name);
    }
    let mut ranges = Vec::new();
    for one in text::imports(source) {
        match &one.name {
            Some((imported, start, end)) if imported == name || imported == "*" => {
                if resolved(path, &one.module, Reach::Package).as_deref() != Some(origin) {
                    continue;
                }
                match one.alias == *name || imported == "*" {
                    true => ranges.extend(text::uses(source, name)),
                    false => ranges.push(text::range_of(source, *start, *end)),
                }
            }
            _ if module_of(path, &one, Reach::Package).as_deref() == Some(origin) => {
                ranges.extend(text::attributes(source, &one.alias, name));
            }
            _ => {}
        }
    }
    ranges
}

/// The Python files below the manifest above a file; without one, below its folder.
fn kernel_files(file: &Path) -> Vec<PathBuf> {
    fn collect(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
        let Ok(entries) = std::fs::read_dir(folder) else {
            return;
        };
        for entry in entries.flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            if found.len() >= MAX_FILES || name.starts_with('.') {
                continue;
            }
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && depth < DEEPEST && name != "target" => {
                    collect(&path, depth + 1, found);
                }
                Ok(kind) if kind.is_file() && name.ends_with(".py") => found.push(path),
                _ => {}
            }
        }
    }
    let mut above = file.ancestors().skip(1).take(ABOVE);
    let root = above.find(|folder| folder.join("kernels.toml").is_file());
    let mut found = Vec::new();
    if let Some(root) = root.or_else(|| file.parent()) {
        collect(root, 0, &mut found);
    }
    found
}
